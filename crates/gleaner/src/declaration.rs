//! What an author writes to turn a table into a queue: a short TOML file, parsed but not yet compared with the table.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

#[cfg(feature = "schema")]
mod keys;

/// A declaration, exactly as in the file. [`crate::plan::Plan`] is what it means for a real table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Declaration {
    /// Name of the queue, part of every rendered function. Defaults to the file's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The table, schema-qualified.
    pub table: String,
    /// The key column. Defaults to the primary key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Column that is first in every key, index and statement; agents claim within one value of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// The status column and its values.
    pub status: Status,
    /// Whose work it is. Without it all work belongs to everyone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<Owner>,
    /// When the row was created. Defaults to `created_at` if that column exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created: Option<String>,
    /// A column of the table that sets the due time, such as `scheduled_for`. It is read, never written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<String>,
    /// The time zone of `timestamp` columns without one. Defaults to UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// Agents claim only the kinds they can process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// A small set of classes, the most urgent first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<Priority>,
    /// No two waiting rows share a value of this column.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unique: Option<String>,
    /// The one column a worker needs. Without it a worker gets the whole row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<String>,
    /// The column for results.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    /// The column for stage and percent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<String>,
    /// Where errors are written: a column, or a path inside a jsonb column (`metadata.error`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Where lost leases are counted: a path inside a jsonb column (`metadata.recovery_count`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovered: Option<String>,
    /// An existing column of the table that counts failures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempts: Option<String>,
    /// When the work ended. Retention needs it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished: Option<String>,
    /// Columns that show which agent works on the row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder: Option<Holder>,
    /// How long a claim lasts without progress. Defaults to five minutes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold: Option<PerKind>,
    /// Progress cannot extend a claim beyond this. Defaults to an hour.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<PerKind>,
    /// What happens after failures and lost leases.
    #[serde(default)]
    pub retry: Retry,
    /// A table that receives dead letters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dead: Option<String>,
    /// Delete finished rows after this long. Off unless declared: on an attached table the row is the user's record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retain: Option<String>,
    /// A claim that takes at least this many untouched rows holds them by one record, a batch lease, instead of updating each
    /// row. For lean queues of many small items. The status of such a row is still ready while it is worked on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bulk: Option<u32>,
    /// Notify workers from a trigger, inside the writers' transactions: the row is picked up at once, however it was written. On
    /// by default, except with `bulk`: the notification prevents many concurrent writers from sharing commits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notify: Option<bool>,
    /// Let the adapter trigger set the engine's columns on plain inserts (the default). Without it the column defaults do so,
    /// which is enough for a queue without owners and due columns. It also lets COPY write whole pages, which a row trigger
    /// prevents.
    #[serde(default = "yes", skip_serializing_if = "Clone::clone")]
    pub adapt_inserts: bool,
    /// Other names for the engine's columns, if the table already uses one for something else.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub rename: BTreeMap<String, String>,
    /// Which roles may work, and which may operate.
    #[serde(default)]
    pub grant: Grant,
}

fn yes() -> bool {
    true
}

/// The status column and its values. A value that is left out falls back: `claimed` to running, `cancelled` to failed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Status {
    /// The column, of a text or enum type.
    pub column: String,
    /// The status of rows that wait.
    pub ready: String,
    /// The status of rows that are claimed and not started. Without it they are running.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claimed: Option<String>,
    /// The status of rows that are held.
    pub running: String,
    /// The status of rows that are finished.
    pub done: String,
    /// The status of rows that failed, whether or not they are retried.
    pub failed: String,
    /// The status of rows that were cancelled. Without it they are failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancelled: Option<String>,
}

/// The owner column, and the table that holds each owner's policy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Owner {
    /// The column that names the owner. A row with null belongs to everyone.
    pub column: String,
    /// Table with one row per owner. Without it every owner has the same policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub table: Option<String>,
    /// Key of that table. Defaults to its primary key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Column of that table with the signed-in user's id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// A boolean column of that table: true revokes the user's right to work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disabled: Option<String>,
    /// How long work is reserved for its owner: a column of the owner table, or a duration. Defaults to five minutes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_after: Option<String>,
    /// A boolean column of the owner table: false keeps work private.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared: Option<String>,
}

/// The priority column and its classes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Priority {
    /// The column, of numbers, text or an enum.
    pub column: String,
    /// Most urgent first. Numbers are bounds (everything beyond the last falls into the last class), text is matched exactly.
    pub classes: Vec<serde_json::Value>,
    /// How much earlier a class is served than the next, which keeps the last class from starving. Without it urgent work always
    /// goes first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head_start: Option<String>,
}

/// Columns that show which agent holds a row, and since when.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Holder {
    /// A text column for the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// A timestamp column for the time of the claim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// Keep both values as a record when the work ends, instead of clearing them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub keep: bool,
}

/// One duration for all, or one per kind with a default.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum PerKind {
    /// For all kinds.
    All(String),
    /// By kind; `default` is for the others.
    ByKind(BTreeMap<String, String>),
}

/// How often and when failed work is retried.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Retry {
    /// Failures after which a row is dead.
    pub attempts: u32,
    /// First delay and longest delay; it doubles in between.
    pub backoff: [String; 2],
    /// Lost leases after which a row is dead.
    pub lost_leases: u32,
    /// What it means when a lease is lost after the work has started.
    pub lost: Lost,
    /// No retry of rows older than this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub within: Option<String>,
}

impl Default for Retry {
    fn default() -> Self {
        Self { attempts: 3, backoff: ["30 seconds".into(), "1 hour".into()], lost_leases: 3, lost: Lost::Retry, within: None }
    }
}

/// Whether work with an unknown outcome is retried or left for a person to decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Lost {
    /// It is retried.
    Retry,
    /// The outcome is unknown: never retried automatically.
    Ask,
}

/// Database roles that may call the acts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Grant {
    /// May claim rows, and finish the rows they hold.
    pub work: Vec<String>,
    /// May also enqueue by act, cancel, requeue, bury, assign, reschedule and prune. These acts see every row. Administrators of
    /// the team do all of it but enqueue, in every queue.
    pub operate: Vec<String>,
    /// Roles whose members of the team do so with rows of their own, and with rows without an owner.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub own: Vec<String>,
    /// In a queue without owners: limits `own` to the rows of the caller's groups, such as workspaces.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub groups: Option<Groups>,
    /// In a queue without owners: limits the acts of `own` to rows that a function admits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub admits: Option<Admits>,
}

/// Which rows the members of `own` may operate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Admits {
    /// The column whose value the function is asked about.
    pub column: String,
    /// The function of one parameter that says whether the caller may operate such a row.
    pub function: String,
}

/// Which rows belong to the groups of a caller.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Groups {
    /// The column that names the group of a row.
    pub column: String,
    /// The function without parameters that returns the groups of the caller, an array of the column's type.
    pub function: String,
}

impl Default for Grant {
    fn default() -> Self {
        // Acts bypass row-level security, so roles of signed-in users must be named explicitly.
        Self { work: vec!["service_role".into()], operate: vec!["service_role".into()], own: Vec::new(), groups: None, admits: None }
    }
}

impl Declaration {
    /// Whether a trigger notifies workers of new rows.
    pub fn notifies(&self) -> bool {
        self.notify.unwrap_or(self.bulk.is_none())
    }

    /// The name of the queue.
    pub fn name(&self) -> &str {
        self.name.as_deref().unwrap_or_default()
    }
}

/// Whether `text` is a duration in the accepted form: `5 minutes`, `1 hour 30 minutes`, `2 days`.
///
/// PostgreSQL would accept much more. A narrow grammar rejects `5` without a unit, and injected SQL.
pub fn is_duration(text: &str) -> bool {
    const UNITS: [&str; 6] = ["millisecond", "second", "minute", "hour", "day", "week"];
    let words: Vec<&str> = text.split_whitespace().collect();
    !words.is_empty()
        && words.len().is_multiple_of(2)
        && words.chunks(2).all(|pair| {
            pair[0].parse::<f64>().is_ok_and(|n| n >= 0.0 && n.is_finite())
                && pair[0].bytes().all(|b| b.is_ascii_digit() || b == b'.')
                && UNITS.contains(&pair[1].strip_suffix('s').unwrap_or(pair[1]))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_name_their_unit() {
        for good in ["5 minutes", "1 hour 30 minutes", "0.5 seconds", "1 week"] {
            assert!(is_duration(good), "{good}");
        }
        for bad in ["5", "minutes", "5 parsecs", "'; drop table x", "-1 second", "", "1e3 seconds", "inf days"] {
            assert!(!is_duration(bad), "{bad}");
        }
    }
}
