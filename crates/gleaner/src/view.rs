//! Queues for people to inspect: rows by state, one row with its history, counts. Everything here is read-only.

mod causes;
mod figures;
mod filter;

use serde_json::{Value, json};
use tokio_postgres::GenericClient;
use tokio_postgres::types::{ToSql, Type};

use crate::error::{Error, Result};
use crate::introspect::quote;
use crate::plan::Plan;
use crate::plan::shape::{ColumnRef, Place};
use crate::registry;

pub use causes::Cause;
pub use figures::SAMPLED;
pub use filter::{Cursor, Filter, State};

/// Counting stops here.
pub const COUNTED: i64 = 10_000;

/// One line of the counts.
#[derive(Debug, Clone, PartialEq)]
pub struct Stat {
    /// `ready`, `running`, `expired`, `scheduled`, `failed`, `dead`, `finished`; `waiting` when there are too many to distinguish.
    pub state: String,
    /// How many rows are in that state.
    pub count: i64,
    /// There may be more (for finished rows, the count is an estimate).
    pub capped: bool,
    /// Seconds since the oldest of them was due; negative while it is not.
    pub oldest_age: Option<f64>,
}

/// A queue to inspect.
#[derive(Debug, Clone)]
pub struct View {
    plan: Plan,
}

impl View {
    /// The queue `name`.
    pub async fn of(client: &impl GenericClient, name: &str) -> Result<Self> {
        let entry = registry::find(client, name).await?;
        Ok(Self { plan: Plan::make(client, &entry.declaration).await? })
    }

    /// What the queue's declaration means for its table.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The column to set when an item must wait until a given time.
    pub fn due_column(&self) -> &str {
        self.plan.declaration.due.as_deref().unwrap_or(&self.plan.shape.col_names.due)
    }

    /// Rows with the same keys for every queue: id, state, status, kind, owner, attempts, lost, due_at, due_in (seconds),
    /// created_at, agent, payload, progress, result, error. Waiting rows are sorted by due time, finished ones newest first.
    pub async fn list(&self, client: &impl GenericClient, filter: &Filter) -> Result<Vec<Value>> {
        Ok(self.page(client, filter).await?.into_iter().map(|(row, _)| row).collect())
    }

    /// The same, each row with the cursor after which the next page begins.
    pub async fn page(&self, client: &impl GenericClient, filter: &Filter) -> Result<Vec<(Value, Cursor)>> {
        let order = self.order(filter.state);
        let mut source = self.source(filter)?;
        if let Some(cursor) = &filter.after {
            self.after(&mut source, order, cursor);
        }
        let (sorted, order_by) = self.order_by(order);
        let key = &self.plan.shape.key.column;
        // The page is chosen first: what is shown of a row costs more than finding it.
        let sql = format!(
            "select {summary}, {sorted}, q.{key}::text from (select q.* from {source} order by {order_by} limit {limit}) as q, clock_timestamp() as v_now order by {order_by}",
            summary = self.summary(),
            sorted = sorted.map_or_else(|| "null::text".to_owned(), |column| format!("to_jsonb({column}) #>> '{{}}'")),
            source = source.sql(),
            limit = filter.limit,
        );
        let rows = self.query(client, &sql, &source, "list").await?;
        Ok(rows.iter().map(|row| (row.get(0), (row.get(1), row.get(2)))).collect())
    }

    /// How many rows the filter names, by state; counting stops at `most`, and the second value says so.
    pub async fn count(&self, client: &impl GenericClient, filter: &Filter, most: i64) -> Result<(Vec<(String, i64)>, bool)> {
        let source = self.source(filter)?;
        let sql = format!(
            "select s.state, count(*) from (select {} as state from {} limit {}) as s group by s.state order by s.state",
            self.state(),
            source.sql(),
            most + 1
        );
        let rows = self.query(client, &sql, &source, "count").await?;
        let mut counts: Vec<(String, i64)> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
        let is_capped = counts.iter().map(|(_, count)| count).sum::<i64>() > most;
        if is_capped && let Some((_, last)) = counts.last_mut() {
            *last -= 1;
        }
        Ok((counts, is_capped))
    }

    /// The keys of the rows that the filter names, at most `most`, in order. With `among`, only those of them that it still names.
    pub async fn keys(&self, client: &impl GenericClient, filter: &Filter, among: Option<&[String]>, most: i64) -> Result<Vec<String>> {
        let mut source = self.source(filter)?;
        let key = &self.plan.shape.key.column;
        if let Some(keys) = among {
            source.from = format!("{} as q", self.plan.table.sql());
            source.params.push(serde_json::to_string(keys).expect("texts"));
            source.conditions.push(format!(
                "q.{key} = any (array(select jsonb_array_elements_text(${}::text::jsonb))::{}[])",
                source.params.len(),
                self.plan.key_type
            ));
        }
        let sql = format!("select q.{key}::text from {} order by q.{key} limit {most}", source.sql());
        Ok(self.query(client, &sql, &source, "choose rows of").await?.iter().map(|row| row.get(0)).collect())
    }

    async fn query(&self, client: &impl GenericClient, sql: &str, source: &filter::Source, act: &str) -> Result<Vec<tokio_postgres::Row>> {
        let params: Vec<(&(dyn ToSql + Sync), Type)> = source.params.iter().map(|value| (value as _, Type::TEXT)).collect();
        client.query_typed(sql, &params).await.map_err(Error::doing(format!("{act} {}", self.plan.name)))
    }

    /// One row: its summary as in [`Self::list`], all its columns under `row`, operators' changes under `audit`, and results that
    /// came too late under `late_results`. `None` when there is no such row.
    pub async fn show(&self, client: &impl GenericClient, key: &str) -> Result<Option<Value>> {
        let doing = || Error::doing(format!("show {key} of {}", self.plan.name));
        let sql = format!(
            "select {}, to_jsonb(q) from {} as q, clock_timestamp() as v_now where q.{} = $1::text::{}",
            self.summary(),
            self.plan.table.sql(),
            self.plan.shape.key.column,
            self.plan.key_type
        );
        let rows = client.query_typed(&sql, &[(&key, Type::TEXT)]).await.map_err(doing())?;
        let Some(row) = rows.first() else { return Ok(None) };
        let mut shown: Value = row.get(0);
        shown["row"] = row.get(1);
        let about = "where queue = $1 and key = $2";
        let named: [(&(dyn ToSql + Sync), Type); 2] = [(&self.plan.name, Type::TEXT), (&key, Type::TEXT)];
        for (name, sql) in [
            (
                "audit",
                format!(
                    "select jsonb_build_object('at', at, 'act', act, 'caller', caller, 'detail', detail) from gleaner.audit {about} order by id"
                ),
            ),
            (
                "late_results",
                format!(
                    "select jsonb_build_object('at', at, 'lease', lease, 'caller', caller, 'result', result) from gleaner.late_result {about} order by id"
                ),
            ),
        ] {
            // For callers that may read the row but not the engine's own tables.
            let found = client.query_typed(&sql, &named).await.map(|rows| rows.iter().map(|r| r.get::<_, Value>(0)).collect::<Vec<_>>());
            shown[name] = json!(found.unwrap_or_default());
        }
        Ok(Some(shown))
    }

    /// Counts by state, with a bounded cost: see the act `stats`.
    pub async fn stats(&self, client: &impl GenericClient) -> Result<Vec<Stat>> {
        let sql = format!(
            "select case state when 'backing off' then 'failed' else state end, count, capped, extract(epoch from clock_timestamp() - oldest)::float8 from gleaner.stats_{}()",
            self.plan.name
        );
        let rows = client.query_typed(&sql, &[]).await.map_err(Error::doing(format!("count {}", self.plan.name)))?;
        Ok(rows.iter().map(|r| Stat { state: r.get(0), count: r.get(1), capped: r.get(2), oldest_age: r.get(3) }).collect())
    }

    fn condition(&self, state: State) -> String {
        let (when, due) = (&self.plan.shape.when.q, format!("q.{}", self.plan.shape.col.due));
        match state {
            // A query for ready rows reads the index of unfinished ones, in which a row without a due time is not.
            State::Ready => match self.bound() {
                Some(bound) => format!("{} and {due} <= v_now and not ({bound})", when.ready),
                None => format!("{} and {due} <= v_now", when.ready),
            },
            State::Scheduled => format!("{} and {due} > v_now", when.ready),
            State::Running => match self.bound() {
                Some(bound) => format!("({} or {bound})", when.held),
                None => when.held.clone(),
            },
            State::Failed => format!("{} and {due} is not null", when.failed),
            State::Dead => when.dead.clone(),
            State::Done => when.done.clone(),
            State::Cancelled => when.cancelled.clone(),
        }
    }

    /// Whether a batch lease holds the row, whose status is then still ready; `None` if the queue has no batch leases.
    fn bound(&self) -> Option<String> {
        let shape = &self.plan.shape;
        shape.bulk.as_ref()?;
        Some(format!("q.{} in (0, -1) and q.{} <@ (select gleaner.batch_keys({}))", shape.col.lease, shape.key.column, shape.name_literal))
    }

    /// The state of a row, in our words.
    fn state(&self) -> String {
        let shape = &self.plan.shape;
        let (when, due) = (&shape.when.q, format!("q.{}", shape.col.due));
        let mut state = format!("case when {} then case when {due} < v_now then 'expired' else 'running' end", when.held);
        if let Some(bound) = self.bound() {
            state += &format!(" when {} and {bound} then 'running'", when.ready);
        }
        for (name, which) in State::ALL.into_iter().filter(|(_, s)| *s != State::Running) {
            state += &format!(" when {} then '{name}'", self.condition(which));
        }
        state + &format!(" when {} then 'ready' else 'other' end", when.ready)
    }

    /// The error of a row as jsonb, or null where the queue stores none.
    fn error(&self) -> String {
        match &self.plan.shape.error {
            Some(Place { base, path: Some(path) }) => format!("q.{} #> {path}", base.column),
            Some(Place { base, path: None }) => format!("to_jsonb(q.{})", base.column),
            None => "null::jsonb".to_owned(),
        }
    }

    fn summary(&self) -> String {
        let shape = &self.plan.shape;
        let (col, when, key) = (&shape.col, &shape.when.q, &shape.key.column);
        let due = format!("q.{}", col.due);
        let state = self.state();
        let mut agent = format!("case when {} then coalesce(q.{}, q.{}) end", when.held, col.agent, col.session);
        if let Some(bound) = self.bound() {
            agent = format!(
                "coalesce({agent}, (select coalesce(s.agent, s.session) from gleaner.batch_lease as s where {bound} and s.queue = {} and s.keys @> q.{key}))",
                shape.name_literal
            );
        }
        let json = |column: Option<&str>| column.map_or_else(|| "null".to_owned(), |c| format!("to_jsonb(q.{c})"));
        let column = |column: Option<&ColumnRef>| json(column.map(|c| c.column.as_str()));
        let error = self.error();
        format!(
            "jsonb_build_object('id', q.{key}::text, 'state', {state}, 'status', q.{status}::text, 'kind', {kind}, 'owner', {owner},
                'attempts', q.{attempts}, 'lost', q.{lost}, 'due_at', {due}, 'due_in', extract(epoch from {due} - v_now), 'created_at', {created},
                'agent', {agent},
                'payload', {payload}, 'progress', {progress}, 'result', {result}, 'error', {error})",
            status = shape.status.column,
            kind = column(shape.kind.as_deref()),
            owner = column(shape.owner.as_deref()),
            attempts = col.attempts,
            lost = col.lost,
            created = column(shape.created.as_ref()),
            payload = json(self.plan.declaration.payload.as_deref().map(quote).as_deref()),
            progress = column(shape.progress.as_deref()),
            result = column(shape.result.as_deref()),
        )
    }
}
