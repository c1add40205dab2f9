//! Broadcasts over HTTP, for programs without a socket: `channel.httpSend` and `channel.send` before it is joined.

use axum::Json;
use axum::extract::rejection::JsonRejection;
use axum::extract::{Path, Query, RawQuery, State};
use gleaner_http::WireError;
use http::StatusCode;
use http::request::Parts;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Realtime, form_pairs};

/// The most messages of one request.
const MOST: usize = 100;

#[derive(Deserialize)]
pub(super) struct Messages {
    messages: Vec<Message>,
}

#[derive(Deserialize)]
struct Message {
    topic: String,
    event: String,
    #[serde(default)]
    payload: Value,
    #[serde(default)]
    private: bool,
}

#[derive(Deserialize)]
pub(super) struct Privacy {
    #[serde(default)]
    private: String,
}

/// Several messages, each to a topic.
pub(super) async fn many(
    State(realtime): State<Realtime>,
    parts: Parts,
    RawQuery(query): RawQuery,
    body: Result<Json<Messages>, JsonRejection>,
) -> Result<StatusCode, WireError> {
    let Json(Messages { messages }) = body.map_err(unreadable)?;
    broadcast(&realtime, &parts, query.as_deref(), messages).await
}

/// One message: topic and event are in the path, and the body is what is said.
pub(super) async fn one(
    State(realtime): State<Realtime>,
    Path((topic, event)): Path<(String, String)>,
    Query(privacy): Query<Privacy>,
    parts: Parts,
    RawQuery(query): RawQuery,
    body: Result<Json<Value>, JsonRejection>,
) -> Result<StatusCode, WireError> {
    let Json(payload) = body.map_err(unreadable)?;
    let message = Message { topic, event, payload, private: privacy.private == "true" };
    broadcast(&realtime, &parts, query.as_deref(), vec![message]).await
}

async fn broadcast(realtime: &Realtime, parts: &Parts, query: Option<&str>, messages: Vec<Message>) -> Result<StatusCode, WireError> {
    (realtime.verify)(token(parts, query).ok_or_else(WireError::anonymous)?).await?;
    if messages.len() > MOST {
        return Err(WireError::bad(format!("A request has at most {MOST} messages")));
    }
    if messages.iter().any(|message| message.private) {
        return Err(WireError::new(StatusCode::FORBIDDEN, "42501", "Private channels are not available").hint("Use a public channel."));
    }
    let mut pace = realtime.rates.of(realtime.client.of(parts));
    for message in messages {
        let payload = json!({"type": "broadcast", "event": message.event, "payload": message.payload});
        pace.allows(&payload).map_err(|reason| WireError::new(StatusCode::TOO_MANY_REQUESTS, "53400", reason))?;
        realtime.hub.announce(&format!("realtime:{}", message.topic), &payload);
    }
    Ok(StatusCode::ACCEPTED)
}

/// The user's token, or the project key.
fn token(parts: &Parts, query: Option<&str>) -> Option<String> {
    let header = |name: &str| parts.headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let bearer = header("authorization").and_then(|value| value.strip_prefix("Bearer ").map(str::to_owned));
    let asked = || form_pairs(query.unwrap_or_default()).find(|(name, _)| name == "apikey").map(|(_, key)| key);
    bearer.or_else(|| header("apikey")).or_else(asked).filter(|token| !token.is_empty())
}

fn unreadable(rejection: JsonRejection) -> WireError {
    WireError::new(rejection.status(), "22023", rejection.body_text())
}
