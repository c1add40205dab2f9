//! `POST /otp`: signs in without a password, by a code or a link in a mail. `POST /resend`: sends a confirmation again.

use axum::Json;
use axum::extract::{Query, State};
use gleaner_http::database::Error;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio_postgres::types::Type;
use uuid::Uuid;

use super::Auth;
use super::body::Body;
use super::error::{Failure, Result};
use super::mail::{Letter, Mailer};
use super::people::{LinkKind, issue, issue_code};
use super::session::Device;
use super::settings::Signup;
use super::user::{NewUser, address, storable};

#[derive(Deserialize)]
pub(super) struct OtpRequest {
    email: Option<String>,
    phone: Option<String>,
    data: Option<Map<String, Value>>,
    create_user: Option<bool>,
}

#[derive(Deserialize)]
pub(super) struct Wanted {
    redirect_to: Option<String>,
}

/// The response is the same for every address.
pub(super) async fn post(
    State(auth): State<Auth>,
    device: Device,
    Query(wanted): Query<Wanted>,
    Body(asked): Body<OtpRequest>,
) -> Result<Json<Value>> {
    if asked.phone.is_some_and(|phone| !phone.is_empty()) {
        return Err(Failure::new(422, "phone_provider_disabled", "Codes are sent by e-mail only"));
    }
    let mailer = auth.0.settings.mailer.as_ref().ok_or_else(Failure::no_mailer)?;
    let email = address(asked.email.as_deref().unwrap_or_default())?;
    let data = storable(asked.data.unwrap_or_default())?;
    auth.0.limits.request(device.network())?;
    auth.0.limits.mail(&email)?;
    let creates = asked.create_user.unwrap_or(true) && auth.0.settings.signup != Signup::Off;
    // All of it after the response, so that neither its time nor its status tells whether there is such a user.
    let (auth, mailer) = (auth.clone(), mailer.clone());
    tokio::spawn(async move {
        if let Err(error) = send(&auth, &mailer, &email, creates.then_some(data), wanted.redirect_to.as_deref()).await {
            tracing::warn!(?error, "a code for signing in was not sent");
        }
    });
    Ok(Json(json!({})))
}

/// Sends a code and, where a page takes it, a link. `data`: that of a new user, if one may be created.
async fn send(auth: &Auth, mailer: &Mailer, email: &str, data: Option<Value>, redirect_to: Option<&str>) -> Result<()> {
    let (known, banned) = find(auth, email).await?;
    let user = match (known, data) {
        (Some(user), _) => Some(user).filter(|_| !banned),
        (None, Some(user_metadata)) => auth.add_user(&NewUser { user_metadata, ..NewUser::new(email) }).await?,
        (None, None) => None,
    };
    let Some(user) = user else { return Ok(()) };
    let client = auth.0.pool.get().await.map_err(|error| Error::Connect(error.to_string()))?;
    let code = issue_code(&**client, user, email, LinkKind::Magic, auth.0.settings.link_valid).await?;
    let link = if auth.0.settings.redirects.is_empty() {
        None
    } else {
        let token = issue(&**client, user, LinkKind::Magic, auth.0.settings.link_valid).await?;
        Some(auth.verify_url(LinkKind::Magic, &token, redirect_to))
    };
    mailer.send_soon(email, Letter::Magic { code, link });
    Ok(())
}

/// The user of this address, and whether the user is banned.
async fn find(auth: &Auth, email: &str) -> Result<(Option<Uuid>, bool)> {
    let sql = "select u.id, coalesce(gleaner.find_ban(u.id) is not null, false) from (select) as always left join auth.users as u on u.email = $1";
    let row = auth.row("find the user", sql, &[(&email, Type::TEXT)]).await?;
    Ok((row.get(0), row.get(1)))
}

#[derive(Deserialize)]
pub(super) struct ResendRequest {
    #[serde(rename = "type")]
    kind: Option<String>,
    email: Option<String>,
}

/// The response is the same for every address.
pub(super) async fn resend(State(auth): State<Auth>, device: Device, Body(asked): Body<ResendRequest>) -> Result<Json<Value>> {
    if asked.kind.as_deref() != Some("signup") {
        return Err(Failure::invalid("Only the confirmation of a sign-up can be sent again: type signup"));
    }
    let mailer = auth.0.settings.mailer.as_ref().ok_or_else(Failure::no_mailer)?;
    let email = address(asked.email.as_deref().unwrap_or_default())?;
    auth.0.limits.request(device.network())?;
    auth.0.limits.mail(&email)?;
    let (auth, mailer) = (auth.clone(), mailer.clone());
    tokio::spawn(async move {
        if let Err(error) = confirm_again(&auth, &mailer, &email).await {
            tracing::warn!(?error, "a confirmation was not sent again");
        }
    });
    Ok(Json(json!({})))
}

/// Only to those who have not confirmed their address yet.
async fn confirm_again(auth: &Auth, mailer: &Mailer, email: &str) -> Result<()> {
    let sql = "select u.id from (select) as always left join auth.users as u
               on u.email = $1 and u.email_confirmed_at is null and u.encrypted_password is not null and gleaner.find_ban(u.id) is null";
    let user: Option<Uuid> = auth.row("find the user", sql, &[(&email, Type::TEXT)]).await?.get(0);
    let Some(user) = user else { return Ok(()) };
    let client = auth.0.pool.get().await.map_err(|error| Error::Connect(error.to_string()))?;
    let token = issue(&**client, user, LinkKind::Signup, auth.0.settings.link_valid).await?;
    mailer.send_soon(email, Letter::Signup(LinkKind::Signup.url(&auth.0.settings.base, &token)));
    Ok(())
}

impl Auth {
    /// The address that uses up a link and leads on with a session.
    pub(super) fn verify_url(&self, kind: LinkKind, token: &str, redirect_to: Option<&str>) -> String {
        let mut url = form_urlencoded::Serializer::new(format!("{}/auth/v1/verify?", self.0.settings.base));
        url.append_pair("token", token).append_pair("type", kind.name());
        if let Some(to) = redirect_to {
            url.append_pair("redirect_to", to);
        }
        url.finish()
    }
}
