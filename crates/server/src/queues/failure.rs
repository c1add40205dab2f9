//! What an act could not do, as an answer.

use axum::http::StatusCode;
use gleaner::Error;

use crate::access::{Caller, Role};
use crate::wire_error::WireError;

pub fn refuse(caller: &Caller, error: &Error) -> WireError {
    let told = || error.to_string();
    match error {
        Error::UnknownQueue { .. } => WireError::new(StatusCode::NOT_FOUND, "P0002", told()),
        Error::Unsupported { .. } => WireError::bad(told()),
        error if error.is_transient() => {
            tracing::warn!(%error, "queues: the database is away");
            WireError::new(StatusCode::SERVICE_UNAVAILABLE, "PGRST001", "the database cannot be reached; try again")
        }
        error => {
            let code = error.code().map(|code| code.code().to_owned()).unwrap_or_default();
            match code.as_str() {
                "42501" => {
                    let anonymous = matches!(caller, Caller::Token { role: Role::Anon, .. });
                    let status = if anonymous { StatusCode::UNAUTHORIZED } else { StatusCode::FORBIDDEN };
                    WireError::new(status, "42501", told())
                }
                // Ours say what to do; data that does not fit says what does not.
                code if ["GL", "21", "22", "54"].iter().any(|class| code.starts_with(class)) || code == "P0001" => WireError::bad(told()),
                // A column that is not there, is of another type, or is written by the table itself.
                "42703" | "42804" | "428C9" => WireError::bad(told()),
                // Rows that a policy or a view's own condition does not let in, or that clash with others.
                "44000" => WireError::new(StatusCode::FORBIDDEN, "44000", told()),
                code if code.starts_with("23") => WireError::new(StatusCode::CONFLICT, "23000", told()),
                _ => {
                    tracing::error!(%error, "queues: an act failed");
                    WireError::new(StatusCode::INTERNAL_SERVER_ERROR, "XX000", "the act failed; the server's log tells why")
                }
            }
        }
    }
}
