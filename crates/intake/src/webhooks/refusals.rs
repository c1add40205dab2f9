//! Refusals, counted by channel, minute and reason: first in memory, and once a second in the database. However many
//! requests are refused, the cost is one statement and a few log lines a second.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use gleaner_http::database::Pool;
use serde_json::{Value, json};
use tokio_postgres::types::Type;
use uuid::Uuid;

/// The most different refusals kept in memory while the database is unreachable.
const MANY: usize = 10_000;

/// A request that was refused, or accepted with a warning.
#[derive(Debug, Clone)]
pub(super) struct Refused {
    /// None when the key belongs to no channel.
    pub channel: Option<Uuid>,
    pub reason: &'static str,
    pub status: u16,
    pub client: Option<IpAddr>,
    /// A sentence for the operator. It never contains a secret, nor what was sent instead of one.
    pub detail: String,
}

#[derive(Debug, Default)]
pub(super) struct Refusals {
    counted: Mutex<HashMap<Counted, Tally>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Counted {
    channel: Option<Uuid>,
    minute: u64,
    reason: &'static str,
}

#[derive(Debug, Clone)]
struct Tally {
    count: u64,
    status: u16,
    last: u64,
    client: Option<IpAddr>,
    detail: String,
}

impl Refusals {
    pub(super) fn record(&self, refused: Refused) {
        // Refusals are recorded by the wall clock, even where verification is tested with another clock.
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let key = Counted { channel: refused.channel, minute: now / 60 * 60, reason: refused.reason };
        let mut counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        if counted.len() >= MANY && !counted.contains_key(&key) {
            return;
        }
        let tally = counted.entry(key).or_insert_with(|| Tally { count: 0, status: 0, last: 0, client: None, detail: String::new() });
        tally.count += 1;
        (tally.status, tally.last, tally.client, tally.detail) = (refused.status, now, refused.client, refused.detail);
    }

    /// Writes the counts to the database. Counts that cannot be written are kept.
    pub(super) async fn flush(&self, pool: &Pool) {
        let counted = std::mem::take(&mut *self.counted.lock().unwrap_or_else(PoisonError::into_inner));
        if counted.is_empty() {
            return;
        }
        for (key, tally) in &counted {
            let (reason, count, status, detail) = (key.reason, tally.count, tally.status, &tally.detail);
            let client = tally.client.map(tracing::field::display);
            tracing::info!(channel = key.channel.map(tracing::field::display), reason, count, status, client, "rejected: {detail}");
        }
        let rows: Vec<Value> = counted
            .iter()
            .map(|(key, tally)| {
                json!({
                    "provider": key.channel, "reason": key.reason, "status": tally.status, "count": tally.count,
                    "at": timestamp(tally.last), "client": tally.client, "detail": tally.detail,
                })
            })
            .collect();
        if let Err(error) = write(pool, &Value::Array(rows)).await {
            tracing::debug!(%error, "refusals stay in memory");
            self.put_back(counted);
        }
    }

    fn put_back(&self, back: HashMap<Counted, Tally>) {
        let mut counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        for (key, older) in back {
            let room = counted.len() < MANY;
            match counted.entry(key) {
                Entry::Occupied(mut tally) => tally.get_mut().count += older.count,
                Entry::Vacant(place) if room => drop(place.insert(older)),
                Entry::Vacant(_) => {}
            }
        }
    }
}

async fn write(pool: &Pool, rows: &Value) -> gleaner_http::database::Result<()> {
    let client = pool.get().await.map_err(|e| gleaner_http::database::Error::Connect(e.to_string()))?;
    client
        .query_typed("select gleaner.record_refusals($1)", &[(rows, Type::JSONB)])
        .await
        .map_err(gleaner_http::database::Error::doing("record refusals"))?;
    Ok(())
}

/// A time that PostgreSQL reads the same in any zone: by the number of the day, which needs no calendar on our side.
fn timestamp(unix_seconds: u64) -> String {
    let (day, second) = (unix_seconds / 86_400, unix_seconds % 86_400);
    format!("J{} {:02}:{:02}:{:02}+00", day + 2_440_588, second / 3600, second / 60 % 60, second % 60)
}

/// Writes the counts to the database once a second, for as long as the server runs.
pub async fn keep_writing(webhooks: std::sync::Arc<super::Webhooks>) {
    let mut second = tokio::time::interval(Duration::from_secs(1));
    second.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        second.tick().await;
        webhooks.flush_refusals().await;
    }
}
