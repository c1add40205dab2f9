//! `/verify`: handles a followed link. With POST a program gets the session; with GET a browser is redirected with it.

use axum::Json;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::http::header::LOCATION;
use axum::response::{IntoResponse as _, Response};
use serde::Deserialize;
use serde_json::Value;
use tokio_postgres::types::Type;
use uuid::Uuid;

use super::Auth;
use super::body::Body;
use super::error::{Failure, Result};
use super::people::LinkKind;
use super::session::Device;
use super::token::{code_hash, hash_of};
use super::user::address;

#[derive(Deserialize)]
pub(super) struct VerifyRequest {
    #[serde(rename = "type")]
    kind: Option<String>,
    token: Option<String>,
    token_hash: Option<String>,
    /// Whose code the token is.
    email: Option<String>,
    redirect_to: Option<String>,
}

impl VerifyRequest {
    fn kind(&self) -> Result<LinkKind> {
        let name = self.kind.as_deref().unwrap_or_default();
        LinkKind::named(name)
            .ok_or_else(|| Failure::invalid("Verify requires a verification type of invite, recovery, signup, magiclink or email"))
    }

    fn token(&self) -> Result<&str> {
        let token = self.token_hash.as_deref().or(self.token.as_deref()).filter(|token| !token.is_empty());
        token.ok_or_else(|| Failure::invalid("Verify requires a token or a token hash"))
    }
}

pub(super) async fn post(State(auth): State<Auth>, device: Device, Body(given): Body<VerifyRequest>) -> Result<Json<Value>> {
    let (kind, token) = (given.kind()?, given.token()?);
    match &given.email {
        // An address comes with a code.
        Some(email) if given.token_hash.is_none() => auth.enter(kind, &address(email)?, token, &device).await.map(Json),
        _ => auth.follow(kind, token, &device).await.map(Json),
    }
}

pub(super) async fn get(State(auth): State<Auth>, device: Device, Query(given): Query<VerifyRequest>) -> Result<Response> {
    let (kind, token) = (given.kind()?, given.token()?);
    let Some(to) = auth.destination(given.redirect_to.as_deref()) else {
        // The operator has configured no redirect: our own page asks for the password, and uses up the link only then.
        return Ok(sent_to(kind.url(&auth.0.settings.base, token)));
    };
    let followed = auth.follow(kind, token, &device).await;
    let mut fragment = form_urlencoded::Serializer::new(String::new());
    match followed {
        Ok(session) => {
            for name in ["access_token", "expires_at", "expires_in", "refresh_token", "token_type"] {
                let value = session[name].as_str().map_or_else(|| session[name].to_string(), str::to_owned);
                fragment.append_pair(name, &value);
            }
            fragment.append_pair("type", kind.name());
        }
        Err(failure) => {
            fragment.append_pair("error", "access_denied");
            fragment.append_pair("error_code", failure.code());
            fragment.append_pair("error_description", failure.message());
        }
    }
    Ok(sent_to(format!("{to}#{}", fragment.finish())))
}

fn sent_to(place: String) -> Response {
    (StatusCode::SEE_OTHER, [(LOCATION, place)]).into_response()
}

impl Auth {
    /// Uses up a link and signs its user in.
    async fn follow(&self, kind: LinkKind, token: &str, device: &Device) -> Result<Value> {
        let attempt = self.0.limits.try_token(device.network())?;
        let user = self.redeem(kind, token, None).await?;
        attempt.does_not_count();
        self.open_session(user, None, "otp", device).await
    }

    /// Uses up a code and signs its user in.
    async fn enter(&self, kind: LinkKind, email: &str, code: &str, device: &Device) -> Result<Value> {
        let attempt = self.0.limits.try_code(device.network(), email)?;
        let user = self.redeem_hash(kind, &code_hash(email, code), None).await?;
        attempt.does_not_count();
        self.open_session(user, None, "otp", device).await
    }

    /// Uses up a link; sets a password, given as a hash, at the same time.
    pub(super) async fn redeem(&self, kind: LinkKind, token: &str, password: Option<&str>) -> Result<Uuid> {
        self.redeem_hash(kind, &hash_of(token), password).await
    }

    async fn redeem_hash(&self, kind: LinkKind, hash: &str, password: Option<&str>) -> Result<Uuid> {
        let row = self
            .row(
                "redeem a link",
                "select gleaner.redeem_token($1, array[$2], $3)",
                &[(&hash, Type::TEXT), (&kind.stored(), Type::TEXT), (&password, Type::TEXT)],
            )
            .await?;
        row.get::<_, Option<Uuid>>(0).ok_or_else(link_is_over)
    }

    /// Where to redirect a browser: the requested place if the operator allows it, else the operator's first one. An unrestricted
    /// redirect would give sessions to the author of a forged link.
    fn destination(&self, asked: Option<&str>) -> Option<String> {
        let known = &self.0.settings.redirects;
        let below = |asked: &str, place: &str| {
            let place = place.trim_end_matches('/');
            asked.strip_prefix(place).is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '?']))
        };
        let plain = |asked: &&str| asked.bytes().all(|byte| byte.is_ascii_graphic()) && !asked.contains('#');
        asked
            .filter(plain)
            .filter(|asked| known.iter().any(|place| below(asked, place)))
            .or(known.first().map(String::as_str))
            .map(str::to_owned)
    }
}

pub(super) fn link_is_over() -> Failure {
    Failure::new(403, "otp_expired", "Email link is invalid or has expired")
}
