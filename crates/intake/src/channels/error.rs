//! Errors of the acts on channels, sorted by what the caller can do about them. None contains a secret.

use gleaner_ingest::sealing;
use tokio_postgres::error::SqlState;
use uuid::Uuid;

pub type Result<T, E = Error> = std::result::Result<T, E>;

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error("there is no channel {0:?}")]
    Unknown(String),

    #[error("{} channels are called {name:?}; say which by its id: {}", ids.len(), list(ids))]
    Ambiguous { name: String, ids: Vec<Uuid> },

    #[error("there is a channel called {name:?} already ({id}); choose another name")]
    Taken { name: String, id: Uuid },

    /// Everything that is wrong with the input, each with what to write instead.
    #[error("{}", sentences(.0))]
    Mistakes(Vec<String>),

    /// Refused by row security, or a missing right.
    #[error("this takes an administrator or the service key")]
    Forbidden,

    #[error("the channel kept changing under our hands; try again")]
    Busy,

    #[error("the channel has no ingestion key; rotate it to make one")]
    NoKey,

    #[error("the secrets of channel {name:?} do not open: {source}")]
    Sealed { name: String, source: sealing::Error },

    #[error(transparent)]
    Database(gleaner_http::database::Error),
}

impl From<gleaner_http::database::Error> for Error {
    fn from(error: gleaner_http::database::Error) -> Self {
        let mistake = |text: &str| Self::Mistakes(vec![text.to_owned()]);
        match error.code() {
            Some(&SqlState::INSUFFICIENT_PRIVILEGE) => Self::Forbidden,
            Some(&SqlState::CHARACTER_NOT_IN_REPERTOIRE | &SqlState::UNTRANSLATABLE_CHARACTER) => {
                mistake("a text holds a NUL or another character that PostgreSQL cannot store")
            }
            Some(&SqlState::FOREIGN_KEY_VIOLATION) => mistake("the owner has just been deleted"),
            _ => Self::Database(error),
        }
    }
}

impl Error {
    /// Whether the same call may succeed a moment later.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Busy => true,
            Self::Database(error) => error.is_transient(),
            _ => false,
        }
    }
}

fn list(ids: &[Uuid]) -> String {
    ids.iter().map(Uuid::to_string).collect::<Vec<_>>().join(", ")
}

fn sentences(mistakes: &[String]) -> String {
    match mistakes {
        [one] => one.clone(),
        many => {
            let lines: Vec<_> = many.iter().map(|mistake| format!("  - {mistake}")).collect();
            format!("{} mistakes:\n{}", many.len(), lines.join("\n"))
        }
    }
}
