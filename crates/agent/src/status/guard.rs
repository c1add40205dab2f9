//! Which callers may read, and which may send commands.
//!
//! A page from another site can make a browser send requests to loopback. It cannot choose the `Host` it addresses (so a name
//! that is not this machine's own is refused: that is DNS rebinding), nor hide its origin, nor read our responses.

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use subtle::ConstantTimeEq as _;

/// Answers only requests addressed to this machine.
pub(super) async fn host(request: Request, next: Next) -> Response {
    match authority(&request) {
        Some(authority) if is_this_machine(&authority) => next.run(request).await,
        _ => {
            (StatusCode::MISDIRECTED_REQUEST, "This page is only for this machine: address it as 127.0.0.1 or localhost.\n").into_response()
        }
    }
}

/// Lets commands through from a program that knows the token, and from our own page.
pub(super) async fn orders(State(token): State<Arc<str>>, request: Request, next: Next) -> Response {
    if has_token(request.headers(), &token) || is_our_page(&request) {
        return next.run(request).await;
    }
    let why = "Orders need the agent's token (`gleaner agent pause` knows it), or come from its own page.\n";
    (StatusCode::FORBIDDEN, why).into_response()
}

fn authority(request: &Request) -> Option<Authority> {
    let named = request.headers().get(header::HOST).and_then(|host| host.to_str().ok()?.parse().ok());
    named.or_else(|| request.uri().authority().cloned())
}

fn is_this_machine(authority: &Authority) -> bool {
    let host = authority.host();
    let address = host.trim_start_matches('[').trim_end_matches(']');
    host.eq_ignore_ascii_case("localhost") || address.parse().is_ok_and(|address: IpAddr| address.is_loopback())
}

fn has_token(headers: &HeaderMap, token: &str) -> bool {
    let given = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "));
    given.is_some_and(|given| given.as_bytes().ct_eq(token.as_bytes()).into())
}

/// Browsers send the origin of a request that changes something. The port counts: another program on this machine is another
/// origin.
fn is_our_page(request: &Request) -> bool {
    let text = |name| request.headers().get(name).and_then(|value: &header::HeaderValue| value.to_str().ok());
    let Some(authority) = authority(request) else { return false };
    let same_origin = text(header::ORIGIN).is_some_and(|origin| origin.eq_ignore_ascii_case(&format!("http://{authority}")));
    same_origin && text(header::HeaderName::from_static("sec-fetch-site")).is_none_or(|site| site == "same-origin")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_this_machine_are_this_machine() {
        let is = |host: &str| is_this_machine(&host.parse().expect(host));
        assert!(["127.0.0.1:7433", "localhost", "LOCALHOST:1", "[::1]:7433", "127.9.9.9"].into_iter().all(is));
        let others = ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example:7433", "192.168.1.2:7433", "0.0.0.0:7433", "[::]"];
        for other in others {
            assert!(!is(other), "{other}");
        }
    }
}
