//! The page itself: three files, no external resources, and only the frames of its apps.

use std::collections::BTreeSet;

use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS};
use axum::response::{IntoResponse as _, Response};

use super::Host;

const PAGE: &str = include_str!("page.html");
const SCRIPT: &str = include_str!("page.js");
const STYLE: &str = include_str!("page.css");

pub(super) async fn page(State(host): State<Host>) -> Response {
    let origins: BTreeSet<String> = host.shared.store.all().iter().map(|kept| kept.entry.origin()).collect();
    let frames = if origins.is_empty() { "'none'".to_owned() } else { origins.into_iter().collect::<Vec<_>>().join(" ") };
    let policy = format!(
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self'; frame-src {frames}; \
         frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
    );
    let headers = [
        (CONTENT_TYPE, "text/html; charset=utf-8".to_owned()),
        (CONTENT_SECURITY_POLICY, policy),
        (X_FRAME_OPTIONS, "DENY".to_owned()),
        (X_CONTENT_TYPE_OPTIONS, "nosniff".to_owned()),
        (REFERRER_POLICY, "no-referrer".to_owned()),
        // The page contains a token.
        (CACHE_CONTROL, "no-store".to_owned()),
    ];
    // The token consists of letters, digits, - and _ only, so it needs no escaping.
    (headers, PAGE.replace("{{token}}", &host.shared.page_token)).into_response()
}

pub(super) async fn script() -> Response {
    file("text/javascript; charset=utf-8", SCRIPT)
}

pub(super) async fn style() -> Response {
    file("text/css; charset=utf-8", STYLE)
}

fn file(kind: &'static str, text: &'static str) -> Response {
    ([(CONTENT_TYPE, kind), (X_CONTENT_TYPE_OPTIONS, "nosniff"), (CACHE_CONTROL, "no-cache")], text).into_response()
}
