//! The feed by triggers, for servers where the log cannot be read because of `wal_level`, a missing right or a pooler in between.
//!
//! Triggers on the published tables record each change in `gleaner.change`, in the writer's own transaction, and one reader per
//! server polls for new ones. It uses plain statements only, none of which depends on a session. Writers record changes only while
//! there are subscribers: a lease kept in a sequence says so, and a server that stops leaves nothing behind that grows.
//!
//! - [`capture`]: the triggers, and the description of the tables. [`read`](self::read): finds new changes, by snapshots. [`record`]: rows as
//!   text.
//!
//! A truncate is not reported; the feed by the log does not report it either.

mod capture;
mod read;
mod record;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use gleaner_http::database::{Error, Pool, Result};
use tokio::sync::{Notify, mpsc, watch};
use tokio_postgres::types::Type;

use capture::Tables;
pub(crate) use capture::retire;
use read::{Outcome, Position};

use super::News;
use crate::realtime::hub::Hub;

/// The time between two polls, unless a notification arrives.
const READ_EVERY: Duration = Duration::from_millis(100);
/// The shortest time between two polls, however many notifications arrive.
const LOOK_AT_MOST_EVERY: Duration = Duration::from_millis(20);
/// How long writers go on recording changes after the last lease renewal.
const LEASE: Duration = Duration::from_secs(20);
/// How often the lease is renewed, old changes are pruned, and newly published tables are found.
const TEND_EVERY: Duration = Duration::from_secs(5);
/// How long we go on without a subscriber, because clients often reconnect.
const LINGER: Duration = Duration::from_secs(30);
/// After this long without a subscriber the triggers are dropped too. It is longer, because creating them again needs a lock on
/// every table.
const REST: Duration = Duration::from_secs(600);
/// How long changes are kept, for other servers that are behind this one.
const KEEP: Duration = Duration::from_secs(60);
/// Above this size changes are kept no longer than this server needs them.
const MOST_KEPT_BYTES: i64 = 256 * 1024 * 1024;
/// The pause after a failed poll. Nothing is lost as long as the lease lasts.
const RETRY_AFTER: Duration = Duration::from_millis(200);

/// Follows by triggers, while there are subscribers.
#[derive(Debug)]
pub(crate) struct Follower {
    pool: Pool,
    hub: Arc<Hub>,
    hint: Arc<Notify>,
    news: mpsc::Sender<News>,
    asks: watch::Receiver<u64>,
    /// All requests for the feed up to this number have been answered.
    answered: u64,
    failed: capture::Failed,
}

/// Why following ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// There is no subscriber any more.
    Idle,
    /// The receiver of the feed is gone.
    Closed,
    Missed(&'static str),
}

impl Follower {
    pub(crate) fn new(pool: Pool, hub: Arc<Hub>, hint: Arc<Notify>, news: mpsc::Sender<News>) -> Self {
        Self { pool, asks: hub.asks(), hub, hint, news, answered: 0, failed: capture::Failed::default() }
    }

    /// Waits until there is a subscriber. Until then no writer records changes, and recorded ones are deleted.
    pub(crate) async fn wanted(&mut self) {
        let answered = self.answered;
        let (begun, mut is_retired) = (Instant::now(), false);
        while *self.asks.borrow() <= answered && !self.news.is_closed() {
            tokio::select! {
                // The hub lives as long as this follower.
                _ = self.asks.changed() => {}
                () = self.news.closed() => {}
                () = tokio::time::sleep(KEEP) => {
                    let tidied = async {
                        if begun.elapsed() >= REST && !is_retired {
                            is_retired = capture::retire_once(&self.pool).await?;
                        }
                        self.prune_unwanted().await
                    };
                    if let Err(error) = tidied.await {
                        tracing::debug!(%error, "could not tidy up after the change feed; trying again");
                    }
                }
            }
        }
    }

    /// Follows until there is no subscriber or something was missed. `is_live` is set once changes are being followed.
    pub(crate) async fn follow(&mut self, is_live: &mut bool) -> Result<Ended> {
        let mut asks = *self.asks.borrow_and_update();
        capture::refresh(&self.pool, &mut self.failed).await?;
        let mut lease = self.renew().await?;
        // Described before the snapshot is taken: a table altered in between is noticed at the first poll.
        let mut tables = capture::describe(&self.pool).await?;
        let waited = tokio::time::timeout(LEASE / 2, capture::writers(&self.pool, &tables)).await;
        waited.map_err(|_| Error::Other("a transaction that writes to a published table does not end".into()))??;
        let mut position = read::begin(&self.pool).await?;
        if !self.live(asks).await {
            return Ok(Ended::Closed);
        }
        *is_live = true;
        let mut history = VecDeque::new();
        let (mut tended, mut needed, mut read_at) = (Instant::now(), Instant::now(), Instant::now());
        loop {
            let begun = Instant::now();
            match read::read(&self.pool, &position, &tables, &self.news).await {
                Ok(Outcome::Sent(to, _)) => {
                    if to.at_micros > lease {
                        return Ok(Ended::Missed("the lease ran out"));
                    }
                    position = to;
                    read_at = begun;
                }
                Ok(Outcome::Missed(why)) => return Ok(Ended::Missed(why)),
                Ok(Outcome::Closed) => return Ok(Ended::Closed),
                // Nothing of this poll was sent, and nothing is lost while writers go on recording.
                Err(error) if read_at.elapsed() < LEASE => {
                    tracing::debug!(%error, "could not read the changes; trying again");
                    tokio::time::sleep(RETRY_AFTER).await;
                    continue;
                }
                Err(error) => return Err(error),
            }
            let is_asked = self.asks.has_changed().unwrap_or(false);
            if is_asked || tended.elapsed() >= TEND_EVERY {
                if is_asked {
                    asks = *self.asks.borrow_and_update();
                }
                tended = Instant::now();
                match self.tend(&mut tables, &mut lease).await {
                    Ok(None) => {}
                    Ok(Some(why)) => return Ok(Ended::Missed(why)),
                    Err(error) => {
                        tracing::debug!(%error, "the change feed could not be tended; trying again");
                        self.asks.mark_changed();
                        tokio::time::sleep(RETRY_AFTER).await;
                        continue;
                    }
                }
                if is_asked && !self.live(asks).await {
                    return Ok(Ended::Closed);
                }
                if let Err(error) = self.prune(&mut history, &position).await {
                    tracing::debug!(%error, "could not prune changes");
                }
            }
            if is_asked || self.hub.has_followers() {
                needed = Instant::now();
            } else if needed.elapsed() > LINGER {
                return Ok(Ended::Idle);
            }
            let hint = &self.hint;
            tokio::select! {
                () = tokio::time::sleep_until((begun + READ_EVERY).into()) => {}
                () = async {
                    hint.notified().await;
                    tokio::time::sleep_until((begun + LOOK_AT_MOST_EVERY).into()).await;
                } => {}
                _ = self.asks.changed() => self.asks.mark_changed(),
                () = self.news.closed() => return Ok(Ended::Closed),
            }
        }
    }

    async fn live(&mut self, asks: u64) -> bool {
        self.answered = asks;
        self.news.send(News::Live { asks }).await.is_ok()
    }

    /// Renews the lease, and adds tables that were published meanwhile. Subscribers of those tables, or of their whole schema, may
    /// have missed what was written before the triggers existed. Returns why changes were missed, if they were.
    async fn tend(&mut self, tables: &mut Tables, lease: &mut i64) -> Result<Option<&'static str>> {
        let renewed = self.renew().await?;
        // By the database server's clock, which the writers use too: no write went unrecorded before the old lease ran out.
        if renewed - i64::try_from(LEASE.as_micros()).unwrap_or(0) > *lease {
            return Ok(Some("the lease ran out"));
        }
        *lease = renewed;
        let captured = capture::refresh(&self.pool, &mut self.failed).await?;
        if captured.is_empty() {
            return Ok(None);
        }
        let now = capture::describe(&self.pool).await?;
        // Rows that were not read yet are read with their table's old description.
        if !tables.hold(&now) {
            return Ok(Some("a published table was altered"));
        }
        *tables = now;
        for (schema, table) in captured {
            // A closed channel is noticed at the next poll.
            let _ = self.news.send(News::Missed { schema, table }).await;
        }
        Ok(None)
    }

    /// Returns the lease's end in microseconds since 1970, by the database server's clock, which the writers use.
    async fn renew(&self) -> Result<i64> {
        let client = self.pool.get().await.map_err(|error| Error::Connect(error.to_string()))?;
        let lease = i64::try_from(LEASE.as_millis()).unwrap_or(0);
        let rows = client
            .query_typed(
                "select setval('gleaner.changes_wanted_until', (extract(epoch from clock_timestamp()) * 1000)::bigint + $1)",
                &[(&lease, Type::INT8)],
            )
            .await
            .map_err(Error::doing("say that changes are wanted"))?;
        Ok(rows.first().map_or(0, |row| row.get::<_, i64>(0)) * 1000)
    }

    /// Deletes changes that all servers have had time to read.
    async fn prune(&self, history: &mut VecDeque<(Instant, u64)>, position: &Position) -> Result<()> {
        history.push_back((Instant::now(), position.xmin));
        let mut before = None;
        while history.front().is_some_and(|(taken, _)| taken.elapsed() >= KEEP) {
            before = history.pop_front().map(|(_, xmin)| xmin);
        }
        let client = self.pool.get().await.map_err(|error| Error::Connect(error.to_string()))?;
        let size = client.query_typed("select pg_relation_size('gleaner.change')", &[]).await.map_err(Error::doing("prune changes"))?;
        if size.first().is_some_and(|row| row.get::<_, i64>(0) > MOST_KEPT_BYTES) {
            before = Some(position.xmin);
        }
        match before {
            Some(before) => prune(&client, before).await,
            None => Ok(()),
        }
    }

    /// This server has no subscriber. If no other server has one either, all changes can be deleted.
    async fn prune_unwanted(&self) -> Result<()> {
        let client = self.pool.get().await.map_err(|error| Error::Connect(error.to_string()))?;
        let rows = client
            .query_typed(
                "select pg_snapshot_xmin(pg_current_snapshot())::text
                 from gleaner.changes_wanted_until as s
                 where s.last_value < extract(epoch from clock_timestamp()) * 1000",
                &[],
            )
            .await
            .map_err(Error::doing("prune changes"))?;
        match rows.first().and_then(|row| row.get::<_, String>(0).parse().ok()) {
            Some(before) => prune(&client, before).await,
            None => Ok(()),
        }
    }
}

/// Deletes in steps, so that no transaction is long.
async fn prune(client: &deadpool_postgres::Client, before: u64) -> Result<()> {
    let before = before.to_string();
    loop {
        let rows = client
            .query_typed("select gleaner.prune_changes($1::text::xid8)", &[(&before, Type::TEXT)])
            .await
            .map_err(Error::doing("prune changes"))?;
        if rows.first().is_none_or(|row| row.get::<_, i64>(0) == 0) {
            return Ok(());
        }
    }
}
