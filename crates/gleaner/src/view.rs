//! A queue as people see it: rows by state, one row with its history, counts. Nothing here changes anything.

use std::str::FromStr;

use serde_json::{Value, json};
use tokio_postgres::GenericClient;
use tokio_postgres::types::{ToSql, Type};

use crate::error::{Error, Result};
use crate::plan::Plan;
use crate::registry;

/// What a row is doing, in words that are the same for every queue whatever its table calls them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Its time has come and nobody has it.
    Ready,
    /// Somebody holds it. A lease that ran out shows as `expired`.
    Running,
    /// Its time has not come yet.
    Scheduled,
    /// It failed and waits for its next try.
    Failed,
    /// It failed and there is no next try.
    Dead,
    Done,
    Cancelled,
}

impl State {
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
    pub state: Option<State>,
    pub owner: Option<String>,
    pub kind: Option<String>,
    pub tenant: Option<String>,
    pub limit: i64,
}

/// One line of the counts.
#[derive(Debug, Clone, PartialEq)]
pub struct Stat {
    /// `ready`, `running`, `expired`, `scheduled`, `failed`, `dead`, `finished`; `waiting` when there are too many to tell apart.
    pub state: String,
    pub count: i64,
    /// There may be more (or, of finished ones, about as many).
    pub capped: bool,
    /// Seconds since the oldest of them was due; negative while it is not.
    pub oldest_age: Option<f64>,
}

/// A queue to look at.
#[derive(Debug, Clone)]
pub struct View {
    plan: Plan,
}

impl View {
    pub async fn of(client: &impl GenericClient, name: &str) -> Result<Self> {
        let entry = registry::find(client, name).await?;
        Ok(Self { plan: Plan::make(client, &entry.declaration).await? })
    }

    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The column to write when an item is to wait until a time.
    pub fn due_column(&self) -> &str {
        self.plan.declaration.due.as_deref().or_else(|| self.plan.context["col_names"]["due"].as_str()).unwrap_or("due_at")
    }

    /// Rows with the same keys for every queue: id, state, status, kind, owner, attempts, lost, due_at, due_in (seconds),
    /// created_at, agent, payload, progress, result, error. Waiting ones by due time, finished ones newest first.
    pub async fn list(&self, client: &impl GenericClient, filter: &Filter) -> Result<Vec<Value>> {
        let mut conditions = vec!["true".to_owned()];
        let mut params: Vec<(&(dyn ToSql + Sync), Type)> = Vec::new();
        if let Some(state) = filter.state {
            conditions.push(self.condition(state));
        }
        for (role, value) in [("owner", &filter.owner), ("kind", &filter.kind), ("tenant", &filter.tenant)] {
            let Some(value) = value else { continue };
            let Some(column) = self.sql(role, "column") else {
                return Err(Error::Unsupported { queue: self.plan.name.clone(), what: format!("has no {role}s") });
            };
            params.push((value, Type::TEXT));
            conditions.push(format!("q.{column} = ${}::text::{}", params.len(), self.sql(role, "type").unwrap_or("text")));
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

    /// One row: its summary as in [`Self::list`], all its columns under `row`, what people did to it under `audit`, and results
    /// that came too late under `late_results`. None when there is no such row.
    pub async fn show(&self, client: &impl GenericClient, key: &str) -> Result<Option<Value>> {
        let doing = || Error::doing(format!("show {key} of {}", self.plan.name));
        let sql = format!(
            "select {}, to_jsonb(q) from {} as q, clock_timestamp() as v_now where q.{} = $1::text::{}",
            self.summary(),
            self.plan.table.sql(),
            self.sql("key", "column").unwrap_or("id"),
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
            // For those who may see the row but not the engine's own tables.
            let found = client.query_typed(&sql, &named).await.map(|rows| rows.iter().map(|r| r.get::<_, Value>(0)).collect::<Vec<_>>());
            shown[name] = json!(found.unwrap_or_default());
        }
        Ok(Some(shown))
    }

    /// Counts by state, bounded: see `stats` among the acts.
    pub async fn stats(&self, client: &impl GenericClient) -> Result<Vec<Stat>> {
        let sql = format!(
            "select case state when 'backing off' then 'failed' else state end, count, capped, extract(epoch from clock_timestamp() - oldest)::float8 from gleaner.stats_{}()",
            self.plan.name
        );
        let rows = client.query_typed(&sql, &[]).await.map_err(Error::doing(format!("count {}", self.plan.name)))?;
        Ok(rows.iter().map(|r| Stat { state: r.get(0), count: r.get(1), capped: r.get(2), oldest_age: r.get(3) }).collect())
    }

    fn sql(&self, role: &str, part: &str) -> Option<&str> {
        self.plan.context.get(role).and_then(|value| value[part].as_str())
    }

    fn status(&self, word: &str) -> &str {
        self.sql("status", word).unwrap_or_default()
    }

    fn column(&self, role: &str) -> &str {
        self.sql("col", role).unwrap_or_default()
    }

    fn condition(&self, state: State) -> String {
        let (status, due) = (format!("q.{}", self.status("column")), format!("q.{}", self.column("due")));
        match state {
            State::Ready => match self.bound() {
                Some(bound) => format!("{status} = {} and ({due} <= v_now or {due} is null) and not ({bound})", self.status("ready")),
                None => format!("{status} = {} and ({due} <= v_now or {due} is null)", self.status("ready")),
            },
            State::Scheduled => format!("{status} = {} and {due} > v_now", self.status("ready")),
            State::Running => match self.bound() {
                Some(bound) => format!("({status} in ({}) or {bound})", self.status("held")),
                None => format!("{status} in ({})", self.status("held")),
            },
            State::Failed => format!("{status} = {} and {due} is not null", self.status("failed")),
            State::Dead => format!("{status} = {} and {due} is null", self.status("failed")),
            State::Done => format!("{status} = {}", self.status("done")),
            State::Cancelled if self.status("cancelled") == self.status("failed") => "false".into(),
            State::Cancelled => format!("{status} = {}", self.status("cancelled")),
        }
    }

    /// Whether a sheaf holds the row, which then still says that it is ready; none where the queue binds none.
    fn bound(&self) -> Option<String> {
        self.plan.declaration.sheaf?;
        let key = self.sql("key", "column").unwrap_or("id");
        Some(format!("q.{} in (0, -1) and q.{key} <@ (select gleaner.sheaves('{}'))", self.column("lease"), self.plan.name))
    }

    fn order(&self, state: Option<State>) -> String {
        let key = self.sql("key", "column").unwrap_or("id");
        if matches!(state, Some(State::Ready | State::Running | State::Scheduled | State::Failed)) {
            return format!("q.{}, q.{key}", self.column("due"));
        }
        // Random keys tell nothing of age; numbers do, and need no sort.
        match self.sql("created", "column") {
            Some(created) if matches!(self.plan.key_type.as_str(), "uuid" | "text") => format!("q.{created} desc, q.{key}"),
            _ => format!("q.{key} desc"),
        }
    }

    fn summary(&self) -> String {
        let (status, due) = (format!("q.{}", self.status("column")), format!("q.{}", self.column("due")));
        let mut state = format!(
            "case when {status} in ({held}) then case when {due} < v_now then 'expired' else 'running' end",
            held = self.status("held")
        );
        let mut agent = format!(
            "case when {status} in ({}) then coalesce(q.{}, q.{}) end",
            self.status("held"),
            self.column("agent"),
            self.column("session")
        );
        if let Some(bound) = self.bound() {
            state += &format!(" when {status} = {} and {bound} then 'running'", self.status("ready"));
            let key = self.sql("key", "column").unwrap_or("id");
            agent = format!(
                "coalesce({agent}, (select coalesce(s.agent, s.session) from gleaner.sheaf as s where {bound} and s.queue = '{}' and s.keys @> q.{key}))",
                self.plan.name
            );
        }
        for (name, which) in State::ALL.into_iter().filter(|(_, s)| *s != State::Running) {
            state += &format!(" when {} then '{name}'", self.condition(which));
        }
        state += " else 'other' end";
        let column = |role: &str| self.sql(role, "column").map_or_else(|| "null".to_owned(), |c| format!("to_jsonb(q.{c})"));
        let payload = self
            .plan
            .declaration
            .payload
            .as_deref()
            .map_or_else(|| "null".to_owned(), |p| format!("to_jsonb(q.{})", crate::introspect::quote(p)));
        let error = match (self.sql("error", "column"), self.sql("error", "path")) {
            (Some(c), Some(path)) => format!("q.{c} #> {path}"),
            (Some(c), None) => format!("to_jsonb(q.{c})"),
            _ => "null".to_owned(),
        };
        format!(
            "jsonb_build_object('id', q.{key}::text, 'state', {state}, 'status', {status}::text, 'kind', {kind}, 'owner', {owner},
                'attempts', q.{attempts}, 'lost', q.{lost}, 'due_at', {due}, 'due_in', extract(epoch from {due} - v_now), 'created_at', {created},
                'agent', {agent},
                'payload', {payload}, 'progress', {progress}, 'result', {result}, 'error', {error})",
            key = self.sql("key", "column").unwrap_or("id"),
            kind = column("kind"),
            owner = column("owner"),
            attempts = self.column("attempts"),
            lost = self.column("lost"),
            created = column("created"),
            progress = column("progress"),
            result = column("result"),
        )
    }
}
