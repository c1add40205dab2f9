//! What changed in the database, with the changes of each row in order. One feed serves the whole server, however many subscribers
//! it has.
//!
//! - [`wal`] reads the log by logical decoding, on a temporary slot that ends with this process and so never holds WAL back.
//! - [`triggers`] is for servers where the log cannot be read: triggers record changes in a table while there are subscribers.
//! - [`pgoutput`] decodes the log's messages, [`values`] turns PostgreSQL's text forms into JSON.

pub(super) mod pgoutput;
pub(super) mod triggers;
pub(super) mod values;
pub(super) mod wal;

use std::sync::Arc;
use std::time::{Duration, Instant};

use gleaner_http::database::{Error, Pool, Result};
use pgoutput::Cell;
use tokio::sync::{Notify, mpsc};
use values::Shape;

use super::Source;
use super::hub::Hub;
use triggers::{Ended, Follower};

/// The publication whose tables have their changes pushed. The name is Supabase's: what a team has published there is
/// published here, and `alter publication supabase_realtime add table …` works on both.
pub(super) const PUBLICATION: &str = "supabase_realtime";

/// The most changes, and bytes of them, in one message of the feed.
const MOST_CHANGES: usize = 1000;
const MOST_BYTES: usize = 1024 * 1024;

/// Between two attempts.
const SHORTEST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(15);

/// How long to wait before trying the log again on a server that refused it.
const REFUSED_FOR: Duration = Duration::from_secs(600);

/// What the feed reports, in order.
#[derive(Debug, Clone)]
pub(super) enum News {
    /// From here on every commit is seen, for the tables that were published when this many requests for the feed had been made.
    Live {
        asks: u64,
    },
    Commit(Commit),
    /// Changes of this table may have been missed.
    Missed {
        schema: String,
        table: String,
    },
    /// Commits may have been missed: subscribers must read the tables themselves.
    Gap,
}

/// Follows the database until the receiver is dropped: by its log where the server permits it, by triggers otherwise. A failure is
/// reported as a gap and then retried. `hint` signals that there may be something new.
pub(super) async fn follow(source: Source, hub: Arc<Hub>, hint: Arc<Notify>, news: mpsc::Sender<News>) {
    let Source { pool, feed, log, .. } = source;
    let mut pause = SHORTEST_PAUSE;
    let mut refused: Option<Instant> = None;
    let mut reason = "";
    let mut follower = Follower::new(feed, hub, hint, news.clone());
    while !news.is_closed() {
        let mut is_live = false;
        let ended = match has_log(&pool).await {
            Err(error) => Err(error.to_string()),
            Ok(true) if refused.is_none_or(|at| at.elapsed() > REFUSED_FOR) => {
                let ended = tokio::select! {
                    ended = wal::follow(&log, &pool, &news, &mut is_live) => ended,
                    never = triggers::retire(&pool) => match never {},
                };
                // The server answers but refuses: no replication right, no free slot, or a pooler in between.
                if !is_live && ended.as_ref().is_err_and(wal::WalError::is_refusal) && has_log(&pool).await.is_ok() {
                    refused = Some(Instant::now());
                }
                ended.map(|()| Ended::Closed).map_err(|error| error.to_string())
            }
            Ok(has_log) => {
                let why = if has_log { "the server does not let us read its log" } else { "wal_level is not logical" };
                if why != std::mem::replace(&mut reason, why) {
                    tracing::info!(why, "changes are followed by triggers on the published tables");
                }
                follower.wanted().await;
                follower.follow(&mut is_live).await.map_err(|error| error.to_string())
            }
        };
        if is_live {
            pause = SHORTEST_PAUSE;
        }
        match ended {
            Ok(Ended::Closed) => return,
            Ok(Ended::Idle) => {
                tracing::debug!("no subscribers; the change feed stopped");
                pause = Duration::ZERO;
            }
            Ok(Ended::Missed(why)) => tracing::warn!(why, "changes were missed; subscribers are asked to join again"),
            Err(error) => tracing::warn!(error, retry_ms = pause.as_millis() as u64, "the change feed stopped"),
        }
        // Also sent when the feed goes idle: a client that joins at this very moment gets an error and joins again.
        if news.send(News::Gap).await.is_err() {
            return;
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).clamp(SHORTEST_PAUSE, LONGEST_PAUSE);
    }
}

/// Whether the server writes a log that can be decoded. Whether it permits us to read it is only known after trying.
async fn has_log(pool: &Pool) -> Result<bool> {
    let client = pool.get().await.map_err(|error| Error::Connect(error.to_string()))?;
    let rows =
        client.query_typed("select current_setting('wal_level') = 'logical'", &[]).await.map_err(Error::doing("ask for wal_level"))?;
    Ok(rows.first().is_some_and(|row| row.get(0)))
}

#[derive(Debug, Clone)]
pub(super) struct Commit {
    /// The lower half of the transaction id, as in the log.
    pub xid: u32,
    /// Microseconds since 1970.
    pub at_micros: i64,
    pub changes: Vec<Change>,
}

#[derive(Debug, Clone)]
pub(super) struct Change {
    pub table: Arc<Table>,
    pub kind: Kind,
    /// The whole new row; none for a delete.
    pub new: Option<Vec<Cell>>,
    /// The old row as far as the log has it (with the default replica identity, its key); `None` for an insert.
    pub old: Option<Vec<Cell>>,
}

impl Change {
    /// The row that filters are compared with: the new one, or for a delete the old one.
    pub(super) fn row(&self) -> &[Cell] {
        self.new.as_deref().or(self.old.as_deref()).unwrap_or_default()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    Insert,
    Update,
    Delete,
}

impl Kind {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Insert => "INSERT",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
        }
    }
}

/// A table as it was when its changes were written.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Table {
    pub schema: String,
    pub name: String,
    pub columns: Vec<Column>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Column {
    pub name: String,
    /// As in `pg_type`: `int8`, `_text`.
    pub type_name: String,
    /// As written in SQL, for casts: `pg_catalog.int8`, `public.mood`.
    pub sql_type: String,
    pub shape: Shape,
    pub is_key: bool,
}

impl Table {
    pub(super) fn keys(&self) -> impl Iterator<Item = (usize, &Column)> {
        self.columns.iter().enumerate().filter(|(_, column)| column.is_key)
    }
}
