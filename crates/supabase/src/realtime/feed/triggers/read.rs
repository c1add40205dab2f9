//! Finds the changes recorded since the last poll.
//!
//! A poll works by snapshots: it finds the changes of those transactions that the last poll's snapshot did not see and this one's
//! does. So a late commit is not skipped, nothing is sent twice, and a transaction that stays open delays no other change.
//!
//! Changes of one row come in order. A transaction that changes a row after another one had to wait for the first to end, so no
//! snapshot sees the second alone. Both draw their numbers while they hold the row, so within a poll the numbers give the order.

use futures_util::TryStreamExt as _;
use gleaner_http::database::{Error, Pool, Result};
use tokio::sync::mpsc;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::capture::{self, Noted, Reading, Tables};
use super::record;
use crate::realtime::feed::pgoutput::Cell;
use crate::realtime::feed::{Change, Commit, Kind, MOST_BYTES, MOST_CHANGES, News};

/// With more new changes than this at once, subscribers are sent an error and read the tables themselves: no socket could take them
/// all, and a poll's snapshot must not stay open.
pub(super) const MOST_NEW: i64 = 50_000;

/// The position up to which everything has been sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Position {
    /// In PostgreSQL's text form.
    pub snapshot: String,
    /// Every transaction before it has ended.
    pub xmin: u64,
    /// Recorded changes are lost in a crash, and absent on another server, where transaction ids differ too. This number then
    /// changes as well.
    generation: i64,
    /// Microseconds since 1970, by the server's clock.
    pub at_micros: i64,
    /// Changes before this transaction may have been deleted.
    pruned: i64,
    /// Until when writers record what they change.
    wanted_until: i64,
}

/// How a poll ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// Everything up to here was sent, with the number of changes.
    Sent(Position, usize),
    /// An unknown number of changes was missed, with the reason.
    Missed(&'static str),
    /// The receiver of the feed is gone.
    Closed,
}

const HEAD: &str = "s.taken::text, pg_snapshot_xmin(s.taken)::text, (select g.last_value from gleaner.changes_generation as g),
    (extract(epoch from clock_timestamp()) * 1000000)::bigint, (select p.last_value from gleaner.changes_pruned_before as p),
    (select w.last_value * 1000 from gleaner.changes_wanted_until as w)";

/// The position to start from: everything visible now has happened before.
pub(super) async fn begin(pool: &Pool) -> Result<Position> {
    let client = pool.get().await.map_err(|error| Error::Connect(error.to_string()))?;
    let sql =
        "select setval('gleaner.changes_generation', 1 + (random() * 1e15)::bigint) from gleaner.changes_generation where last_value = 0";
    client.query_typed(sql, &[]).await.map_err(Error::doing("begin a generation of changes"))?;
    let sql = format!("select {HEAD} from (select pg_current_snapshot() as taken) as s");
    let row = client.query_typed(&sql, &[]).await.map_err(Error::doing("take a snapshot"))?;
    row.first().map(position).ok_or_else(|| Error::Other("a snapshot without a row".into()))
}

fn position(row: &Row) -> Position {
    let xmin: String = row.get(1);
    Position {
        snapshot: row.get(0),
        xmin: xmin.parse().unwrap_or(0),
        generation: row.get(2),
        at_micros: row.get(3),
        pruned: row.get(4),
        wanted_until: row.get(5),
    }
}

/// Sends the new changes.
pub(super) async fn read(pool: &Pool, from: &Position, tables: &Tables, news: &mpsc::Sender<News>) -> Result<Outcome> {
    let doing = |error| Error::doing("read the changes")(error);
    let client = pool.get().await.map_err(|error| Error::Connect(error.to_string()))?;
    // What the last snapshot did not see is what came after it and what was in progress.
    let sql = format!(
        "select {HEAD}, c.xid, c.at, c.relation, c.kind, c.new_row, c.old_row
         from (select pg_current_snapshot() as taken) as s
         left join (
             select c.id, c.xid::text, (extract(epoch from c.at) * 1000000)::bigint as at, c.relation, c.kind::text, c.new_row, c.old_row
             from gleaner.change as c
             where c.xid >= pg_snapshot_xmax($1::text::pg_snapshot)
                or c.xid = any (array(select pg_snapshot_xip($1::text::pg_snapshot)))
             order by c.id limit {MOST_NEW} + 1
         ) as c on true
         order by c.id"
    );
    let rows = client.query_typed_raw(&sql, [(&from.snapshot, Type::TEXT)]).await.map_err(doing)?;
    let mut rows = std::pin::pin!(rows);
    let mut to: Option<Position> = None;
    // Described after the snapshot was taken, and so after every row in it was written.
    let mut now = None;
    let mut sending = Sending { news, from: from.at_micros, open: None, bytes: 0, count: 0, is_begun: false };
    loop {
        let row = match rows.try_next().await {
            Ok(Some(row)) => row,
            Ok(None) => break,
            // A retry would send the first part twice.
            Err(_) if sending.is_begun => return Ok(Outcome::Missed("the connection was lost while changes were read")),
            Err(error) => return Err(doing(error)),
        };
        let to = to.get_or_insert_with(|| position(&row));
        if to.generation != from.generation {
            return Ok(Outcome::Missed("what was noted is lost: PostgreSQL has crashed, or is another one"));
        }
        if to.pruned > from.pruned && u64::try_from(to.pruned).unwrap_or(0) > from.xmin {
            return Ok(Outcome::Missed("changes were pruned before they were read"));
        }
        // The lease was withdrawn, or lost in a crash.
        if to.wanted_until < to.at_micros {
            return Ok(Outcome::Missed("changes were not noted for a while"));
        }
        let Some(kind) = row.get::<_, Option<String>>(9) else { break };
        let now = match &now {
            Some(now) => now,
            None => now.insert(capture::describe(pool).await?),
        };
        let change = match tables.since(now, row.get(8)) {
            None => return Ok(Outcome::Missed("a published table was altered")),
            Some(Reading::Withdrawn) => continue,
            Some(Reading::As(noted)) => change(noted, &kind, row.get(10), row.get(11)),
        };
        let Some(change) = change else { return Ok(Outcome::Missed("a change cannot be read")) };
        let xid: String = row.get(6);
        if !sending.add(xid.parse::<u64>().unwrap_or(0), row.get(7), change).await {
            return Ok(Outcome::Closed);
        }
        if sending.count as i64 > MOST_NEW {
            return Ok(Outcome::Missed("more changes at once than are read"));
        }
    }
    let count = sending.count;
    if !sending.send().await {
        return Ok(Outcome::Closed);
    }
    Ok(match to {
        Some(to) => Outcome::Sent(to, count),
        None => Outcome::Missed("the query for changes returned no row"),
    })
}

/// Changes being sent, in parts of one transaction each.
struct Sending<'a> {
    news: &'a mpsc::Sender<News>,
    from: i64,
    open: Option<Commit>,
    bytes: usize,
    count: usize,
    is_begun: bool,
}

impl Sending<'_> {
    /// Returns whether the receiver is still there.
    async fn add(&mut self, xid: u64, at_micros: i64, change: Change) -> bool {
        // The log has only the lower half of the id, so subscribers get that half here too.
        #[allow(clippy::cast_possible_truncation)]
        let low = xid as u32;
        let is_other = self.open.as_ref().is_some_and(|open| open.xid != low);
        let is_full = self.bytes >= MOST_BYTES || self.open.as_ref().is_some_and(|open| open.changes.len() >= MOST_CHANGES);
        if (is_other || is_full) && !self.send().await {
            return false;
        }
        self.count += 1;
        self.bytes += change.row().iter().map(|cell| if let Cell::Text(text) = cell { text.len() } else { 0 }).sum::<usize>();
        // The time of the write. The commit came later, and after the last poll.
        let open = self.open.get_or_insert_with(|| Commit { xid: low, at_micros: at_micros.max(self.from), changes: Vec::new() });
        open.changes.push(change);
        true
    }

    async fn send(&mut self) -> bool {
        self.bytes = 0;
        match self.open.take() {
            Some(commit) => {
                self.is_begun = true;
                self.news.send(News::Commit(commit)).await.is_ok()
            }
            None => true,
        }
    }
}

/// The change as the log would have it; `None` when it cannot be parsed.
fn change(noted: &Noted, kind: &str, new: Option<&str>, old: Option<&str>) -> Option<Change> {
    let kind = match kind {
        "I" => Kind::Insert,
        "U" => Kind::Update,
        "D" => Kind::Delete,
        _ => return None,
    };
    let new = match new {
        None => None,
        Some(text) => {
            let row = record::parse(text).filter(|row| row.is_whole && row.cells.len() == noted.width)?;
            Some(noted.published.iter().map(|&at| row.cells[at].clone()).collect())
        }
    };
    let old = match old {
        None => None,
        Some(text) => {
            let row = record::parse(text)?;
            // Only the key, as in the log: whether a subscriber that filters by another column could have seen the row can no
            // longer be checked.
            let key = |(column, &at): (&crate::realtime::feed::Column, &usize)| {
                if column.is_key { row.cells.get(at).cloned() } else { Some(Cell::Null) }
            };
            Some(noted.table.columns.iter().zip(&noted.published).map(key).collect::<Option<Vec<_>>>()?)
        }
    };
    Some(Change { table: noted.table.clone(), kind, new, old })
}
