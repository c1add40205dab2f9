//! `/admin`: manages users, for callers with the service key.

mod change;
mod link;
mod list;

use axum::Json;
use axum::Router;
use axum::extract::{Path, State};
use axum::routing::{get, post};
use gleaner_http::database::Error;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio_postgres::types::Type;
use uuid::Uuid;

use super::Auth;
use super::bearer::Administrator;
use super::body::Body;
use super::error::{Failure, Result};
use super::user::user_not_found;

pub(super) fn routes() -> Router<Auth> {
    Router::new()
        .route("/admin/users", get(list::get).post(change::create))
        .route("/admin/users/{id}", get(show).put(change::update).delete(delete))
        .route("/admin/generate_link", post(link::post))
}

fn id(text: &str) -> Result<Uuid> {
    text.parse().map_err(|_| Failure::new(404, "validation_failed", "user_id must be an UUID"))
}

async fn show(State(auth): State<Auth>, _: Administrator, Path(user): Path<String>) -> Result<Json<Value>> {
    auth.show_user(id(&user)?).await.map(Json)
}

#[derive(Deserialize)]
struct Deletion {
    #[serde(default)]
    should_soft_delete: bool,
}

/// Deletes the user, with its sessions and links. The owner's row stays, because work items belong to it.
async fn delete(State(auth): State<Auth>, _: Administrator, Path(user): Path<String>, Body(asked): Body<Deletion>) -> Result<Json<Value>> {
    let user = id(&user)?;
    if asked.should_soft_delete {
        return Err(Failure::invalid("Users are deleted or banned here, not hidden"));
    }
    let client = auth.0.pool.get().await.map_err(|error| Error::Connect(error.to_string()))?;
    let deleted = client
        .query_typed("delete from auth.users where id = $1 returning id", &[(&user, Type::UUID)])
        .await
        .map_err(Error::doing("delete a user"))?;
    if deleted.is_empty() { Err(user_not_found()) } else { Ok(Json(json!({}))) }
}
