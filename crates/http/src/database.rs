//! Database errors, sorted by what the caller can do about them.
//!
//! The engine's library has an error type of its own with more detail. This one is for the parts that do not use queues.

use tokio_postgres::error::SqlState;

pub type Pool = deadpool_postgres::Pool;
pub type Result<T, E = Error> = std::result::Result<T, E>;

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// PostgreSQL refused or could not be reached. It is unknown whether the write was committed.
    #[error("{act}: {}", describe(source))]
    Database { act: String, source: tokio_postgres::Error },

    /// No connection to PostgreSQL at the moment.
    #[error("connect to PostgreSQL: {0}")]
    Connect(String),

    /// Any other error. The message says what it is.
    #[error("{0}")]
    Other(String),
}

impl Error {
    /// Context for a database error, phrased as an act: `.map_err(Error::doing("add the user"))`.
    pub fn doing(act: impl Into<String>) -> impl FnOnce(tokio_postgres::Error) -> Self {
        move |source| Self::Database { act: act.into(), source }
    }

    /// The SQLSTATE, where PostgreSQL gave one.
    pub fn code(&self) -> Option<&SqlState> {
        match self {
            Self::Database { source, .. } => source.code(),
            Self::Connect(_) | Self::Other(_) => None,
        }
    }

    /// Whether the same call may succeed a moment later: connection error, deadlock, serialization failure, shutdown, lock
    /// timeout.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Connect(_) => true,
            Self::Database { source, .. } => is_transient(source),
            Self::Other(_) => false,
        }
    }
}

/// Whether PostgreSQL, or the connection to it, has only a temporary problem.
fn is_transient(error: &tokio_postgres::Error) -> bool {
    let Some(code) = error.code() else { return is_disconnected(error) };
    matches!(&code.code()[..2], "08" | "40" | "53" | "57") || *code == SqlState::LOCK_NOT_AVAILABLE || *code == SqlState::OBJECT_IN_USE
}

/// Whether the connection broke, rather than a value that could not be sent or read.
pub(crate) fn is_disconnected(error: &tokio_postgres::Error) -> bool {
    error.is_closed() || std::error::Error::source(error).is_some_and(|source| source.is::<std::io::Error>())
}

/// PostgreSQL's own message and hint; the driver's `db error` says nothing.
fn describe(error: &tokio_postgres::Error) -> String {
    let Some(said) = error.as_db_error() else {
        let causes = std::iter::successors(std::error::Error::source(error), |cause| cause.source());
        return causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"));
    };
    let more = [said.detail(), said.hint()].into_iter().flatten();
    more.fold(format!("{} ({})", said.message(), said.code().code()), |text, more| format!("{text}\n  {more}"))
}
