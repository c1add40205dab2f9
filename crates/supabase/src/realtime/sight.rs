//! Who may see a changed row. The database is queried as the subscriber, so that the policies of the table decide.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use gleaner_http::database::{Error, Pool, Result};
use gleaner_http::{Caller, Role, begin};
use serde_json::Value;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::{ToSql, Type};

use super::feed::Table;
use super::feed::pgoutput::Cell;

/// How long readable columns are cached: grants change rarely, and a revoked grant must take effect soon.
const COLUMNS_FOR: Duration = Duration::from_secs(5);

/// A commit becomes visible moments after it is in the log, or later with a slow synchronous standby. All deliveries wait
/// meanwhile.
const SETTLE_WITHIN: Duration = Duration::from_secs(10);

type Columns = HashMap<(&'static str, String, String), (Instant, Arc<HashSet<String>>)>;

#[derive(Debug)]
pub(super) struct Sight {
    pool: Pool,
    columns: Mutex<Columns>,
}

impl Sight {
    pub(super) fn new(pool: Pool) -> Self {
        Self { pool, columns: Mutex::default() }
    }

    /// Waits until these transactions are visible to new snapshots: a commit is in the log a moment before it is visible.
    pub(super) async fn settle(&self, xids: &[u32]) -> Result<()> {
        let client = self.pool.get().await.map_err(|error| Error::Connect(error.to_string()))?;
        let xids: Vec<i64> = xids.iter().map(|&xid| i64::from(xid)).collect();
        let until = Instant::now() + SETTLE_WITHIN;
        loop {
            // The log has the lower half of a transaction id. The upper half is the snapshot's, or one less.
            let unseen: bool = client
                .query_typed(
                    "select exists (
                         select
                         from (select pg_current_snapshot() as taken) as s
                         cross join lateral (select pg_snapshot_xmax(s.taken)::text::bigint as next) as n
                         cross join unnest($1::bigint[]) as x (low)
                         where not pg_visible_in_snapshot(
                             ((((n.next >> 32) - case when n.next & 4294967295 < x.low then 1 else 0 end) << 32) | x.low)::text::xid8, s.taken))",
                    &[(&xids, Type::INT8_ARRAY)],
                )
                .await
                .map_err(Error::doing("wait for the commit to be visible"))?
                .first()
                .is_some_and(|row| row.get(0));
            if !unseen {
                return Ok(());
            }
            if Instant::now() > until {
                return Err(Error::Other("a commit seen in the log does not become visible".into()));
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    /// Per row: whether the caller may read it now, and the current values of the columns of `fill`, which the log did not repeat.
    pub(super) async fn look(&self, caller: &Caller, table: &Table, rows: &[&[Cell]], fill: &[&str]) -> Result<Vec<Option<Value>>> {
        let mut seen = vec![None; rows.len()];
        let keys: Vec<_> = table.keys().collect();
        if keys.is_empty() || rows.is_empty() {
            return Ok(seen);
        }
        let values: Vec<Vec<Option<&str>>> = keys.iter().map(|(at, _)| rows.iter().map(|row| text(&row[*at])).collect()).collect();
        let parameters: Vec<(&(dyn ToSql + Sync), Type)> =
            values.iter().map(|column| (column as &(dyn ToSql + Sync), Type::TEXT_ARRAY)).collect();
        let sql = statement(table, &keys.iter().map(|(_, column)| *column).collect::<Vec<_>>(), fill);
        let mut client = self.pool.get().await.map_err(|error| Error::Connect(error.to_string()))?;
        let transaction = match begin(&mut client, caller).await {
            Ok(transaction) => transaction,
            // The caller was banned since the join. It may see nothing, and the socket is about to be closed.
            Err(error) if error.code() == Some(&SqlState::INSUFFICIENT_PRIVILEGE) => return Ok(seen),
            Err(error) => return Err(error),
        };
        match transaction.query_typed(&sql, &parameters).await {
            Ok(found) => {
                for row in &found {
                    let at: i64 = row.get(0);
                    seen[usize::try_from(at - 1).unwrap_or(usize::MAX).min(rows.len() - 1)] = Some(row.get(1));
                }
            }
            // The caller has no right to the table, or the table is gone, so it may see nothing.
            Err(error) if error.code().is_some_and(|code| matches!(code.code(), "42501" | "42P01" | "42703")) => {}
            Err(error) => return Err(Error::doing("ask who may see a change")(error)),
        }
        Ok(seen)
    }

    /// The columns of the table that the caller's role may read.
    pub(super) async fn columns(&self, caller: &Caller, table: &Table) -> Result<Arc<HashSet<String>>> {
        let role = match caller {
            Caller::Ourselves => Role::Service.name(),
            Caller::Token { role, .. } => role.name(),
        };
        let key = (role, table.schema.clone(), table.name.clone());
        if let Some((until, columns)) = self.columns.lock().expect("no panic holds it").get(&key)
            && *until > Instant::now()
        {
            return Ok(columns.clone());
        }
        let client = self.pool.get().await.map_err(|error| Error::Connect(error.to_string()))?;
        let rows = client
            .query_typed(
                "select a.attname::text
                 from pg_attribute as a
                 where a.attrelid = to_regclass(format('%I.%I', $1, $2)) and a.attnum > 0 and not a.attisdropped
                   and has_schema_privilege($3, $1, 'usage')
                   and has_column_privilege($3, a.attrelid, a.attnum, 'select')",
                &[(&table.schema, Type::TEXT), (&table.name, Type::TEXT), (&role, Type::TEXT)],
            )
            .await
            .map_err(Error::doing("ask which columns may be seen"))?;
        let columns: Arc<HashSet<String>> = Arc::new(rows.iter().map(|row| row.get(0)).collect());
        self.columns.lock().expect("no panic holds it").insert(key, (Instant::now() + COLUMNS_FOR, columns.clone()));
        Ok(columns)
    }
}

fn text(cell: &Cell) -> Option<&str> {
    match cell {
        Cell::Text(text) => Some(text),
        Cell::Null | Cell::Unchanged => None,
    }
}

/// Names come from the catalogue through the log, and are quoted. Keys are parameters.
fn statement(table: &Table, keys: &[&super::feed::Column], fill: &[&str]) -> String {
    let quoted = |name: &str| format!("\"{}\"", name.replace('"', "\"\""));
    let literal = |text: &str| format!("'{}'", text.replace('\'', "''"));
    let filled: Vec<_> = fill.iter().map(|name| format!("{}, t.{}", literal(name), quoted(name))).collect();
    let arrays: Vec<_> = (1..=keys.len()).map(|n| format!("${n}")).collect();
    let names: Vec<_> = (1..=keys.len()).map(|n| format!("k{n}")).collect();
    let equal: Vec<_> =
        keys.iter().enumerate().map(|(n, key)| format!("t.{} = u.k{}::{}", quoted(&key.name), n + 1, key.sql_type)).collect();
    format!(
        "select u.n, jsonb_build_object({}) from unnest({}) with ordinality as u ({}, n) join {}.{} as t on {}",
        filled.join(", "),
        arrays.join(", "),
        names.join(", "),
        quoted(&table.schema),
        quoted(&table.name),
        equal.join(" and ")
    )
}
