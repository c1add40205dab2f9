//! Allows browsers to call every route from pages of any origin. There are no cookies, and every right comes from a key or
//! token that the page must hold itself.

use axum::body::Body;
use axum::extract::Request;
use axum::middleware::Next;
use axum::response::Response;
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS,
    ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS, VARY,
};
use http::{HeaderMap, HeaderValue, Method, StatusCode};

const EXPOSED: &str =
    "Content-Range, Content-Location, Location, Preference-Applied, Content-Profile, X-Supabase-Api-Version, X-Activity-Id";

/// A layer for the whole server: `router.layer(axum::middleware::from_fn(cors::allow_everyone))`.
pub async fn allow_everyone(request: Request, next: Next) -> Response {
    let mut response = if request.method() == Method::OPTIONS { preflight(request.headers()) } else { next.run(request).await };
    let headers = response.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(EXPOSED));
    response
}

/// Answers a preflight request on any path without a key: the browser sends it before the program may send one.
fn preflight(asked: &HeaderMap) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET, HEAD, POST, PATCH, PUT, DELETE, OPTIONS"));
    // Echo the requested names: a fixed list goes stale with the next client, and `*` does not cover authorization.
    if let Some(names) = asked.get(ACCESS_CONTROL_REQUEST_HEADERS) {
        headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, names.clone());
    }
    headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("86400"));
    headers.insert(VARY, HeaderValue::from_static("Access-Control-Request-Headers"));
    response
}
