//! Connections: accepted, limited, and finished before the server stops.

mod received;

use std::net::SocketAddr;
use std::sync::Arc;
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

use crate::config::Head;

/// How long requests that were received may take to be answered once the server stops.
const FINISH_WITHIN: Duration = Duration::from_secs(30);

/// Serves until it is stopped; then accepts nothing more, answers what it has received, and closes what is only half sent.
pub(crate) async fn serve(listener: TcpListener, router: Router, head: Head, mut stop: watch::Receiver<bool>) {
    let builder = Arc::new(builder(head));
    let connections = GracefulShutdown::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stop.wait_for(|told| *told) => break,
        };
        match accepted {
            Ok((stream, peer)) => {
                let watcher = connections.watcher();
                tokio::spawn(connection(Arc::clone(&builder), stream, peer, router.clone(), watcher, stop.clone()));
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

async fn connection(
    builder: Arc<Builder<TokioExecutor>>,
    stream: TcpStream,
    peer: SocketAddr,
    router: Router,
    watcher: hyper_util::server::graceful::Watcher,
    stop: watch::Receiver<bool>,
) {
    // Responses are small; waiting to fill a packet only delays them.
    let _ = stream.set_nodelay(true);
    let in_work = received::InWork::none();
    let following = in_work.clone();
    let service = tower::service_fn(move |mut request: Request<hyper::body::Incoming>| {
        request.extensions_mut().insert(ConnectInfo(peer));
        let (parts, body) = request.into_parts();
        let (body, answer) = following.follow(body);
        let answered = router.clone().oneshot(Request::from_parts(parts, body));
        async move { answered.await.map(|response| response.map(answer)) }
    });
    let serving = builder.serve_connection_with_upgrades(TokioIo::new(stream), TowerToHyperService::new(service));
    tokio::select! {
        served = watcher.watch(serving.into_owned()) => if let Err(error) = served {
            // A sender that hung up or sent no HTTP.
            tracing::debug!(%error, "connection ended");
        },
        () = in_work.none_after(stop) => tracing::debug!("closed a connection whose request was not sent in time"),
    }
}

fn is_of_one_connection(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionRefused | ConnectionAborted | ConnectionReset)
}
