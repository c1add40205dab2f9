//! Recurring follow-ups: turns the occurrences of a schedule into follow-ups, each once.
//!
//! A schedule is an item of the queue `schedules`, due at its next occurrence. Whichever agent claims it computes what is due, stores
//! the follow-ups and appoints the next occurrence in one transaction. There is no leader: the lease and the unique occurrence decide.

mod due;
mod recurrence;

use std::time::Duration;

use chrono::TimeDelta;
use gleaner::worker::{Replied, Reply};
use gleaner::{Failure, Item};
use gleaner_stages::failure::invalid;
use gleaner_stages::fetch::Fetch;
use serde_json::json;

use self::due::{Due, Prepared};
pub use self::recurrence::Recurrence;

/// The name of the queue.
pub const QUEUE: &str = "schedules";
/// How long one look may take without a sign of life.
pub const HOLD: Duration = Duration::from_secs(60);

/// Advances one claimed schedule. `early` is how long before their time follow-ups are claimed.
pub async fn run(database: &dyn Fetch, item: Item, early: Duration) -> Replied {
    let request = json!({"id": item.key, "lease": item.lease});
    let answer = database.call("prepare_schedule", request).await?;
    if answer["outcome"] == "lost" {
        return Ok(Reply::Ended);
    }
    let prepared: Prepared =
        serde_json::from_value(answer).map_err(|error| Failure::new(format!("the answer of prepare_schedule cannot be read: {error}")))?;
    let seen_from = prepared.seen_until;
    let early = TimeDelta::from_std(early).unwrap_or_default();
    // A year of minutes takes a moment to go through.
    let computed = tokio::task::spawn_blocking(move || {
        let recurrence = Recurrence::read(&prepared.cron, &prepared.time_zone)?;
        Ok::<_, String>(Due::of(&prepared, &recurrence, early))
    });
    let due = computed.await.map_err(|error| Failure::new(error.to_string()))?.map_err(invalid)?;
    if due.missed > 0 {
        tracing::warn!(schedule = item.key, missed = due.missed, "occurrences were missed and are not made up for");
    }
    let advanced = json!({
        "id": item.key, "lease": item.lease, "seen_from": seen_from, "seen_until": due.seen_until,
        "occurrences": due.occurrences, "missed": due.missed, "next": due.next,
    });
    let answer = database.call("advance_schedule", advanced).await?;
    tracing::debug!(schedule = item.key, next = ?due.next, %answer, "a schedule was advanced");
    Ok(Reply::Ended)
}
