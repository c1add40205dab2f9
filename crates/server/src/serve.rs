//! Connections: accepted, limited, and finished before the server stops.

mod crowd;
mod received;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Router;
use axum::extract::ConnectInfo;
use axum::http::Request;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tower::ServiceExt as _;

use self::crowd::{Crowd, Placed};
use crate::Config;
use crate::config::Head;

/// How long requests that were received may take to be answered once the server stops.
const FINISH_WITHIN: Duration = Duration::from_secs(30);

/// What connections may take.
#[derive(Debug)]
pub(crate) struct Limits {
    head: Head,
    crowd: Crowd,
}

impl Limits {
    pub(crate) fn new(config: &Config) -> Self {
        Self { head: config.head, crowd: Crowd::new(config.connections, config.trusted_proxies.clone()) }
    }
}

/// Serves until it is stopped; then accepts nothing more, answers what it has received, and closes what is only half sent.
pub(crate) async fn serve(listener: TcpListener, router: Router, limits: Limits, mut stop: watch::Receiver<bool>) {
    let head = limits.head;
    let builder = Arc::new(builder(head));
    let mut turned_away: u64 = 0;
    let connections = GracefulShutdown::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stop.wait_for(|stopped| *stopped) => break,
        };
        match accepted {
            Ok((stream, peer)) => {
                let Some(_place) = limits.crowd.enter(peer.ip()) else {
                    turned_away += 1;
                    // One line for each doubling: a flood must not fill the log.
                    if turned_away.is_power_of_two() {
                        tracing::warn!(%peer, turned_away, "too many connections; closed one at once");
                    }
                    continue;
                };
                let watcher = connections.watcher();
                let accepted = Accepted { stream: Placed { stream, _place }, peer, first_within: head.first_within };
                tokio::spawn(connection(Arc::clone(&builder), accepted, router.clone(), watcher, stop.clone()));
            }
            Err(error) if is_of_one_connection(&error) => {}
            Err(error) => {
                // Most likely there are no file descriptors left. Those in use will be freed.
                tracing::error!(%error, "cannot accept connections");
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
        }
    }
    drop(listener);
    if tokio::time::timeout(FINISH_WITHIN, connections.shutdown()).await.is_err() {
        tracing::warn!("some connections did not finish in time");
    }
}

fn builder(head: Head) -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(head.within).max_buf_size(head.bytes.max(8192));
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_header_list_size(u32::try_from(head.bytes).unwrap_or(u32::MAX))
        .keep_alive_interval(Duration::from_secs(20));
    builder
}

struct Accepted {
    stream: Placed<TcpStream>,
    peer: SocketAddr,
    first_within: Duration,
}

async fn connection(
    builder: Arc<Builder<TokioExecutor>>,
    Accepted { stream, peer, first_within }: Accepted,
    router: Router,
    watcher: hyper_util::server::graceful::Watcher,
    stop: watch::Receiver<bool>,
) {
    // Responses are small; waiting to fill a packet only delays them.
    let _ = stream.stream.set_nodelay(true);
    let in_work = received::InWork::none();
    let following = in_work.clone();
    let began = Arc::new(AtomicBool::new(false));
    let begins = Arc::clone(&began);
    let service = tower::service_fn(move |mut request: Request<hyper::body::Incoming>| {
        begins.store(true, Ordering::Relaxed);
        request.extensions_mut().insert(ConnectInfo(peer));
        let (parts, body) = request.into_parts();
        // A client that waits for leave to send its body has not sent it, and need not be heard out.
        let waits = parts.headers.contains_key(http::header::EXPECT);
        let (body, answer) = following.follow(body, !waits);
        let answered = router.clone().oneshot(Request::from_parts(parts, body));
        async move { answered.await.map(|response| response.map(answer)) }
    });
    let serving = builder.serve_connection_with_upgrades(TokioIo::new(stream), TowerToHyperService::new(service));
    tokio::select! {
        served = watcher.watch(serving.into_owned()) => if let Err(error) = served {
            // A sender that hung up or sent no HTTP.
            tracing::debug!(%error, "connection ended");
        },
        () = without_request(&began, first_within, stop.clone()) => tracing::debug!(%peer, "closed a connection without a request"),
        () = in_work.none_after(stop) => tracing::debug!("closed a connection whose request was not sent in time"),
    }
}

/// Returns when a connection has not sent the head of its first request in time, or at once when the server stops. Never after that
/// request has begun: hyper's own limits hold from there on, but do not hold before it has seen enough to know the protocol.
async fn without_request(began: &AtomicBool, within: Duration, mut stop: watch::Receiver<bool>) {
    let _ = tokio::time::timeout(within, stop.wait_for(|stop| *stop)).await;
    if began.load(Ordering::Relaxed) {
        std::future::pending::<()>().await;
    }
}

fn is_of_one_connection(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionRefused | ConnectionAborted | ConnectionReset)
}
