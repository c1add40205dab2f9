//! WhatsApp Cloud: Meta's own API, without a reseller.

mod message;

use http::{HeaderMap, HeaderValue, Method, StatusCode};
use serde_json::{Value, json};

use crate::provider::{Message, Sample, Setting, Verified};
use crate::refusal::Why;
use crate::scheme::{Keys, Scheme};
use crate::schemes::hub_sha256::HubSha256;
use crate::{Answer, Channel, Event, Inbound, Provider, Refusal, Request, crypt, json, providers};

#[derive(Debug)]
pub struct Whatsapp;

const SETTINGS: &[Setting] = &[
    Setting { name: "app_secret", secret: true, required: true, about: "secret of the Meta app, under App settings, Basic" },
    Setting { name: "verify_token", secret: true, required: true, about: "any word; the same is entered at Meta beside the webhook's URL" },
    Setting { name: "access_token", secret: true, required: false, about: "token of a system user, to fetch pictures and voice messages" },
];

const SIGNATURE: &str = "x-hub-signature-256";

fn keys(channel: &Channel) -> Keys<'_> {
    Keys::new(channel.settings.both("app_secret")).with_header(Some(SIGNATURE))
}

/// A query parameter that occurs exactly once.
fn parameter(request: &Request<'_>, name: &str) -> Option<String> {
    let mut all = form_urlencoded::parse(request.query()?.as_bytes()).filter(|(key, _)| key == name);
    let (_, value) = all.next()?;
    all.next().is_none().then(|| value.into_owned())
}

/// Meta sends one GET request to check that we have the verify token that was entered there.
fn verify_handshake(channel: &Channel, request: &Request<'_>) -> Result<Verified, Refusal> {
    let words = channel.settings.both("verify_token");
    if words.is_empty() {
        return Err(Why::Unconfigured.into());
    }
    let word = parameter(request, "hub.verify_token").ok_or(Why::Unsigned)?;
    if !crypt::any_same_secret(word.as_bytes(), words) {
        return Err(Why::Mismatch.into());
    }
    Ok(Verified::default())
}

fn answer_handshake(request: &Request<'_>) -> Result<Inbound, Refusal> {
    if parameter(request, "hub.mode").as_deref() != Some("subscribe") {
        return Err(Refusal::Malformed("hub.mode is not subscribe".to_owned()));
    }
    let challenge = parameter(request, "hub.challenge").ok_or_else(|| Refusal::Malformed("hub.challenge is missing".to_owned()))?;
    Ok(Inbound::Reply(Answer::text(StatusCode::OK, "text/plain; charset=utf-8", challenge)))
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

impl Provider for Whatsapp {
    fn code(&self) -> &'static str {
        "whatsapp"
    }

    fn title(&self) -> &'static str {
        "WhatsApp Cloud"
    }

    fn settings(&self) -> &'static [Setting] {
        SETTINGS
    }

    fn check(&self, channel: &Channel) -> Vec<String> {
        providers::not_text(channel, &["app_secret", "verify_token", "access_token"])
    }

    fn cautions(&self, channel: &Channel) -> Vec<String> {
        let missing = channel.settings.text("access_token").is_none();
        let caution = "without access_token pictures and voice messages are listed and cannot be fetched";
        missing.then(|| caution.to_owned()).into_iter().collect()
    }

    fn body_limit(&self, _: &Channel) -> usize {
        // Meta bundles up to a thousand updates, and documents a limit of 3 MB.
        4 * 1024 * 1024
    }

    fn verify(&self, channel: &Channel, request: &Request<'_>) -> Result<Verified, Refusal> {
        if request.method == Method::GET {
            return verify_handshake(channel, request);
        }
        HubSha256.verify(&keys(channel), request)
    }

    fn normalise(&self, channel: &Channel, request: &Request<'_>) -> Result<Inbound, Refusal> {
        if request.method == Method::GET {
            return answer_handshake(request);
        }
        let body = json::read(request.body)?;
        if body["object"] != "whatsapp_business_account" {
            let warning = "not from a WhatsApp business account: the app sends this channel more than WhatsApp's messages";
            return Ok(Inbound::Nothing { remember: Vec::new(), warning: Some(warning.to_owned()) });
        }
        let changes = list(&body["entry"]).flat_map(|entry| list(&entry["changes"]));
        // The delivery status of our own messages (`statuses`) is not a message; neither are changes of templates and accounts.
        let values = changes.filter(|change| change["field"] == "messages").map(|change| &change["value"]);
        let messages = values.flat_map(|value| list(&value["messages"]).map(move |message| (message, value)));
        let events: Vec<Event> = messages.map(|(message, value)| message::event(message, value, channel)).collect();
        if events.is_empty() {
            return Ok(Inbound::Nothing { remember: Vec::new(), warning: None });
        }
        Ok(Inbound::Events { events, remember: Vec::new() })
    }

    fn compose(&self, channel: &Channel, url: &str, unix_now: i64, message: &Message<'_>) -> Result<Sample, String> {
        let phone = message.phone.unwrap_or("+15550123456").trim_start_matches('+');
        let body = json!({"object": "whatsapp_business_account", "entry": [{"id": "0", "changes": [{"field": "messages", "value": {
            "messaging_product": "whatsapp",
            "metadata": {"display_phone_number": "15550100", "phone_number_id": "0"},
            "contacts": [{"profile": {"name": message.name()}, "wa_id": phone}],
            "messages": [{
                "from": phone,
                "id": format!("wamid.gleaner-sample-{}", message.id(unix_now)),
                "timestamp": unix_now.to_string(),
                "type": "text",
                "text": {"body": message.text()},
            }],
        }}]}]});
        let body = body.to_string().into_bytes();
        let mut headers = HeaderMap::new();
        headers.insert("content-type", HeaderValue::from_static("application/json"));
        HubSha256.sign(&keys(channel), unix_now, &mut headers, &body)?;
        Ok(Sample { method: Method::POST, url: url.to_owned(), headers, body })
    }
}
