//! The keys of programs.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use gleaner_http::describe::{Conflict, Denied, InvalidBody, NotFound};
use gleaner_http::{Body, Caller, WireError};
use gleaner_supabase::auth::api_keys::{self, Kind, New};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::{Team, note, refuse};

#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum KeyRole {
    /// For an agent, which sees only the rows it holds.
    Worker,
    /// Full access; row-level security does not apply.
    Service,
    /// For browsers, without a user.
    Anon,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct KeyRequest {
    name: String,
    role: KeyRole,
    /// For workers: which queues. All when left out.
    queues: Option<Vec<String>>,
    /// For workers: which kinds. All when left out.
    kinds: Option<Vec<String>>,
    /// How many days it is valid, at most 36,500; until it is revoked when left out.
    #[schema(minimum = 1, maximum = 36_500)]
    days: Option<u32>,
}

/// A new key. It is shown once.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct MadeKey {
    id: String,
    name: String,
    key: String,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RevokeRequest {
    /// The key's name or id.
    name: String,
}

/// List the keys of programs
#[utoipa::path(
    get,
    path = "/v1/keys",
    operation_id = "listKeys",
    tag = "team",
    responses(
        (status = 200, description = "The keys, revoked ones too, without their secrets.", body = Vec<serde_json::Value>,
            example = json!([{"name": "laptop", "role": "worker", "hint": "sb_secret_AbCdEf…", "state": "good"}])),
        Denied,
    )
)]
pub(crate) async fn list(State(team): State<Team>, caller: Caller) -> Result<Json<Vec<Value>>, WireError> {
    let client = team.governed_by(&caller).await?;
    api_keys::list(&**client).await.map(Json).map_err(|error| refuse(&error))
}

/// Make a key
#[utoipa::path(
    post,
    path = "/v1/keys",
    operation_id = "addKey",
    tag = "team",
    request_body(content = KeyRequest, example = json!({"name": "laptop", "role": "worker"})),
    responses(
        (status = 200, description = "The key.", body = MadeKey,
            example = json!({"id": "01a1e32a-89cf-74ed-b1f2-6eb8fe58a467", "name": "laptop", "key": "sb_secret_…"})),
        Denied, InvalidBody, Conflict,
    )
)]
pub(crate) async fn add(State(team): State<Team>, caller: Caller, Body(request): Body<KeyRequest>) -> Result<Json<MadeKey>, WireError> {
    if request.name.trim().is_empty() {
        return Err(WireError::bad("a key needs a name to recognise it by"));
    }
    if request.days.is_some_and(|days| !(1..=36_500).contains(&days)) {
        return Err(WireError::bad("`days` is from 1 to 36500; leave it out for a key that is valid until it is revoked"));
    }
    let (kind, role) = match request.role {
        KeyRole::Worker => (Kind::Worker, "worker"),
        KeyRole::Service => (Kind::Service, "service"),
        KeyRole::Anon => (Kind::Anon, "anon"),
    };
    let is_scoped = request.queues.is_some() || request.kinds.is_some();
    if is_scoped && kind != Kind::Worker {
        return Err(WireError::bad("only a worker's key has queues and kinds"));
    }
    let client = team.governed_by(&caller).await?;
    let valid = request.days.map(|days| format!("{days} days"));
    let new = New {
        name: request.name.trim(),
        kind,
        queues: request.queues.as_deref(),
        kinds: request.kinds.as_deref(),
        valid: valid.as_deref(),
    };
    let made = api_keys::add(&**client, &new).await.map_err(|error| refuse(&error))?;
    let Some((id, key)) = made else {
        return Err(WireError::new(StatusCode::CONFLICT, "23505", "a key of this name exists; choose another, or revoke it first"));
    };
    note(&**client, &caller, "keys", new.name, "add", json!({"role": role, "queues": request.queues, "kinds": request.kinds})).await?;
    Ok(Json(MadeKey { id: id.to_string(), name: new.name.to_owned(), key }))
}

/// Revoke a key
#[utoipa::path(
    post,
    path = "/v1/keys/revoke",
    operation_id = "revokeKey",
    tag = "team",
    request_body(content = RevokeRequest, example = json!({"name": "laptop"})),
    responses(
        (status = 200, description = "Programs that use it are refused within seconds.", body = serde_json::Value, example = json!({"revoked": true})),
        Denied, InvalidBody, NotFound,
    )
)]
pub(crate) async fn revoke(State(team): State<Team>, caller: Caller, Body(request): Body<RevokeRequest>) -> Result<Json<Value>, WireError> {
    let client = team.governed_by(&caller).await?;
    if !api_keys::revoke(&**client, &request.name).await.map_err(|error| refuse(&error))? {
        return Err(WireError::new(StatusCode::NOT_FOUND, "P0002", "there is no such key, or it is revoked already"));
    }
    note(&**client, &caller, "keys", &request.name, "revoke", Value::Null).await?;
    Ok(Json(json!({"revoked": true})))
}
