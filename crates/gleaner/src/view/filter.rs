//! Which rows to list, and in which order.

use std::str::FromStr;

use super::View;
use crate::error::{Error, Result};

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
    /// Only rows without an owner.
    pub unowned: bool,
    /// Only rows of this kind.
    pub kind: Option<String>,
    /// Only rows of this tenant.
    pub tenant: Option<String>,
    /// Only rows whose key begins with this; for numbers, the row with this key.
    pub key: Option<String>,
    /// Only rows whose error has this cause, as [`super::View::causes`] words it.
    pub cause: Option<String>,
    /// Only rows after the one with this cursor, in the order of the list.
    pub after: Option<Cursor>,
    /// How many rows at most.
    pub limit: i64,
}

/// Where a page of a list ended: the value the list is sorted by, and the key, both as text.
pub type Cursor = (Option<String>, String);

/// What a list is sorted by, before the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// Waiting rows, the next one first.
    Due,
    /// The newest first.
    Created,
    /// The newest first, for keys that grow.
    Key,
}

/// Where the rows of a filter are, as SQL with parameters. All parameters are text.
#[derive(Debug, Default)]
pub(super) struct Source {
    /// A table or subquery called `q`.
    pub from: String,
    pub conditions: Vec<String>,
    pub params: Vec<String>,
}

impl Source {
    fn value(&mut self, value: impl Into<String>) -> String {
        self.params.push(value.into());
        format!("${}::text", self.params.len())
    }

    /// What follows `from`.
    pub(super) fn sql(&self) -> String {
        format!("{}, clock_timestamp() as v_now where {}", self.from, self.conditions.join(" and "))
    }
}

impl View {
    /// The rows that the filter names, wherever the page begins.
    pub(super) fn source(&self, filter: &Filter) -> Result<Source> {
        let (plan, shape) = (&self.plan, &self.plan.shape);
        let mut source = Source { from: format!("{} as q", plan.table.sql()), conditions: vec!["true".to_owned()], params: Vec::new() };
        if let Some(state) = filter.state {
            source.conditions.push(self.condition(state));
            // The index of unfinished rows finds few among millions of finished ones.
            if self.order(Some(state)) == Order::Due {
                source.from.clone_from(&shape.unfinished);
            }
        }
        let lacks = |role: &str| Error::Unsupported { queue: plan.name.clone(), what: format!("has no {role}s") };
        for (role, column, value) in [
            ("owner", shape.owner.as_deref(), &filter.owner),
            ("kind", shape.kind.as_deref(), &filter.kind),
            ("tenant", shape.tenant.as_ref(), &filter.tenant),
        ] {
            let Some(value) = value else { continue };
            let column = column.ok_or_else(|| lacks(role))?;
            let value = source.value(value);
            source.conditions.push(format!("q.{} = {value}::{}", column.column, column.data_type));
        }
        if filter.unowned {
            let owner = shape.owner.as_ref().ok_or_else(|| lacks("owner"))?;
            source.conditions.push(format!("q.{} is null", owner.column));
        }
        if let Some(text) = &filter.key {
            let condition = self.begins_with(&mut source, text.trim());
            source.conditions.push(condition);
        }
        if let Some(cause) = &filter.cause {
            let cause = source.value(cause);
            source.conditions.push(format!("{} = {cause}", self.cause()));
        }
        Ok(source)
    }

    /// The condition that a key begins with `text`, in a form that the key's index can serve.
    fn begins_with(&self, source: &mut Source, text: &str) -> String {
        let (key, key_type) = (&self.plan.shape.key.column, self.plan.key_type.as_str());
        match key_type {
            "smallint" | "integer" | "bigint" => match text.parse::<i64>() {
                Ok(number) => format!("q.{key} = {number}"),
                Err(_) => "false".to_owned(),
            },
            "uuid" => {
                let digits: String = text.chars().filter(|c| *c != '-').collect();
                if digits.len() > 32 || !digits.chars().all(|c| c.is_ascii_hexdigit()) {
                    return "false".to_owned();
                }
                let (least, most) = (source.value(format!("{digits:0<32}")), source.value(format!("{digits:f<32}")));
                format!("q.{key} between {least}::uuid and {most}::uuid")
            }
            _ => format!("starts_with(q.{key}::text, {})", source.value(text)),
        }
    }

    /// The page after the cursor.
    pub(super) fn after(&self, source: &mut Source, order: Order, (sort, key): &Cursor) {
        let shape = &self.plan.shape;
        let (column, key_type) = (&shape.key.column, &self.plan.key_type);
        let key = format!("{}::{key_type}", source.value(key));
        let condition = match (order, sort, &shape.created) {
            (Order::Due, Some(sort), _) => {
                let (due, sort) = (&shape.col.due, source.value(sort));
                format!("(q.{due} > {sort}::timestamptz or q.{due} = {sort}::timestamptz and q.{column} > {key})")
            }
            // The bound on the time alone is what an index can use.
            (Order::Created, Some(sort), Some(created)) => {
                let sort = format!("{}::{}", source.value(sort), created.data_type);
                format!("q.{0} <= {sort} and (q.{0} < {sort} or q.{column} < {key})", created.column)
            }
            _ => format!("q.{column} < {key}"),
        };
        source.conditions.push(condition);
    }

    pub(super) fn order(&self, state: Option<State>) -> Order {
        if matches!(state, Some(State::Ready | State::Running | State::Scheduled | State::Failed)) {
            return Order::Due;
        }
        // Random keys do not sort by age. Numbers do, and need no sort.
        let is_random = matches!(self.plan.key_type.as_str(), "uuid" | "text");
        if is_random && self.plan.shape.created.is_some() { Order::Created } else { Order::Key }
    }

    /// The column that a list is sorted by, and what follows `order by`.
    pub(super) fn order_by(&self, order: Order) -> (Option<String>, String) {
        let shape = &self.plan.shape;
        let key = &shape.key.column;
        match (order, &shape.created) {
            (Order::Due, _) => (Some(format!("q.{}", shape.col.due)), format!("q.{}, q.{key}", shape.col.due)),
            (Order::Created, Some(created)) => (Some(format!("q.{}", created.column)), format!("q.{} desc, q.{key} desc", created.column)),
            _ => (None, format!("q.{key} desc")),
        }
    }
}
