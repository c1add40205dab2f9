//! `POST /admin/generate_link`: creates a link that the caller delivers by other means than our mail.

use axum::Json;
use axum::extract::State;
use gleaner_http::database::Error;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio_postgres::types::Type;
use uuid::Uuid;

use crate::auth::Auth;
use crate::auth::bearer::Administrator;
use crate::auth::body::Body;
use crate::auth::error::{Failure, Result};
use crate::auth::password::Password;
use crate::auth::people::{LinkKind, issue, issue_code};
use crate::auth::strength;
use crate::auth::user::{NewUser, address, email_exists, storable, user_not_found};

#[derive(Deserialize)]
pub(super) struct LinkRequest {
    #[serde(rename = "type")]
    kind: Option<String>,
    email: Option<String>,
    password: Option<Password>,
    data: Option<Map<String, Value>>,
    redirect_to: Option<String>,
}

pub(super) async fn post(State(auth): State<Auth>, _: Administrator, Body(wanted): Body<LinkRequest>) -> Result<Json<Value>> {
    let kind = wanted.kind.as_deref().and_then(LinkKind::named);
    let kind = kind.ok_or_else(|| Failure::invalid("Links are of type invite, recovery, signup or magiclink"))?;
    let email = address(wanted.email.as_deref().unwrap_or_default())?;
    let sql = "select u.id from (select) as always left join auth.users as u on u.email = $1";
    let known: Option<Uuid> = auth.row("find the user", sql, &[(&email, Type::TEXT)]).await?.get(0);
    let user = match (kind, known) {
        (LinkKind::Recovery | LinkKind::Magic, Some(user)) => user,
        (LinkKind::Recovery, None) => return Err(user_not_found()),
        (LinkKind::Invite | LinkKind::Signup, Some(_)) => return Err(email_exists()),
        (_, None) => add(&auth, kind, &email, wanted.password, wanted.data.unwrap_or_default()).await?,
    };
    let valid = if kind == LinkKind::Invite { auth.0.settings.invite_valid } else { auth.0.settings.link_valid };
    let client = auth.0.pool.get().await.map_err(|error| Error::Connect(error.to_string()))?;
    let token = issue(&**client, user, kind, valid).await?;
    let code = issue_code(&**client, user, &email, kind, valid).await?;
    drop(client);
    let mut answer = auth.show_user(user).await?;
    let members = json!({
        "action_link": auth.verify_url(kind, &token, wanted.redirect_to.as_deref()), "email_otp": code, "hashed_token": token,
        "verification_type": kind.name(), "redirect_to": wanted.redirect_to.unwrap_or_default(),
    });
    if let (Value::Object(answer), Value::Object(members)) = (&mut answer, members) {
        answer.extend(members);
    }
    Ok(Json(answer))
}

/// Adds the user that the link is for. One who signs up has a password already.
async fn add(auth: &Auth, kind: LinkKind, email: &str, password: Option<Password>, data: Map<String, Value>) -> Result<Uuid> {
    let hash = match (kind, password) {
        (LinkKind::Signup, Some(password)) => {
            strength::judge(&password, email, &auth.0.settings.password)?;
            Some(auth.0.hasher.hash(password).await?)
        }
        (LinkKind::Signup, None) => return Err(Failure::invalid("Signup requires a valid password")),
        _ => None,
    };
    let new = NewUser { hash, user_metadata: storable(data)?, ..NewUser::new(email) };
    auth.add_user(&new).await?.ok_or_else(email_exists)
}
