//! The triggers that record changes: creates them on published tables, drops them again, and describes those tables.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use gleaner_http::database::{Error, Pool, Result};
use tokio_postgres::error::SqlState;
use tokio_postgres::types::Type;

use crate::realtime::feed::values::Shape;
use crate::realtime::feed::{Column, Table};

/// The time between two attempts to drop triggers that are not needed any more.
const RETIRE_EVERY: Duration = Duration::from_secs(15);

/// How often a lock that is not free at once is tried, and how long other transactions may go first in between.
const LOCK_TRIES: u32 = 3;
const LOCK_AGAIN: Duration = Duration::from_millis(500);
/// How long to leave a table alone after its triggers could not be created. Waiting for its lock blocks all later transactions on
/// the table.
const FAILED_FOR: Duration = Duration::from_secs(30);

/// Tables whose triggers could not be created: when, and why.
pub(super) type Failed = HashMap<u32, (Instant, String)>;

/// Creates the triggers of every published table, and drops those that are no longer wanted. Returns the schema and name of each
/// table whose changes are recorded from now on and were not before.
pub(super) async fn refresh(pool: &Pool, failed: &mut Failed) -> Result<Vec<(String, String)>> {
    let client = pool.get().await.map_err(|error| Error::Connect(error.to_string()))?;
    let amiss = client
        .query_typed(
            "select l.relation, n.nspname::text, c.relname::text, l.wanted is not null
             from gleaner.list_captures() as l
             join pg_class as c on c.oid = l.relation
             join pg_namespace as n on n.oid = c.relnamespace
             where l.wanted is distinct from l.present",
            &[],
        )
        .await
        .map_err(Error::doing("look which tables are published"))?;
    let mut captured = Vec::new();
    for row in amiss {
        let (relation, schema, table, is_wanted): (u32, String, String, bool) = (row.get(0), row.get(1), row.get(2), row.get(3));
        if failed.get(&relation).is_some_and(|(at, _)| at.elapsed() < FAILED_FOR) {
            continue;
        }
        // One table per statement: a lock that is not free in time or a missing right then affects that table alone.
        match put(&client, relation, is_wanted).await {
            Ok(()) => {
                failed.remove(&relation);
                if is_wanted {
                    captured.push((schema, table));
                }
            }
            Err(error) => {
                let error = Error::doing("put triggers on a published table")(error).to_string();
                if failed.get(&relation).is_none_or(|(_, before)| *before != error) {
                    tracing::warn!(error, schema, table, "changes of this table cannot be followed");
                }
                failed.insert(relation, (Instant::now(), error));
            }
        }
    }
    Ok(captured)
}

async fn put(client: &deadpool_postgres::Client, relation: u32, is_wanted: bool) -> Result<(), tokio_postgres::Error> {
    let sql = "select gleaner.capture_changes($1, $2)";
    let mut tries = 0;
    loop {
        tries += 1;
        match client.query_typed(sql, &[(&relation, Type::OID), (&is_wanted, Type::BOOL)]).await {
            Ok(_) => return Ok(()),
            Err(error) if error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE) && tries < LOCK_TRIES => tokio::time::sleep(LOCK_AGAIN).await,
            Err(error) => return Err(error),
        }
    }
}

/// Waits for the transactions that were writing when recording began: they may have written rows before that, which were not
/// recorded. All of them hold a lock on one of our tables, so no other transaction is waited for.
pub(super) async fn writers(pool: &Pool, tables: &Tables) -> Result<()> {
    let relations: Vec<u32> = tables.0.keys().copied().collect();
    let asked = |before: Option<Vec<String>>| {
        let relations = relations.clone();
        async move {
            let client = pool.get().await.map_err(|error| Error::Connect(error.to_string()))?;
            let rows = client
                .query_typed(
                    "select distinct l.virtualtransaction
                     from pg_locks as l
                     where l.locktype = 'relation' and l.relation = any ($1) and l.granted
                       and l.database = (select oid from pg_database where datname = current_database())
                       and l.mode in ('RowExclusiveLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock')
                       and ($2::text[] is null or l.virtualtransaction = any ($2))",
                    &[(&relations, Type::OID_ARRAY), (&before, Type::TEXT_ARRAY)],
                )
                .await
                .map_err(Error::doing("look who is writing"))?;
            Ok::<_, Error>(rows.iter().map(|row| row.get(0)).collect::<Vec<String>>())
        }
    };
    let mut writing = asked(None).await?;
    let mut waited = Duration::from_millis(5);
    while !writing.is_empty() {
        tokio::time::sleep(waited).await;
        waited = (waited * 2).min(Duration::from_millis(200));
        writing = asked(Some(writing)).await?;
    }
    Ok(())
}

/// The tables whose changes are recorded, by the relation id in their triggers.
#[derive(Debug, Default)]
pub(super) struct Tables(HashMap<u32, Noted>);

#[derive(Debug)]
pub(super) struct Noted {
    /// The description as the catalogue gave it. While it stays the same, so does the form of the rows.
    described: String,
    pub table: Arc<Table>,
    /// The positions in the row of the columns to send. A publication may leave some out.
    pub published: Vec<usize>,
    /// How many values a row has.
    pub width: usize,
}

/// How to read a row.
#[derive(Debug)]
pub(super) enum Reading<'a> {
    As(&'a Noted),
    /// Its table is no longer published or was dropped, so there is nothing to send.
    Withdrawn,
}

impl Tables {
    /// How to read rows of this relation that were written after these descriptions and before those of `now`. `None` where that is
    /// unknown: the table was altered meanwhile, or is new.
    pub(super) fn since(&self, now: &Self, relation: u32) -> Option<Reading<'_>> {
        match (self.0.get(&relation), now.0.get(&relation)) {
            (_, None) => Some(Reading::Withdrawn),
            (Some(before), Some(now)) if before.described == now.described => Some(Reading::As(before)),
            (_, Some(_)) => None,
        }
    }

    /// Whether everything here reads the same in `now`.
    pub(super) fn hold(&self, now: &Self) -> bool {
        self.0.keys().all(|&relation| self.since(now, relation).is_some())
    }
}

/// Describes the published tables. A partition's changes are reported under its own name, or under that of the published table
/// above it.
pub(super) async fn describe(pool: &Pool) -> Result<Tables> {
    let client = pool.get().await.map_err(|error| Error::Connect(error.to_string()))?;
    let rows = client
        .query_typed(
            "select r.relation, json_build_array(p.schemaname, p.tablename, (
                 select json_agg(json_build_array(
                            a.attnum, a.attname, t.typname, format('%I.%I', n.nspname, t.typname), coalesce(b.typname, t.typname),
                            exists (
                                select from pg_index as i
                                where i.indrelid = a.attrelid and a.attnum = any (i.indkey)
                                  and case c.relreplident when 'i' then i.indisreplident else i.indisprimary end),
                            a.attname = any (p.attnames)) order by a.attnum)
                 from pg_attribute as a
                 join pg_type as t on t.oid = a.atttypid
                 join pg_namespace as n on n.oid = t.typnamespace
                 left join pg_type as b on b.oid = nullif(t.typbasetype, 0)
                 where a.attrelid = r.relation and a.attnum > 0 and not a.attisdropped))::text
             from (select distinct tgrelid as relation from pg_trigger where tgfoid = 'gleaner.note_change()'::regprocedure) as r
             join pg_class as c on c.oid = r.relation
             cross join lateral (
                 select p.schemaname, p.tablename, p.attnames
                 from (select r.relation as above, 0 as n union all select relid, ordinality from pg_partition_ancestors(r.relation) with ordinality as a (relid, ordinality)) as a
                 join pg_publication_tables as p on to_regclass(format('%I.%I', p.schemaname, p.tablename)) = a.above
                 where p.pubname = $1
                 order by a.n limit 1) as p",
            &[(&crate::realtime::feed::PUBLICATION, Type::TEXT)],
        )
        .await
        .map_err(Error::doing("describe published tables"))?;
    Ok(Tables(rows.iter().filter_map(|row| Some((row.get(0), noted(row.get(1))?))).collect()))
}

fn noted(described: String) -> Option<Noted> {
    type Described = (u32, String, String, String, String, bool, Option<bool>);
    let (schema, name, columns): (String, String, Vec<Described>) = serde_json::from_str(&described).ok()?;
    let width = columns.len();
    let mut published = Vec::new();
    let mut kept = Vec::new();
    for (at, (_, name, type_name, sql_type, base, is_key, is_told)) in columns.into_iter().enumerate() {
        // A column added after the publication listed its columns is not in that list. Without a list all columns are sent.
        if is_told != Some(false) {
            published.push(at);
            kept.push(Column { name, shape: Shape::of(&base), type_name, sql_type, is_key });
        }
    }
    Some(Noted { described, table: Arc::new(Table { schema, name, columns: kept }), published, width })
}

/// Drops all triggers and empties the table of changes, once no server follows by triggers any more: the log is read here, and
/// writers should not pay for both. Never returns.
pub(crate) async fn retire(pool: &Pool) -> std::convert::Infallible {
    loop {
        match retire_once(pool).await {
            Ok(true) => std::future::pending().await,
            Ok(false) => {}
            Err(error) => tracing::debug!(%error, "could not take the triggers of the change feed off; trying again"),
        }
        tokio::time::sleep(RETIRE_EVERY).await;
    }
}

/// Tries once. Returns whether nothing is left to do.
pub(super) async fn retire_once(pool: &Pool) -> Result<bool> {
    let client = pool.get().await.map_err(|error| Error::Connect(error.to_string()))?;
    let doing = |error| Error::doing("take the triggers of the change feed off")(error);
    let found = client
        .query_typed(
            "select (select coalesce(array_agg(distinct t.tgrelid), '{}') from pg_trigger as t
                     where t.tgfoid = to_regprocedure('gleaner.note_change()') and t.tgparentid = 0),
                    s.last_value < extract(epoch from clock_timestamp()) * 1000
             from gleaner.changes_wanted_until as s",
            &[],
        )
        .await
        .map_err(doing)?;
    let Some(row) = found.first() else { return Ok(false) };
    let relations: Vec<u32> = row.get(0);
    if relations.is_empty() {
        return Ok(true);
    }
    // Another server may follow by triggers, or this one did a moment ago.
    if !row.get::<_, bool>(1) {
        return Ok(false);
    }
    for relation in relations {
        client.query_typed("select gleaner.capture_changes($1, false)", &[(&relation, Type::OID)]).await.map_err(doing)?;
    }
    client.execute_typed("truncate gleaner.change", &[]).await.map_err(doing)?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_that_the_publication_leaves_out_are_not_sent() {
        let described = r#"["public", "t", [[1, "id", "int8", "pg_catalog.int8", "int8", true, true],
            [3, "secret", "text", "pg_catalog.text", "text", false, false], [4, "open", "text", "pg_catalog.text", "text", false, true]]]"#;
        let noted = noted(described.to_owned()).expect("a description");
        assert_eq!((noted.published.as_slice(), noted.width), ([0, 2].as_slice(), 3));
        assert_eq!(noted.table.columns.iter().map(|column| column.name.as_str()).collect::<Vec<_>>(), ["id", "open"]);
        assert_eq!(noted.table.keys().count(), 1);
    }
}
