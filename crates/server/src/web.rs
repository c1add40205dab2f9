//! The web interface: what Vite builds from `web/`, embedded in the binary. It answers every path that no other route has.

use std::borrow::Cow;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::Request;
use axum::http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HOST, REFERRER_POLICY, VARY,
    X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderValue, Method};
use axum::response::{IntoResponse as _, Response};
use serde_json::{Value, json};

/// A debug build reads the folder when it is asked, so that a new build of the page needs no new build of the server.
#[derive(rust_embed::RustEmbed)]
#[folder = "../../web/dist"]
struct Files;

/// What is served where the page was not built.
const NOT_BUILT: &str = include_str!("web/not_built.html");

/// The first segments of the page's own URLs. The page itself says when there is nothing behind the rest.
const PAGES: [&str; 20] = [
    "",
    "sign-in",
    "invite",
    "reset",
    "code",
    "activity",
    "unmatched",
    "contacts",
    "channels",
    "me",
    "overview",
    "queues",
    "dead",
    "agents",
    "audit",
    "settings",
    "followups",
    "dumps",
    "runs",
    "recordings",
];

/// The place in `index.html` where the page finds its settings.
const SETTINGS: &str = r#"<meta name="gleaner" content="">"#;

/// What the page is given.
#[derive(Debug, Clone)]
pub(crate) struct Web {
    /// Attributes of the settings element, escaped.
    settings: Arc<str>,
    /// The origins that may show the page in a frame, for `frame-ancestors`.
    ancestors: Arc<str>,
}

impl Web {
    /// `key` is the public project key, with which supabase-js speaks for people who have not signed in yet. `frames` are the
    /// origins that may show the page in a frame.
    pub(crate) fn new(key: &str, frames: &[String]) -> Self {
        let settings = json!({"key": key, "frames": frames, "version": env!("CARGO_PKG_VERSION")});
        let ancestors = if frames.is_empty() { "'none'".to_owned() } else { frames.join(" ") };
        Self { settings: element(&settings).into(), ancestors: ancestors.into() }
    }

    /// The response for this request, or none if it asks for nothing of ours.
    pub(crate) fn answer(&self, request: &Request) -> Option<Response> {
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            return None;
        }
        let path = request.uri().path().trim_start_matches('/');
        let first = path.split('/').next().unwrap_or_default();
        if PAGES.contains(&first) {
            return Some(self.page(request.headers()));
        }
        file(path, request.headers())
    }

    fn page(&self, headers: &HeaderMap) -> Response {
        let index = get("index.html").unwrap_or(Cow::Borrowed(NOT_BUILT.as_bytes()));
        let index = String::from_utf8_lossy(&index).replacen(SETTINGS, &self.settings, 1);
        let mut response = ([(CONTENT_TYPE, "text/html; charset=utf-8"), (CACHE_CONTROL, "no-cache")], index).into_response();
        let policy = policy(headers.get(HOST).and_then(|host| host.to_str().ok()), &self.ancestors);
        if let Ok(policy) = HeaderValue::try_from(policy) {
            response.headers_mut().insert(CONTENT_SECURITY_POLICY, policy);
        }
        response.headers_mut().insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        response.headers_mut().insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
        response
    }
}

/// Nothing runs or loads that we did not build. Not every browser counts a WebSocket of the same host as `'self'`.
fn policy(host: Option<&str>, ancestors: &str) -> String {
    let plain = |host: &&str| host.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | ':' | '-' | '[' | ']'));
    let sockets = host.filter(plain).map(|host| format!(" ws://{host} wss://{host}")).unwrap_or_default();
    format!(
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; media-src 'self' blob:; \
         connect-src 'self'{sockets}; worker-src 'self'; manifest-src 'self'; form-action 'self'; base-uri 'none'; \
         require-trusted-types-for 'script'; frame-ancestors {ancestors}"
    )
}

/// The settings as an element. Data in an attribute is never run, whatever is in it.
fn element(settings: &Value) -> String {
    let text = settings.to_string().replace('&', "&amp;").replace('"', "&quot;").replace('<', "&lt;");
    format!(r#"<meta name="gleaner" content="{text}">"#)
}

/// A file of the build, compressed if the browser accepts that. Names in `assets` contain a hash of the content.
fn file(path: &str, headers: &HeaderMap) -> Option<Response> {
    if path.split('/').any(|part| part.starts_with('.')) || path.ends_with(".html") {
        return None;
    }
    let kind = kind(path)?;
    let accepted = headers.get(ACCEPT_ENCODING).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let accepts = |name: &str| accepted.split(',').any(|one| one.trim().split(';').next() == Some(name));
    let compressed = [("br", "br"), ("gzip", "gz")].into_iter().filter(|(name, _)| accepts(name));
    let (encoding, data) = compressed
        .filter_map(|(name, ending)| Some((Some(name), get(&format!("{path}.{ending}"))?)))
        .next()
        .or_else(|| Some((None, get(path)?)))?;
    let body = match data {
        Cow::Borrowed(bytes) => Body::from(bytes),
        Cow::Owned(bytes) => Body::from(bytes),
    };
    let age = if path.starts_with("assets/") { "public, max-age=31536000, immutable" } else { "no-cache" };
    let mut response = ([(CONTENT_TYPE, kind), (CACHE_CONTROL, age)], body).into_response();
    response.headers_mut().insert(VARY, HeaderValue::from_static("Accept-Encoding"));
    response.headers_mut().insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    if let Some(encoding) = encoding {
        response.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static(encoding));
    }
    Some(response)
}

fn get(path: &str) -> Option<Cow<'static, [u8]>> {
    Files::get(path).map(|file| file.data)
}

fn kind(path: &str) -> Option<&'static str> {
    match path.rsplit_once('.')?.1 {
        "js" => Some("text/javascript; charset=utf-8"),
        "css" => Some("text/css; charset=utf-8"),
        "svg" => Some("image/svg+xml"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_into_the_page_stays_in_its_attribute() {
        let written = element(&json!({"key": r#""><script>alert(1)</script>"#}));
        assert_eq!(written.matches('"').count(), 4, "{written}");
        assert!(!written.contains("<script"), "{written}");
    }

    #[test]
    fn a_host_that_is_no_host_adds_nothing_to_the_policy() {
        assert!(policy(Some("crm.example.com:8080"), "'none'").contains("wss://crm.example.com:8080"));
        assert!(!policy(Some("a; script-src *"), "'none'").contains("script-src *"));
    }
}
