//! The triggers that note changes: put on published tables, taken off again; and what those tables look like.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use gleaner::{Error, Pool, Result};
use tokio_postgres::error::SqlState;
use tokio_postgres::types::Type;

use crate::realtime::feed::values::Shape;
use crate::realtime::feed::{Column, Table};

/// Between two attempts to take triggers off that nobody needs any more.
const RETIRE_EVERY: Duration = Duration::from_secs(15);

/// How often a lock is asked for that is not to be had at once, and how long others go ahead in between.
const LOCK_TRIES: u32 = 3;
const LOCK_AGAIN: Duration = Duration::from_millis(500);
/// How long a table is left alone that could not be given triggers. Who waits for its lock holds up all who come after.
const FAILED_FOR: Duration = Duration::from_secs(30);

/// Tables that could not be given triggers: when, and why.
pub type Failed = HashMap<u32, (Instant, String)>;

/// Gives every published table its triggers, and takes them off where they are no longer wanted. Returns the tables that are
/// noted from now on and were not before: schema and name.
pub async fn refresh(pool: &Pool, failed: &mut Failed) -> Result<Vec<(String, String)>> {
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
        // A table per statement: a lock that is not to be had in time, or a right that is missing, concerns that table alone.
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

/// Waits until those have ended who were writing when the changes began to be wanted: they may have written rows before, which
/// nobody noted. All of them hold a lock on a table of ours, and so nobody else is waited for.
pub async fn writers(pool: &Pool, tables: &Tables) -> Result<()> {
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

/// The tables whose changes are noted, by the number their triggers fire under.
#[derive(Debug, Default)]
pub struct Tables(HashMap<u32, Noted>);

#[derive(Debug)]
pub struct Noted {
    /// The description as the catalogue gave it: while that stays the same, so does the form of the rows.
    described: String,
    pub table: Arc<Table>,
    /// Where in the row the columns of the table are. A publication may leave some out.
    pub told: Vec<usize>,
    /// How many values a row has.
    pub width: usize,
}

/// What to make of a row.
#[derive(Debug)]
pub enum Reading<'a> {
    As(&'a Noted),
    /// Its table is no longer published, or gone: there is nothing to tell.
    Withdrawn,
}

impl Tables {
    /// How rows of this number read that were written since these were described and before `now` was. None where that is not
    /// known: the table was altered meanwhile, or is new.
    pub fn since(&self, now: &Self, relation: u32) -> Option<Reading<'_>> {
        match (self.0.get(&relation), now.0.get(&relation)) {
            (_, None) => Some(Reading::Withdrawn),
            (Some(before), Some(now)) if before.described == now.described => Some(Reading::As(before)),
            (_, Some(_)) => None,
        }
    }

    /// Whether everything here reads the same in `now`.
    pub fn hold(&self, now: &Self) -> bool {
        self.0.keys().all(|&relation| self.since(now, relation).is_some())
    }
}

/// Describes them. A partition's changes are told as the partition's, or as those of the table above it that is published.
pub async fn describe(pool: &Pool) -> Result<Tables> {
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
    let mut told = Vec::new();
    let mut kept = Vec::new();
    for (at, (_, name, type_name, sql_type, base, is_key, is_told)) in columns.into_iter().enumerate() {
        // A column that was made after the publication named its own is not among them; without such a list all are.
        if is_told != Some(false) {
            told.push(at);
            kept.push(Column { name, shape: Shape::of(&base), type_name, sql_type, is_key });
        }
    }
    Some(Noted { described, table: Arc::new(Table { schema, name, columns: kept }), told, width })
}

/// Takes all triggers off and empties the table of changes, once nobody follows by them any more: the log is read here, and
/// nobody shall pay for both. Never returns.
pub async fn retire(pool: &Pool) -> std::convert::Infallible {
    loop {
        match retire_once(pool).await {
            Ok(true) => std::future::pending().await,
            Ok(false) => {}
            Err(error) => tracing::debug!(%error, "could not take the triggers of the change feed off; trying again"),
        }
        tokio::time::sleep(RETIRE_EVERY).await;
    }
}

/// Once. Whether nothing is left to do.
pub async fn retire_once(pool: &Pool) -> Result<bool> {
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
    // Another server may follow by them, or ours a moment ago.
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
    fn columns_that_the_publication_leaves_out_are_not_told() {
        let described = r#"["public", "t", [[1, "id", "int8", "pg_catalog.int8", "int8", true, true],
            [3, "secret", "text", "pg_catalog.text", "text", false, false], [4, "open", "text", "pg_catalog.text", "text", false, true]]]"#;
        let noted = noted(described.to_owned()).expect("a description");
        assert_eq!((noted.told.as_slice(), noted.width), ([0, 2].as_slice(), 3));
        assert_eq!(noted.table.columns.iter().map(|column| column.name.as_str()).collect::<Vec<_>>(), ["id", "open"]);
        assert_eq!(noted.table.keys().count(), 1);
    }
}
