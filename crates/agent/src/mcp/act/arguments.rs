//! The arguments of each act. The schemas that models read are generated from these types, including the doc comments.

use rmcp::schemars::{self, JsonSchema};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct List {
    /// Only this queue; all of them when left out
    pub queue: Option<String>,
    /// Only items of this kind
    pub kind: Option<String>,
    /// How many items per queue, 1 to 50; 10 when left out
    #[schemars(range(min = 1, max = 50))]
    pub limit: Option<u32>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// The queue, by the name `list` gives
    pub queue: String,
    /// Only these kinds
    pub kinds: Option<Vec<String>>,
    /// How many items, 1 to 10; 1 when left out. Take no more than you will work on now
    #[schemars(range(min = 1, max = 10))]
    pub limit: Option<u32>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Held {
    /// The queue the item was claimed from
    pub queue: String,
    /// The item's key, as `claim` gave it
    #[serde(deserialize_with = "text")]
    pub key: String,
    /// The item's lease, as `claim` gave it
    #[serde(deserialize_with = "whole")]
    pub lease: i64,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Progress {
    /// The queue the item was claimed from
    pub queue: String,
    /// The item's key, as `claim` gave it
    #[serde(deserialize_with = "text")]
    pub key: String,
    /// The item's lease, as `claim` gave it
    #[serde(deserialize_with = "whole")]
    pub lease: i64,
    /// What you are doing, in a word or two
    pub stage: Option<String>,
    /// How much is done
    #[schemars(range(min = 0, max = 100))]
    pub percent: Option<f64>,
    /// Results so far, merged into what the item has
    #[schemars(schema_with = "object")]
    pub partial: Option<Value>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Complete {
    /// The queue the item was claimed from
    pub queue: String,
    /// The item's key, as `claim` gave it
    #[serde(deserialize_with = "text")]
    pub key: String,
    /// The item's lease, as `claim` gave it
    #[serde(deserialize_with = "whole")]
    pub lease: i64,
    /// The result, stored with the item
    #[schemars(schema_with = "object")]
    pub result: Option<Value>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Fail {
    /// The queue the item was claimed from
    pub queue: String,
    /// The item's key, as `claim` gave it
    #[serde(deserialize_with = "text")]
    pub key: String,
    /// The item's lease, as `claim` gave it
    #[serde(deserialize_with = "whole")]
    pub lease: i64,
    /// What went wrong, for the people who look at it later
    pub message: String,
    /// One word for the sort of error, such as ValidationError
    pub category: Option<String>,
    /// Whether another try makes sense; true when left out
    pub retryable: Option<bool>,
    /// Seconds until the next try, instead of the queue's own back-off
    #[schemars(range(min = 0))]
    pub retry_in_seconds: Option<f64>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Snooze {
    /// The queue the item was claimed from
    pub queue: String,
    /// The item's key, as `claim` gave it
    #[serde(deserialize_with = "text")]
    pub key: String,
    /// The item's lease, as `claim` gave it
    #[serde(deserialize_with = "whole")]
    pub lease: i64,
    /// For how long, up to 30 days
    #[schemars(range(min = 1, max = 2_592_000))]
    pub seconds: f64,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Explain {
    /// The queue
    pub queue: String,
    /// The item's key
    #[serde(deserialize_with = "text")]
    pub key: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Cancel {
    /// The queue
    pub queue: String,
    /// The keys of the items, 1 to 20
    #[schemars(length(min = 1, max = 20))]
    pub keys: Vec<String>,
    /// Why, for the record
    pub reason: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LinkContact {
    /// The activity's key (a UUID)
    pub activity: String,
    /// The contact's id
    pub contact: i64,
    /// Also link every other unmatched activity of the same sender
    #[serde(default)]
    pub backfill: bool,
    /// Also give the contact the sender's address
    #[serde(default)]
    pub remember: bool,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScheduleFollowup {
    /// Whom it is for, by the id the CRM uses
    pub prospect: String,
    /// What is to be done; `follow_up` when left out
    pub action: Option<String>,
    /// When, as an RFC 3339 time with its zone, such as 2026-03-01T09:00:00Z
    #[schemars(extend("format" = "date-time"))]
    pub at: String,
    /// What the worker will need
    #[schemars(schema_with = "object")]
    pub payload: Option<Value>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RescheduleFollowup {
    /// The follow-up's key, as `schedule_followup` or `list_followups` gave it
    pub key: String,
    /// When, as an RFC 3339 time with its zone, such as 2026-03-01T09:00:00Z
    #[schemars(extend("format" = "date-time"))]
    pub at: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CancelFollowup {
    /// The follow-up's key, as `schedule_followup` or `list_followups` gave it
    pub key: String,
    /// Why, for the record
    pub reason: String,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListFollowups {
    /// Only those for this prospect
    pub prospect: Option<String>,
    /// How many, 1 to 100; 20 when left out
    #[schemars(range(min = 1, max = 100))]
    pub limit: Option<u32>,
}

/// An object. The schema derived for `Value` is empty, and some clients treat that as no schema at all.
fn object(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({"type": ["object", "null"], "additionalProperties": true})
}

/// Keys are text, but for a table with numeric keys a model sends numbers.
fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    match Value::deserialize(deserializer)? {
        Value::String(text) => Ok(text),
        Value::Number(number) => Ok(number.to_string()),
        other => Err(serde::de::Error::custom(format_args!("a key is a text, not {other}"))),
    }
}

/// A lease has sixteen digits. That is exact in every JSON implementation, but some send it as text or with a fraction of zero.
fn whole<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i64, D::Error> {
    let value = Value::deserialize(deserializer)?;
    let whole = match &value {
        Value::String(text) => text.parse().ok(),
        number => number.as_i64().or_else(|| number.as_f64().filter(|n| n.fract() == 0.0 && n.abs() < 9e15).map(|n| n as i64)),
    };
    whole.ok_or_else(|| serde::de::Error::custom(format_args!("a lease is the whole number that `claim` gave, not {value}")))
}
