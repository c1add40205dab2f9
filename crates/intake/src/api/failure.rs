//! Turns the errors of the acts on channels into responses.

use axum::http::StatusCode;
use gleaner_http::{Caller, Role, WireError};

use crate::channels::Error;

/// The response for this caller.
pub(super) fn refuse(caller: &Caller, error: Error) -> WireError {
    let message = error.to_string();
    match error {
        Error::Unknown(_) => WireError::new(StatusCode::NOT_FOUND, "P0002", message),
        Error::Ambiguous { .. } => WireError::new(StatusCode::CONFLICT, "21000", message),
        Error::Taken { .. } => WireError::new(StatusCode::CONFLICT, "23505", message),
        Error::Mistakes(mistakes) => {
            let message = match mistakes.as_slice() {
                [one] => one.clone(),
                many => format!("{} mistakes", many.len()),
            };
            WireError::bad(message).mistakes(mistakes)
        }
        Error::Forbidden => {
            let anonymous = matches!(caller, Caller::Token { role: Role::Anon, .. });
            let status = if anonymous { StatusCode::UNAUTHORIZED } else { StatusCode::FORBIDDEN };
            WireError::new(status, "42501", message)
        }
        Error::NoKey => WireError::new(StatusCode::CONFLICT, "55000", message),
        Error::Busy => WireError::new(StatusCode::CONFLICT, "40001", message),
        // The caller can do nothing about it, and the operator finds the details in the log.
        error if error.is_transient() => {
            tracing::warn!(%error, "channels: the database is away");
            WireError::new(StatusCode::SERVICE_UNAVAILABLE, "PGRST001", "the database cannot be reached; try again")
        }
        error => {
            tracing::error!(%error, "channels: an act failed");
            match error {
                Error::Sealed { .. } => WireError::new(StatusCode::INTERNAL_SERVER_ERROR, "XX000", message),
                _ => WireError::internal(),
            }
        }
    }
}
