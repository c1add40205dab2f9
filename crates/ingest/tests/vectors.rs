//! Runs every vector of `tests/vectors/*.json` against the provider it names. A vector is a request and its expected result. The
//! server's tests send the same files over HTTP.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::IpAddr;
use std::path::Path;
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result, bail, ensure};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use gleaner_ingest::{Answer, Channel, Event, Inbound, Outcome, Provider, Request, Stored, providers};
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use uuid::Uuid;

#[derive(Debug, Deserialize)]
struct Vector {
    name: String,
    provider: String,
    #[serde(default)]
    settings: Map<String, Value>,
    #[serde(default = "public_base")]
    public_base: String,
    #[serde(default = "method")]
    method: String,
    target: String,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    body: Option<String>,
    body_base64: Option<String>,
    client: Option<IpAddr>,
    now: Option<u64>,
    verdict: Verdict,
    /// The code under which the refusal is counted.
    why: Option<String>,
    status: Option<u16>,
    /// Subsets of the events; null stands for what must be absent. An empty list means authentic, with nothing queued.
    events: Option<Vec<Value>>,
    /// Keys and subsets of values to be remembered.
    remember: Option<BTreeMap<String, Value>>,
    /// Part of the warning to the operator for an accepted request; null when there must be no warning.
    #[serde(default, deserialize_with = "present")]
    warning: Option<Option<String>>,
    answer: Option<Value>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Verdict {
    Accepted,
    Refused,
}

fn public_base() -> String {
    "https://hooks.acme.example".to_owned()
}

fn method() -> String {
    "POST".to_owned()
}

/// Distinguishes a field that is null from one that is missing.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Option<String>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

#[test]
fn every_vector_has_its_verdict() -> Result<()> {
    let vectors = vectors()?;
    let failures: Vec<String> = vectors
        .iter()
        .filter_map(|vector| run(vector).err().map(|error| format!("{}: {}: {error:#}", vector.provider, vector.name)))
        .collect();
    ensure!(failures.is_empty(), "{} of {} vectors:\n{}", failures.len(), vectors.len(), failures.join("\n"));
    Ok(())
}

#[test]
fn every_provider_has_vectors_that_get_in_and_vectors_that_do_not() -> Result<()> {
    let seen: BTreeSet<_> = vectors()?.into_iter().map(|vector| (vector.provider, vector.verdict)).collect();
    for provider in providers::all() {
        for verdict in [Verdict::Accepted, Verdict::Refused] {
            ensure!(seen.contains(&(provider.code().to_owned(), verdict)), "{} has no vector that is {verdict:?}", provider.code());
        }
    }
    Ok(())
}

#[test]
fn every_vector_has_a_name_of_its_own() -> Result<()> {
    let mut seen = BTreeSet::new();
    for vector in vectors()? {
        ensure!(seen.insert((vector.provider.clone(), vector.name.clone())), "{}: {} is there twice", vector.provider, vector.name);
    }
    Ok(())
}

/// `gleaner channels test` must never be refused by the webhook endpoint it tests.
#[test]
fn samples_are_accepted_and_never_without_their_signature() -> Result<()> {
    let settings = json!({"auth_token": "t0ken", "account_sid": "AC1", "basic_auth": {"username": "u", "password": "p:w"}});
    for code in ["twilio", "postmark"] {
        let provider = providers::find(code).context("registered")?;
        let channel = channel(code, settings.as_object().cloned().unwrap_or_default());
        let target = "/functions/v1/ingest-activity?key=k";
        let sample = provider.sample(&channel, &format!("{}{target}", public_base()), 1_700_000_000).map_err(anyhow::Error::msg)?;
        let base = public_base();
        let mut request = Request {
            method: &sample.method,
            target,
            headers: &sample.headers,
            body: &sample.body,
            client: None,
            now: SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000),
            public_base: &base,
        };
        provider.verify(&channel, &request).with_context(|| format!("{code} refuses its own sample"))?;
        let Inbound::Events { events, .. } = provider.normalise(&channel, &request)? else { bail!("{code}: a sample is an event") };
        ensure!(events.len() == 1, "{code}: one sample, one event");
        let none = HeaderMap::new();
        request.headers = &none;
        ensure!(provider.verify(&channel, &request).is_err(), "{code} believes its sample without proof");
    }
    Ok(())
}

fn vectors() -> Result<Vec<Vector>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors");
    let mut all = Vec::new();
    for entry in fs::read_dir(&folder).with_context(|| format!("read {}", folder.display()))? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "json") {
            let vectors: Vec<Vector> = serde_json::from_slice(&fs::read(&path)?).with_context(|| format!("read {}", path.display()))?;
            all.extend(vectors);
        }
    }
    ensure!(!all.is_empty(), "no vectors in {}", folder.display());
    Ok(all)
}

fn run(vector: &Vector) -> Result<()> {
    let provider = providers::find(&vector.provider).context("no such provider")?;
    let channel = channel(&vector.provider, vector.settings.clone());
    let body = match (&vector.body, &vector.body_base64) {
        (Some(text), None) => text.clone().into_bytes(),
        (None, Some(encoded)) => BASE64_STANDARD.decode(encoded)?,
        (None, None) => Vec::new(),
        (Some(_), Some(_)) => bail!("body and body_base64"),
    };
    let mut headers = HeaderMap::new();
    for (name, value) in &vector.headers {
        headers.append(HeaderName::from_bytes(name.as_bytes())?, HeaderValue::from_str(value)?);
    }
    let request = Request {
        method: &Method::from_bytes(vector.method.as_bytes())?,
        target: &vector.target,
        headers: &headers,
        body: &body,
        client: vector.client,
        now: SystemTime::UNIX_EPOCH + Duration::from_secs(vector.now.unwrap_or(1_700_000_000)),
        public_base: &vector.public_base,
    };
    ensure!(body.len() <= provider.body_limit(&channel), "the body is larger than the provider allows");

    let verified = provider.verify(&channel, &request);
    let read = verified.and_then(|verified| Ok((verified, provider.normalise(&channel, &request)?)));
    match (vector.verdict, read) {
        (Verdict::Accepted, Ok((verified, inbound))) => accepted(vector, provider, verified.warning, inbound),
        (Verdict::Accepted, Err(refusal)) => bail!("refused: {refusal}"),
        (Verdict::Refused, Ok((_, inbound))) => bail!("accepted: {inbound:?}"),
        (Verdict::Refused, Err(refusal)) => {
            if let Some(why) = &vector.why {
                ensure!(refusal.word() == why, "refused as {} and not as {why}", refusal.word());
            }
            let answer = provider.refuse(&refusal);
            if let Some(status) = vector.status {
                ensure!(answer.status.as_u16() == status, "answered {} and not {status}", answer.status);
            }
            ensure!(answer.status.is_client_error(), "answered {}", answer.status);
            compare_answer(vector, &answer)
        }
    }
}

fn accepted(vector: &Vector, provider: &dyn Provider, warned: Option<String>, inbound: Inbound) -> Result<()> {
    let (events, remember, warning, reply) = match inbound {
        Inbound::Events { events, remember } => (events, remember, None, None),
        Inbound::Nothing { remember, warning } => (Vec::new(), remember, warning, None),
        Inbound::Reply(answer) => (Vec::new(), Vec::new(), None, Some(answer)),
        Inbound::Fetch => (Vec::new(), Vec::new(), None, None),
    };
    if let Some(expected) = &vector.events {
        ensure!(events.len() == expected.len(), "{} events and not {}", events.len(), expected.len());
        for (event, expected) in events.iter().zip(expected) {
            subset(expected, &described(event), "event")?;
        }
    }
    if let Some(expected) = &vector.remember {
        let kept: Map<String, Value> = remember.iter().map(|memory| (memory.key.clone(), memory.value.clone())).collect();
        ensure!(kept.len() == expected.len(), "remembers {kept:?}");
        subset(&json!(expected), &Value::Object(kept), "remember")?;
        let week = Duration::from_secs(7 * 24 * 60 * 60);
        ensure!(remember.iter().all(|memory| memory.lifetime >= week), "forgets within a week");
    }
    if let Some(expected) = &vector.warning {
        let told = [warned, warning].into_iter().flatten().collect::<Vec<_>>().join("; ");
        match expected {
            Some(part) => ensure!(told.contains(part.as_str()), "warns {told:?} and not {part:?}"),
            None => ensure!(told.is_empty(), "warns {told:?}"),
        }
    }
    let stored: Vec<_> = events.iter().map(|_| Stored { id: Uuid::nil(), fresh: true }).collect();
    let answer = reply.unwrap_or_else(|| provider.acknowledge(&Outcome { stored: &stored }));
    ensure!(answer.status.is_success(), "answered {}", answer.status);
    compare_answer(vector, &answer)
}

fn compare_answer(vector: &Vector, answer: &Answer) -> Result<()> {
    let Some(expected) = &vector.answer else { return Ok(()) };
    let described = json!({"status": answer.status.as_u16(), "content_type": answer.content_type, "body": answer.body});
    subset(expected, &described, "answer")
}

fn described(event: &Event) -> Value {
    json!({
        "type": event.kind,
        "direction": event.direction,
        "raw_data": event.raw_data,
        "metadata": event.metadata,
        "external_id": event.external_id,
        "sender": event.sender,
        "sender_name": event.sender_name,
        "recall": event.recall,
        "attachments": event.attachments.iter().map(|file| json!({
            "name": file.name,
            "content_type": file.content_type,
            "content_id": file.content_id,
            "text": String::from_utf8_lossy(&file.bytes),
        })).collect::<Vec<_>>(),
    })
}

/// Everything expected is there. Objects may have more fields, lists may not have more entries, and null also matches a missing
/// field.
fn subset(expected: &Value, found: &Value, path: &str) -> Result<()> {
    match (expected, found) {
        (Value::Object(expected), Value::Object(found)) => {
            expected.iter().try_for_each(|(name, value)| subset(value, found.get(name).unwrap_or(&Value::Null), &format!("{path}.{name}")))
        }
        (Value::Array(expected), Value::Array(found)) if expected.len() == found.len() => {
            expected.iter().zip(found).enumerate().try_for_each(|(n, (expected, found))| subset(expected, found, &format!("{path}[{n}]")))
        }
        _ if expected == found => Ok(()),
        _ => bail!("{path} is {found} and not {expected}"),
    }
}

fn channel(code: &str, settings: Map<String, Value>) -> Channel {
    Channel {
        id: Uuid::nil(),
        name: code.to_owned(),
        provider_code: code.to_owned(),
        is_active: true,
        sales_id: None,
        auto_create_contacts: false,
        settings: settings.into(),
    }
}
