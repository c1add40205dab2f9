//! What surrounds every route: CORS, a request id, a span in the log, and a limit on how slowly a body may arrive.

use std::time::Duration;

use axum::Router;
use axum::body::Body;
use http::header::{ACCESS_CONTROL_REQUEST_HEADERS, CONTENT_LOCATION, CONTENT_RANGE, HeaderName, LOCATION};
use http::{Method, Request};
use tower_http::cors::{AllowHeaders, Any, CorsLayer};
use tower_http::request_id::{MakeRequestUuid, PropagateRequestIdLayer, RequestId, SetRequestIdLayer};
use tower_http::timeout::RequestBodyTimeoutLayer;
use tower_http::trace::{DefaultOnFailure, DefaultOnResponse, TraceLayer};
use tracing::{Level, Span};

/// How long the next piece of a request's body may take. Routes that read bodies themselves have shorter limits.
const BODY_IDLE: Duration = Duration::from_secs(30);

/// The longest request id that is written to the log. A proxy in front of us may send its own.
const LONGEST_ID: usize = 64;

/// Adds the layers. A response has the id under which its errors are in the log, as `x-request-id`.
pub fn surround(router: Router) -> Router {
    router
        .layer(RequestBodyTimeoutLayer::new(BODY_IDLE))
        .layer(cors())
        .layer(PropagateRequestIdLayer::x_request_id())
        .layer(
            TraceLayer::new_for_http()
                .make_span_with(span)
                .on_request(())
                .on_response(DefaultOnResponse::new().level(Level::DEBUG))
                // An error is logged where it is handled; this adds only that the request is over.
                .on_failure(DefaultOnFailure::new().level(Level::DEBUG)),
        )
        .layer(SetRequestIdLayer::x_request_id(MakeRequestUuid))
}

/// Allows browsers to call every route from pages of any origin. There are no cookies, and every right comes from a key or token
/// that the page must hold itself. Preflight requests need no key: the browser sends them before the page may send one.
fn cors() -> CorsLayer {
    let exposed = ["preference-applied", "content-profile", "x-supabase-api-version", "x-activity-id", "x-request-id"];
    CorsLayer::new()
        .allow_origin(Any)
        .allow_methods([Method::GET, Method::HEAD, Method::POST, Method::PATCH, Method::PUT, Method::DELETE, Method::OPTIONS])
        // The requested names: a fixed list goes stale with the next client, and `*` does not cover authorization.
        .allow_headers(AllowHeaders::mirror_request())
        .expose_headers(
            [CONTENT_RANGE, CONTENT_LOCATION, LOCATION].into_iter().chain(exposed.map(HeaderName::from_static)).collect::<Vec<_>>(),
        )
        .vary([ACCESS_CONTROL_REQUEST_HEADERS])
        .max_age(Duration::from_secs(24 * 3600))
}

/// The path without its query, which may hold a key. At the level of errors, so that every event inside has the id.
fn span(request: &Request<Body>) -> Span {
    let id = request.extensions().get::<RequestId>().and_then(|id| id.header_value().to_str().ok()).unwrap_or_default();
    let id = id.get(..LONGEST_ID).unwrap_or(id);
    tracing::error_span!("request", method = %request.method(), path = request.uri().path(), id)
}
