//! Failures, sorted by what the caller can do about them.

use tokio_postgres::error::SqlState;

pub type Result<T, E = Error> = std::result::Result<T, E>;

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The declaration does not fit the table. Every mistake is in the list, with what to write instead.
    #[error("{} in the declaration of {queue}:\n{}", count(mistakes.len()), bullets(mistakes))]
    Declaration { queue: String, mistakes: Vec<crate::plan::Mistake> },

    /// The file is not a declaration.
    #[error("{file}: {source}")]
    Syntax { file: String, source: toml::de::Error },

    /// No queue of that name is attached here.
    #[error("there is no queue {name:?} here; attached are: {}", if known.is_empty() { "none (run `gleaner migrate`)".to_owned() } else { known.join(", ") })]
    UnknownQueue { name: String, known: Vec<String> },

    /// The acts of this queue do not take part in what was asked.
    #[error("queue {queue} {what}")]
    Unsupported { queue: String, what: String },

    /// PostgreSQL refused or could not be reached; whether the write landed is unknown.
    #[error("{act}: {}", describe(source))]
    Database { act: String, source: tokio_postgres::Error },

    /// No connection to PostgreSQL, for the moment.
    #[error("connect to PostgreSQL: {0}")]
    Connect(String),

    /// PostgreSQL answers and does not let us in, or the address is none: it stays so until somebody changes something.
    #[error("connect to PostgreSQL: {message}\n  {}", advice(code.as_ref()))]
    Refused { message: String, code: Option<SqlState> },

    /// A server between us and the database refused, or could not be reached.
    #[error("{act}: {message}")]
    Remote {
        act: String,
        message: String,
        /// The HTTP status, where there was an answer.
        status: Option<u16>,
        /// SQLSTATE or the server's own word.
        code: Option<String>,
        /// The same call may succeed a moment later.
        transient: bool,
    },

    /// Another run holds the migration lock and did not finish in time.
    #[error("another migration is running (held by {holder} for {age}); try again when it has ended")]
    MigrationBusy { holder: String, age: String },

    /// A change to the table kept waiting for a lock.
    #[error("{act}: gave up after {tries} tries because the table is in use; {blockers}")]
    TableBusy { act: String, tries: u32, blockers: String },

    /// Not something a user can cause; the sentence says what.
    #[error("{0}")]
    Other(String),
}

impl Error {
    /// Context for a database error, phrased as an act: `.map_err(Error::doing("claim"))`.
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

    /// Whether the same call may succeed a moment later: connection trouble, deadlock, serialization, shutdown, lock timeout.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Connect(_) | Self::MigrationBusy { .. } | Self::TableBusy { .. } => true,
            Self::Database { source, .. } => is_transient(source),
            Self::Remote { transient, .. } => *transient,
            _ => false,
        }
    }

    /// Whether the call never got there: nothing was decided about it, and it counts whenever it arrives.
    pub fn is_unreached(&self) -> bool {
        matches!(self, Self::Connect(_) | Self::Refused { .. })
    }

    /// A connection that was not had, sorted by whether another try may get it.
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

/// Whether who connects must change something first. Whatever is not known to be so may pass: poolers have words of their own.
fn is_refused(error: &tokio_postgres::Error) -> bool {
    if let Some(code) = error.code() {
        // Who we are (28), which database (3D), which rights and roles (42), what we asked of the session (22, 0A).
        return matches!(&code.code()[..2], "28" | "3D" | "42" | "22" | "0A");
    }
    // Without a code it came from the way there, or from our own side: no password given, no TLS to be had, a certificate nobody vouches for.
    let Some(source) = std::error::Error::source(error) else { return false };
    match source.downcast_ref::<std::io::Error>() {
        Some(io) => io.get_ref().is_some_and(|inner| inner.is::<rustls::Error>()),
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

/// Whether PostgreSQL, or the way to it, is only momentarily in trouble.
pub fn is_transient(error: &tokio_postgres::Error) -> bool {
    let Some(code) = error.code() else {
        // Without a code the error came from the connection, or from our own types.
        return error.is_closed() || std::error::Error::source(error).is_some_and(|s| s.is::<std::io::Error>());
    };
    matches!(&code.code()[..2], "08" | "40" | "53" | "57") || *code == SqlState::LOCK_NOT_AVAILABLE || *code == SqlState::OBJECT_IN_USE
}

/// The server's own words and hint; the driver's `db error` says nothing.
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
