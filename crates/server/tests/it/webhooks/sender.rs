//! A provider for tests: its signature is the secret itself, and its body says what should happen.

use std::time::Duration;

use axum::http::StatusCode;
use gleaner_ingest::provider::{Inbound, Message, Provider, Sample, Setting, Verified};
use gleaner_ingest::refusal::Why;
use gleaner_ingest::{Address, Answer, Attachment, Channel, Direction, Event, Kind, Memory, Refusal, Request};
use serde_json::{Map, Value, json};

#[derive(Debug)]
pub(super) struct Tester;

pub(super) const SECRET: &str = "a-secret-of-the-tester";
pub(super) const LIMIT: usize = 600 * 1024;

/// Our own providers, and the test provider.
pub(super) fn providers() -> &'static [&'static dyn Provider] {
    let all: Vec<&'static dyn Provider> = gleaner_ingest::providers::all().iter().copied().chain([&Tester as &dyn Provider]).collect();
    Box::leak(all.into_boxed_slice())
}

impl Provider for Tester {
    fn code(&self) -> &'static str {
        "tester"
    }

    fn title(&self) -> &'static str {
        "Tester"
    }

    fn settings(&self) -> &'static [Setting] {
        &[Setting { name: "secret", secret: true, required: true, about: "what it signs with" }]
    }

    fn body_limit(&self, _: &Channel) -> usize {
        LIMIT
    }

    fn verify(&self, channel: &Channel, request: &Request<'_>) -> Result<Verified, Refusal> {
        let given = request.header("x-test-signature").ok_or(Why::Unsigned)?;
        if !channel.settings.both("secret").contains(&given) {
            return Err(Why::Mismatch.into());
        }
        let once = request.header("x-once").map(|token| (token.to_owned(), Duration::from_secs(600)));
        let warning = request.header("x-odd").map(|what| format!("odd: {what}, from {:?}", request.client));
        Ok(Verified { once, warning, ..Verified::default() })
    }

    fn normalise(&self, _: &Channel, request: &Request<'_>) -> Result<Inbound, Refusal> {
        let body: Value = serde_json::from_slice(request.body).map_err(|_| Refusal::Malformed("not JSON".to_owned()))?;
        let remember = body["remember"].as_object().into_iter().flatten();
        let remember =
            remember.map(|(key, value)| Memory { key: key.clone(), value: value.clone(), lifetime: Duration::from_secs(600) }).collect();
        match body["do"].as_str() {
            Some("reply") => Ok(Inbound::Reply(Answer::text(StatusCode::OK, "text/plain", "the answer"))),
            Some("fetch") => Ok(Inbound::Fetch),
            Some("nothing") => Ok(Inbound::Nothing { remember, warning: body["warning"].as_str().map(str::to_owned) }),
            Some("unusable") => Err(Refusal::Unusable("for good".to_owned())),
            Some("url") => Ok(Inbound::Reply(Answer::text(StatusCode::OK, "text/plain", request.public_url()))),
            _ => {
                Ok(Inbound::Events { events: body["ids"].as_array().into_iter().flatten().map(|id| event(id, &body)).collect(), remember })
            }
        }
    }

    fn compose(&self, _: &Channel, _: &str, _: i64, _: &Message<'_>) -> Result<Sample, String> {
        Err("the tester has no sample".to_owned())
    }
}

fn event(id: &Value, body: &Value) -> Event {
    let mut metadata: Map<String, Value> = body["metadata"].as_object().cloned().unwrap_or_default();
    let attachments: Vec<Attachment> = body["attachments"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|text| Attachment {
            name: "a.txt".to_owned(),
            content_type: "text/plain".to_owned(),
            content_id: None,
            bytes: text.as_str().unwrap_or_default().as_bytes().to_vec(),
        })
        .collect();
    if !attachments.is_empty() {
        metadata.insert("attachments".to_owned(), attachments.iter().map(|a| json!({"name": a.name})).collect());
    }
    let content = body["text"].as_str().unwrap_or("hello");
    Event {
        kind: Kind::Note,
        direction: Direction::Inbound,
        raw_data: json!({"source_type": "text", "content": content}).as_object().cloned().unwrap_or_default(),
        metadata,
        external_id: id.as_str().unwrap_or_default().to_owned(),
        sender: body["from"].as_str().map(|from| Address::Email(from.to_owned())),
        sender_name: None,
        recall: body["recall"].as_str().map(str::to_owned),
        attachments,
    }
}
