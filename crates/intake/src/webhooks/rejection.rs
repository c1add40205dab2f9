//! Why a webhook request is refused: the response for the sender, and the code under which the operator finds it.

use std::time::Duration;

use axum::http::StatusCode;
use gleaner_ingest::{Answer, Provider, Refusal, providers};
use serde_json::json;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Rejection {
    #[error("the address has no ?key=, or two different ones")]
    NoKey,
    #[error("no channel has this key")]
    UnknownKey,
    #[error("the channel is paused")]
    Paused,
    #[error("the channel's provider is {0:?}, which this version does not know")]
    UnknownProvider(String),
    #[error("{0}")]
    Refused(#[from] Refusal),
    #[error("the body is larger than {limit} bytes")]
    TooLarge { limit: usize },
    #[error("the body did not arrive in time")]
    Slow,
    #[error("the body ended early or was garbled on the way")]
    Broken,
    /// Too many requests that are not authentic.
    #[error("too many requests that are not authentic")]
    TooMany { retry_after: Duration },
    /// Authentic, but more requests than any channel is meant for.
    #[error("above the channel's ceiling")]
    Ceiling { retry_after: Duration },
    /// Nothing was stored and the sender may retry. The text is for the operator.
    #[error("not stored: {0}")]
    Unavailable(String),
}

impl Rejection {
    /// The code under which the refusal is counted.
    pub(super) fn word(&self) -> &'static str {
        match self {
            Self::NoKey => "no_key",
            Self::UnknownKey => "unknown_key",
            Self::Paused => "paused",
            Self::UnknownProvider(_) => "unknown_provider",
            Self::Refused(refusal) => refusal.word(),
            Self::TooLarge { .. } => "too_large",
            Self::Slow => "slow",
            Self::Broken => "broken",
            Self::TooMany { .. } => "too_many",
            Self::Ceiling { .. } => "ceiling",
            Self::Unavailable(_) => "unavailable",
        }
    }

    pub(super) fn status(&self) -> StatusCode {
        match self {
            Self::NoKey | Self::Broken => StatusCode::BAD_REQUEST,
            Self::UnknownKey | Self::Paused | Self::UnknownProvider(_) => StatusCode::UNAUTHORIZED,
            Self::Refused(refusal) => refusal.status(),
            Self::TooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Slow => StatusCode::REQUEST_TIMEOUT,
            Self::TooMany { .. } | Self::Ceiling { .. } => StatusCode::TOO_MANY_REQUESTS,
            Self::Unavailable(_) => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    /// Whether the refusal counts against the client: nothing has proven that the request is authentic.
    pub(super) fn is_suspicious(&self) -> bool {
        match self {
            Self::NoKey | Self::UnknownKey | Self::TooLarge { .. } | Self::Slow | Self::Broken => true,
            Self::Refused(refusal) => matches!(refusal, Refusal::Unauthentic(_)),
            _ => false,
        }
    }

    /// The response for the sender. A provider has its own form of refusals; the rest is the same for all.
    pub(super) fn answer(&self, provider: Option<&dyn Provider>) -> Answer {
        let answer = |error: String| Answer::json(self.status(), &json!({"success": false, "error": error}));
        match self {
            Self::Refused(refusal) => provider.map_or_else(|| providers::refused(refusal), |provider| provider.refuse(refusal)),
            // An unauthenticated client must not learn which keys exist.
            Self::UnknownKey | Self::Paused | Self::UnknownProvider(_) => answer("not authentic".to_owned()),
            Self::TooMany { retry_after } | Self::Ceiling { retry_after } => {
                answer("too many requests".to_owned()).with("retry-after", seconds(*retry_after))
            }
            Self::Unavailable(_) => answer("not stored; send it again".to_owned()).with("retry-after", "5"),
            other => answer(other.to_string()),
        }
    }
}

/// Whole seconds, never zero: zero invites an immediate retry.
fn seconds(duration: Duration) -> String {
    duration.as_secs_f64().ceil().max(1.0).to_string()
}
