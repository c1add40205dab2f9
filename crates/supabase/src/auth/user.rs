//! `GET /user` and `PUT /user`: the caller's own account.

use axum::Json;
use axum::extract::State;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio_postgres::types::Type;
use uuid::Uuid;

use super::Auth;
use super::bearer::SignedIn;
use super::body::Body;
use super::error::{Failure, Result};
use super::password::Password;
use super::session::Device;
use super::sign_in::plain_address;
use super::strength;

pub(super) async fn get(caller: SignedIn) -> Json<Value> {
    Json(caller.user)
}

#[derive(Deserialize)]
pub(super) struct UpdateRequest {
    email: Option<String>,
    phone: Option<String>,
    password: Option<Password>,
    /// The old password. Needed once the sign-in is no longer fresh.
    current_password: Option<Password>,
    data: Option<Map<String, Value>>,
}

pub(super) async fn put(
    State(auth): State<Auth>,
    device: Device,
    caller: SignedIn,
    Body(wanted): Body<UpdateRequest>,
) -> Result<Json<Value>> {
    let email = caller.user["email"].as_str().unwrap_or_default();
    // The address identifies a user to others, and nothing here proves that a new one belongs to this user.
    if wanted.email.is_some_and(|new| plain_address(&new) != email) || wanted.phone.is_some_and(|phone| !phone.is_empty()) {
        return Err(Failure::invalid("Addresses are changed by an administrator"));
    }
    let mut changes = Map::new();
    if let Some(data) = wanted.data {
        changes.insert("user_metadata".into(), storable(data)?);
    }
    if let Some(password) = wanted.password {
        strength::judge(&password, email, &auth.0.settings.password)?;
        prove(&auth, &device, &caller, email, wanted.current_password).await?;
        if is_the_same(&auth, caller.user_id, password.clone()).await? {
            return Err(Failure::new(422, "same_password", "New password should be different from the old password."));
        }
        changes.insert("password".into(), auth.0.hasher.hash(password).await?.into());
    }
    auth.change_user(caller.user_id, changes.into(), caller.session_id).await.map(Json)
}

/// A new password ends all other sessions, so a stolen token must not be enough to set one: the caller signed in a moment ago, or
/// knows the old password.
async fn prove(auth: &Auth, device: &Device, caller: &SignedIn, email: &str, old: Option<Password>) -> Result<()> {
    let sql = "select u.encrypted_password, coalesce((
                   select s.created_at > clock_timestamp() - make_interval(secs => $3) from auth.sessions as s where s.id = $2 and s.user_id = u.id), false)
               from auth.users as u where u.id = $1";
    let fresh = auth.0.settings.password.fresh.as_secs_f64();
    let row = auth
        .row("look for the sign-in", sql, &[(&caller.user_id, Type::UUID), (&caller.session_id, Type::UUID), (&fresh, Type::FLOAT8)])
        .await?;
    let Some(old) = old else {
        return if row.get(1) { Ok(()) } else { Err(Failure::stale_sign_in()) };
    };
    let attempt = auth.0.limits.try_password(device.network(), email)?;
    if !auth.0.hasher.check(old, row.get(0)).await? {
        return Err(Failure::credentials());
    }
    attempt.does_not_count();
    Ok(())
}

async fn is_the_same(auth: &Auth, user: Uuid, password: Password) -> Result<bool> {
    let sql = "select encrypted_password from auth.users where id = $1";
    let kept: Option<String> = auth.row("read the hash", sql, &[(&user, Type::UUID)]).await?.get(0);
    Ok(auth.0.hasher.check(password, kept).await?)
}

/// PostgreSQL's jsonb cannot hold a NUL character. It is refused here, before the database fails on it.
pub(super) fn storable(data: Map<String, Value>) -> Result<Value> {
    fn has_nul(value: &Value) -> bool {
        match value {
            Value::String(text) => text.contains('\0'),
            Value::Array(items) => items.iter().any(has_nul),
            Value::Object(members) => members.iter().any(|(name, value)| name.contains('\0') || has_nul(value)),
            _ => false,
        }
    }
    let data = Value::Object(data);
    if has_nul(&data) { Err(Failure::invalid("Metadata cannot contain a NUL character")) } else { Ok(data) }
}

impl Auth {
    /// Changes a user (see `gleaner.change_user`) and returns the result.
    pub(super) async fn change_user(&self, user: Uuid, changes: Value, session: Option<Uuid>) -> Result<Value> {
        let row = self
            .row(
                "change a user",
                "select gleaner.change_user($1, $2, $3)",
                &[(&user, Type::UUID), (&changes, Type::JSONB), (&session, Type::UUID)],
            )
            .await?;
        match row.get::<_, &str>(0) {
            "done" => self.show_user(user).await,
            "email_exists" => Err(email_exists()),
            _ => Err(user_not_found()),
        }
    }

    pub(super) async fn show_user(&self, user: Uuid) -> Result<Value> {
        let row = self.row("show a user", "select gleaner.show_user($1)", &[(&user, Type::UUID)]).await?;
        row.get::<_, Option<Value>>(0).ok_or_else(user_not_found)
    }

    /// Adds a user (see `gleaner.add_user`); `None` when the address is taken.
    pub(super) async fn add_user(&self, new: &NewUser<'_>) -> Result<Option<Uuid>> {
        let row = self
            .row(
                "add a user",
                "select gleaner.add_user($1, $2, $3, $4, $5, false, $6, $7)",
                &[
                    (&new.email, Type::TEXT),
                    (&new.hash, Type::TEXT),
                    (&new.user_metadata, Type::JSONB),
                    (&new.app_metadata, Type::JSONB),
                    (&new.confirmed, Type::BOOL),
                    (&new.link, Type::BOOL),
                    (&new.id, Type::UUID),
                ],
            )
            .await?;
        Ok(row.get(0))
    }
}

/// A user to be added.
#[derive(Debug)]
pub(super) struct NewUser<'a> {
    pub email: &'a str,
    pub hash: Option<String>,
    pub user_metadata: Value,
    pub app_metadata: Value,
    pub confirmed: bool,
    /// Whether an owner's row with this address becomes the user's.
    pub link: bool,
    pub id: Option<Uuid>,
}

impl<'a> NewUser<'a> {
    pub(super) fn new(email: &'a str) -> Self {
        Self { email, hash: None, user_metadata: json!({}), app_metadata: json!({}), confirmed: false, link: false, id: None }
    }
}

pub(super) fn user_not_found() -> Failure {
    Failure::new(404, "user_not_found", "User not found")
}

pub(super) fn email_exists() -> Failure {
    Failure::new(422, "email_exists", "A user with this email address has already been registered")
}

/// A plausible address: one `@` with something on both sides, no line breaks, not too long.
pub(super) fn address(email: &str) -> Result<String> {
    let plain = plain_address(email);
    let good = plain.len() <= 254
        && plain.split_once('@').is_some_and(|(name, host)| !name.is_empty() && !host.is_empty() && !host.contains('@'))
        && !plain.chars().any(|c| c.is_whitespace() || c.is_control() || "<>(),;:\"\\".contains(c));
    if good { Ok(plain) } else { Err(Failure::invalid("Unable to validate email address: invalid format")) }
}
