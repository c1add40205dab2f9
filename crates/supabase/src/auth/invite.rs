//! `POST /invite`: an administrator invites a user by mail. `gleaner users invite` prints the link instead.

use axum::Json;
use axum::extract::State;
use gleaner_http::database::Error;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::Auth;
use super::bearer::Administrator;
use super::body::Body;
use super::error::{Failure, Result};
use super::mail::Letter;
use super::people::{LinkKind, issue};
use super::user::{NewUser, address, email_exists, storable};

#[derive(Deserialize)]
pub(super) struct Invitation {
    email: Option<String>,
    data: Option<Map<String, Value>>,
}

pub(super) async fn post(State(auth): State<Auth>, _: Administrator, Body(invitation): Body<Invitation>) -> Result<Json<Value>> {
    let mailer = auth.0.settings.mailer.as_ref().ok_or_else(Failure::no_mailer)?;
    let email = address(invitation.email.as_deref().unwrap_or_default())?;
    let user_metadata = storable(invitation.data.unwrap_or_default())?;
    let new = NewUser { user_metadata, ..NewUser::new(&email) };
    let user = auth.add_user(&new).await?.ok_or_else(email_exists)?;
    let client = auth.0.pool.get().await.map_err(|error| Error::Connect(error.to_string()))?;
    let token = issue(&**client, user, LinkKind::Invite, auth.0.settings.invite_valid).await?;
    drop(client);
    mailer.send_soon(&email, Letter::Invite(LinkKind::Invite.url(&auth.0.settings.base, &token)));
    auth.show_user(user).await.map(Json)
}
