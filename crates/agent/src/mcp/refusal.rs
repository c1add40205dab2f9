//! Why an act was refused, in a sentence that a model can act on.

use gleaner::{Error, Outcome};
use serde_json::{Value, json};

use super::grant::Grant;
use super::quote;

/// Returned to the assistant as an answer, never raised as an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// `lost`, `gone`, `not_granted`, `no_such_queue`, `invalid`, `forbidden`, `unavailable` or `failed`.
    pub code: &'static str,
    pub says: String,
}

impl Refusal {
    pub fn new(code: &'static str, says: impl Into<String>) -> Self {
        Self { code, says: says.into() }
    }

    pub fn invalid(says: impl Into<String>) -> Self {
        Self::new("invalid", says)
    }

    pub fn not_granted(act: &str, grant: Grant) -> Self {
        Self::new(
            "not_granted",
            format!(
                "{act} is not allowed here: `{grant}` is not granted. Do not look for a way around it; tell the person, who can restart with --grant {grant}."
            ),
        )
    }

    pub fn no_such_queue(queue: &str, known: &[String]) -> Self {
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        Self::new("no_such_queue", format!("There is no queue {:?} for you here. There is: {known}.", quote::word(queue)))
    }

    /// The answer to a caller that no longer holds the item. Nothing was changed.
    pub fn of(outcome: Outcome, queue: &str, key: &str) -> Option<Self> {
        match outcome {
            Outcome::Done | Outcome::Already => None,
            Outcome::Lost => Some(Self::new(
                "lost",
                format!(
                    "Item {key} of {queue} is no longer yours: it was cancelled, finished or claimed by another agent after your lease had ended. \
                     Nothing was written. Drop this result and do not try again with this lease; claim for other work."
                ),
            )),
            Outcome::Gone => {
                Some(Self::new("gone", format!("There is no item {key} in {queue}, or it is not for you to see. Check key and queue.")))
            }
        }
    }

    pub fn value(&self) -> Value {
        json!({"error": {"code": self.code, "message": self.says}})
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        let sqlstate = match &error {
            Error::Remote { code, .. } => code.clone(),
            other => other.code().map(|code| code.code().to_owned()),
        };
        let status = if let Error::Remote { status, .. } = &error { *status } else { None };
        let said = quote::sentence(&error.to_string());
        if error.is_transient() {
            return Self::new(
                "unavailable",
                format!("The database cannot be reached just now: {said}. Wait a little, then repeat the same call; repeating is safe."),
            );
        }
        match (&error, sqlstate.as_deref(), status) {
            (Error::Unsupported { .. }, ..) => Self::invalid(format!("{said}. Change the arguments.")),
            (Error::UnknownQueue { .. }, ..) => Self::new("no_such_queue", said),
            (_, Some("42501"), _) | (_, _, Some(401 | 403)) => {
                Self::new("forbidden", format!("This agent may not do that: {said}. Trying again will not help; tell the person."))
            }
            (_, Some(code), _) if ["GL", "21", "22", "23"].iter().any(|class| code.starts_with(class)) => {
                Self::invalid(format!("A value does not fit: {said}. Correct it and call again."))
            }
            (_, _, Some(400 | 404 | 409 | 422)) => Self::invalid(format!("{said}. Correct the arguments and call again.")),
            _ => {
                tracing::warn!(%error, "an act for an assistant failed");
                Self::new("failed", format!("It did not work: {said}. Tell the person if it happens again."))
            }
        }
    }
}
