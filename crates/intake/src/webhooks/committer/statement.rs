//! The single statement of a group commit: its input, its output, and the meaning of its errors.

use std::time::{Duration, Instant};

use bytes::Bytes;
use deadpool_postgres::Object;
use gleaner_http::database::Pool;
use gleaner_ingest::{Event, Memory, Stored};
use uuid::Uuid;

use super::columns::Columns;
use crate::contacts;
use crate::webhooks::raw::Kept;

/// What one request sends to the database.
#[derive(Debug, Clone)]
pub struct Submission {
    pub channel: Uuid,
    /// The request itself, unless requests are not stored.
    pub raw: Option<Kept>,
    /// A token that is valid only once, and for how long it is remembered.
    pub once: Option<(String, Duration)>,
    /// A hash of the content that may be sent again with that token. Without it, the token may not be used again.
    pub said: Option<String>,
    pub remember: Vec<Memory>,
    pub events: Vec<EventRow>,
}

/// An event, and the id it gets.
#[derive(Debug, Clone)]
pub struct EventRow {
    pub id: Uuid,
    pub event: Event,
}

/// The outcome of one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Committed {
    Stored(Vec<Stored>),
    /// There is no event to queue. What had to be stored is stored.
    Nothing,
    /// A one-time token was used before for other content; nothing is stored.
    Replayed,
    /// The channel was paused or deleted in the meantime.
    Closed,
}

/// Errors, sorted by what the committer does about them.
#[derive(Debug)]
pub(super) enum Trouble {
    /// The data is not acceptable, and a retry will not change that.
    Refused { code: String },
    /// The database refuses for reasons of its own (a missing function, a missing right, a user's trigger).
    Broken(String),
    /// The connection was lost, or the database is temporarily unavailable: retry.
    Away(String),
}

impl Submission {
    pub(super) fn size(&self) -> usize {
        self.raw.as_ref().and_then(|raw| raw.body.as_ref()).map_or(0, Bytes::len) + 1024
    }

    /// The sort key for storing: by channel and event.
    pub(super) fn order(&self) -> (Uuid, &str) {
        (self.channel, self.events.first().map_or("", |row| row.event.external_id.as_str()))
    }

    /// Whether a contact may be found for it. What a recalled call says about its caller counts too.
    fn has_sender(&self) -> bool {
        self.events.iter().any(|EventRow { event, .. }| {
            event.sender.is_some() || event.recall.is_some() || event.metadata.contains_key("from") || event.raw_data.contains_key("sender")
        })
    }
}

pub(super) async fn commit(pool: &Pool, batch: &[&Submission], until: Instant) -> Result<Vec<Committed>, Trouble> {
    let mut leased = Leased(Some(pool.get().await.map_err(|error| Trouble::Away(format!("connect: {error}")))?));
    let Some(client) = &leased.0 else { return Err(Trouble::Away("no connection".to_owned())) };
    // A contact saved a moment ago must be matched to the message that follows.
    if batch.iter().any(|submission| submission.has_sender())
        && let Err(error) = contacts::parse_pending(&***client).await
    {
        tracing::debug!(%error, "contacts' new addresses were not read; senders may stay unmatched until they are");
    }
    let columns = Columns::of(batch);
    let patience = format!("{}ms", until.saturating_duration_since(Instant::now()).as_millis().max(1));
    let rows = client
        .query_typed(
            "select request, event, outcome, id from gleaner.ingest_activities(
                 $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21)",
            &columns.parameters(&patience),
        )
        .await;
    match rows {
        Ok(rows) => {
            leased.give_back();
            outcomes(batch, &rows)
        }
        Err(error) => {
            if error.code().is_some() {
                leased.give_back();
            }
            Err(sort(&error))
        }
    }
}

/// A connection that returns to the pool only when it is known to be idle. If it is dropped in the middle of a statement it
/// is closed, because the next user of it would wait for that statement.
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
        // Values, rules of the schema, sizes, and our own functions' code for an invalid call.
        "22" | "23" | "54" | "GL" => Trouble::Refused { code: code.to_owned() },
        // The message may quote what was sent; the code and the routine do not.
        _ => Trouble::Broken(format!("the database refuses ({code}{})", database.routine().map(|r| format!(", {r}")).unwrap_or_default())),
    }
}

/// The result names only the exceptions. Everything else is stored under the id it was given.
fn outcomes(batch: &[&Submission], rows: &[tokio_postgres::Row]) -> Result<Vec<Committed>, Trouble> {
    let stored = |row: &EventRow| Stored { id: row.id, fresh: true };
    let mut all: Vec<Committed> = batch
        .iter()
        .map(|submission| match submission.events.as_slice() {
            [] => Committed::Nothing,
            events => Committed::Stored(events.iter().map(stored).collect()),
        })
        .collect();
    // Events are numbered through the group.
    let mut before = Vec::with_capacity(batch.len());
    let mut events = 0;
    for submission in batch {
        before.push(events);
        events += submission.events.len();
    }
    for row in rows {
        let (request, event, outcome, id): (i32, Option<i32>, &str, Option<Uuid>) = (row.get(0), row.get(1), row.get(2), row.get(3));
        let unasked = || Trouble::Broken(format!("an answer for request {request}, which was not asked"));
        // SQL counts from one.
        let at =
            usize::try_from(request).ok().and_then(|request| request.checked_sub(1)).filter(|at| *at < all.len()).ok_or_else(unasked)?;
        match (outcome, event, id, &mut all[at]) {
            ("repeated", Some(event), Some(id), Committed::Stored(stored)) => {
                let place = usize::try_from(event).ok().and_then(|event| event.checked_sub(1 + before[at])).ok_or_else(unasked)?;
                *stored.get_mut(place).ok_or_else(unasked)? = Stored { id, fresh: false };
            }
            ("replayed", None, _, place) => *place = Committed::Replayed,
            ("closed", None, _, place) => *place = Committed::Closed,
            (other, ..) => return Err(Trouble::Broken(format!("an unknown answer: {other}"))),
        }
    }
    Ok(all)
}
