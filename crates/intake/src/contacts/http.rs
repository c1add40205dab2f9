//! `/v1/contacts/…`: the inbox of unmatched activities, and a person's decision about them, on behalf of the caller.

use axum::extract::rejection::QueryRejection;
use axum::extract::{FromRef, Query, State};
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Json, Router};
use gleaner_http::database::{Error, Pool};
use gleaner_http::{Authenticator, Body, Caller, Role, WireError, with_caller};
use serde::{Deserialize, Serialize};
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
pub fn router(pool: Pool, authenticator: impl Into<Authenticator>) -> Router {
    Router::new()
        .route("/v1/contacts/unmatched", get(unmatched))
        .route("/v1/contacts/link", post(link))
        .route("/v1/contacts/unlink", post(unlink))
        .with_state(Contacts { pool, authenticator: authenticator.into() })
}

#[derive(Deserialize)]
struct Wanted {
    limit: Option<i64>,
    after: Option<String>,
}

#[derive(Serialize)]
struct Listed {
    items: Vec<Unmatched>,
    /// What to send as `after` for the next page; null after the last.
    next: Option<String>,
}

async fn unmatched(
    State(contacts): State<Contacts>,
    caller: Caller,
    wanted: Result<Query<Wanted>, QueryRejection>,
) -> Result<Json<Listed>, WireError> {
    let Query(wanted) = wanted.map_err(|error| malformed(error.body_text()))?;
    let limit = wanted.limit.unwrap_or(Page::default().limit);
    if !(1..=LONGEST).contains(&limit) {
        return Err(malformed(format!("limit is from 1 to {LONGEST}")));
    }
    let page = Page { limit, after: wanted.after.map(|text| text.parse()).transpose().map_err(malformed)? };
    let items = with_caller(&contacts.pool, &caller, |tx| Box::pin(async move { super::unmatched(&**tx, &page).await }))
        .await
        .map_err(|error| refuse(&caller, error))?;
    let next = items.last().filter(|_| items.len() as i64 == limit).map(|last| last.cursor().to_string());
    Ok(Json(Listed { items, next }))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ToLink {
    activity: Uuid,
    contact: i64,
    #[serde(default)]
    backfill: bool,
    #[serde(default)]
    remember: bool,
}

#[derive(Serialize)]
struct Decided {
    activities: Vec<Answer>,
}

async fn link(State(contacts): State<Contacts>, caller: Caller, Body(body): Body<ToLink>) -> Result<Json<Decided>, WireError> {
    let how = Link { backfill: body.backfill, remember: body.remember };
    let linked = with_caller(&contacts.pool, &caller, |tx| Box::pin(super::link(&**tx, body.activity, body.contact, how))).await;
    decided(&caller, linked)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ToUnlink {
    activity: Uuid,
}

async fn unlink(State(contacts): State<Contacts>, caller: Caller, Body(body): Body<ToUnlink>) -> Result<Json<Decided>, WireError> {
    let unlinked = with_caller(&contacts.pool, &caller, |tx| Box::pin(super::unlink(&**tx, body.activity))).await;
    decided(&caller, unlinked.map(|answer| vec![answer]))
}

/// An activity that does not exist is an error.
fn decided(caller: &Caller, answers: gleaner_http::database::Result<Vec<Answer>>) -> Result<Json<Decided>, WireError> {
    let activities = answers.map_err(|error| refuse(caller, error))?;
    match activities.first() {
        Some(Answer { id, outcome: Outcome::Gone }) => {
            Err(WireError::new(StatusCode::NOT_FOUND, "P0002", format!("there is no activity {id}")))
        }
        _ => Ok(Json(Decided { activities })),
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
            WireError::new(StatusCode::INTERNAL_SERVER_ERROR, "XX000", "the act failed; the server's log tells why")
        }
    }
}
