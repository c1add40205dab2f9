//! Checks the project key, without which every request here is refused.

use axum::Json;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use gleaner_http::Role;
use serde_json::json;

use super::Auth;
use super::error::Result;
use crate::access::is_opaque;

/// What the caller's project key permits.
#[derive(Debug, Clone)]
pub(super) struct Key {
    pub text: String,
    pub role: Role,
}

/// Accepts requests with a key of this project, in the header or as a query parameter.
pub(super) async fn require(State(auth): State<Auth>, mut request: Request, next: Next) -> Response {
    let Some(text) = key_of(&request) else {
        return refused("No API key found in request", "No `apikey` request header or url param was found.");
    };
    match auth.role_of_key(&text).await {
        Ok(Some(role)) => {
            request.extensions_mut().insert(Key { text, role });
            next.run(request).await
        }
        Ok(None) => refused("Invalid API key", "Double check your Supabase `anon` or `service_role` API key."),
        Err(failure) => failure.into_response(),
    }
}

fn key_of(request: &Request) -> Option<String> {
    if let Some(value) = request.headers().get("apikey") {
        return Some(value.to_str().unwrap_or_default().to_owned());
    }
    let query = request.uri().query()?;
    form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == "apikey").map(|(_, value)| value.into_owned())
}

fn refused(message: &str, hint: &str) -> Response {
    (StatusCode::UNAUTHORIZED, Json(json!({"message": message, "hint": hint}))).into_response()
}

impl Auth {
    /// The role of a project key: a signed one, or an opaque one from the database. A user's token is not a key.
    pub(super) async fn role_of_key(&self, key: &str) -> Result<Option<Role>> {
        if is_opaque(key) {
            let claims = self.0.keys.verify(key).await?;
            return Ok(claims.and_then(|claims| Role::named(claims.get("role")?.as_str()?)));
        }
        let role = self.0.signer.verify(key).ok().filter(|claims| claims.sub.is_none()).map(|claims| claims.role);
        Ok(role.filter(|role| matches!(role, Role::Anon | Role::Service)))
    }
}
