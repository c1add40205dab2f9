//! All HTTP routes.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::http::StatusCode;
use axum::middleware;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use gleaner_intake::api::{self, Api};
use gleaner_intake::channels::Addresses;
use gleaner_intake::{contacts, mailboxes, media, webhooks};
use gleaner_supabase::{auth, realtime, rest};
use serde_json::json;
use tower_http::catch_panic::CatchPanicLayer;

use crate::{State, cors, health, openapi, queues};

pub fn router(state: Arc<State>) -> Router {
    let access = || state.access.clone();
    let addresses = Addresses { public: state.config.public_base.clone(), local: Some(format!("http://{}", state.address)) };
    Router::new()
        .route("/health", get(health::health))
        .route("/ready", get(health::ready))
        .with_state(Arc::clone(&state))
        // /functions/v1/ingest-activity
        .merge(webhooks::routes(Arc::clone(&state.webhooks)))
        // /v1/providers, /v1/channels/…
        .merge(api::router(Api { channels: state.channels.clone(), authenticator: access().into(), addresses }))
        // /v1/contacts/…
        .merge(contacts::router(state.pool.clone(), access()))
        // /functions/v1/fetch-gmail-updates, /oauth/google/callback
        .merge(mailboxes::router(Arc::clone(&state.gmail), access()))
        // /v1/media/{activity}/{n}
        .merge(media::router(Arc::clone(&state.media), access()))
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

/// Sign-in links point back to this server, and rate limits use the client address we trust.
fn sign_in(state: &Arc<State>) -> auth::Settings {
    let mut settings = state.config.auth.clone();
    settings.base = state.config.public_base.clone().unwrap_or_else(|| format!("http://{}", state.address));
    let trusted = state.config.trusted_proxies.clone();
    settings.client = auth::ClientAddress::by(move |peer, headers| webhooks::client_address(peer, headers, &trusted));
    settings
}

fn told(status: StatusCode, error: &str) -> Response<Body> {
    (status, axum::Json(json!({"success": false, "error": error}))).into_response()
}
