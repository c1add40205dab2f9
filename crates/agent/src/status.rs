//! The agent's own page, its metrics and its health.
//!
//! - [`view`]: the whole state as one value; [`health`]: whether that state is healthy; [`metrics`]: the same for Prometheus.
//! - [`page`]: the page, which requests the view every second; [`guard`]: which callers may read, and which may send commands.
//! - [`note`]: where an agent of this home listens; [`client`]: sends requests to a running agent.

pub mod client;
mod guard;
pub mod health;
mod metrics;
pub mod note;
mod page;
pub mod view;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router, middleware};
use serde::Deserialize;
use serde_json::json;
use tokio::net::TcpListener;

use self::view::View;
use crate::agent::Error;
use crate::agent::shared::Shared;
use crate::config::Listen;

/// How many further ports to try when the usual one is taken.
const FURTHER: u16 = 100;
/// Waiting items are counted at most this often, however many clients ask.
const COUNT_EVERY: Duration = Duration::from_secs(5);
/// The timeout of the count. A page that waits for a slow database would show nothing at all.
const COUNT_PATIENCE: Duration = Duration::from_millis(700);

pub(crate) async fn bind(listen: Listen) -> Result<TcpListener, Error> {
    let mut address = listen.address;
    let last = if listen.or_next { address.port().saturating_add(FURTHER) } else { address.port() };
    loop {
        match TcpListener::bind(address).await {
            Err(error) if error.kind() == std::io::ErrorKind::AddrInUse && address.port() < last => address.set_port(address.port() + 1),
            Err(source) => return Err(Error::Listen { address, source }),
            Ok(listener) => return Ok(listener),
        }
    }
}

/// The page and its routes. Commands need `token`, or must come from a page of this very listener.
pub(crate) fn router(shared: Arc<Shared>, token: &str) -> Router {
    let orders = Router::new()
        .route("/pause", post(pause))
        .route("/resume", post(resume))
        .route("/concurrency", post(concurrency))
        .layer(middleware::from_fn_with_state(Arc::<str>::from(token), guard::orders));
    Router::new()
        .route("/", get(page::page))
        .route("/health", get(health))
        .route("/metrics", get(metrics))
        .route("/status.json", get(status))
        .merge(orders)
        .with_state(shared)
}

/// Serves until aborted. Only requests addressed to this machine are answered, whatever the route.
pub(crate) async fn serve(listener: TcpListener, router: Router) {
    let router = router.layer(middleware::from_fn(guard::host));
    if let Err(error) = axum::serve(listener, router.into_make_service_with_connect_info::<SocketAddr>()).await {
        tracing::error!(%error, "the status page is gone");
    }
}

async fn counted(shared: &Shared) {
    let meters = shared.meters();
    futures_util::future::join_all(meters.iter().map(|meter| meter.refresh(COUNT_EVERY, COUNT_PATIENCE))).await;
}

async fn status(State(shared): State<Arc<Shared>>) -> Response {
    counted(&shared).await;
    fresh(Json(View::of(&shared)))
}

async fn health(State(shared): State<Arc<Shared>>) -> Response {
    let view = View::of(&shared);
    let status = if view.health.healthy { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let word = if view.health.healthy { "healthy" } else { "unhealthy" };
    let body = json!({"status": word, "reasons": view.health.reasons, "state": view.state, "metrics": view.polling});
    fresh((status, Json(body)))
}

async fn metrics(State(shared): State<Arc<Shared>>) -> Response {
    counted(&shared).await;
    fresh(([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], metrics::text(&shared)))
}

async fn pause(State(shared): State<Arc<Shared>>) -> Response {
    shared.control.pause();
    tracing::info!("paused");
    fresh(Json(View::of(&shared)))
}

async fn resume(State(shared): State<Arc<Shared>>) -> Response {
    shared.control.resume();
    tracing::info!("resumed");
    fresh(Json(View::of(&shared)))
}

#[derive(Debug, Deserialize)]
struct Concurrency {
    concurrency: usize,
}

async fn concurrency(State(shared): State<Arc<Shared>>, Json(wanted): Json<Concurrency>) -> Response {
    if !(1..=1000).contains(&wanted.concurrency) {
        return (StatusCode::BAD_REQUEST, Json(json!({"error": "concurrency is a number from 1 to 1000"}))).into_response();
    }
    shared.control.set_concurrency(wanted.concurrency);
    fresh(Json(View::of(&shared)))
}

/// The response describes the current state and must not be cached.
fn fresh(answer: impl IntoResponse) -> Response {
    ([(header::CACHE_CONTROL, "no-store")], answer).into_response()
}
