//! `POST /logout`.

use axum::extract::{Query, State};
use axum::http::StatusCode;
use serde::Deserialize;
use tokio_postgres::types::Type;

use super::Auth;
use super::bearer::SignedIn;
use super::error::{Failure, Result};

#[derive(Deserialize)]
pub(super) struct LogoutQuery {
    scope: Option<String>,
}

pub(super) async fn post(State(auth): State<Auth>, caller: SignedIn, Query(asked): Query<LogoutQuery>) -> Result<StatusCode> {
    let scope = asked.scope.as_deref().filter(|scope| !scope.is_empty()).unwrap_or("global");
    if !matches!(scope, "global" | "local" | "others") {
        return Err(Failure::invalid(format!("Unsupported logout scope {scope:?}")));
    }
    let row = auth
        .row(
            "sign out",
            "select gleaner.close_sessions($1, $2, $3)",
            &[(&caller.user_id, Type::UUID), (&caller.session_id, Type::UUID), (&scope, Type::TEXT)],
        )
        .await?;
    if row.get(0) { Ok(StatusCode::NO_CONTENT) } else { Err(Failure::no_session()) }
}
