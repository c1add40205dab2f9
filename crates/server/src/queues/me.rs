//! `/v1/me`: who is calling and what it may do, as the database sees it.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use futures_util::FutureExt as _;
use gleaner::Error;
use gleaner_http::describe::Denied;
use gleaner_http::{Caller, WireError};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::Queues;
use super::failure::refuse;
use super::transaction::with_caller;

/// The caller.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct Me {
    role: CallerRole,
    user_id: Option<String>,
    email: Option<String>,
    /// The caller's row in the team, without what is private.
    #[schema(value_type = Option<Object>)]
    person: Option<Value>,
    administrator: bool,
    member: bool,
    /// Which rows of each queue the caller may operate.
    queues: BTreeMap<String, Operates>,
    server_time: String,
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum CallerRole {
    Administrator,
    Member,
    /// Signed in, and not of the team.
    Stranger,
    Worker,
    Service,
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum Operates {
    All,
    /// Rows of its own and unowned ones.
    Own,
    None,
}

/// Who is calling, and what it may do
///
/// It grants nothing: pages use it to offer only what the acts would accept, and every act asks again.
#[utoipa::path(
    get,
    path = "/v1/me",
    tag = "operations",
    responses(
        (status = 200, description = "The caller.", body = Me,
            example = json!({"role": "member", "administrator": false, "member": true, "queues": {"activities": "own", "jobs": "none"}})),
        Denied,
    )
)]
pub(crate) async fn me(State(queues): State<Queues>, caller: Caller) -> Result<Json<Me>, WireError> {
    let asked = with_caller(&queues.shared.pool, &caller, |transaction| {
        async move {
            let rows = transaction.query_typed("select gleaner.me()", &[]).await.map_err(Error::doing("ask who is calling"))?;
            Ok::<_, Error>(rows[0].get::<_, tokio_postgres::types::Json<Me>>(0).0)
        }
        .boxed()
    });
    Ok(Json(asked.await.map_err(|error| refuse(&caller, &error))?))
}
