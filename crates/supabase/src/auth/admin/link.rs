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
use crate::auth::people::{LinkKind, issue};
use crate::auth::user::{NewUser, address, email_exists, storable, user_not_found};

#[derive(Deserialize)]
pub(super) struct LinkRequest {
    #[serde(rename = "type")]
    kind: Option<String>,
    email: Option<String>,
    data: Option<Map<String, Value>>,
    redirect_to: Option<String>,
}

pub(super) async fn post(State(auth): State<Auth>, _: Administrator, Body(wanted): Body<LinkRequest>) -> Result<Json<Value>> {
    let kind = match wanted.kind.as_deref() {
        Some("invite") => LinkKind::Invite,
        Some("recovery") => LinkKind::Recovery,
        _ => return Err(Failure::invalid("Links are of type invite or recovery")),
    };
    let email = address(wanted.email.as_deref().unwrap_or_default())?;
    let (user, valid) = match kind {
        LinkKind::Invite => {
            let new = NewUser { user_metadata: storable(wanted.data.unwrap_or_default())?, ..NewUser::new(&email) };
            (auth.add_user(&new).await?.ok_or_else(email_exists)?, auth.0.settings.invite_valid)
        }
        _ => {
            let sql = "select u.id from (select) as always left join auth.users as u on u.email = $1";
            let found: Option<Uuid> = auth.row("find the user", sql, &[(&email, Type::TEXT)]).await?.get(0);
            (found.ok_or_else(user_not_found)?, auth.0.settings.link_valid)
        }
    };
    let client = auth.0.pool.get().await.map_err(|error| Error::Connect(error.to_string()))?;
    let token = issue(&**client, user, kind, valid).await?;
    drop(client);
    let mut answer = auth.show_user(user).await?;
    let mut action = form_urlencoded::Serializer::new(format!("{}/auth/v1/verify?", auth.0.settings.base));
    action.append_pair("token", &token).append_pair("type", kind.name());
    if let Some(to) = &wanted.redirect_to {
        action.append_pair("redirect_to", to);
    }
    let members = json!({
        "action_link": action.finish(), "email_otp": "", "hashed_token": token, "verification_type": kind.name(),
        "redirect_to": wanted.redirect_to.unwrap_or_default(),
    });
    if let (Value::Object(answer), Value::Object(members)) = (&mut answer, members) {
        answer.extend(members);
    }
    Ok(Json(answer))
}
