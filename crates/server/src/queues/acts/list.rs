//! Lists the queues.

use std::collections::HashMap;

use axum::Json;
use axum::extract::State;
use futures_util::FutureExt as _;
use gleaner::{Error, registry};
use gleaner_http::describe::Denied;
use gleaner_http::{Caller, WireError};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::queues::Queues;
use crate::queues::failure::refuse;
use crate::queues::transaction::with_caller;

/// A queue of this database.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Queue {
    name: String,
    table: String,
    /// Whether claims may name an owner.
    owners: bool,
    /// Whether claims may name kinds.
    kinds: bool,
    /// Since when and why claims find nothing in it; null when they do.
    #[schema(required, value_type = Option<Object>)]
    paused: Option<Value>,
    /// Why the queue cannot be used, and what to do; null when it can be used.
    #[schema(required)]
    broken: Option<String>,
}

/// List the queues
#[utoipa::path(
    get,
    path = "/v1/queues",
    operation_id = "listQueues",
    tag = "queues",
    responses(
        (status = 200, description = "The queues of this database.", body = Vec<Queue>,
            example = json!([{"name": "jobs", "table": "gleaner.jobs", "owners": false, "kinds": true, "paused": null, "broken": null}])),
        Denied,
    )
)]
pub(crate) async fn list(State(queues): State<Queues>, caller: Caller) -> Result<Json<Vec<Queue>>, WireError> {
    let read = with_caller(&queues.shared.pool, &caller, |transaction| {
        async move {
            let entries = registry::survey(&**transaction).await?;
            let sql = "select queue, jsonb_build_object('at', at, 'caller', caller, 'reason', reason) from gleaner.pause";
            let rows = transaction.query_typed(sql, &[]).await.map_err(Error::doing("read which queues are paused"))?;
            Ok::<_, Error>((entries, rows.iter().map(|row| (row.get(0), row.get(1))).collect::<HashMap<String, Value>>()))
        }
        .boxed()
    });
    let (entries, mut paused) = read.await.map_err(|error| refuse(&caller, &error))?;
    let listed = entries.into_iter().map(|entry| {
        let declared = entry.declaration.as_ref();
        let (owners, kinds) = (declared.is_some_and(|d| d.owner.is_some()), declared.is_some_and(|d| d.kind.is_some()));
        Queue { paused: paused.remove(&entry.name), name: entry.name, table: entry.table, owners, kinds, broken: entry.broken }
    });
    Ok(Json(listed.collect()))
}
