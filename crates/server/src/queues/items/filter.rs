//! Which rows: the same in the query of a list and in the body of a bulk act.

use gleaner::view::{Filter, State};
use gleaner_http::WireError;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::queues::acts::rows::Text;

/// The states of rows, the same for every queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum RowState {
    Ready,
    Running,
    Scheduled,
    /// Failed, and to be tried again.
    Failed,
    /// Failed, and given up.
    Dead,
    Done,
    Cancelled,
}

impl From<RowState> for State {
    fn from(state: RowState) -> Self {
        match state {
            RowState::Ready => Self::Ready,
            RowState::Running => Self::Running,
            RowState::Scheduled => Self::Scheduled,
            RowState::Failed => Self::Failed,
            RowState::Dead => Self::Dead,
            RowState::Done => Self::Done,
            RowState::Cancelled => Self::Cancelled,
        }
    }
}

/// Which rows. Without any of these, all of them.
#[derive(Debug, Clone, Default, Serialize, Deserialize, IntoParams, ToSchema)]
#[into_params(parameter_in = Query)]
pub(crate) struct RowFilter {
    #[param(inline)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) state: Option<RowState>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) kind: Option<String>,
    /// An owner's id, or `none` for rows without an owner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) owner: Option<String>,
    /// The beginning of the key; of a key that is a number, all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) key: Option<String>,
    /// A cause, as the list of causes words it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) cause: Option<String>,
    /// For queues that declare a tenant.
    #[param(value_type = Option<String>)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) tenant: Option<Text>,
}

impl RowFilter {
    pub(crate) fn read(&self) -> Filter {
        let given = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
        let owner = given(&self.owner);
        Filter {
            state: self.state.map(State::from),
            unowned: owner.as_deref() == Some("none"),
            owner: owner.filter(|owner| owner != "none"),
            kind: given(&self.kind),
            key: given(&self.key),
            cause: given(&self.cause),
            tenant: self.tenant.as_ref().map(ToString::to_string),
            ..Filter::default()
        }
    }
}

/// Reads the place where the last page ended.
pub(super) fn cursor(after: Option<&str>) -> Result<Option<gleaner::view::Cursor>, WireError> {
    let read = after.map(serde_json::from_str).transpose();
    read.map_err(|_| WireError::bad("after is not what a page gave as `next`"))
}
