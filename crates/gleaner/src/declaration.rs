//! What an author writes to turn a table into a queue: a short TOML file, parsed but not yet compared with the table.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A declaration, word for word as in the file. [`crate::plan::Plan`] is what it means for a real table.
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
    /// Column that leads every key, index and statement; agents claim within it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// Which column says whether, and in which words.
    pub status: Status,
    /// Who the work belongs to. Without it everything belongs to everybody.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<Owner>,
    /// When the row came to be. Defaults to `created_at` where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created: Option<String>,
    /// A column of the table that appoints the time, such as `scheduled_for`. It is read, never written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<String>,
    /// The zone in which `timestamp` columns without one are meant. Defaults to UTC.
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
    /// Where results go.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    /// Where stage and percent go.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<String>,
    /// Where errors go: a column, or a place inside a jsonb column (`metadata.error`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Where lost leases are shown: a place inside a jsonb column (`metadata.recovery_count`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovered: Option<String>,
    /// A counter of failures the table already has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempts: Option<String>,
    /// When the work ended. Retention needs it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished: Option<String>,
    /// Columns that show who works on the row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder: Option<Holder>,
    /// How long a claim lasts without progress. Defaults to five minutes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold: Option<PerKind>,
    /// Progress cannot extend a claim beyond this. Defaults to an hour.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<PerKind>,
    /// What happens to failures and lost leases.
    #[serde(default)]
    pub retry: Retry,
    /// A table that takes dead letters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dead: Option<String>,
    /// Delete finished rows after this long. Off unless declared: on an attached table the row is the record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retain: Option<String>,
    /// A claim that takes at least so many rows which were never touched holds them by one record, a sheaf, instead of a
    /// change to each. For lean queues of many small items; while one is worked its row still says that it is ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sheaf: Option<u32>,
    /// Ring the bell from a trigger, inside the writers' transactions. Only where writers are few.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub notify: bool,
    /// Let the adapter stamp plain inserts (the default). Without it the column defaults do, which is enough for a queue
    /// without owners and appointed times, and lets COPY write whole pages: a row trigger forbids that.
    #[serde(default = "yes", skip_serializing_if = "Clone::clone")]
    pub adapt_inserts: bool,
    /// Other names for the engine's columns, where the table already uses one for something else.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub rename: BTreeMap<String, String>,
    /// Which roles may work, and which may operate.
    #[serde(default)]
    pub grant: Grant,
}

fn yes() -> bool {
    true
}

/// The status column and its words. What has no word of its own falls back: `claimed` to running, `cancelled` to failed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Status {
    pub column: String,
    pub ready: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claimed: Option<String>,
    pub running: String,
    pub done: String,
    pub failed: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancelled: Option<String>,
}

/// The owner column, and the table that says what owners allow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Owner {
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
    /// A boolean column of that table: true ends the user's right to work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disabled: Option<String>,
    /// How long work is its owner's alone: a column of the owner table, or a duration. Defaults to five minutes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_after: Option<String>,
    /// A boolean column of the owner table: false keeps work private.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Priority {
    pub column: String,
    /// Most urgent first. Numbers are bounds (everything beyond the last falls into it), words are matched exactly.
    pub classes: Vec<toml::Value>,
    /// How much earlier a class is served than the next, which is what keeps the last from starving. Without it
    /// urgent work always goes first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head_start: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Holder {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// Leave both as a record when the work ends, instead of clearing them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub keep: bool,
}

/// One duration for all, or one per kind with a default.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum PerKind {
    All(String),
    ByKind(BTreeMap<String, String>),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Retry {
    /// Failures after which a row is dead.
    pub attempts: u32,
    /// First wait and longest wait; it doubles in between.
    pub backoff: [String; 2],
    /// Lost leases after which a row is dead.
    pub lost_leases: u32,
    /// What a lease lost after the work had begun means.
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

/// Whether work with an unknown outcome is run again or shown to a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Lost {
    Retry,
    /// The outcome is unknown: never run again by itself.
    Ask,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Grant {
    /// May claim, and end what they hold.
    pub work: Vec<String>,
    /// May also enqueue by act, cancel, requeue, bury, assign and prune: acts that see every row.
    pub operate: Vec<String>,
}

impl Default for Grant {
    fn default() -> Self {
        Self { work: vec!["authenticated".into(), "service_role".into()], operate: vec!["service_role".into()] }
    }
}

impl Declaration {
    /// Reads a declaration; `stem` names the queue when the file does not.
    pub fn parse(source: &str, stem: &str) -> Result<Self, toml::de::Error> {
        let mut declaration: Self = toml::from_str(source)?;
        declaration.name.get_or_insert_with(|| stem.replace('-', "_"));
        Ok(declaration)
    }

    pub fn name(&self) -> &str {
        self.name.as_deref().unwrap_or_default()
    }
}

/// Whether `text` is a duration as we accept them: `5 minutes`, `1 hour 30 minutes`, `2 days`.
///
/// PostgreSQL would take much more; a narrow grammar keeps `5` (of what?) and injected SQL out alike.
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

    #[test]
    fn an_unknown_key_is_named() {
        let error = Declaration::parse("table = 't'\nownr = 'x'\nstatus = {column='s', ready='a', running='b', done='c', failed='d'}", "t")
            .unwrap_err();
        assert!(error.to_string().contains("ownr"), "{error}");
    }
}
