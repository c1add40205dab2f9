//! What the acts on channels could not do, as an answer.

use axum::http::StatusCode;

use crate::access::{Caller, Refused, Role};
use crate::channels::Error;

/// The answer for this caller.
pub fn refuse(caller: &Caller, error: Error) -> Refused {
    let told = error.to_string();
    match error {
        Error::Unknown(_) => Refused::new(StatusCode::NOT_FOUND, "P0002", told),
        Error::Ambiguous { .. } => Refused::new(StatusCode::CONFLICT, "21000", told),
        Error::Taken { .. } => Refused::new(StatusCode::CONFLICT, "23505", told),
        Error::Mistakes(mistakes) => {
            let message = match mistakes.as_slice() {
                [one] => one.clone(),
                many => format!("{} mistakes", many.len()),
            };
            Refused { mistakes, ..Refused::new(StatusCode::BAD_REQUEST, "22023", message) }
        }
        Error::Forbidden => {
            let anonymous = matches!(caller, Caller::Token { role: Role::Anon, .. });
            let status = if anonymous { StatusCode::UNAUTHORIZED } else { StatusCode::FORBIDDEN };
            Refused::new(status, "42501", told)
        }
        Error::NoKey => Refused::new(StatusCode::CONFLICT, "55000", told),
        Error::Busy => Refused::new(StatusCode::CONFLICT, "40001", told),
        // The caller can do nothing about it, and the operator reads the rest in the log.
        error if error.is_transient() => {
            tracing::warn!(%error, "channels: the database is away");
            Refused::new(StatusCode::SERVICE_UNAVAILABLE, "PGRST001", "the database cannot be reached; try again")
        }
        error => {
            tracing::error!(%error, "channels: an act failed");
            let message =
                if matches!(error, Error::Sealed { .. }) { told } else { "the act failed; the server's log tells why".to_owned() };
            Refused::new(StatusCode::INTERNAL_SERVER_ERROR, "XX000", message)
        }
    }
}
