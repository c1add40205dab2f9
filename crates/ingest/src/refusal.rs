//! Why a request is refused. The sender gets few details; the operator sees the reason.

use http::StatusCode;

/// Sorted by the response to the sender. The text is for the operator and never contains a secret or what was sent in place of one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Not proven to come from the provider: 401.
    #[error("{0}")]
    Unauthentic(Why),
    /// Authentic, but cannot be parsed: 400.
    #[error("malformed: {0}")]
    Malformed(String),
    /// Authentic, but no retry can make it usable: 403.
    #[error("unusable: {0}")]
    Unusable(String),
    /// A content type or encoding that this channel does not support: 415.
    #[error("unsupported content: {0}")]
    Unsupported(String),
}

/// Why a request was not authenticated: a code for counting, a sentence for the operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Why {
    #[error("no signature was sent")]
    Unsigned,
    #[error("the signature does not match: wrong secret, wrong public URL, or changed on the way")]
    Mismatch,
    #[error("the signed time is too far from ours: a replay, or a clock that is off")]
    Stale,
    #[error("this one-time token was used before")]
    Replayed,
    #[error("the channel has no secret configured, so nothing can be verified")]
    Unconfigured,
    #[error("the request comes from an address that is not the provider's")]
    Address,
    #[error("the event belongs to another account than the channel's")]
    Account,
    #[error("the body is not covered by the signature")]
    Uncovered,
}

impl Why {
    /// The code under which refusals are counted.
    pub fn word(self) -> &'static str {
        match self {
            Self::Unsigned => "unsigned",
            Self::Mismatch => "mismatch",
            Self::Stale => "stale",
            Self::Replayed => "replayed",
            Self::Unconfigured => "unconfigured",
            Self::Address => "address",
            Self::Account => "account",
            Self::Uncovered => "uncovered",
        }
    }
}

impl Refusal {
    pub fn word(&self) -> &'static str {
        match self {
            Self::Unauthentic(why) => why.word(),
            Self::Malformed(_) => "malformed",
            Self::Unusable(_) => "unusable",
            Self::Unsupported(_) => "unsupported",
        }
    }

    pub fn status(&self) -> StatusCode {
        match self {
            Self::Unauthentic(_) => StatusCode::UNAUTHORIZED,
            Self::Malformed(_) => StatusCode::BAD_REQUEST,
            Self::Unusable(_) => StatusCode::FORBIDDEN,
            Self::Unsupported(_) => StatusCode::UNSUPPORTED_MEDIA_TYPE,
        }
    }
}

impl From<Why> for Refusal {
    fn from(why: Why) -> Self {
        Self::Unauthentic(why)
    }
}
