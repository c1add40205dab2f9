//! `POST /token?grant_type=refresh_token`.

use axum::extract::{FromRequest as _, Request};
use serde::Deserialize;
use serde_json::Value;
use tokio_postgres::types::Type;

use super::Auth;
use super::body::Body;
use super::error::{Failure, Result};
use super::session::Device;
use super::token::new_public_half;

#[derive(Deserialize)]
struct RefreshRequest {
    refresh_token: Option<String>,
}

pub(super) async fn grant(auth: &Auth, device: &Device, request: Request) -> Result<Value> {
    let Body(given) = Body::<RefreshRequest>::from_request(request, auth).await?;
    let Some(token) = given.refresh_token.filter(|token| !token.is_empty()) else {
        return Err(Failure::invalid("refresh_token required"));
    };
    let attempt = auth.0.limits.try_token(device.network())?;
    let Some(public) = auth.0.signer.read_refresh_token(&token) else { return Err(not_found()) };
    // We signed this token, so it is not a guess, whatever its state.
    attempt.does_not_count();
    let row = auth
        .row(
            "refresh a session",
            "select gleaner.refresh_session($1, $2, $3 * interval '1 second')",
            &[(&public, Type::TEXT), (&new_public_half(), Type::TEXT), (&auth.0.settings.refresh_grace.as_secs_f64(), Type::FLOAT8)],
        )
        .await?;
    let refreshed: Value = row.get(0);
    match refreshed["outcome"].as_str() {
        Some("refreshed") => Ok(auth.session(&refreshed, refreshed["token"].as_str().unwrap_or_default())),
        Some("already_used") => Err(Failure::new(400, "refresh_token_already_used", "Invalid Refresh Token: Already Used")),
        Some("expired") => Err(Failure::new(400, "session_expired", "Invalid Refresh Token: Session Expired")),
        Some("user_banned") => Err(Failure::banned()),
        _ => Err(not_found()),
    }
}

fn not_found() -> Failure {
    Failure::new(400, "refresh_token_not_found", "Invalid Refresh Token: Refresh Token Not Found")
}
