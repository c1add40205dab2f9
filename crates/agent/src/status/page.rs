//! The page. It is one file without external resources, and requests the view every second.

use axum::http::header;
use axum::response::{Html, IntoResponse, Response};
use uuid::Uuid;

const PAGE: &str = include_str!("page.html");

pub(super) async fn page() -> Response {
    // Only the page's own scripts run, and no other site may put it in a frame for clickjacking.
    let nonce = Uuid::new_v4().simple().to_string();
    let policy = format!(
        "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; connect-src 'self'; img-src data:; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    );
    let headers = [
        (header::CONTENT_SECURITY_POLICY, policy),
        (header::X_FRAME_OPTIONS, "DENY".into()),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff".into()),
        (header::REFERRER_POLICY, "no-referrer".into()),
        (header::CACHE_CONTROL, "no-store".into()),
    ];
    (headers, Html(PAGE.replace("{{nonce}}", &nonce))).into_response()
}
