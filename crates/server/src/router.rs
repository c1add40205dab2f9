//! Every route: the table of contents of HTTP.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State as Shared};
use axum::http::StatusCode;
use axum::middleware;
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get};
use serde_json::json;
use tower_http::catch_panic::CatchPanicLayer;

use crate::api::{self, Api};
use crate::channels::Addresses;
use crate::config::DOOR;
use crate::{State, auth, contacts, cors, door, gmail, health, media, openapi, queues, realtime, rest};

pub fn router(state: Arc<State>) -> Router {
    let mut router = Router::new().route(DOOR, door_with(None)).route("/health", get(health::health)).route("/ready", get(health::ready));
    if let Some(further) = &state.config.door_path {
        router = router.route(&further.path, door_with(Some(further.key.clone())));
    }
    let access = || state.access.clone();
    let addresses = Addresses { public: state.config.public_base.clone(), local: Some(format!("http://{}", state.address)) };
    router
        .with_state(Arc::clone(&state))
        // /v1/providers, /v1/channels/…
        .merge(api::router(Api { channels: state.channels.clone(), access: access(), addresses }))
        // /v1/contacts/…
        .merge(contacts::http::router(state.pool.clone(), access()))
        // /functions/v1/fetch-gmail-updates, /oauth/google/callback
        .merge(gmail::routes::router(Arc::clone(&state.gmail), access()))
        // /v1/media/{activity}/{n}
        .merge(media::routes::router(Arc::clone(&state.media), access()))
        // /v1/queues/{queue}/{act}
        .merge(queues::routes(state.queues.clone()))
        // /openapi.json, /docs
        .merge(openapi::routes())
        .nest("/rest/v1", rest::routes(state.rest.clone()))
        .nest("/auth/v1", auth::routes_when_ready(state.pool.clone(), access(), sign_in(&state)))
        .merge(state.realtime.clone().map_or_else(Router::new, |realtime| Router::new().nest("/realtime/v1", realtime::routes(realtime))))
        .fallback(async || told(StatusCode::NOT_FOUND, "there is nothing here"))
        .method_not_allowed_fallback(async || told(StatusCode::METHOD_NOT_ALLOWED, "not with this method"))
        .layer(CatchPanicLayer::custom(|_| told(StatusCode::INTERNAL_SERVER_ERROR, "a mistake of ours")))
        .layer(middleware::from_fn(cors::allow_everyone))
}

/// Webhooks; with GET the handshakes of senders that ask first.
fn door_with(key: Option<String>) -> MethodRouter<Arc<State>> {
    let answer = async move |Shared(state): Shared<Arc<State>>, request: Request| door::receive(state, key.clone(), request).await;
    get(answer.clone()).post(answer)
}

/// Links lead back to us, and limits go by the address we believe.
fn sign_in(state: &Arc<State>) -> auth::Settings {
    let mut settings = state.config.auth.clone();
    settings.base = state.config.public_base.clone().unwrap_or_else(|| format!("http://{}", state.address));
    let trusted = state.config.trusted_proxies.clone();
    settings.client = auth::ClientAddress::by(move |peer, headers| door::client::address(peer, headers, &trusted));
    settings
}

fn told(status: StatusCode, error: &str) -> Response<Body> {
    (status, axum::Json(json!({"success": false, "error": error}))).into_response()
}
