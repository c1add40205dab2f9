//! All supported senders, one file each.

pub mod generic;
pub mod gmail;
pub mod mailgun;
pub mod postmark;
pub mod sendgrid;
pub mod telegram;
pub mod twilio;
pub mod whatsapp;

use http::StatusCode;
use serde_json::json;

use crate::provider::{Outcome, Setting};
use crate::{Answer, Channel, Provider, Refusal};

/// All of them, in the order in which they are listed to users.
pub fn all() -> &'static [&'static dyn Provider] {
    &[
        &twilio::Twilio,
        &postmark::Postmark,
        &gmail::Gmail,
        &whatsapp::Whatsapp,
        &telegram::Telegram,
        &sendgrid::Sendgrid,
        &mailgun::Mailgun,
        &generic::Generic,
    ]
}

pub fn find(code: &str) -> Option<&'static dyn Provider> {
    all().iter().copied().find(|provider| provider.code() == code)
}

/// The settings every channel has.
pub const COMMON: &[Setting] = &[
    Setting { name: "public_url", secret: false, required: false, about: "base URL this sender was given, when it is not PUBLIC_BASE_URL" },
    Setting { name: "default_region", secret: false, required: false, about: "country of numbers written without one, e.g. US" },
    Setting { name: "auto_create_contacts", secret: false, required: false, about: "true makes a contact of an unknown sender" },
];

/// All mistakes in a channel's settings at once, each with how to correct it.
pub fn check(provider: &dyn Provider, channel: &Channel) -> Vec<String> {
    let mut wrong = unknown(provider, channel);
    wrong.extend(problems(provider, channel));
    wrong
}

/// Settings that no code reads: a typing mistake, or harmless in a row that another program wrote.
pub fn unknown(provider: &dyn Provider, channel: &Channel) -> Vec<String> {
    let known = || provider.settings().iter().chain(COMMON);
    let mut wrong = Vec::new();
    for name in channel.settings.as_map().keys() {
        let previous = name.strip_suffix("_previous").unwrap_or(name);
        let is_known = |setting: &Setting| {
            let top = setting.name.split('.').next().unwrap_or(setting.name);
            top == name || (setting.secret && top == previous)
        };
        if !known().any(is_known) {
            let names: Vec<_> = known().map(|setting| setting.name).collect();
            wrong.push(format!("{name} is no setting of {}; it has {}", provider.title(), names.join(", ")));
        }
    }
    wrong
}

/// Why the channel cannot work: what is missing or wrong.
pub fn problems(provider: &dyn Provider, channel: &Channel) -> Vec<String> {
    let mut wrong = Vec::new();
    for setting in provider.settings().iter().chain(COMMON).filter(|setting| setting.required) {
        if channel.settings.get(setting.name).is_none_or(|value| value.is_null() || value.as_str() == Some("")) {
            wrong.push(format!("{} is missing: {}", setting.name, setting.about));
        }
    }
    wrong.extend(provider.check(channel));
    wrong
}

/// Which of these settings are present but not text, as a secret has to be.
pub fn not_text(channel: &Channel, names: &[&str]) -> Vec<String> {
    let wrong = |name: &&&str| channel.settings.get(name).is_some_and(|value| !value.is_null() && !value.is_string());
    names.iter().filter(wrong).map(|name| format!("{name} is no text: write it in quotes")).collect()
}

/// The response for senders that use JSON: 202 with the id of what was stored.
pub fn accepted(outcome: &Outcome<'_>) -> Answer {
    let mut body = json!({"success": true});
    if let Some(first) = outcome.stored.first() {
        body["id"] = json!(first.id);
    }
    if outcome.stored.len() > 1 {
        body["ids"] = json!(outcome.stored.iter().map(|stored| stored.id).collect::<Vec<_>>());
    }
    Answer::json(StatusCode::ACCEPTED, &body)
}

/// The sender learns the kind of mistake and nothing that helps to forge a request. The operator sees the details.
pub fn refused(refusal: &Refusal) -> Answer {
    let error = match refusal {
        Refusal::Unauthentic(_) => "not authentic".to_owned(),
        other => other.to_string(),
    };
    Answer::json(refusal.status(), &json!({"success": false, "error": error}))
}
