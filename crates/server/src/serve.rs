//! Connections: accepted, bounded, and finished before the server stops.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::Request;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tower::ServiceExt as _;

use crate::config::Limits;

/// How long requests in flight may take once the server is told to stop.
const FINISH_WITHIN: Duration = Duration::from_secs(30);

/// Serves until told to stop; then accepts nothing more and finishes what is in flight.
pub async fn serve(listener: TcpListener, router: Router, limits: Limits, mut stop: watch::Receiver<bool>) {
    let builder = Arc::new(builder(&limits));
    let connections = GracefulShutdown::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stop.wait_for(|told| *told) => break,
        };
        match accepted {
            Ok((stream, peer)) => {
                let watcher = connections.watcher();
                tokio::spawn(connection(Arc::clone(&builder), stream, peer, router.clone(), watcher));
            }
            Err(error) if is_of_one_connection(&error) => {}
            Err(error) => {
                // No file descriptors left, most likely; those in use come back.
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

fn builder(limits: &Limits) -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(limits.head_within).max_buf_size(limits.head_bytes.max(8192));
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_header_list_size(u32::try_from(limits.head_bytes).unwrap_or(u32::MAX))
        .keep_alive_interval(Duration::from_secs(20));
    builder
}

async fn connection(
    builder: Arc<Builder<TokioExecutor>>,
    stream: TcpStream,
    peer: SocketAddr,
    router: Router,
    watcher: hyper_util::server::graceful::Watcher,
) {
    // Answers are small; waiting to fill a packet only delays them.
    let _ = stream.set_nodelay(true);
    let service = router.map_request(move |mut request: Request<hyper::body::Incoming>| {
        request.extensions_mut().insert(ConnectInfo(peer));
        request.map(Body::new)
    });
    let serving = builder.serve_connection_with_upgrades(TokioIo::new(stream), TowerToHyperService::new(service));
    if let Err(error) = watcher.watch(serving.into_owned()).await {
        // A sender that hung up or spoke nonsense; its own matter.
        tracing::debug!(%error, "connection ended");
    }
}

fn is_of_one_connection(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionRefused | ConnectionAborted | ConnectionReset)
}
