//! How follow-ups are looked for and sent.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::sinks::Channels;

/// The section `followup_polling` of the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Polling {
    /// How often to look when nothing is known to become due. A planned action is never slept past.
    pub poll_interval: Duration,
    /// The most actions of one look, and of those that are sent at once.
    pub batch_size: usize,
    /// Actions are claimed this long before their time, composed, and sent when it comes.
    pub preemptive_window: Duration,
    /// How long composing, and how long sending may take.
    pub execution_timeout: Duration,
    /// How often a failed action is tried again.
    pub max_retries: i32,
    /// How long to wait before that, unless the other side names a time.
    pub retry_delay: Duration,
}

impl Default for Polling {
    fn default() -> Self {
        Self {
            poll_interval: Duration::from_secs(30),
            batch_size: 10,
            preemptive_window: Duration::from_secs(5),
            execution_timeout: Duration::from_secs(300),
            max_retries: 3,
            retry_delay: Duration::from_secs(60),
        }
    }
}

/// What happens to an action when it is unknown whether it was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnUnknown {
    /// A person decides.
    Ask,
    /// It is sent again, with the same key.
    Resend,
}

impl OnUnknown {
    pub fn read(text: &str) -> Option<Self> {
        match text {
            "ask" => Some(Self::Ask),
            "resend" => Some(Self::Resend),
            _ => None,
        }
    }

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Ask => "ask",
            Self::Resend => "resend",
        }
    }
}

/// The ways out of this machine.
#[derive(Debug, Clone, Default)]
pub struct Ways {
    pub http_url: Option<String>,
    pub http_token: Option<String>,
    pub http_allow: Vec<String>,
    pub smtp_url: Option<String>,
    pub mail_from: Option<String>,
    pub telegram_url: Option<String>,
    pub telegram_token: Option<String>,
    pub twilio_url: Option<String>,
    pub twilio_account: Option<String>,
    pub twilio_token: Option<String>,
    pub twilio_from: Option<String>,
    pub twilio_whatsapp_from: Option<String>,
    pub status_callback: Option<String>,
    pub command: Option<String>,
    /// Where the command runs.
    pub folder: PathBuf,
    /// The channels that messages come from, if this process may read their secrets.
    pub channels: Option<Arc<dyn Channels>>,
}

#[derive(Debug, Clone, Default)]
pub struct Settings {
    pub polling: Polling,
    pub ways: Ways,
    /// The way out of actions that name none.
    pub sink: Option<String>,
    /// Everything but the sending itself.
    pub dry_run: bool,
    /// The model that composes; without one a template does.
    pub model: Option<String>,
    /// The template, with `intent`, `first_name`, `last_name` and `payload`.
    pub template: Option<String>,
    pub on_unknown: Option<OnUnknown>,
}

impl Settings {
    /// Without a word on it: a sink that knows keys makes a second try harmless, and of any other a person is asked.
    pub(super) fn on_unknown(&self, knows_keys: bool) -> OnUnknown {
        self.on_unknown.unwrap_or(if knows_keys { OnUnknown::Resend } else { OnUnknown::Ask })
    }
}
