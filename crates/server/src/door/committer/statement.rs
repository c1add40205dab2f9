//! The one statement of a group commit: what goes in, what comes out, and what its errors mean.

use std::time::Instant;

use bytes::Bytes;
use deadpool_postgres::Object;
use gleaner::Pool;
use gleaner_ingest::Stored;
use serde_json::Value;
use tokio_postgres::types::{Json, Type};
use uuid::Uuid;

use crate::contacts;

/// What one request brings to the database.
#[derive(Debug, Clone)]
pub struct Submission {
    /// An element of `p_requests` of `gleaner.ingest_activities`.
    pub request: Value,
    /// The body as received, when it is small enough for the table.
    pub body: Option<Bytes>,
}

/// What became of one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Committed {
    Stored(Vec<Stored>),
    /// Nothing to queue; what was to be remembered is.
    Nothing,
    /// A one-time token was used before; nothing is stored.
    Replayed,
    /// The channel was paused or deleted meanwhile.
    Closed,
}

/// Failures, sorted by what the committer does about them.
#[derive(Debug)]
pub(super) enum Trouble {
    /// The data is not acceptable, and will not be the next time.
    Refused { code: String },
    /// The database refuses for reasons of its own (a missing function, a right, somebody's trigger).
    Broken(String),
    /// Lost on the way, or the server is busy with itself: again, please.
    Away(String),
}

impl Submission {
    pub(super) fn size(&self) -> usize {
        self.body.as_ref().map_or(0, Bytes::len) + 1024
    }

    /// What comes first wherever it is stored: by channel and event.
    pub(super) fn order<'a>(&'a self) -> (&'a str, &'a str) {
        let text = |value: &'a Value| value.as_str().unwrap_or_default();
        (text(&self.request["channel"]), text(&self.request["events"][0]["external_id"]))
    }
}

pub(super) async fn commit(pool: &Pool, batch: &[&Submission], until: Instant) -> Result<Vec<Committed>, Trouble> {
    let mut leased = Leased(Some(pool.get().await.map_err(|error| Trouble::Away(format!("connect: {error}")))?));
    let Some(client) = &leased.0 else { return Err(Trouble::Away("no connection".to_owned())) };
    // A contact saved a moment ago is to be known to the message that follows.
    if let Err(error) = contacts::parse_pending(&***client).await {
        tracing::debug!(%error, "contacts' new addresses were not read; senders may stay unmatched until they are");
    }
    let requests = Json(batch.iter().map(|submission| &submission.request).collect::<Vec<_>>());
    let bodies: Vec<Option<&[u8]>> = batch.iter().map(|submission| submission.body.as_deref()).collect();
    // Whoever gave up must not leave a session behind that waits for a lock: it ends by itself when its waiters are gone.
    let patience = format!("{}ms", until.saturating_duration_since(Instant::now()).as_millis().max(1));
    let rows = client
        .query_typed(
            "with patience as materialized (select set_config('lock_timeout', $3, true) as given)
             select done.request, done.position, done.outcome, done.id
             from patience
             cross join lateral gleaner.ingest_activities(case when patience.given <> '' then $1 end, $2) done
             order by done.request, done.position",
            &[(&requests, Type::JSONB), (&bodies, Type::BYTEA_ARRAY), (&patience, Type::TEXT)],
        )
        .await;
    match rows {
        Ok(rows) => {
            leased.give_back();
            outcomes(batch.len(), &rows)
        }
        Err(error) => {
            if error.code().is_some() {
                leased.give_back();
            }
            Err(sort(&error))
        }
    }
}

/// A connection that goes back to the pool only when it is known to be free. Dropped in the middle of a statement it is closed:
/// whoever got it next would wait for that statement.
struct Leased(Option<Object>);

impl Leased {
    fn give_back(&mut self) {
        drop(self.0.take());
    }
}

impl Drop for Leased {
    fn drop(&mut self) {
        drop(self.0.take().map(Object::take));
    }
}

fn sort(error: &tokio_postgres::Error) -> Trouble {
    if gleaner::error::is_transient(error) {
        return Trouble::Away(error.to_string());
    }
    let Some(database) = error.as_db_error() else { return Trouble::Away(error.to_string()) };
    let code = database.code().code();
    match &code[..2] {
        // Values, rules of the schema, sizes, and our own functions' word for a call that makes no sense.
        "22" | "23" | "54" | "GL" => Trouble::Refused { code: code.to_owned() },
        // The message may quote what was sent; the code and the place do not.
        _ => Trouble::Broken(format!("the database refuses ({code}{})", database.routine().map(|r| format!(", {r}")).unwrap_or_default())),
    }
}

fn outcomes(requests: usize, rows: &[tokio_postgres::Row]) -> Result<Vec<Committed>, Trouble> {
    let mut all = vec![Committed::Nothing; requests];
    for row in rows {
        let (request, outcome, id): (i32, &str, Option<Uuid>) = (row.get(0), row.get(2), row.get(3));
        // SQL counts from one.
        let place = usize::try_from(request).ok().and_then(|request| all.get_mut(request.checked_sub(1)?));
        let Some(place) = place else { return Err(Trouble::Broken(format!("an answer for request {request}, which was not asked"))) };
        match (outcome, id) {
            ("stored" | "repeated", Some(id)) => {
                let stored = Stored { id, fresh: outcome == "stored" };
                match place {
                    Committed::Stored(all) => all.push(stored),
                    other => *other = Committed::Stored(vec![stored]),
                }
            }
            ("replayed", _) => *place = Committed::Replayed,
            ("closed", _) => *place = Committed::Closed,
            ("nothing", _) => {}
            (other, _) => return Err(Trouble::Broken(format!("an answer nobody knows: {other}"))),
        }
    }
    Ok(all)
}
