//! Who may see a changed row. The database is queried as the subscriber, so that the policies of the table decide.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use gleaner_http::database::{Error, Pool, Result};
use gleaner_http::{Caller, Role, begin};
use serde_json::Value;
use tokio_postgres::Row;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::{ToSql, Type};

use super::feed::Table;
use super::feed::pgoutput::Cell;

/// How long rights are cached: grants change rarely, and a revoked grant must take effect soon.
const RIGHTS_FOR: Duration = Duration::from_secs(5);

/// A commit becomes visible moments after it is in the log, or later with a slow synchronous standby. All deliveries wait
/// meanwhile.
const SETTLE_WITHIN: Duration = Duration::from_secs(10);

/// The text forms that `feed::values` parses, as the feed asks for them.
const FORMS: &str = "set local timezone = 'UTC'; set local datestyle = 'ISO'; set local intervalstyle = 'postgres'; \
    set local extra_float_digits = 1; set local bytea_output = 'hex'";

type Rights = HashMap<(&'static str, String, String), (Instant, Arc<Right>)>;

#[derive(Debug)]
pub(super) struct Sight {
    pool: Pool,
    rights: Mutex<Rights>,
}

/// What a role may read of a table.
#[derive(Debug, Default)]
pub(super) struct Right {
    pub columns: HashSet<String>,
    /// Row-level security decides which rows the role sees. What the log says of a row may then be older than what the row shows now,
    /// and must not learn of it.
    pub guarded: bool,
}

impl Sight {
    pub(super) fn new(pool: Pool) -> Self {
        Self { pool, rights: Mutex::default() }
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
    pub(super) async fn fill(&self, caller: &Caller, table: &Table, rows: &[&[Cell]], fill: &[&str]) -> Result<Vec<Option<Value>>> {
        let mut seen = vec![None; rows.len()];
        let keys: Vec<_> = table.keys().collect();
        if keys.is_empty() || rows.is_empty() {
            return Ok(seen);
        }
        let values: Vec<Vec<Option<&str>>> = keys.iter().map(|(at, _)| rows.iter().map(|row| text(&row[*at])).collect()).collect();
        let parameters: Vec<(&(dyn ToSql + Sync), Type)> =
            values.iter().map(|column| (column as &(dyn ToSql + Sync), Type::TEXT_ARRAY)).collect();
        let filled: Vec<_> = fill.iter().map(|name| format!("{}, t.{}", literal(name), quoted(name))).collect();
        let keys: Vec<_> = keys.iter().map(|(_, column)| *column).collect();
        let sql = statement(table, &keys, &format!("jsonb_build_object({})", filled.join(", ")));
        for row in self.ask(caller, &sql, &parameters).await? {
            if let Some(place) = place(&row).and_then(|at| seen.get_mut(at)) {
                *place = Some(row.get(1));
            }
        }
        Ok(seen)
    }

    /// Per row: its current values as the caller may read them now, in the text form of the log; `None` where it may not read the
    /// row. Columns that are not among `columns` are null.
    pub(super) async fn read(
        &self,
        caller: &Caller,
        table: &Table,
        rows: &[&[Cell]],
        columns: &HashSet<String>,
    ) -> Result<Vec<Option<Vec<Cell>>>> {
        let mut seen = vec![None; rows.len()];
        let keys: Vec<_> = table.keys().collect();
        if keys.is_empty() || rows.is_empty() || keys.iter().any(|(_, key)| !columns.contains(&key.name)) {
            return Ok(seen);
        }
        let values: Vec<Vec<Option<&str>>> = keys.iter().map(|(at, _)| rows.iter().map(|row| text(&row[*at])).collect()).collect();
        let parameters: Vec<(&(dyn ToSql + Sync), Type)> =
            values.iter().map(|column| (column as &(dyn ToSql + Sync), Type::TEXT_ARRAY)).collect();
        let written: Vec<_> = table
            .columns
            .iter()
            .map(|column| {
                let name = quoted(&column.name);
                // `format` writes as the log does; a cast to text would write a boolean differently.
                let value = format!("case when t.{name} is not null then format('%s', t.{name}) end");
                if columns.contains(&column.name) { value } else { "null".to_owned() }
            })
            .collect();
        let keys: Vec<_> = keys.iter().map(|(_, column)| *column).collect();
        let sql = statement(table, &keys, &format!("array[{}]::text[]", written.join(", ")));
        for row in self.ask(caller, &sql, &parameters).await? {
            let cells = row.get::<_, Vec<Option<String>>>(1).into_iter().map(|text| text.map_or(Cell::Null, Cell::Text)).collect();
            if let Some(place) = place(&row).and_then(|at| seen.get_mut(at)) {
                *place = Some(cells);
            }
        }
        Ok(seen)
    }

    /// Queries as the caller. No rows where it has no right to ask, any more.
    async fn ask(&self, caller: &Caller, sql: &str, parameters: &[(&(dyn ToSql + Sync), Type)]) -> Result<Vec<Row>> {
        let mut client = self.pool.get().await.map_err(|error| Error::Connect(error.to_string()))?;
        let transaction = match begin(&mut client, caller).await {
            Ok(transaction) => transaction,
            // The caller was banned since the join. It may see nothing, and the socket is about to be closed.
            Err(error) if error.code() == Some(&SqlState::INSUFFICIENT_PRIVILEGE) => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        transaction.batch_execute(FORMS).await.map_err(Error::doing("choose how values are written"))?;
        match transaction.query_typed(sql, parameters).await {
            Ok(found) => Ok(found),
            // The caller has no right to the table, or the table is gone, so it may see nothing.
            Err(error) if error.code().is_some_and(|code| matches!(code.code(), "42501" | "42P01" | "42703")) => Ok(Vec::new()),
            Err(error) => Err(Error::doing("ask who may see a change")(error)),
        }
    }

    /// What the caller's role may read of the table.
    pub(super) async fn right(&self, caller: &Caller, table: &Table) -> Result<Arc<Right>> {
        let role = match caller {
            Caller::Ourselves => Role::Service.name(),
            Caller::Token { role, .. } => role.name(),
        };
        let key = (role, table.schema.clone(), table.name.clone());
        if let Some((until, right)) = self.rights.lock().expect("no panic holds it").get(&key)
            && *until > Instant::now()
        {
            return Ok(right.clone());
        }
        let client = self.pool.get().await.map_err(|error| Error::Connect(error.to_string()))?;
        let rows = client
            .query_typed(
                "select a.attname::text,
                        c.relrowsecurity and not r.rolbypassrls and not r.rolsuper
                            and (c.relforcerowsecurity or not pg_has_role(r.oid, c.relowner, 'usage'))
                 from pg_attribute as a
                 join pg_class as c on c.oid = a.attrelid
                 join pg_roles as r on r.rolname = $3
                 where a.attrelid = to_regclass(format('%I.%I', $1, $2)) and a.attnum > 0 and not a.attisdropped
                   and has_schema_privilege($3, $1, 'usage')
                   and has_column_privilege($3, a.attrelid, a.attnum, 'select')",
                &[(&table.schema, Type::TEXT), (&table.name, Type::TEXT), (&role, Type::TEXT)],
            )
            .await
            .map_err(Error::doing("ask which columns may be seen"))?;
        let guarded = rows.iter().any(|row| row.get(1));
        let right = Arc::new(Right { columns: rows.iter().map(|row| row.get(0)).collect(), guarded });
        self.rights.lock().expect("no panic holds it").insert(key, (Instant::now() + RIGHTS_FOR, right.clone()));
        Ok(right)
    }
}

fn text(cell: &Cell) -> Option<&str> {
    match cell {
        Cell::Text(text) => Some(text),
        Cell::Null | Cell::Unchanged => None,
    }
}

/// Which of the rows asked about an answer is for.
fn place(row: &Row) -> Option<usize> {
    usize::try_from(row.get::<_, i64>(0) - 1).ok()
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// Names come from the catalogue through the log, and are quoted. Keys are parameters.
fn statement(table: &Table, keys: &[&super::feed::Column], value: &str) -> String {
    let arrays: Vec<_> = (1..=keys.len()).map(|n| format!("${n}")).collect();
    let names: Vec<_> = (1..=keys.len()).map(|n| format!("k{n}")).collect();
    let equal: Vec<_> =
        keys.iter().enumerate().map(|(n, key)| format!("t.{} = u.k{}::{}", quoted(&key.name), n + 1, key.sql_type)).collect();
    format!(
        "select u.n, {value} from unnest({}) with ordinality as u ({}, n) join {}.{} as t on {}",
        arrays.join(", "),
        names.join(", "),
        quoted(&table.schema),
        quoted(&table.name),
        equal.join(" and ")
    )
}
