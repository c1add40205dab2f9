//! The people of the team.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use gleaner_http::describe::{Conflict, Denied, InvalidBody, NotFound};
use gleaner_http::{Body, Caller, WireError, database};
use gleaner_supabase::auth::people::{self, Trouble};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio_postgres::types::Type;
use utoipa::ToSchema;

use super::{Team, note, refuse};

/// A link to hand over. It is shown once.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Linked {
    email: String,
    link: String,
    /// How long it is good for.
    valid_seconds: u64,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Changed {
    email: String,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct InviteRequest {
    email: String,
    #[serde(default)]
    administrator: bool,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PersonRequest {
    email: String,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DisableRequest {
    email: String,
    /// Who gets the unfinished work; when left out, it stays where it is.
    assign_to: Option<String>,
}

fn refused(trouble: &Trouble) -> WireError {
    match trouble {
        Trouble::Unknown(_) => WireError::new(StatusCode::NOT_FOUND, "P0002", trouble.to_string()),
        Trouble::Taken(_) => WireError::new(StatusCode::CONFLICT, "23505", trouble.to_string()),
        Trouble::Database(error) => refuse(error),
        other => WireError::bad(other.to_string()),
    }
}

/// List the people
///
/// With their state: active, invited, disabled, banned, unconfirmed.
#[utoipa::path(
    get,
    path = "/v1/people",
    operation_id = "listPeople",
    tag = "team",
    responses(
        (status = 200, description = "All users.", body = Vec<serde_json::Value>,
            example = json!([{"email": "ada@example.com", "administrator": true, "state": "active", "sessions": 1}])),
        Denied,
    )
)]
pub(crate) async fn list(State(team): State<Team>, caller: Caller) -> Result<Json<Vec<Value>>, WireError> {
    let client = team.governed_by(&caller).await?;
    people::list(&**client).await.map(Json).map_err(|trouble| refused(&trouble))
}

/// Invite a person
///
/// Returns the link with which they choose a password. A person who never chose one gets a new link.
#[utoipa::path(
    post,
    path = "/v1/people/invite",
    operation_id = "invitePerson",
    tag = "team",
    request_body(content = InviteRequest, example = json!({"email": "bob@example.com"})),
    responses(
        (status = 200, description = "The link.", body = Linked,
            example = json!({"email": "bob@example.com", "link": "https://crm.example.com/invite#token=…", "valid_seconds": 604800})),
        Denied, InvalidBody, Conflict,
    )
)]
pub(crate) async fn invite(
    State(team): State<Team>,
    caller: Caller,
    Body(request): Body<InviteRequest>,
) -> Result<Json<Linked>, WireError> {
    let client = team.governed_by(&caller).await?;
    let link = people::invite(&**client, &request.email, request.administrator, &team.base).await.map_err(|trouble| refused(&trouble))?;
    note(&**client, &caller, "people", &request.email, "invite", json!({"administrator": request.administrator})).await?;
    let valid = gleaner_supabase::auth::Settings::new(&*team.base).invite_valid;
    Ok(Json(Linked { email: request.email, link, valid_seconds: valid.as_secs() }))
}

/// Make a link for a new password
#[utoipa::path(
    post,
    path = "/v1/people/reset",
    operation_id = "resetPassword",
    tag = "team",
    request_body(content = PersonRequest, example = json!({"email": "bob@example.com"})),
    responses(
        (status = 200, description = "The link. Until it is used the old password holds.", body = Linked,
            example = json!({"email": "bob@example.com", "link": "https://crm.example.com/reset#token=…", "valid_seconds": 3600})),
        Denied, InvalidBody, NotFound,
    )
)]
pub(crate) async fn reset(State(team): State<Team>, caller: Caller, Body(request): Body<PersonRequest>) -> Result<Json<Linked>, WireError> {
    let client = team.governed_by(&caller).await?;
    let link = people::reset(&**client, &request.email, &team.base).await.map_err(|trouble| refused(&trouble))?;
    note(&**client, &caller, "people", &request.email, "reset", Value::Null).await?;
    let valid = gleaner_supabase::auth::Settings::new(&*team.base).link_valid;
    Ok(Json(Linked { email: request.email, link, valid_seconds: valid.as_secs() }))
}

/// Disable a person
///
/// Their sessions end, what they hold is released, and their unfinished work goes to another if one is named.
#[utoipa::path(
    post,
    path = "/v1/people/disable",
    operation_id = "disablePerson",
    tag = "team",
    request_body(content = DisableRequest, example = json!({"email": "bob@example.com", "assign_to": "ada@example.com"})),
    responses((status = 200, description = "It is done.", body = Changed, example = json!({"email": "bob@example.com"})), Denied, InvalidBody, NotFound)
)]
pub(crate) async fn disable(
    State(team): State<Team>,
    caller: Caller,
    Body(request): Body<DisableRequest>,
) -> Result<Json<Changed>, WireError> {
    let mut client = team.governed_by(&caller).await?;
    let (user, _) = people::find(&**client, &request.email).await.map_err(|trouble| refused(&trouble))?;
    if caller.person() == Some(user) {
        return Err(WireError::bad("you cannot disable yourself; ask another administrator"));
    }
    crate::people::disable(&mut client, &request.email, request.assign_to.as_deref()).await.map_err(|trouble| of_work(&trouble))?;
    note(&**client, &caller, "people", &request.email, "disable", json!({"assign_to": request.assign_to})).await?;
    Ok(Json(Changed { email: request.email }))
}

fn of_work(trouble: &crate::people::Trouble) -> WireError {
    match trouble {
        crate::people::Trouble::User(trouble) => refused(trouble),
        other => WireError::bad(other.to_string()),
    }
}

/// Enable a person again
#[utoipa::path(
    post,
    path = "/v1/people/enable",
    operation_id = "enablePerson",
    tag = "team",
    request_body(content = PersonRequest, example = json!({"email": "bob@example.com"})),
    responses((status = 200, description = "It is done.", body = Changed, example = json!({"email": "bob@example.com"})), Denied, InvalidBody, NotFound)
)]
pub(crate) async fn enable(
    State(team): State<Team>,
    caller: Caller,
    Body(request): Body<PersonRequest>,
) -> Result<Json<Changed>, WireError> {
    let mut client = team.governed_by(&caller).await?;
    crate::people::enable(&mut client, &request.email).await.map_err(|trouble| of_work(&trouble))?;
    note(&**client, &caller, "people", &request.email, "enable", Value::Null).await?;
    Ok(Json(Changed { email: request.email }))
}

/// Make a person an administrator, or a member again
#[utoipa::path(
    post,
    path = "/v1/people/administrator",
    operation_id = "setAdministrator",
    tag = "team",
    request_body(content = InviteRequest, example = json!({"email": "bob@example.com", "administrator": true})),
    responses((status = 200, description = "It is done.", body = Changed, example = json!({"email": "bob@example.com"})), Denied, InvalidBody, NotFound)
)]
pub(crate) async fn promote(
    State(team): State<Team>,
    caller: Caller,
    Body(request): Body<InviteRequest>,
) -> Result<Json<Changed>, WireError> {
    let client = team.governed_by(&caller).await?;
    let (user, _) = people::find(&**client, &request.email).await.map_err(|trouble| refused(&trouble))?;
    if caller.person() == Some(user) && !request.administrator {
        return Err(WireError::bad("you cannot take this right from yourself; ask another administrator"));
    }
    let sql = "update public.sales set administrator = $2 where user_id = $1 returning id";
    let rows = client.query_typed(sql, &[(&user, Type::UUID), (&request.administrator, Type::BOOL)]).await;
    let rows = rows.map_err(database::Error::doing("change the person's rights")).map_err(|error| refuse(&error))?;
    if rows.is_empty() {
        return Err(WireError::bad(format!("{} has an account, but no place in the team", request.email)));
    }
    note(&**client, &caller, "people", &request.email, "administrator", json!({"to": request.administrator})).await?;
    Ok(Json(Changed { email: request.email }))
}
