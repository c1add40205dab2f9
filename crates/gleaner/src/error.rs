//! Failures, sorted by what the caller can do about them.

use tokio_postgres::error::SqlState;

/// A result with this crate's error.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What can fail.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The declaration does not fit the table. Every mistake is in the list, with what to write instead.
    #[error("{} in the declaration of {queue}:\n{}", count(mistakes.len()), bullets(mistakes))]
    Declaration {
        /// The name of the queue.
        queue: String,
        /// Every mistake.
        mistakes: Vec<crate::plan::Mistake>,
    },

    /// Existing tables do not fit a system that ships with the library. Nothing was changed.
    #[error(
        "the tables of this database do not fit system {system}, and nothing of it was changed:\n{}\n  Mend that and migrate again; or do without {system}, and attach such a table with a declaration of your own.",
        bullets(mistakes)
    )]
    Misfit {
        /// The name of the system.
        system: String,
        /// Every difference.
        mistakes: Vec<crate::plan::Mistake>,
    },

    /// The file is not a declaration.
    #[cfg(feature = "schema")]
    #[error("{file}: {source}")]
    Syntax {
        /// The name of the file.
        file: String,
        /// Where and why it cannot be read.
        source: toml::de::Error,
    },

    /// The payload of a job cannot be written as JSON: a map whose keys are not text, or a serializer that fails.
    #[error("write the payload of kind {kind:?} as JSON: {source}")]
    Payload {
        /// The kind of the job.
        kind: &'static str,
        /// Why not.
        source: serde_json::Error,
    },

    /// No queue of that name is attached in this database.
    #[error("there is no queue {name:?} here; attached are: {}", if known.is_empty() { "none (run `gleaner migrate`)".to_owned() } else { known.join(", ") })]
    UnknownQueue {
        /// The name that was asked for.
        name: String,
        /// The names of the attached queues.
        known: Vec<String>,
    },

    /// The acts of this queue do not support what was asked.
    #[error("queue {queue} {what}")]
    Unsupported {
        /// The name of the queue.
        queue: String,
        /// What it lacks, and what to do.
        what: String,
    },

    /// PostgreSQL refused or could not be reached. Whether the write was committed is unknown.
    #[error("{act}: {}", describe(source))]
    Database {
        /// What was attempted.
        act: String,
        /// What the driver says.
        source: tokio_postgres::Error,
    },

    /// No connection to PostgreSQL at the moment.
    #[error("connect to PostgreSQL: {0}")]
    Connect(String),

    /// PostgreSQL rejects the connection, or the URL is invalid. A retry fails too, until the settings change.
    #[error("connect to PostgreSQL: {message}\n  {}", advice(code.as_ref()))]
    Refused {
        /// The reason.
        message: String,
        /// The SQLSTATE, where PostgreSQL gave one.
        code: Option<SqlState>,
    },

    /// A server between the client and the database refused, or could not be reached.
    #[error("{act}: {message}")]
    Remote {
        /// What was attempted.
        act: String,
        /// The reason.
        message: String,
        /// The HTTP status, if there was a response.
        status: Option<u16>,
        /// The SQLSTATE, or the server's own error code.
        code: Option<String>,
        /// Whether a retry may succeed.
        transient: bool,
    },

    /// Another run holds the migration lock and did not finish in time.
    #[error("another migration is running (held by {holder} for {age}); try again when it has ended")]
    MigrationBusy {
        /// The session that holds the lock.
        holder: String,
        /// For how long.
        age: String,
    },

    /// A change to the table timed out waiting for a lock, repeatedly.
    #[error("{act}: gave up after {tries} tries because the table is in use; {blockers}")]
    TableBusy {
        /// What was attempted.
        act: String,
        /// How often.
        tries: u32,
        /// The sessions that hold locks.
        blockers: String,
    },

    /// An error that users cannot cause; the message describes it.
    #[error("{0}")]
    Other(String),
}

impl Error {
    /// Adds context to a database error, phrased as an act: `.map_err(Error::doing("claim"))`.
    pub fn doing(act: impl Into<String>) -> impl FnOnce(tokio_postgres::Error) -> Self {
        move |source| Self::Database { act: act.into(), source }
    }

    /// The SQLSTATE, where PostgreSQL gave one.
    pub fn code(&self) -> Option<&SqlState> {
        match self {
            Self::Database { source, .. } => source.code(),
            Self::Refused { code, .. } => code.as_ref(),
            _ => None,
        }
    }

    /// Whether a retry may succeed: connection trouble, deadlock, serialization failure, shutdown, lock timeout.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Connect(_) | Self::MigrationBusy { .. } | Self::TableBusy { .. } => true,
            Self::Database { source, .. } => is_transient(source),
            Self::Remote { transient, .. } => *transient,
            _ => false,
        }
    }

    /// Whether the call never reached the queue: nothing was decided about it, and it still counts when a retry arrives.
    pub fn is_unreached(&self) -> bool {
        matches!(self, Self::Connect(_) | Self::Refused { .. })
    }

    /// The same error for another caller whose work was in the same statement.
    pub(crate) fn again(&self) -> Self {
        match self {
            Self::Connect(message) => Self::Connect(message.clone()),
            Self::Refused { message, code } => Self::Refused { message: message.clone(), code: code.clone() },
            other => Self::Remote {
                act: "enqueue together with other calls".into(),
                message: other.to_string(),
                status: None,
                code: other.code().map(|code| code.code().to_owned()),
                transient: other.is_transient(),
            },
        }
    }

    /// The error of a connection that could not be opened, sorted by whether a retry may succeed.
    pub(crate) fn unconnected(error: &tokio_postgres::Error) -> Self {
        let message = describe(error);
        if is_refused(error) { Self::Refused { message, code: error.code().cloned() } } else { Self::Connect(message) }
    }
}

impl From<deadpool_postgres::PoolError> for Error {
    fn from(error: deadpool_postgres::PoolError) -> Self {
        match error {
            deadpool_postgres::PoolError::Backend(error) => Self::unconnected(&error),
            other => Self::Connect(other.to_string()),
        }
    }
}

/// Whether the user must change something before a connection can succeed. Unknown errors count as temporary: poolers have error
/// messages of their own.
fn is_refused(error: &tokio_postgres::Error) -> bool {
    if let Some(code) = error.code() {
        // Authentication (28), unknown database (3D), rights and roles (42), session parameters (22, 0A).
        return matches!(&code.code()[..2], "28" | "3D" | "42" | "22" | "0A");
    }
    // An error without a code came from the network or from the client: no password given, no TLS offered, an untrusted certificate.
    let Some(source) = std::error::Error::source(error) else { return false };
    match source.downcast_ref::<std::io::Error>() {
        Some(io) => crate::connect::is_handshake_error(io),
        None => !error.is_closed(),
    }
}

fn advice(code: Option<&SqlState>) -> &'static str {
    match code.map(SqlState::code) {
        Some("28P01") => "Check the password in DATABASE_URL.",
        Some("3D000") => "Check the name of the database in DATABASE_URL: it is what follows the last slash.",
        Some(code) if code.starts_with("28") => {
            "Check the role and the password in DATABASE_URL, that the role may log in, and what pg_hba.conf says of where we come from."
        }
        Some("42501") => "Check the role in DATABASE_URL: it needs the right to connect to this database.",
        _ => "Check DATABASE_URL; it looks like postgresql://user:password@host:5432/database?sslmode=require.",
    }
}

/// Whether PostgreSQL, or the connection to it, has only temporary trouble.
pub fn is_transient(error: &tokio_postgres::Error) -> bool {
    let Some(code) = error.code() else {
        // An error without a code came from the connection, or from type conversion in the client.
        return error.is_closed() || std::error::Error::source(error).is_some_and(|s| s.is::<std::io::Error>());
    };
    matches!(&code.code()[..2], "08" | "40" | "53" | "57") || *code == SqlState::LOCK_NOT_AVAILABLE || *code == SqlState::OBJECT_IN_USE
}

/// The server's message and hint; the driver's `db error` contains neither.
pub(crate) fn describe(error: &tokio_postgres::Error) -> String {
    match error.as_db_error() {
        Some(db) => {
            let mut text = format!("{} ({})", db.message(), db.code().code());
            for more in [db.detail(), db.hint()].into_iter().flatten() {
                text.push_str("\n  ");
                text.push_str(more);
            }
            text
        }
        None => {
            let mut text = error.to_string();
            let mut source = std::error::Error::source(error);
            while let Some(inner) = source {
                text = format!("{text}: {inner}");
                source = inner.source();
            }
            text
        }
    }
}

fn count(n: usize) -> String {
    if n == 1 { "1 mistake".to_owned() } else { format!("{n} mistakes") }
}

fn bullets(mistakes: &[crate::plan::Mistake]) -> String {
    mistakes.iter().map(|m| format!("  - {m}")).collect::<Vec<_>>().join("\n")
}
