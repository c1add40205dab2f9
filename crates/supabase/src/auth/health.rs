//! Information about the service itself.

use axum::Json;
use axum::extract::State;
use axum::http::header::CACHE_CONTROL;
use axum::response::IntoResponse;
use serde_json::{Value, json};

use super::Auth;
use super::settings::Signup;

pub(super) async fn health() -> Json<Value> {
    Json(
        json!({"name": "GoTrue", "version": env!("CARGO_PKG_VERSION"), "description": "Sign-in of a Gleaner server, as GoTrue's API has it"}),
    )
}

/// There are no public keys: tokens are signed with the project secret, and clients call `/user` instead.
pub(super) async fn jwks() -> impl IntoResponse {
    ([(CACHE_CONTROL, "public, max-age=600")], Json(json!({"keys": []})))
}

/// Which ways to sign in are enabled.
pub(super) async fn settings(State(auth): State<Auth>) -> Json<Value> {
    let signup = auth.0.settings.signup;
    Json(json!({
        "external": {"email": true, "phone": false, "anonymous_users": false},
        "disable_signup": signup == Signup::Off,
        "mailer_autoconfirm": signup == Signup::Open,
        "phone_autoconfirm": false,
        "sms_provider": "",
        "saml_enabled": false,
    }))
}
