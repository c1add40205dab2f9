//! What the database says about an action: before it is composed, and at the last step.

use std::time::Duration;

use gleaner::Failure;
use gleaner_stages::sinks::Message;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::settings::OnUnknown;

/// The answer of `gleaner.prepare_followup`.
#[derive(Debug, Deserialize)]
pub(super) struct Prepared {
    #[serde(rename = "wait_seconds", deserialize_with = "seconds")]
    pub wait: Duration,
    pub action: Action,
    pub contact: Option<Contact>,
    pub reached_by: Map<String, Value>,
    pub last_heard: Option<Said>,
    pub conversation: Vec<Said>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Action {
    pub id: String,
    pub prospect_id: String,
    pub action_type: String,
    pub scheduled_for: String,
    pub payload: Value,
    pub message: Option<Message>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Contact {
    pub first_name: Option<String>,
    pub last_name: Option<String>,
}

/// One message of the conversation so far.
#[derive(Debug, Deserialize)]
pub(super) struct Said {
    pub direction: Option<String>,
    #[serde(rename = "type")]
    pub kind: String,
    pub text: Option<String>,
    pub subject: Option<String>,
    pub provider_id: Option<String>,
    pub provider_code: Option<String>,
    pub sender_address: Option<String>,
    pub rfc_message_id: Option<String>,
    /// The address of ours that it was written to.
    pub received_at: Option<String>,
}

impl Prepared {
    /// None if the action is no longer ours.
    pub(super) fn read(answer: Value) -> Result<Option<Self>, Failure> {
        if answer["outcome"] == "lost" {
            return Ok(None);
        }
        serde_json::from_value(answer).map(Some).map_err(|error| unreadable("prepare_followup", &error))
    }

    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.action.payload[name].as_str().filter(|text| !text.trim().is_empty())
    }

    /// What the action itself says about an unknown outcome.
    pub(super) fn on_unknown(&self) -> Option<OnUnknown> {
        OnUnknown::read(self.text("on_unknown")?)
    }
}

/// The answer of `gleaner.begin_sending`.
#[derive(Debug)]
pub(super) enum Begun {
    Send { key: String, message: Message, lateness: Duration },
    Lost,
    Cancelled(String),
    Deferred { wait: Duration, reason: String },
}

impl Begun {
    /// `Err` with how long it is still too early.
    pub(super) fn read(answer: Value) -> Result<Result<Self, Duration>, Failure> {
        let text = |name: &str| answer[name].as_str().unwrap_or_default().to_owned();
        let span = |name: &str| Duration::try_from_secs_f64(answer[name].as_f64().unwrap_or_default().max(0.0)).unwrap_or_default();
        Ok(Ok(match answer["outcome"].as_str() {
            Some("send") => {
                let message = serde_json::from_value(answer["message"].clone()).map_err(|error| unreadable("begin_sending", &error))?;
                Self::Send { key: text("key"), message, lateness: span("lateness_seconds") }
            }
            Some("lost") => Self::Lost,
            Some("cancelled") => Self::Cancelled(text("reason")),
            Some("deferred") => Self::Deferred { wait: span("wait_seconds"), reason: text("reason") },
            Some("early") => return Ok(Err(span("wait_seconds"))),
            _ => return Err(Failure::new(format!("begin_sending answered {answer}"))),
        }))
    }
}

fn unreadable(function: &str, error: &serde_json::Error) -> Failure {
    Failure::new(format!("the answer of {function} cannot be read: {error}"))
}

fn seconds<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let seconds = f64::deserialize(deserializer)?;
    Duration::try_from_secs_f64(seconds.max(0.0)).map_err(serde::de::Error::custom)
}
