//! Errors, sorted by what they mean for the next poll.

use gleaner_http::database;

/// None of them contains a token: the texts are for logs, the channel's state and its administrator.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The grant is revoked; only a person can give another.
    #[error("Google refuses the grant ({0}); run `gleaner channels authorize` to give a new one")]
    Revoked(String),
    /// A setting of the channel is missing.
    #[error("{0}")]
    Unconfigured(String),
    /// The quota is used up and was not available again in time.
    #[error("Google's quota is used up: {0}")]
    Quota(String),
    /// The message does not exist, or the history is too old.
    #[error("Google does not have it any more")]
    Gone,
    /// Google refuses the call.
    #[error("Google answers {status}: {reason}")]
    Refused { status: u16, reason: String },
    /// Google cannot be reached or does not work.
    #[error("Google cannot be reached: {0}")]
    Unreachable(String),
    /// Another server works on the mailbox now, or the channel was deleted.
    #[error("the mailbox is no longer ours to read")]
    Lost,
    /// What was fetched could not be stored.
    #[error("{0}")]
    Store(String),
    #[error(transparent)]
    Database(#[from] database::Error),
    /// The queue of mailboxes failed.
    #[error(transparent)]
    Queue(#[from] gleaner::Error),
}

pub type Result<T, E = Error> = std::result::Result<T, E>;

impl From<tokio_postgres::Error> for Error {
    fn from(source: tokio_postgres::Error) -> Self {
        Self::Database(database::Error::doing("keep the state of a mailbox")(source))
    }
}

impl From<deadpool_postgres::PoolError> for Error {
    fn from(error: deadpool_postgres::PoolError) -> Self {
        Self::Database(database::Error::Connect(error.to_string()))
    }
}
