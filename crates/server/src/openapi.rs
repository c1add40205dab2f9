//! `/openapi.json`: the requests and responses of the native routes; `/docs`: the same as a page.
//!
//! The description is written manually, in one file and in the best order for reading. Tests compare it with the router
//! (every route is described and every description has a route) and with the bodies that handlers read; schemathesis
//! compares it with responses.

use std::sync::LazyLock;

use axum::Router;
use axum::http::HeaderName;
use axum::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use axum::routing::get;
use serde_json::Value;

const TEXT: &str = include_str!("openapi/openapi.json");
const PAGE: &str = include_str!("openapi/page.html");

static DESCRIPTION: LazyLock<Value> = LazyLock::new(|| serde_json::from_str(TEXT).expect("our own file is JSON"));

/// The whole description.
pub fn description() -> &'static Value {
    &DESCRIPTION
}

/// The routes, to be merged into the server's.
pub fn routes() -> Router {
    const FRESH: (HeaderName, &str) = (CACHE_CONTROL, "no-cache");
    // The page contains everything it needs and connects to no server but this one.
    const ALONE: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; base-uri 'none'";
    Router::new()
        .route("/openapi.json", get(async || ([(CONTENT_TYPE, "application/json"), FRESH], TEXT)))
        .route("/docs", get(async || ([(CONTENT_TYPE, "text/html; charset=utf-8"), FRESH, (CONTENT_SECURITY_POLICY, ALONE)], PAGE)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every `$ref` below `value`.
    fn references(value: &Value) -> Vec<&str> {
        match value {
            Value::Object(map) => map
                .iter()
                .flat_map(|(name, value)| if name == "$ref" { value.as_str().into_iter().collect() } else { references(value) })
                .collect(),
            Value::Array(list) => list.iter().flat_map(references).collect(),
            _ => Vec::new(),
        }
    }

    #[test]
    fn every_reference_leads_somewhere_and_everything_is_referred_to() {
        let references = references(description());
        for reference in &references {
            assert!(description().pointer(reference.trim_start_matches('#')).is_some(), "{reference}");
        }
        for part in ["schemas", "responses", "parameters"] {
            for name in description()["components"][part].as_object().into_iter().flat_map(|map| map.keys()) {
                assert!(references.contains(&format!("#/components/{part}/{name}").as_str()), "{part}/{name} is used nowhere");
            }
        }
    }
}
