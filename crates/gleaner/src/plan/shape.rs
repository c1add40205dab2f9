//! What the SQL templates can use of a queue: one field per name that a template may use, each ready to be put into SQL.

use std::ops::Deref;

use serde::Serialize;

use crate::introspect::{literal, quote};

/// A column of the table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ColumnRef {
    /// As in the catalogue.
    pub name: String,
    /// As an identifier.
    pub column: String,
    #[serde(rename = "type")]
    pub data_type: String,
    /// The name as a string literal.
    pub literal: String,
}

impl ColumnRef {
    pub fn new(name: &str, data_type: &str) -> Self {
        Self { name: name.to_owned(), column: quote(name), data_type: data_type.to_owned(), literal: literal(name) }
    }
}

/// A struct that extends a column can be used as that column.
macro_rules! columns {
    ($($name:ident),*) => {$(
        impl Deref for $name {
            type Target = ColumnRef;
            fn deref(&self) -> &ColumnRef {
                &self.base
            }
        }
    )*};
}

columns!(Key, Status, Content, Place, Kind, Priority, Owner, Unique);

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Key {
    #[serde(flatten)]
    pub base: ColumnRef,
    /// The least value of its type.
    pub min: String,
}

/// The status values as literals of the column's type, alone and in lists.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Status {
    #[serde(flatten)]
    pub base: ColumnRef,
    pub ready: String,
    pub claimed: Option<String>,
    pub running: String,
    /// What a claim writes: `claimed`, or `running` if there is no such value.
    pub taken: String,
    pub done: String,
    pub failed: String,
    /// The status of a cancelled row: `failed` if there is no separate value.
    pub cancelled: String,
    pub held: String,
    pub waiting: String,
    pub claimable: String,
    #[serde(rename = "final")]
    pub ended: String,
}

/// Conditions on the status of one row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct When {
    pub ready: String,
    pub running: String,
    pub done: String,
    pub failed: String,
    /// Always false if there is no separate value for cancelled rows.
    pub cancelled: String,
    pub held: String,
    pub waiting: String,
    /// Ready, held or failed, and with a due time.
    pub claimable: String,
    /// Done or cancelled.
    #[serde(rename = "final")]
    pub ended: String,
    /// Failed, and without a due time.
    pub dead: String,
    /// Final or dead.
    pub finished: String,
}

impl When {
    fn new(status: &Status, due: &str, row: &str) -> Self {
        let column = format!("{row}{}", status.column);
        let one = |word: &str| format!("{column} = {word}");
        let any = |words: &str| format!("{column} in ({words})");
        let dead = format!("({column} = {} and {row}{due} is null)", status.failed);
        Self {
            ready: one(&status.ready),
            running: one(&status.running),
            done: one(&status.done),
            failed: one(&status.failed),
            cancelled: if status.cancelled == status.failed { "false".into() } else { one(&status.cancelled) },
            held: any(&status.held),
            waiting: any(&status.waiting),
            claimable: format!("({} and {row}{due} is not null)", any(&status.claimable)),
            ended: any(&status.ended),
            finished: format!("({} or {dead})", any(&status.ended)),
            dead,
        }
    }
}

/// The conditions for every row name that the templates use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Conditions {
    /// Columns without a row name, as in an index.
    pub bare: When,
    pub q: When,
    pub v_row: When,
    pub p_row: When,
    pub new: When,
    pub old: When,
}

impl Conditions {
    pub(super) fn new(status: &Status, due: &str) -> Self {
        let of = |row: &str| When::new(status, due, row);
        Self { bare: of(""), q: of("q."), v_row: of("v_row."), p_row: of("p_row."), new: of("new."), old: of("old.") }
    }
}

/// The engine's columns by role: identifiers, bare names or literals.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EngineColumns {
    pub due: String,
    /// Only if rows have owners.
    pub open: Option<String>,
    pub lease: String,
    pub deadline: String,
    pub attempts: String,
    pub lost: String,
    pub started: String,
    pub agent: String,
    pub session: String,
}

impl EngineColumns {
    pub(super) fn map(&self, each: impl Fn(&str) -> String) -> Self {
        Self {
            due: each(&self.due),
            open: self.open.as_deref().map(&each),
            lease: each(&self.lease),
            deadline: each(&self.deadline),
            attempts: each(&self.attempts),
            lost: each(&self.lost),
            started: each(&self.started),
            agent: each(&self.agent),
            session: each(&self.session),
        }
    }
}

/// A column for results or progress.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Content {
    #[serde(flatten)]
    pub base: ColumnRef,
    pub numeric: bool,
}

impl Content {
    pub fn is_jsonb(&self) -> bool {
        self.data_type == "jsonb"
    }
}

/// A column, or a path inside a jsonb column.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Place {
    #[serde(flatten)]
    pub base: ColumnRef,
    /// As a literal of type text[].
    pub path: Option<String>,
}

/// The kind of a row, as an expression over each row name that the templates use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Kind {
    #[serde(flatten)]
    pub base: ColumnRef,
    pub hash: &'static str,
    pub of: String,
    pub bare: String,
    pub of_row: String,
    pub of_new: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Priority {
    #[serde(flatten)]
    pub base: ColumnRef,
    /// The class of the row `q`.
    pub of: String,
    pub bare: String,
    /// The number of the least urgent class.
    pub last: usize,
    pub head_start: String,
}

/// The first column of the probe indexes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Lane {
    pub of: String,
    pub bare: String,
    /// With KIND and CLASS as placeholders for the template's own.
    pub at: String,
    /// The most urgent lane of KIND.
    pub first: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Owner {
    #[serde(flatten)]
    pub base: ColumnRef,
    pub table: Option<String>,
    /// The table's name inside a string that `raise` or `format` reads.
    pub table_text: Option<String>,
    pub key: Option<String>,
    pub user: Option<String>,
    pub disabled: Option<String>,
    /// Expressions over the owner's row `o`.
    pub shared: String,
    pub open_after: String,
}

/// The table's own columns for the agent that works on the row, and since when.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Holder {
    pub by: Option<ColumnRef>,
    pub at: Option<ColumnRef>,
    pub keep: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Unique {
    #[serde(flatten)]
    pub base: ColumnRef,
    pub target: String,
    pub predicate: String,
    /// The predicate inside a string.
    pub predicate_in_text: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Dead {
    pub table: String,
    pub columns: String,
    pub values: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Retry {
    pub attempts: u32,
    pub first: String,
    pub cap: String,
}

/// Claims that hold many rows by one record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Bulk {
    /// The least number of rows.
    pub from: u32,
    pub names: String,
    /// The columns of a row, in their order.
    pub columns: Vec<BulkColumn>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BulkColumn {
    pub column: String,
    #[serde(rename = "type")]
    pub data_type: String,
    pub role: Option<&'static str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Engine {
    /// A lease on each row.
    Rows,
    /// Also leases on many rows at once.
    Bulk,
}

/// Hold or deadline, as expressions over `q`, `v_row` and `new`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct PerRow {
    pub(super) q: String,
    pub(super) v_row: String,
    pub(super) new: String,
}

/// Roles as literals of type text[].
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Grant {
    pub operate: String,
    pub own: String,
    /// Those who work or operate.
    pub look: String,
    pub groups: Option<Groups>,
    /// The condition of rows, as `q`, that `own` is limited to.
    pub admits: Option<String>,
}

/// The groups that `own` is limited to: the column of a row, and the call that returns those of the caller.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Groups {
    pub column: String,
    pub mine: String,
}

impl Grant {
    pub(super) fn new(declared: &crate::declaration::Grant, groups: Option<Groups>, admits: Option<String>) -> Self {
        let list = |roles: &[String]| {
            let roles: Vec<String> = roles.iter().map(|role| literal(role)).collect();
            if roles.is_empty() { "'{}'".to_owned() } else { format!("array[{}]", roles.join(", ")) }
        };
        let look = list(&[&declared.work[..], &declared.operate].concat());
        Self { operate: list(&declared.operate), own: list(&declared.own), look, groups, admits }
    }
}

/// Everything the templates can use; see `sql/engine/acts`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Shape {
    pub name: String,
    pub name_literal: String,
    pub table: String,
    pub table_literal: String,
    /// The table's name inside a string.
    pub table_in_text: String,
    /// The table's name inside a string that `raise` or `format` reads.
    pub table_text: String,
    /// A dollar quote that does not occur in anything of this queue, for the bodies of functions.
    pub body: String,
    pub search_path: String,
    pub engine: Engine,
    /// Whether the rows are spread over several servers.
    pub distributed: bool,

    pub tenant: Option<ColumnRef>,
    pub key: Key,
    /// The primary key's columns other than key and tenant, in its order.
    pub parts: Vec<ColumnRef>,
    pub status: Status,
    /// Conditions on the status, by row name: `when.q.held`.
    pub when: Conditions,
    pub col: EngineColumns,
    pub col_names: EngineColumns,
    pub col_literals: EngineColumns,
    pub attempts_declared: bool,
    pub zone: String,
    pub created: Option<ColumnRef>,
    pub due: Option<ColumnRef>,
    pub finished: Option<ColumnRef>,
    pub kind: Option<Kind>,
    pub priority: Option<Priority>,
    pub lane: Option<Lane>,
    pub owner: Option<Owner>,
    pub result: Option<Content>,
    pub progress: Option<Content>,
    pub unique: Option<Unique>,
    pub error: Option<Place>,
    pub recovered: Option<Place>,
    pub recovered_value: Option<String>,
    pub holder: Holder,
    pub dead: Option<Dead>,
    pub dead_reason_new: String,
    pub retain: Option<String>,
    pub grant: Grant,
    pub bulk: Option<Bulk>,

    pub hold: String,
    pub hold_of_row: String,
    pub hold_new: String,
    pub deadline: String,
    pub deadline_of_row: String,
    pub deadline_new: String,
    pub retry: Retry,
    pub may_retry: String,
    pub may_retry_old: String,
    pub lost_now: String,
    pub poisoned: String,
    pub poison_reason: String,
    pub poison_category: String,

    pub claimable: String,
    pub standing: String,
    pub unfinished: String,
    /// Whether nothing on the table can reject a claim, and the arguments of that question, as SQL.
    pub plain: String,
    pub plain_arguments: String,
    pub guarded: Vec<String>,
    pub engine_names: String,
    pub unique_names: String,
    pub acts_alone: String,
    pub adapt_inserts: bool,
    pub notify: bool,
    pub trigger_insert: String,
    pub trigger_update: String,
    pub trigger_again: String,
    pub trigger_lock: String,
    pub trigger_delete: String,
    pub trigger_truncate: String,
    pub trigger_notify: String,
    /// Columns whose plain update may make a row claimable.
    pub notify_on: Vec<String>,
}

impl Shape {
    /// Chooses the dollar quote, once everything else is known.
    pub(super) fn quoted(mut self) -> Self {
        let all = serde_json::to_string(&self).unwrap_or_default();
        self.body = unused_tag("gleaner", &all);
        self
    }
}

/// A dollar quote whose beginning does not occur in `text`.
fn unused_tag(word: &str, text: &str) -> String {
    let tags = (0..).map(|n| if n == 0 { format!("${word}") } else { format!("${word}_{n}") });
    tags.into_iter().find(|tag| !text.contains(tag.as_str())).unwrap_or_default() + "$"
}

/// SQL inside a string literal.
pub(crate) fn in_text(sql: &str) -> String {
    sql.replace('\'', "''")
}

/// SQL inside a string literal that `raise` or `format` reads.
pub(crate) fn in_format(sql: &str) -> String {
    in_text(sql).replace('%', "%%")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dollar_quotes_are_never_part_of_what_they_quote() {
        assert_eq!(unused_tag("gleaner", "nothing"), "$gleaner$");
        assert_eq!(unused_tag("gleaner", "a $gleaner$ b"), "$gleaner_1$");
        assert_eq!(unused_tag("gleaner", "$gleaner and $gleaner_1"), "$gleaner_2$");
    }

    #[test]
    fn names_in_strings_keep_their_meaning() {
        assert_eq!(in_text("\"a'b%c\""), "\"a''b%c\"");
        assert_eq!(in_format("\"a'b%c\""), "\"a''b%%c\"");
    }
}
