//! `POST /signup`: disabled unless the operator enables it.

use axum::Json;
use axum::extract::State;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::Auth;
use super::body::Body;
use super::error::{Failure, Result};
use super::mail::Letter;
use super::password::Password;
use super::session::Device;
use super::settings::Signup;
use super::user::{NewUser, address, storable};
use super::{people, strength};

#[derive(Deserialize)]
pub(super) struct SignupRequest {
    email: Option<String>,
    password: Option<Password>,
    data: Option<Map<String, Value>>,
}

pub(super) async fn post(State(auth): State<Auth>, device: Device, Body(wanted): Body<SignupRequest>) -> Result<Json<Value>> {
    let settings = &auth.0.settings;
    if settings.signup == Signup::Off {
        return Err(Failure::new(422, "signup_disabled", "Signups not allowed for this instance"));
    }
    let Some(email) = wanted.email.filter(|email| !email.is_empty()) else {
        return Err(Failure::new(422, "anonymous_provider_disabled", "Anonymous sign-ins are disabled"));
    };
    let email = address(&email)?;
    let Some(password) = wanted.password else { return Err(Failure::invalid("Signup requires a valid password")) };
    strength::judge(&password, &email, &settings.password)?;
    auth.0.limits.request(device.network())?;
    let hash = auth.0.hasher.hash(password).await?;
    let confirmed = settings.signup == Signup::Open;
    // Never linked to an existing owner's row: a caller that uses another person's address must not take over that row.
    let user_metadata = storable(wanted.data.unwrap_or_default())?;
    let new = NewUser { hash: Some(hash.clone()), user_metadata, confirmed, ..NewUser::new(&email) };
    let added = auth.add_user(&new).await?;
    if !confirmed {
        return confirm_later(&auth, &email, added, new.user_metadata).await.map(Json);
    }
    let user = added.ok_or_else(|| Failure::new(422, "user_already_exists", "User already registered"))?;
    auth.open_session(user, Some(&hash), "password", &device).await.map(Json)
}

/// Returns the bare user, and sends a link by mail. For a known address the response looks the same and no link is created, so that
/// a caller cannot find out who has an account here.
async fn confirm_later(auth: &Auth, email: &str, added: Option<Uuid>, user_metadata: Value) -> Result<Value> {
    let mailer = auth.0.settings.mailer.as_ref().ok_or_else(Failure::no_mailer)?;
    auth.0.limits.mail(email)?;
    let Some(user) = added else {
        mailer.send_soon(email, Letter::KnownAlready);
        return Ok(json!({
            "id": Uuid::new_v4(), "aud": "authenticated", "role": "authenticated", "email": email, "phone": "",
            "app_metadata": {"provider": "email", "providers": ["email"]}, "user_metadata": user_metadata, "identities": [],
            "is_anonymous": false,
        }));
    };
    let client = auth.0.pool.get().await.map_err(|error| gleaner_http::database::Error::Connect(error.to_string()))?;
    let token = people::issue(&**client, user, people::LinkKind::Signup, auth.0.settings.link_valid).await?;
    mailer.send_soon(email, Letter::Signup(people::LinkKind::Signup.url(&auth.0.settings.base, &token)));
    auth.show_user(user).await
}
