//! What a bulk act does, and what is shown of one.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use crate::queues::acts::rows::Text;
use crate::queues::items::filter::RowFilter;

/// What is done to every row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum BulkAct {
    Requeue,
    Cancel,
    Bury,
    Assign,
    Reschedule,
}

impl BulkAct {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Requeue => "requeue",
            Self::Cancel => "cancel",
            Self::Bury => "bury",
            Self::Assign => "assign",
            Self::Reschedule => "reschedule",
        }
    }
}

#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct BulkRequest {
    pub(super) act: BulkAct,
    #[serde(default)]
    pub(super) filter: RowFilter,
    /// For cancel and bury.
    pub(super) reason: Option<String>,
    /// For assign; null removes the owner.
    pub(super) owner: Option<Text>,
    /// For reschedule: a time with its zone.
    pub(super) due: Option<String>,
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct BulkPath {
    /// The queue's name.
    #[param(example = "jobs")]
    pub(super) queue: String,
    /// The id of the bulk act.
    pub(super) id: Uuid,
}

/// How far a bulk act has come.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub(crate) struct Bulk {
    pub(super) id: Uuid,
    act: BulkAct,
    #[schema(value_type = Object)]
    filter: Value,
    /// Who started it.
    caller: String,
    pub(super) state: BulkState,
    /// How many rows it was started for.
    total: i64,
    /// How many were changed.
    done: i64,
    /// How many had gone on by themselves, or needed no change.
    already: i64,
    /// How many could not be changed.
    failed: i64,
    /// Why it ended early.
    #[schema(required)]
    error: Option<String>,
    started_at: String,
    changed_at: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum BulkState {
    Running,
    Done,
    /// A person stopped it; the rest was not touched.
    Stopped,
    /// An error ended it; the rest was not touched.
    Failed,
    /// Its server ended; the rest was not touched.
    Interrupted,
}
