//! Which callers may send requests, and from where.
//!
//! A page in the user's own browser can reach a port on loopback. Three checks keep it out: the token, which the page does not
//! have; the `Origin` header, which it cannot omit; and the `Host` header, which reveals a name that was rebound to this
//! address.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use serde_json::json;

/// Host names of loopback.
const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// The token, and the host names this server accepts.
#[derive(Clone)]
pub struct Guard {
    token: Arc<str>,
    hosts: Vec<String>,
    origins: Vec<String>,
}

impl std::fmt::Debug for Guard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Guard").field("hosts", &self.hosts).field("origins", &self.origins).finish_non_exhaustive()
    }
}

impl Guard {
    /// Accepts loopback names only, and no browser.
    pub fn new(token: impl Into<Arc<str>>) -> Self {
        Self { token: token.into(), hosts: LOOPBACK.map(str::to_owned).to_vec(), origins: Vec::new() }
    }

    /// Also accepts these names, for a server that listens beyond loopback.
    #[must_use]
    pub fn hosts(mut self, hosts: impl IntoIterator<Item = String>) -> Self {
        self.hosts.extend(hosts);
        self
    }

    /// Also accepts pages of these origins, such as `http://localhost:6274`.
    #[must_use]
    pub fn origins(mut self, origins: impl IntoIterator<Item = String>) -> Self {
        self.origins.extend(origins);
        self
    }

    pub(crate) fn known_hosts(&self) -> &[String] {
        &self.hosts
    }

    pub(crate) fn known_origins(&self) -> &[String] {
        &self.origins
    }

    fn judge(&self, headers: &HeaderMap, uri: &Uri, needs_token: bool) -> Result<(), (StatusCode, &'static str)> {
        let host =
            headers.get(header::HOST).and_then(|host| host.to_str().ok()).or_else(|| uri.authority().map(|authority| authority.as_str()));
        let known = |given: &str| self.hosts.iter().any(|host| given.eq_ignore_ascii_case(host) || name(given).eq_ignore_ascii_case(host));
        if !host.is_some_and(known) {
            return Err((StatusCode::FORBIDDEN, "this server does not go by that name; use localhost"));
        }
        if let Some(origin) = headers.get(header::ORIGIN)
            && !origin.to_str().is_ok_and(|origin| self.origins.iter().any(|known| known == origin))
        {
            return Err((StatusCode::FORBIDDEN, "pages of that origin may not come in here"));
        }
        let given = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok()).and_then(bearer);
        if needs_token && !given.is_some_and(|given| same(given, &self.token)) {
            return Err((StatusCode::UNAUTHORIZED, "send the token as `Authorization: Bearer …`"));
        }
        Ok(())
    }
}

/// Checks the host, the origin and the token.
pub async fn with_token(State(guard): State<Guard>, request: Request, next: Next) -> Response {
    admit(&guard, request, next, true).await
}

/// For what any caller that passes the host and origin checks may read without a token.
pub async fn without_token(State(guard): State<Guard>, request: Request, next: Next) -> Response {
    admit(&guard, request, next, false).await
}

async fn admit(guard: &Guard, request: Request, next: Next, needs_token: bool) -> Response {
    match guard.judge(request.headers(), request.uri(), needs_token) {
        Ok(()) => next.run(request).await,
        Err((status, says)) => {
            let mut answer = (status, axum::Json(json!({"error": says}))).into_response();
            if status == StatusCode::UNAUTHORIZED {
                answer.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            answer
        }
    }
}

/// The host without its port.
fn name(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit()) => name,
        _ => host,
    }
}

fn bearer(value: &str) -> Option<&str> {
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// Compares in constant time, so that the timing does not reveal how much of the token was right.
fn same(given: &str, token: &str) -> bool {
    let (given, token) = (given.as_bytes(), token.as_bytes());
    let differs = given.iter().zip(token).fold(u8::from(given.len() != token.len()), |differs, (a, b)| differs | (a ^ b));
    differs == 0 && !token.is_empty()
}
