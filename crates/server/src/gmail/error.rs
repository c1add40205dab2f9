//! Failures, sorted by what becomes of the next look.

/// None of them holds a token: texts are for logs, the channel's state and its administrator.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The grant is gone; only a person can give another.
    #[error("Google refuses the grant ({0}); run `gleaner channels authorize` to give a new one")]
    Revoked(String),
    /// Something is missing in the channel's settings.
    #[error("{0}")]
    Unconfigured(String),
    /// The quota is used up and did not come back in time.
    #[error("Google's quota is used up: {0}")]
    Quota(String),
    /// No such message, or a history that is too old.
    #[error("Google does not have it any more")]
    Gone,
    /// Google refuses the call.
    #[error("Google answers {status}: {reason}")]
    Refused { status: u16, reason: String },
    /// Google cannot be reached or does not work.
    #[error("Google cannot be reached: {0}")]
    Unreachable(String),
    /// Another server works on the mailbox now, or the channel is gone.
    #[error("the mailbox is no longer ours to read")]
    Lost,
    /// What was fetched could not be stored.
    #[error("{0}")]
    Store(String),
    #[error(transparent)]
    Database(#[from] gleaner::Error),
}

pub type Result<T, E = Error> = std::result::Result<T, E>;

impl From<tokio_postgres::Error> for Error {
    fn from(source: tokio_postgres::Error) -> Self {
        Self::Database(gleaner::Error::doing("keep the state of a mailbox")(source))
    }
}

impl From<deadpool_postgres::PoolError> for Error {
    fn from(error: deadpool_postgres::PoolError) -> Self {
        Self::Database(gleaner::Error::Connect(error.to_string()))
    }
}
