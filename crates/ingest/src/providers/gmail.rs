//! Gmail: mail is fetched by polling. A push from Google only signals that there is new mail.
//!
//! The server fetches messages and passes each to [`message`]; a Pub/Sub push arrives at the webhook endpoint like any webhook.

mod message;
mod part;
mod push;

pub use self::message::message;
pub use self::part::base64_any as decode;
pub use self::push::key_id;

use crate::provider::{Inbound, Message, Sample, Setting, Verified};
use crate::{Channel, Provider, Refusal, Request};

#[derive(Debug)]
pub struct Gmail;

impl Provider for Gmail {
    fn code(&self) -> &'static str {
        "gmail"
    }

    fn title(&self) -> &'static str {
        "Gmail"
    }

    fn settings(&self) -> &'static [Setting] {
        const fn plain(name: &'static str, about: &'static str) -> Setting {
            Setting { name, secret: false, required: false, about }
        }
        const fn secret(name: &'static str, about: &'static str) -> Setting {
            Setting { name, secret: true, required: false, about }
        }
        const {
            &[
                plain("client_id", "OAuth client of your Google Cloud project"),
                secret("client_secret", "its secret"),
                secret("oauth_token", "the grant: a refresh token, or what `gleaner channels authorize` stores"),
                plain("query", "only mail that this Gmail search finds; in:inbox when left out"),
                plain("labels", "only mail with all of these label ids, besides INBOX; separated by commas"),
                plain("poll_minutes", "minutes between two polls; 5 when left out"),
                plain("first_sync_days", "how far back the first poll reads; 7 when left out"),
                plain("first_sync_messages", "how many messages it brings at most; 500 when left out"),
                plain("quota_per_minute", "quota units to use in a minute; 5000 when left out"),
                plain("topic", "Pub/Sub topic for push: projects/PROJECT/topics/TOPIC"),
                plain("audience", "audience of the push subscription's token"),
                plain("service_account", "address of the account that signs the pushes"),
                plain("jwks", "public keys that sign the pushes, when they are not Google's own"),
            ]
        }
    }

    fn check(&self, channel: &Channel) -> Vec<String> {
        let mut wrong = Vec::new();
        let settings = &channel.settings;
        if let Some(topic) = settings.text("topic")
            && !is_topic(topic)
        {
            wrong.push("topic looks like projects/PROJECT/topics/TOPIC".to_owned());
        }
        if settings.text("audience").is_some() != settings.text("service_account").is_some() {
            wrong.push("audience and service_account go together: a push is believed only when both match".to_owned());
        }
        for (name, least) in [("poll_minutes", 0.0), ("first_sync_days", 0.0), ("first_sync_messages", 0.0), ("quota_per_minute", 1.0)] {
            if settings.get(name).is_some() && number(channel, name).is_none_or(|number| number < least) {
                wrong.push(format!("{name} is a number, at least {least}"));
            }
        }
        wrong
    }

    /// A push is a few hundred bytes.
    fn body_limit(&self, _: &Channel) -> usize {
        64 * 1024
    }

    fn verify(&self, channel: &Channel, request: &Request<'_>) -> Result<Verified, Refusal> {
        push::verify(channel, request)
    }

    fn normalise(&self, _: &Channel, request: &Request<'_>) -> Result<Inbound, Refusal> {
        push::normalise(request)
    }

    fn compose(&self, channel: &Channel, _: &str, _: i64, _: &Message<'_>) -> Result<Sample, String> {
        Err(format!("only Google can sign a push; try the mailbox itself with `gleaner channels poll {}`", channel.name))
    }
}

/// A numeric setting, written as a number or as text.
pub fn number(channel: &Channel, name: &str) -> Option<f64> {
    let value = channel.settings.get(name)?;
    let number = value.as_f64().or_else(|| value.as_str()?.trim().parse().ok())?;
    number.is_finite().then_some(number)
}

/// The labels a message must have: INBOX, and those of the channel.
pub fn labels(channel: &Channel) -> Vec<String> {
    let mut labels = vec!["INBOX".to_owned()];
    let mut add = |label: &str| {
        let label = label.trim();
        if !label.is_empty() && !labels.iter().any(|known| known == label) {
            labels.push(label.to_owned());
        }
    };
    match channel.settings.get("labels") {
        Some(serde_json::Value::Array(list)) => list.iter().filter_map(|label| label.as_str()).for_each(&mut add),
        Some(serde_json::Value::String(text)) => text.split(',').for_each(&mut add),
        _ => {}
    }
    labels
}

fn is_topic(topic: &str) -> bool {
    let parts: Vec<&str> = topic.split('/').collect();
    matches!(parts[..], ["projects", project, "topics", name] if !project.is_empty() && !name.is_empty())
}
