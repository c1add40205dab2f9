//! PostgreSQL errors as HTTP responses.

use http::{HeaderName, HeaderValue, StatusCode};
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
                hint: said.hint().map(Into::into),
                mistakes: Box::default(),
                headers: None,
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

/// An error that a function wrote itself: `raise sqlstate 'PGRST'` with the body as JSON in its message, and status and headers as
/// JSON in its detail.
fn chosen(said: &DbError) -> WireError {
    let parsed = |text: &str| serde_json::from_str::<Value>(text).ok().filter(Value::is_object);
    let unreadable = |details: String, hint: &str| {
        let message = "Could not parse JSON in the \"RAISE SQLSTATE 'PGRST'\" error";
        WireError::new(StatusCode::INTERNAL_SERVER_ERROR, "PGRST121", message).details(details).hint(hint)
    };
    let body = parsed(said.message()).unwrap_or_default();
    let text = |name: &str| body[name].as_str().map(str::to_owned);
    let (Some(code), Some(message)) = (text("code"), text("message")) else {
        let hint = "MESSAGE must be a JSON object with obligatory keys: 'code', 'message' and optional keys: 'details', 'hint'.";
        return unreadable(format!("Invalid JSON value for MESSAGE: '{}'", said.message()), hint);
    };
    let hint = "DETAIL must be a JSON object with obligatory keys: 'status', 'headers' and optional key: 'status_text'.";
    let Some(detail) = said.detail() else { return unreadable("DETAIL is missing in the RAISE statement".to_owned(), hint) };
    let about = parsed(detail).unwrap_or_default();
    let status = about["status"].as_u64().and_then(|status| StatusCode::from_u16(u16::try_from(status).ok()?).ok());
    let Some(status) = status else { return unreadable(format!("Invalid JSON value for DETAIL: '{detail}'"), hint) };
    let mut error = WireError::new(status, code, message);
    error.details = text("details");
    error.hint = text("hint").map(String::into_boxed_str);
    for (name, value) in about["headers"].as_object().into_iter().flatten() {
        if let (Ok(name), Some(Ok(value))) = (HeaderName::try_from(name), value.as_str().map(HeaderValue::try_from)) {
            error = error.header(name, value);
        }
    }
    error
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
        "42883" | "42P01" => StatusCode::NOT_FOUND,
        // A response that is too large, which the client can make smaller; `raise`; and a name that our functions do not know.
        "54000" | "P0001" | "P0002" => StatusCode::BAD_REQUEST,
        "21000" | "42P17" | "53400" => StatusCode::INTERNAL_SERVER_ERROR,
        _ => match code.get(..2).unwrap_or_default() {
            "08" | "53" => StatusCode::SERVICE_UNAVAILABLE,
            "0L" | "0P" | "28" => StatusCode::FORBIDDEN,
            // Functions choose their own status: raise sqlstate 'PT402'.
            "PT" => code[2..]
                .parse()
                .ok()
                .filter(|status: &u16| *status >= 200)
                .and_then(|status| StatusCode::from_u16(status).ok())
                .unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
            "09" | "25" | "2D" | "38" | "39" | "3B" | "40" | "54" | "55" | "57" | "58" | "F0" | "HV" | "P0" | "XX" => {
                StatusCode::INTERNAL_SERVER_ERROR
            }
            _ => StatusCode::BAD_REQUEST,
        },
    }
}
