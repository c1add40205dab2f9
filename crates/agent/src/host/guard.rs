//! Which requests are answered. Every page in a browser can send requests to loopback, but it cannot choose the `Host` it
//! addresses, nor hide its origin, nor read our page and the token in it.

use std::net::IpAddr;

use axum::extract::{Request, State};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderName, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};

use super::{Host, token};

pub(super) const PAGE_TOKEN: HeaderName = HeaderName::from_static("x-gleaner-token");
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// The authority of the request's `Host` header, if it is this machine. A foreign name that resolves to this address is an
/// attack (DNS rebinding).
pub(super) fn own_authority(headers: &HeaderMap) -> Option<Authority> {
    let authority: Authority = text(headers, &header::HOST)?.parse().ok()?;
    let host = authority.host();
    let address = host.trim_start_matches('[').trim_end_matches(']');
    let is_ours = host.eq_ignore_ascii_case("localhost") || address.parse().is_ok_and(|address: IpAddr| address.is_loopback());
    is_ours.then_some(authority)
}

/// For all routes: the request must be addressed to this machine.
pub(super) async fn this_machine_only(request: Request, next: Next) -> Response {
    if own_authority(request.headers()).is_none() {
        let why = "This page is only for this machine: address it as 127.0.0.1 or localhost.\n";
        return (StatusCode::MISDIRECTED_REQUEST, why).into_response();
    }
    next.run(request).await
}

/// For the page's requests: they must come from our own page.
pub(super) async fn page_only(State(host): State<Host>, request: Request, next: Next) -> Response {
    if is_our_page(&host, request.method(), request.headers()) {
        return next.run(request).await;
    }
    (StatusCode::FORBIDDEN, "Only the agent's own page may ask this; load it anew.\n").into_response()
}

fn is_our_page(host: &Host, method: &Method, headers: &HeaderMap) -> bool {
    let Some(authority) = own_authority(headers) else { return false };
    let same_origin = match text(headers, &header::ORIGIN) {
        Some(origin) => origin.eq_ignore_ascii_case(&format!("http://{authority}")),
        // Browsers omit it only for requests that change nothing.
        None => method == Method::GET,
    };
    let same_site = text(headers, &FETCH_SITE).is_none_or(|site| site == "same-origin");
    let knows_token = text(headers, &PAGE_TOKEN).is_some_and(|given| token::same(given, &host.shared.page_token));
    same_origin && same_site && knows_token
}

pub(super) fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}
