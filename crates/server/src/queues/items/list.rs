//! Lists the rows of a queue, page by page.

use axum::Json;
use axum::extract::State;
use futures_util::FutureExt as _;
use gleaner::view::COUNTED;
use gleaner_http::describe::{Denied, Invalid, NotFound};
use gleaner_http::{Caller, Path, Query, WireError};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

use super::filter::{RowFilter, cursor};
use crate::queues::Queues;
use crate::queues::acts::rows::QueuePath;
use crate::queues::failure::refuse;

/// The most rows on a page.
const MOST: i64 = 500;
/// What a list shows of large columns.
const SHOWN: usize = 500;

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct PageQuery {
    /// `next` of the page before.
    after: Option<String>,
    /// How many rows; 50 when left out.
    limit: Option<i64>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RowPage {
    /// With the same members for every queue: id, state, status, kind, owner, attempts, lost, due_at, created_at, agent,
    /// payload, progress, result, error. Long values are cut.
    #[schema(value_type = Vec<Object>)]
    items: Vec<Value>,
    /// What to pass as `after` for the next page; null on the last one.
    #[schema(required)]
    next: Option<String>,
}

/// List rows
///
/// Waiting rows by their due time, finished ones and mixed lists the newest first.
#[utoipa::path(
    get,
    path = "/v1/queues/{queue}/items",
    operation_id = "listItems",
    tag = "queues",
    params(QueuePath, RowFilter, PageQuery),
    responses(
        (status = 200, description = "A page of rows.", body = RowPage,
            example = json!({"items": [{"id": "7", "state": "ready", "status": "ready", "kind": "mail"}], "next": null})),
        Denied, Invalid, NotFound,
    )
)]
pub(crate) async fn list(
    State(queues): State<Queues>,
    caller: Caller,
    Path(QueuePath { queue }): Path<QueuePath>,
    Query(filter): Query<RowFilter>,
    Query(page): Query<PageQuery>,
) -> Result<Json<RowPage>, WireError> {
    let limit = page.limit.unwrap_or(50).clamp(1, MOST);
    let mut filter = filter.read();
    (filter.after, filter.limit) = (cursor(page.after.as_deref())?, limit);
    let view = queues.viewing(&caller, &queue, |view, transaction, _| async move { view.page(&**transaction, &filter).await }.boxed());
    let rows = view.await.map_err(|error| refuse(&caller, &error))?;
    let is_full = i64::try_from(rows.len()).is_ok_and(|count| count == limit);
    let next = rows.last().filter(|_| is_full).map(|(_, cursor)| serde_json::to_string(cursor).expect("texts"));
    let items = rows.into_iter().map(|(mut row, _)| {
        for name in ["payload", "progress", "result", "error"] {
            cut(&mut row[name]);
        }
        row
    });
    Ok(Json(RowPage { items: items.collect(), next }))
}

/// A page of rows is for reading: a whole e-mail in each would make it megabytes. Small values stay as they are.
fn cut(value: &mut Value) {
    let long = match value {
        Value::String(text) => text.len() > SHOWN,
        Value::Object(_) | Value::Array(_) => value.to_string().len() > SHOWN,
        _ => false,
    };
    if long && let Value::Object(object) = value {
        // What a list shows of it stays an object.
        object.values_mut().for_each(cut);
        object.retain(|_, value| value.to_string().len() <= SHOWN + 10);
    } else if long {
        let text = if let Value::String(text) = value { std::mem::take(text) } else { value.to_string() };
        *value = Value::String(text.chars().take(SHOWN).chain(['…']).collect());
    }
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RowCounts {
    count: i64,
    /// Counting stopped: there may be more.
    capped: bool,
    #[schema(value_type = Object)]
    states: serde_json::Map<String, Value>,
}

impl RowCounts {
    pub(crate) fn new((states, capped): (Vec<(String, i64)>, bool)) -> Self {
        let count = states.iter().map(|(_, count)| count).sum();
        Self { count, capped, states: states.into_iter().map(|(state, count)| (state, count.into())).collect() }
    }
}

/// Count rows
///
/// Up to ten thousand of them.
#[utoipa::path(
    get,
    path = "/v1/queues/{queue}/count",
    operation_id = "countItems",
    tag = "queues",
    params(QueuePath, RowFilter),
    responses(
        (status = 200, description = "How many rows.", body = RowCounts,
            example = json!({"count": 512, "capped": false, "states": {"failed": 500, "running": 12}})),
        Denied, Invalid, NotFound,
    )
)]
pub(crate) async fn count(
    State(queues): State<Queues>,
    caller: Caller,
    Path(QueuePath { queue }): Path<QueuePath>,
    Query(filter): Query<RowFilter>,
) -> Result<Json<RowCounts>, WireError> {
    let filter = filter.read();
    let view =
        queues.viewing(&caller, &queue, |view, transaction, _| async move { view.count(&**transaction, &filter, COUNTED).await }.boxed());
    let counted = view.await.map_err(|error| refuse(&caller, &error))?;
    Ok(Json(RowCounts::new(counted)))
}
