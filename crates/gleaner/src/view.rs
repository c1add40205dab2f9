//! Queues for people to inspect: rows by state, one row with its history, counts. Everything here is read-only.

use std::str::FromStr;

use serde_json::{Value, json};
use tokio_postgres::GenericClient;
use tokio_postgres::types::{ToSql, Type};

use crate::error::{Error, Result};
use crate::introspect::quote;
use crate::plan::Plan;
use crate::plan::shape::{ColumnRef, Place};
use crate::registry;

/// The state of a row, with names that are the same for every queue whatever status values its table uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It is due, and no agent holds it.
    Ready,
    /// An agent holds it. A row whose lease expired is shown as `expired`.
    Running,
    /// It is not due yet.
    Scheduled,
    /// It failed and waits for its retry.
    Failed,
    /// It failed and is not retried.
    Dead,
    /// It is finished.
    Done,
    /// It was cancelled.
    Cancelled,
}

impl State {
    /// Every state, with its name.
    pub const ALL: [(&'static str, Self); 7] = [
        ("ready", Self::Ready),
        ("running", Self::Running),
        ("scheduled", Self::Scheduled),
        ("failed", Self::Failed),
        ("dead", Self::Dead),
        ("done", Self::Done),
        ("cancelled", Self::Cancelled),
    ];
}

impl FromStr for State {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        let known = Self::ALL.iter().find(|(name, _)| *name == word);
        known.map(|(_, state)| *state).ok_or_else(|| format!("a state is one of {}", Self::ALL.map(|(name, _)| name).join(", ")))
    }
}

/// Which rows to list.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Only rows in this state.
    pub state: Option<State>,
    /// Only rows of this owner.
    pub owner: Option<String>,
    /// Only rows of this kind.
    pub kind: Option<String>,
    /// Only rows of this tenant.
    pub tenant: Option<String>,
    /// How many rows at most.
    pub limit: i64,
}

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
        let mut conditions = vec!["true".to_owned()];
        let mut params: Vec<(&(dyn ToSql + Sync), Type)> = Vec::new();
        if let Some(state) = filter.state {
            conditions.push(self.condition(state));
        }
        let shape = &self.plan.shape;
        for (role, column, value) in [
            ("owner", shape.owner.as_deref(), &filter.owner),
            ("kind", shape.kind.as_deref(), &filter.kind),
            ("tenant", shape.tenant.as_ref(), &filter.tenant),
        ] {
            let Some(value) = value else { continue };
            let Some(column) = column else {
                return Err(Error::Unsupported { queue: self.plan.name.clone(), what: format!("has no {role}s") });
            };
            params.push((value, Type::TEXT));
            conditions.push(format!("q.{} = ${}::text::{}", column.column, params.len(), column.data_type));
        }
        params.push((&filter.limit, Type::INT8));
        let sql = format!(
            "select {} from {} as q, clock_timestamp() as v_now where {} order by {} limit ${}",
            self.summary(),
            self.plan.table.sql(),
            conditions.join(" and "),
            self.order(filter.state),
            params.len()
        );
        let rows = client.query_typed(&sql, &params).await.map_err(Error::doing(format!("list {}", self.plan.name)))?;
        Ok(rows.iter().map(|row| row.get(0)).collect())
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
            State::Ready => match self.bound() {
                Some(bound) => format!("{} and ({due} <= v_now or {due} is null) and not ({bound})", when.ready),
                None => format!("{} and ({due} <= v_now or {due} is null)", when.ready),
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

    fn order(&self, state: Option<State>) -> String {
        let shape = &self.plan.shape;
        let key = &shape.key.column;
        if matches!(state, Some(State::Ready | State::Running | State::Scheduled | State::Failed)) {
            return format!("q.{}, q.{key}", shape.col.due);
        }
        // Random keys do not sort by age. Numbers do, and need no sort.
        match &shape.created {
            Some(created) if matches!(self.plan.key_type.as_str(), "uuid" | "text") => format!("q.{} desc, q.{key}", created.column),
            _ => format!("q.{key} desc"),
        }
    }

    fn summary(&self) -> String {
        let shape = &self.plan.shape;
        let (col, when, key) = (&shape.col, &shape.when.q, &shape.key.column);
        let due = format!("q.{}", col.due);
        let mut state = format!("case when {} then case when {due} < v_now then 'expired' else 'running' end", when.held);
        let mut agent = format!("case when {} then coalesce(q.{}, q.{}) end", when.held, col.agent, col.session);
        if let Some(bound) = self.bound() {
            state += &format!(" when {} and {bound} then 'running'", when.ready);
            agent = format!(
                "coalesce({agent}, (select coalesce(s.agent, s.session) from gleaner.batch_lease as s where {bound} and s.queue = {} and s.keys @> q.{key}))",
                shape.name_literal
            );
        }
        for (name, which) in State::ALL.into_iter().filter(|(_, s)| *s != State::Running) {
            state += &format!(" when {} then '{name}'", self.condition(which));
        }
        state += " else 'other' end";
        let json = |column: Option<&str>| column.map_or_else(|| "null".to_owned(), |c| format!("to_jsonb(q.{c})"));
        let column = |column: Option<&ColumnRef>| json(column.map(|c| c.column.as_str()));
        let error = match &shape.error {
            Some(Place { base, path: Some(path) }) => format!("q.{} #> {path}", base.column),
            other => column(other.as_deref()),
        };
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
