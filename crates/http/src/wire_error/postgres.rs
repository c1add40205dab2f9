//! PostgreSQL errors as HTTP responses.

use http::StatusCode;
use serde_json::Value;
use tokio_postgres::error::DbError;

use super::WireError;
use crate::database::is_disconnected;

impl WireError {
    /// `anonymous`: the caller has not signed in, so a missing right means "sign in" rather than "you may not".
    pub fn from_postgres(error: &tokio_postgres::Error, anonymous: bool) -> Self {
        match error.as_db_error() {
            Some(said) if said.code().code() == "PGRST" => chosen(said),
            Some(said) => Self {
                status: status(said, anonymous),
                code: said.code().code().to_owned().into(),
                message: said.message().to_owned(),
                details: said.detail().map(str::to_owned),
                hint: said.hint().map(str::to_owned),
                mistakes: Box::default(),
            },
            None if is_disconnected(error) => Self::database_away(),
            // The driver could not send a value or read a response. That is a bug of ours, and the client does not see the
            // details.
            None => {
                tracing::error!(%error, "a statement could not be sent or its answer not be read");
                Self::new(StatusCode::INTERNAL_SERVER_ERROR, "XX000", "The server could not talk to its database")
            }
        }
    }
}

/// An error that a function wrote itself: `raise sqlstate 'PGRST'` with the body as JSON in its message, and the status as JSON in its
/// detail.
fn chosen(said: &DbError) -> WireError {
    let parsed = |text: Option<&str>| text.and_then(|text| serde_json::from_str::<Value>(text).ok()).unwrap_or_default();
    let (body, about) = (parsed(Some(said.message())), parsed(said.detail()));
    let status = about["status"].as_u64().and_then(|status| StatusCode::from_u16(u16::try_from(status).ok()?).ok());
    let text = |name: &str| body[name].as_str().map(str::to_owned);
    let (Some(code), Some(message), Some(status)) = (text("code"), text("message"), status) else {
        return WireError::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "PGRST121",
            "Could not parse JSON in the \"RAISE SQLSTATE 'PGRST'\" error",
        )
        .hint("MESSAGE must be a JSON object with at least \"code\" and \"message\", DETAIL one with at least \"status\".");
    };
    WireError { status, code: code.into(), message, details: text("details"), hint: text("hint"), mistakes: Box::default() }
}

/// The whole mapping, most specific codes first.
fn status(said: &DbError, anonymous: bool) -> StatusCode {
    let code = said.code().code();
    match code {
        "42501" if anonymous => StatusCode::UNAUTHORIZED,
        "42501" => StatusCode::FORBIDDEN,
        "23503" | "23505" => StatusCode::CONFLICT,
        "25006" => StatusCode::METHOD_NOT_ALLOWED,
        // The database server is shutting down or starting up.
        "57P01" | "57P02" | "57P03" => StatusCode::SERVICE_UNAVAILABLE,
        // A token that names a role the database does not have.
        "22023" if said.message().starts_with("role ") => StatusCode::UNAUTHORIZED,
        _ => match code.get(..2).unwrap_or_default() {
            "08" | "53" => StatusCode::SERVICE_UNAVAILABLE,
            // Functions choose their own status: raise sqlstate 'PT402'.
            "PT" => code[2..]
                .parse()
                .ok()
                .filter(|status: &u16| *status >= 200)
                .and_then(|status| StatusCode::from_u16(status).ok())
                .unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
            "40" | "55" | "57" | "58" | "XX" => StatusCode::INTERNAL_SERVER_ERROR,
            _ => StatusCode::BAD_REQUEST,
        },
    }
}
