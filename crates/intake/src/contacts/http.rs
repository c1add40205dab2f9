//! `/v1/contacts/…`: the inbox of unmatched activities, and a person's decision about them, on behalf of the caller.

use axum::Json;
use axum::extract::{FromRef, State};
use axum::http::StatusCode;
use gleaner_http::database::{Error, Pool};
use gleaner_http::describe::{Denied, Invalid, InvalidBody, NotFound};
use gleaner_http::{Authenticator, Body, Caller, Query, Role, WireError, with_caller};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::{Answer, Link, Outcome, Page, Unmatched};

/// The most rows in a page: the list is for people, and each row has an excerpt.
const LONGEST: i64 = 1000;

/// What the handlers need. Cheap to clone.
#[derive(Clone)]
struct Contacts {
    pool: Pool,
    authenticator: Authenticator,
}

impl FromRef<Contacts> for Authenticator {
    fn from_ref(contacts: &Contacts) -> Self {
        contacts.authenticator.clone()
    }
}

/// The routes, to be merged into the server's.
pub fn router(pool: Pool, authenticator: impl Into<Authenticator>) -> OpenApiRouter {
    OpenApiRouter::default()
        .routes(routes!(unmatched))
        .routes(routes!(link))
        .routes(routes!(unlink))
        .with_state(Contacts { pool, authenticator: authenticator.into() })
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct UnmatchedQuery {
    /// The most rows to return.
    #[param(minimum = 1, maximum = 1000, default = 50)]
    limit: Option<i64>,
    /// `next` of the previous page.
    #[param(pattern = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{6}Z_[0-9a-f-]{36}$")]
    after: Option<String>,
}

#[derive(Serialize, ToSchema)]
struct UnmatchedPage {
    items: Vec<Unmatched>,
    /// What to send as `after` for the next page; null after the last.
    #[schema(required)]
    next: Option<String>,
}

/// List activities without a contact
///
/// The newest first.
#[utoipa::path(
    get,
    path = "/v1/contacts/unmatched",
    operation_id = "listUnmatched",
    tag = "contacts",
    params(UnmatchedQuery),
    responses(
        (status = 200, description = "One page.", body = UnmatchedPage,
            example = json!({
                "items": [{
                    "id": "1f0c7a52-0000-4000-8000-000000000001", "type": "email", "direction": "inbound",
                    "created_at": "2026-01-02T03:04:05.000006Z", "sales_id": null, "provider_id": null,
                    "sender": "ann@home.example", "from": "Ann <ann@home.example>", "sender_name": "Ann", "subject": "Re: Deal",
                    "excerpt": "Hello", "method": null, "candidates": []
                }],
                "next": null
            })),
        Denied, Invalid,
    )
)]
async fn unmatched(
    State(contacts): State<Contacts>,
    caller: Caller,
    Query(query): Query<UnmatchedQuery>,
) -> Result<Json<UnmatchedPage>, WireError> {
    let limit = query.limit.unwrap_or(Page::default().limit);
    if !(1..=LONGEST).contains(&limit) {
        return Err(malformed(format!("limit is from 1 to {LONGEST}")));
    }
    let page = Page { limit, after: query.after.map(|text| text.parse()).transpose().map_err(malformed)? };
    let items = with_caller(&contacts.pool, &caller, |tx| Box::pin(async move { super::unmatched(&**tx, &page).await }))
        .await
        .map_err(|error| refuse(&caller, error))?;
    let next = items.last().filter(|_| items.len() as i64 == limit).map(|last| last.cursor().to_string());
    Ok(Json(UnmatchedPage { items, next }))
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct LinkRequest {
    activity: Uuid,
    contact: i64,
    /// Also link every other unmatched activity of the same sender.
    #[serde(default)]
    backfill: bool,
    /// Also add the sender's address to the contact.
    #[serde(default)]
    remember: bool,
}

#[derive(Serialize, ToSchema)]
struct LinkResponse {
    /// The activity of the request comes first.
    activities: Vec<Answer>,
}

/// Link an activity to a contact
#[utoipa::path(
    post,
    path = "/v1/contacts/link",
    operation_id = "linkActivity",
    tag = "contacts",
    request_body(
        content = LinkRequest,
        example = json!({"activity": "1f0c7a52-0000-4000-8000-000000000001", "contact": 1, "backfill": true, "remember": true})
    ),
    responses(
        (status = 200, description = "The result for each activity.", body = LinkResponse,
            example = json!({"activities": [{"id": "1f0c7a52-0000-4000-8000-000000000001", "outcome": "done"}]})),
        Denied, InvalidBody, NotFound,
    )
)]
async fn link(State(contacts): State<Contacts>, caller: Caller, Body(body): Body<LinkRequest>) -> Result<Json<LinkResponse>, WireError> {
    let how = Link { backfill: body.backfill, remember: body.remember };
    let linked = with_caller(&contacts.pool, &caller, |tx| Box::pin(super::link(&**tx, body.activity, body.contact, how))).await;
    results(&caller, linked)
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct UnlinkRequest {
    activity: Uuid,
}

/// Unlink an activity from its contact
///
/// It is not linked again automatically.
#[utoipa::path(
    post,
    path = "/v1/contacts/unlink",
    operation_id = "unlinkActivity",
    tag = "contacts",
    request_body(content = UnlinkRequest, example = json!({"activity": "1f0c7a52-0000-4000-8000-000000000001"})),
    responses(
        (status = 200, description = "The result.", body = LinkResponse,
            example = json!({"activities": [{"id": "1f0c7a52-0000-4000-8000-000000000001", "outcome": "done"}]})),
        Denied, InvalidBody, NotFound,
    )
)]
async fn unlink(
    State(contacts): State<Contacts>,
    caller: Caller,
    Body(body): Body<UnlinkRequest>,
) -> Result<Json<LinkResponse>, WireError> {
    let unlinked = with_caller(&contacts.pool, &caller, |tx| Box::pin(super::unlink(&**tx, body.activity))).await;
    results(&caller, unlinked.map(|answer| vec![answer]))
}

/// An activity that does not exist is an error.
fn results(caller: &Caller, answers: gleaner_http::database::Result<Vec<Answer>>) -> Result<Json<LinkResponse>, WireError> {
    let activities = answers.map_err(|error| refuse(caller, error))?;
    match activities.first() {
        Some(Answer { id, outcome: Outcome::Gone }) => {
            Err(WireError::new(StatusCode::NOT_FOUND, "P0002", format!("there is no activity {id}")))
        }
        _ => Ok(Json(LinkResponse { activities })),
    }
}

fn malformed(message: impl Into<String>) -> WireError {
    WireError::new(StatusCode::BAD_REQUEST, "22023", message)
}

/// The database's error as a response for this caller. Its message stays in the log unless it is meant for callers.
fn refuse(caller: &Caller, error: Error) -> WireError {
    match error.code().map_or("", |code| code.code()) {
        "GL003" => WireError::new(StatusCode::NOT_FOUND, "GL003", "there is no such contact"),
        "42501" if matches!(caller, Caller::Token { role: Role::Anon, .. }) => {
            WireError::new(StatusCode::UNAUTHORIZED, "42501", "sign in to see and link activities")
        }
        "42501" => WireError::new(StatusCode::FORBIDDEN, "42501", "this is not yours to see or change"),
        code if code.starts_with("22") => malformed("a value is out of range"),
        _ if error.is_transient() => {
            tracing::warn!(%error, "contacts: the database is away");
            WireError::new(StatusCode::SERVICE_UNAVAILABLE, "PGRST001", "the database cannot be reached; try again")
        }
        _ => {
            tracing::error!(%error, "contacts: an act failed");
            WireError::internal()
        }
    }
}
