//! `POST /token`, and the session that both grants return.

use std::net::IpAddr;

use axum::Json;
use axum::extract::{Request, State};
use axum::http::header::USER_AGENT;
use axum::http::request::Parts;
use axum::response::{IntoResponse as _, Response};
use serde_json::{Value, json};
use tokio_postgres::types::Type;
use uuid::Uuid;

use super::Auth;
use super::client::network;
use super::error::{Failure, Result};
use super::token::new_public_half;
use super::{refresh, sign_in};

/// The client's device.
#[derive(Debug, Clone)]
pub(super) struct Device {
    pub address: Option<IpAddr>,
    pub agent: Option<String>,
}

impl Device {
    pub(super) fn of(auth: &Auth, parts: &Parts) -> Self {
        let agent = parts.headers.get(USER_AGENT).and_then(|value| value.to_str().ok());
        Self { address: auth.0.settings.client.of(parts), agent: agent.map(|text| text.chars().take(500).collect()) }
    }

    /// The network that limits count the device by.
    pub(super) fn network(&self) -> Option<IpAddr> {
        network(self.address)
    }
}

impl axum::extract::FromRequestParts<Auth> for Device {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, auth: &Auth) -> Result<Self, Self::Rejection> {
        Ok(Self::of(auth, parts))
    }
}

/// `POST /token?grant_type=…`.
pub(super) async fn token(State(auth): State<Auth>, device: Device, request: Request) -> Result<Response> {
    let query = request.uri().query().unwrap_or_default();
    let grant = form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == "grant_type").map(|(_, value)| value.into_owned());
    let session = match grant.as_deref() {
        Some("password") => sign_in::grant(&auth, &device, request).await?,
        Some("refresh_token") => refresh::grant(&auth, &device, request).await?,
        _ => return Err(Failure::invalid("unsupported_grant_type: only password and refresh_token are known here")),
    };
    Ok(Json(session).into_response())
}

impl Auth {
    /// Signs in a user whose proof was checked. `password` is the hash it was checked against; `None` for a link.
    pub(super) async fn open_session(&self, user: Uuid, password: Option<&str>, method: &str, device: &Device) -> Result<Value> {
        let public = new_public_half();
        let row = self
            .row(
                "open a session",
                "select gleaner.open_session($1, $2, $3, $4, $5, $6)",
                &[
                    (&user, Type::UUID),
                    (&password, Type::TEXT),
                    (&public, Type::TEXT),
                    (&method, Type::TEXT),
                    (&device.agent, Type::TEXT),
                    (&device.address, Type::INET),
                ],
            )
            .await?;
        let opened: Value = row.get(0);
        match opened["outcome"].as_str() {
            Some("opened") => Ok(self.session(&opened, &public)),
            Some("user_banned") => Err(Failure::banned()),
            Some("email_not_confirmed") => Err(Failure::new(400, "email_not_confirmed", "Email not confirmed")),
            _ => Err(Failure::credentials()),
        }
    }

    /// The response of both grants.
    pub(super) fn session(&self, opened: &Value, public: &str) -> Value {
        let signed = self.0.signer.sign(opened);
        json!({
            "access_token": signed.token,
            "token_type": "bearer",
            "expires_in": signed.expires_in,
            "expires_at": signed.expires_at,
            "refresh_token": self.0.signer.refresh_token(public),
            "user": opened["user"],
        })
    }
}
