//! Shows how a queue is declared, and the SQL that was rendered from it.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use futures_util::FutureExt as _;
use gleaner::Error;
use gleaner_http::describe::{Denied, NotFound};
use gleaner_http::{Caller, Path, WireError};
use serde::Serialize;
use tokio_postgres::types::Type;
use utoipa::ToSchema;

use crate::queues::Queues;
use crate::queues::acts::rows::QueuePath;
use crate::queues::failure::refuse;
use crate::queues::transaction::with_caller;

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Declared {
    name: String,
    table: String,
    /// The declaration as its author wrote it, in TOML.
    declaration: String,
    /// The SQL that `gleaner sql` prints.
    sql: String,
    attached_at: String,
    changed_at: String,
}

/// Show a queue's declaration and its SQL
#[utoipa::path(
    get,
    path = "/v1/queues/{queue}/declaration",
    operation_id = "showDeclaration",
    tag = "queues",
    params(QueuePath),
    responses(
        (status = 200, description = "The declaration, and what was rendered from it.", body = Declared,
            example = json!({"name": "jobs", "table": "gleaner.jobs", "declaration": "table = \"gleaner.jobs\"", "sql": "create …",
                "attached_at": "2026-01-02T03:04:05Z", "changed_at": "2026-01-02T03:04:05Z"})),
        Denied, NotFound,
    )
)]
pub(crate) async fn declaration(
    State(queues): State<Queues>,
    caller: Caller,
    Path(QueuePath { queue }): Path<QueuePath>,
) -> Result<Json<Declared>, WireError> {
    let read = with_caller(&queues.shared.pool, &caller, |transaction| {
        async move {
            let sql = "select name, table_name, source, rendered, to_jsonb(attached_at) #>> '{}', to_jsonb(changed_at) #>> '{}'
                       from gleaner.queue where name = $1";
            let rows = transaction.query_typed(sql, &[(&queue, Type::TEXT)]).await.map_err(Error::doing("read the registry"))?;
            Ok::<_, Error>(rows.first().map(|row| Declared {
                name: row.get(0),
                table: row.get(1),
                declaration: row.get(2),
                sql: row.get(3),
                attached_at: row.get(4),
                changed_at: row.get(5),
            }))
        }
        .boxed()
    });
    let found = read.await.map_err(|error| refuse(&caller, &error))?;
    found.map(Json).ok_or_else(|| WireError::new(StatusCode::NOT_FOUND, "P0002", "there is no such queue"))
}
