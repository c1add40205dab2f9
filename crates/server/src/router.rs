//! Every route: the table of contents of HTTP.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State as Shared};
use axum::http::{HeaderName, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get};
use serde_json::json;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::cors::{AllowHeaders, Any, CorsLayer};

use crate::api::{self, Api};
use crate::channels::Addresses;
use crate::config::DOOR;
use crate::{State, contacts, door, gmail, health, media, queues, realtime};

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
        .merge(state.realtime.clone().map_or_else(Router::new, |realtime| Router::new().nest("/realtime/v1", realtime::routes(realtime))))
        .fallback(async || told(StatusCode::NOT_FOUND, "there is nothing here"))
        .method_not_allowed_fallback(async || told(StatusCode::METHOD_NOT_ALLOWED, "not with this method"))
        .layer(CatchPanicLayer::custom(|_| told(StatusCode::INTERNAL_SERVER_ERROR, "a mistake of ours")))
        .layer(cors())
}

/// Webhooks; with GET the handshakes of senders that ask first.
fn door_with(key: Option<String>) -> MethodRouter<Arc<State>> {
    let answer = async move |Shared(state): Shared<Arc<State>>, request: Request| door::receive(state, key.clone(), request).await;
    get(answer.clone()).post(answer)
}

/// As Supabase answers: anybody may ask, with whatever headers; there are no cookies to protect.
fn cors() -> CorsLayer {
    let exposed = ["content-range", "content-location", "location", "preference-applied", "content-profile", "x-supabase-api-version"];
    CorsLayer::new()
        .allow_origin(Any)
        .allow_methods([Method::GET, Method::HEAD, Method::POST, Method::PATCH, Method::PUT, Method::DELETE, Method::OPTIONS])
        .allow_headers(AllowHeaders::mirror_request())
        .expose_headers(
            exposed.map(HeaderName::from_static).into_iter().chain([HeaderName::from_static("x-activity-id")]).collect::<Vec<_>>(),
        )
        .max_age(Duration::from_secs(86_400))
}

fn told(status: StatusCode, error: &str) -> Response<Body> {
    (status, axum::Json(json!({"success": false, "error": error}))).into_response()
}
