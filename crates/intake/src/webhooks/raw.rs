//! What is stored of a request, so that any event can be replayed after a fix: the exact body, and the part of the head
//! that normalisation reads. A replay does not verify again, so no signature or secret is stored.

use axum::http::{HeaderMap, Method};
use bytes::Bytes;
use gleaner_ingest::{Channel, Provider};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::target::Target;
use crate::files::{self, Files};

/// Bodies above this size are stored in files.
pub(super) const IN_TABLE: usize = 256 * 1024;

/// A request as it is stored.
#[derive(Debug, Clone)]
pub struct Kept {
    pub id: Uuid,
    pub method: Method,
    /// The request target without the key.
    pub target: String,
    pub headers: Map<String, Value>,
    /// The body, unless it is in a file.
    pub body: Option<Bytes>,
    /// The file, if there is one.
    pub file: Option<String>,
}

/// Writes a large body to its file and describes the request. The file is durable before the row that names it.
pub(super) async fn keep(files: &Files, channel: &Channel, provider: &dyn Provider, head: Head<'_>, body: &Bytes) -> files::Result<Kept> {
    let id = Uuid::now_v7();
    let body_file = if body.len() > IN_TABLE { Some(format!("raw/{id}")) } else { None };
    if let Some(path) = &body_file {
        files.put(path, body.clone()).await?;
    }
    let mut headers = headers(head.headers, channel.settings.text("header"), &secrets(channel, provider));
    // Also for a body that came without it: pruning adds these up.
    headers.insert("content-length".to_owned(), json!(body.len().to_string()));
    let target = Target(head.target).without_key();
    Ok(Kept { id, method: head.method.clone(), target, headers, body: body_file.is_none().then(|| body.clone()), file: body_file })
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Head<'a> {
    pub method: &'a Method,
    pub target: &'a str,
    pub headers: &'a HeaderMap,
}

/// Headers that sign, authenticate or only describe the route of the request.
const DROPPED: &[&str] =
    &["authorization", "signature", "secret", "token", "cookie", "api-key", "apikey", "password", "x-forwarded", "x-real-ip"];

/// `signature` is the header that the channel's sender signs in, when that is not the usual one.
fn headers(all: &HeaderMap, signature: Option<&str>, secrets: &[&str]) -> Map<String, Value> {
    let mut kept = Map::new();
    for (name, value) in all {
        let Ok(value) = value.to_str() else { continue };
        let named = signature.is_some_and(|signature| name.as_str().eq_ignore_ascii_case(signature.trim()));
        let proves = named || DROPPED.iter().any(|word| name.as_str().contains(word));
        // A signature scheme may put its secret into a header of any name.
        if proves || secrets.iter().any(|secret| value.contains(secret)) {
            continue;
        }
        match kept.get_mut(name.as_str()) {
            None => drop(kept.insert(name.as_str().to_owned(), json!(value))),
            Some(Value::Array(several)) => several.push(json!(value)),
            Some(one) => *one = json!([one.take(), value]),
        }
    }
    kept
}

/// The channel's secrets, including previous ones. Short values are no secrets and would match everything.
fn secrets<'a>(channel: &'a Channel, provider: &dyn Provider) -> Vec<&'a str> {
    let secret = provider.settings().iter().filter(|setting| setting.secret);
    secret.flat_map(|setting| channel.settings.both(setting.name)).filter(|secret| secret.len() >= 6).collect()
}

/// The stored headers, for a replay.
pub(super) fn restore(kept: &Value) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in kept.as_object().into_iter().flatten() {
        let Ok(name) = name.parse::<axum::http::HeaderName>() else { continue };
        let values = value.as_array().map_or_else(|| vec![value], |several| several.iter().collect());
        for value in values.into_iter().filter_map(Value::as_str).filter_map(|value| value.parse().ok()) {
            headers.append(name.clone(), value);
        }
    }
    headers
}

#[cfg(test)]
mod tests;
