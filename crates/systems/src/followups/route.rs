//! Which way a message goes out, and to which address.

use gleaner::Failure;
use gleaner_stages::failure::invalid;
use gleaner_stages::sinks::Message;
use serde_json::{Map, Value, json};

use super::prepared::{Prepared, Said};
use super::settings::Settings;
use super::sinks::Sinks;

/// The names that `payload.sink` may have; `origin` is the channel that the contact last wrote through.
const NAMES: [&str; 7] = ["http", "email", "telegram", "sms", "whatsapp", "command", "origin"];
/// What a payload may say to a sink.
const PASSED_ON: [&str; 4] = ["url", "content_sid", "content_variables", "unsubscribe_url"];

/// A message without its text.
pub(super) fn route(prepared: &Prepared, settings: &Settings, sinks: &Sinks) -> Result<Message, Failure> {
    let named = prepared.text("sink").or(prepared.text("channel")).or(settings.sink.as_deref());
    let mut message = match named {
        Some("origin") => of_origin(prepared, sinks).ok_or_else(|| {
            invalid("there is no channel to answer through: the contact has not written through one that this agent can open")
        })?,
        Some(name) if NAMES.contains(&name) => by_name(prepared, name)?,
        Some(name) => return Err(invalid(format!("payload.sink is {name:?}; it may be {}", NAMES.join(", ")))),
        None => of_origin(prepared, sinks).or_else(|| first_that_fits(prepared, sinks)).ok_or_else(|| {
            Failure::new("nothing here reaches this prospect: configure a sink, or name one in payload.sink").category("ConfigurationError")
        })?,
    };
    for name in PASSED_ON {
        if let Some(value) = prepared.action.payload.get(name) {
            message.extra.insert(name.to_owned(), value.clone());
        }
    }
    if matches!(message.sink.as_str(), "http" | "command") {
        let action = &prepared.action;
        message.extra.insert(
            "action".into(),
            json!({"id": action.id, "prospect_id": action.prospect_id, "action_type": action.action_type,
                   "scheduled_for": action.scheduled_for, "payload": action.payload}),
        );
    }
    if message.sink == "email"
        && let Some(earlier) = prepared.last_heard.as_ref().and_then(|heard| heard.rfc_message_id.as_ref())
    {
        message.extra.insert("in_reply_to".into(), json!(earlier));
    }
    Ok(message)
}

fn by_name(prepared: &Prepared, name: &str) -> Result<Message, Failure> {
    let to = address(prepared, name).ok_or_else(|| {
        invalid(format!("{} has no address for {name}: give the contact one, or write payload.to", prepared.action.prospect_id))
    })?;
    Ok(Message { sink: name.to_owned(), to, ..Message::default() })
}

fn first_that_fits(prepared: &Prepared, sinks: &Sinks) -> Option<Message> {
    ["telegram", "sms", "email", "http", "command"].into_iter().filter(|name| sinks.has(name)).find_map(|name| by_name(prepared, name).ok())
}

/// An answer through the channel that the contact last wrote through, from the address that it was written to.
fn of_origin(prepared: &Prepared, sinks: &Sinks) -> Option<Message> {
    let heard = prepared.last_heard.as_ref()?;
    let to = heard.sender_address.clone()?;
    let sink = match (heard.provider_code.as_deref()?, heard.kind.as_str()) {
        ("telegram", _) => "telegram",
        ("twilio", "whatsapp") => "whatsapp",
        ("twilio", _) => "sms",
        // Mail comes in through others than it goes out.
        ("gmail" | "postmark" | "mailgun" | "sendgrid", _) if sinks.has("email") => return by_name(prepared, "email").ok(),
        _ => return None,
    };
    let channel = heard.provider_id.clone().filter(|_| sinks.has_channels());
    if channel.is_none() && !sinks.has(sink) {
        return None;
    }
    let mut extra = Map::new();
    if let Some(ours) = &heard.received_at {
        extra.insert("from".into(), json!(ours));
    }
    Some(Message { sink: sink.to_owned(), to, channel, extra, ..Message::default() })
}

/// The address for a sink: the payload's, the contact's, that of the last message, or the prospect id itself.
fn address(prepared: &Prepared, sink: &str) -> Option<String> {
    if let Some(to) = prepared.text("to") {
        return Some(to.to_owned());
    }
    let known = |kind: &str| prepared.reached_by.get(kind).and_then(Value::as_str).map(str::to_owned);
    let prospect = &prepared.action.prospect_id;
    let heard =
        |fits: fn(&str) -> bool| prepared.last_heard.as_ref().and_then(|heard: &Said| heard.sender_address.clone().filter(|at| fits(at)));
    let itself = |fits: fn(&str) -> bool| Some(prospect.clone()).filter(|prospect| fits(prospect));
    let is_mail = |text: &str| text.contains('@');
    let is_number = |text: &str| text.starts_with('+');
    let is_chat = |text: &str| {
        text.starts_with("telegram:") || !text.is_empty() && text.trim_start_matches('-').bytes().all(|byte| byte.is_ascii_digit())
    };
    match sink {
        "email" => known("email").or_else(|| heard(is_mail)).or_else(|| itself(is_mail)),
        "sms" | "whatsapp" => known("phone").or_else(|| heard(is_number)).or_else(|| itself(is_number)),
        "telegram" => known("telegram").or_else(|| heard(|at| at.starts_with("telegram:"))).or_else(|| itself(is_chat)),
        // Their own programs know their own prospects.
        _ => Some(prospect.clone()),
    }
}
