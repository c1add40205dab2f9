//! `POST /recover`: sends a link to set a new password, by mail.

use axum::Json;
use axum::extract::State;
use gleaner_http::database::Error;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio_postgres::types::Type;
use uuid::Uuid;

use super::Auth;
use super::body::Body;
use super::error::{Failure, Result};
use super::mail::{Letter, Mailer};
use super::people::{LinkKind, issue};
use super::session::Device;
use super::user::address;

#[derive(Deserialize)]
pub(super) struct RecoverRequest {
    email: Option<String>,
}

/// The response is the same for every address.
pub(super) async fn post(State(auth): State<Auth>, device: Device, Body(asked): Body<RecoverRequest>) -> Result<Json<Value>> {
    let mailer = auth.0.settings.mailer.as_ref().ok_or_else(Failure::no_mailer)?;
    let email = address(asked.email.as_deref().unwrap_or_default())?;
    auth.0.limits.request(device.network())?;
    auth.0.limits.mail(&email)?;
    // All of it after the response, so that neither its time nor its status reveals whether there is such a user.
    let (auth, mailer) = (auth.clone(), mailer.clone());
    tokio::spawn(async move {
        if let Err(error) = send(&auth, &mailer, &email).await {
            tracing::warn!(?error, "a link for a new password was not sent");
        }
    });
    Ok(Json(json!({})))
}

async fn send(auth: &Auth, mailer: &Mailer, email: &str) -> Result<()> {
    let sql = "select u.id from (select) as always left join auth.users as u on u.email = $1 and gleaner.find_ban(u.id) is null";
    let user: Option<Uuid> = auth.row("find the user", sql, &[(&email, Type::TEXT)]).await?.get(0);
    let Some(user) = user else { return Ok(()) };
    let client = auth.0.pool.get().await.map_err(|error| Error::Connect(error.to_string()))?;
    let token = issue(&**client, user, LinkKind::Recovery, auth.0.settings.link_valid).await?;
    mailer.send_soon(email, Letter::Recovery(LinkKind::Recovery.url(&auth.0.settings.base, &token)));
    Ok(())
}
