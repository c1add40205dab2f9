//! What a join must know of a table: whether its changes are published, who may read it, and the types of its columns. One
//! statement for each table, cached for a few seconds, so that joins cost the database little however many there are.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use gleaner_http::database::Pool;
use gleaner_http::{Caller, Role};
use tokio_postgres::types::{ToSql, Type};

use super::feed::PUBLICATION;

/// How long an answer is used.
const KNOWN_FOR: Duration = Duration::from_secs(5);
/// The most tables that are kept. Clients may name tables that do not exist.
const MOST_KNOWN: usize = 1000;
/// How long a statement of a join may take, and how long it waits for a connection.
const WITHIN: Duration = Duration::from_secs(3);

/// By schema and name: until when it is used, and what it is.
type Known = HashMap<(String, String), (Instant, Arc<About>)>;

#[derive(Debug)]
pub(super) struct Tables {
    pool: Pool,
    known: Mutex<Known>,
}

#[derive(Debug)]
pub(super) struct About {
    pub is_published: bool,
    pub has_triggers: bool,
    /// The roles that may read some of its columns.
    readers: Vec<String>,
    /// By name: the type as SQL writes it, and the name of the type it is based on.
    pub columns: HashMap<String, (String, String)>,
}

impl About {
    pub(super) fn is_readable_by(&self, caller: &Caller) -> bool {
        let role = if let Caller::Token { role, .. } = caller { *role } else { Role::Service };
        self.readers.iter().any(|reader| reader == role.name())
    }
}

impl Tables {
    pub(super) fn new(pool: Pool) -> Self {
        Self { pool, known: Mutex::default() }
    }

    /// The connections for joins.
    pub(super) fn pool(&self) -> &Pool {
        &self.pool
    }

    pub(super) async fn about(&self, schema: &str, table: &str) -> Result<Arc<About>, String> {
        let key = (schema.to_owned(), table.to_owned());
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner).get(&key).cloned();
        if let Some((until, about)) = known
            && until > Instant::now()
        {
            return Ok(about);
        }
        let rows = self
            .ask(
                "select exists (select from pg_publication_tables where pubname = $1 and schemaname = $2 and tablename = $3),
                        exists (select from pg_trigger where tgrelid = t.id and tgfoid = to_regprocedure('gleaner.note_change()')),
                        array(select r::text from unnest(array['anon', 'authenticated', 'service_role']) as r
                              where has_schema_privilege(r, $2, 'usage') and has_any_column_privilege(r, t.id, 'select')),
                        coalesce(c.names, '{}'), coalesce(c.types, '{}'), coalesce(c.bases, '{}')
                 from (select to_regclass(format('%I.%I', $2, $3)) as id) as t
                 cross join lateral (
                     select array_agg(a.attname::text) as names, array_agg(format('%I.%I', n.nspname, y.typname)) as types,
                            array_agg(coalesce(b.typname, y.typname)::text) as bases
                     from pg_attribute as a
                     join pg_type as y on y.oid = a.atttypid
                     join pg_namespace as n on n.oid = y.typnamespace
                     left join pg_type as b on b.oid = nullif(y.typbasetype, 0)
                     where a.attrelid = t.id and a.attnum > 0 and not a.attisdropped) as c
                 where t.id is not null",
                &[(&PUBLICATION, Type::TEXT), (&schema, Type::TEXT), (&table, Type::TEXT)],
            )
            .await?;
        let about = Arc::new(rows.first().map_or_else(
            || About { is_published: false, has_triggers: false, readers: Vec::new(), columns: HashMap::new() },
            |row| {
                let (names, types, bases): (Vec<String>, Vec<String>, Vec<String>) = (row.get(3), row.get(4), row.get(5));
                let columns = names.into_iter().zip(types.into_iter().zip(bases)).collect();
                About { is_published: row.get(0), has_triggers: row.get(1), readers: row.get(2), columns }
            },
        ));
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MOST_KNOWN {
            known.clear();
        }
        known.insert(key, (Instant::now() + KNOWN_FOR, about.clone()));
        Ok(about)
    }

    /// Lists of values, each in the text form of its type: one statement for all. The types are the catalogue's.
    pub(super) async fn canonical(&self, lists: &[(&str, &Vec<String>)]) -> Result<Vec<Vec<String>>, String> {
        if lists.is_empty() {
            return Ok(Vec::new());
        }
        let one = |(n, (sql_type, _)): (usize, &(&str, &Vec<String>))| {
            format!("array(select format('%s', v::{sql_type}) from unnest(${}::text[]) with ordinality as u (v, n) order by n)", n + 1)
        };
        let sql = format!("select {}", lists.iter().enumerate().map(one).collect::<Vec<_>>().join(", "));
        let parameters: Vec<(&(dyn ToSql + Sync), Type)> =
            lists.iter().map(|(_, values)| (*values as &(dyn ToSql + Sync), Type::TEXT_ARRAY)).collect();
        let rows = self.ask(&sql, &parameters).await?;
        let row = rows.first().ok_or("the database did not answer")?;
        Ok((0..lists.len()).map(|n| row.get(n)).collect())
    }

    /// One statement, bounded in time. The feed writes times in UTC, so the statement does as well.
    async fn ask(&self, sql: &str, parameters: &[(&(dyn ToSql + Sync), Type)]) -> Result<Vec<tokio_postgres::Row>, String> {
        let failed = |error: tokio_postgres::Error| error.as_db_error().map_or_else(|| error.to_string(), |e| e.message().to_owned());
        let got = tokio::time::timeout(WITHIN, self.pool.get()).await.map_err(|_| "too many joins at once; try again".to_owned())?;
        let mut client = got.map_err(|error| error.to_string())?;
        let transaction = client.transaction().await.map_err(failed)?;
        let limits =
            format!("set local statement_timeout = {}; set local timezone = 'UTC'; set local datestyle = 'ISO'", WITHIN.as_millis());
        transaction.batch_execute(&limits).await.map_err(failed)?;
        let rows = transaction.query_typed(sql, parameters).await.map_err(failed)?;
        transaction.rollback().await.map_err(failed)?;
        Ok(rows)
    }
}
