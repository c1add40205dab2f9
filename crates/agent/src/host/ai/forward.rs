//! Forwards a request to a model, and returns its response. A stream is passed on as it arrives.

use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt as _;
use reqwest::RequestBuilder;
use serde_json::{Map, Value};

use super::super::Host;
use super::authenticate::Client;
use super::error::Refusal;
use super::form::Recording;
use super::{Kind, Model};

/// How much of an error response is read.
const MOST_ERROR: usize = 64 * 1024;
/// How much of a stream is buffered to find the line with the token counts.
const LONGEST_LINE: usize = 256 * 1024;

pub(super) async fn json(host: &Host, client: Client, kind: Kind, path: &str, request: Request) -> Result<Response, Refusal> {
    let most = host.shared.limits.json_bytes;
    let read = tokio::time::timeout(host.shared.limits.body_within, axum::body::to_bytes(request.into_body(), most)).await;
    let body = read.map_err(|_| slow())?.map_err(|_| Refusal::too_large(most))?;
    let mut body: Map<String, Value> =
        serde_json::from_slice(&body).map_err(|error| Refusal::bad(format!("the body is not a JSON object: {error}")))?;
    let named = match body.get("model") {
        None | Some(Value::Null) => None,
        Some(Value::String(name)) => Some(name.as_str()),
        Some(_) => return Err(Refusal::bad("`model` is the name of a model")),
    };
    let model = host.model(kind, named)?;
    body.insert("model".into(), model.model.clone().into());
    send(host, client, model, host.to(model, path).json(&body)).await
}

pub(super) async fn form(host: &Host, client: Client, kind: Kind, path: &str, request: Request) -> Result<Response, Refusal> {
    let (parts, body) = request.into_parts();
    let reading = Recording::read(&parts.headers, body, host.shared.limits.form_bytes);
    let recording = tokio::time::timeout(host.shared.limits.body_within, reading).await.map_err(|_| slow())??;
    let model = host.model(kind, recording.model.as_deref())?;
    let form = recording.for_model(&model.model)?;
    send(host, client, model, host.to(model, path).multipart(form)).await
}

fn slow() -> Refusal {
    Refusal::new(StatusCode::REQUEST_TIMEOUT, "invalid_request_error", Some("timeout"), "the request did not arrive in time")
}

impl Host {
    fn to(&self, model: &Model, path: &str) -> RequestBuilder {
        let request = self.shared.http.post(format!("{}/{path}", model.base_url.trim_end_matches('/')));
        match &model.key {
            Some(key) => request.bearer_auth(key),
            None => request,
        }
    }
}

async fn send(host: &Host, client: Client, model: &Model, request: RequestBuilder) -> Result<Response, Refusal> {
    let name = client.name.clone();
    host.count(&name, |usage| usage.requests += 1);
    let answered = answer(host, client, model, request).await;
    if let Err(refusal) = &answered {
        host.count(&name, |usage| usage.failed += 1);
        tracing::info!(app = name, model = model.name, status = refusal.status.as_u16(), "a model was not reached: {}", refusal.message);
    } else if answered.as_ref().is_ok_and(|answer| !answer.status().is_success()) {
        host.count(&name, |usage| usage.failed += 1);
    }
    answered
}

async fn answer(host: &Host, client: Client, model: &Model, request: RequestBuilder) -> Result<Response, Refusal> {
    let silent = || Refusal::timed_out(format!("the model {} did not answer within {} s", model.name, model.timeout.as_secs()));
    let answer = tokio::time::timeout(model.timeout, request.send()).await.map_err(|_| silent())?;
    // The URL is not for the app: it may contain a secret.
    let answer = answer.map_err(|error| {
        tracing::warn!(model = model.name, %error, "a model cannot be reached");
        Refusal::upstream(format!("the model {} cannot be reached", model.name))
    })?;
    let status = answer.status();
    if !status.is_success() {
        return refused(model, answer).await;
    }
    let kind = answer.headers().get(CONTENT_TYPE).cloned().unwrap_or(HeaderValue::from_static("application/json"));
    if kind.as_bytes().starts_with(b"text/event-stream") {
        let headers = [(CONTENT_TYPE, kind), (CACHE_CONTROL, HeaderValue::from_static("no-store"))];
        return Ok((status, headers, stream(host.clone(), client, model.timeout, answer)).into_response());
    }
    let most = host.shared.limits.answer_bytes;
    let whole = collect(answer, most, model.timeout).await.map_err(|trouble| match trouble {
        Trouble::Silent => silent(),
        Trouble::TooLarge => {
            Refusal::upstream(format!("the answer of the model {} is larger than {} MiB", model.name, most / (1024 * 1024)))
        }
        Trouble::Broken => Refusal::upstream(format!("the answer of the model {} broke off", model.name)),
    })?;
    if let Ok(value) = serde_json::from_slice::<Value>(&whole) {
        host.count_tokens(&client.name, &value);
    }
    Ok((status, [(CONTENT_TYPE, kind)], whole).into_response())
}

enum Trouble {
    Silent,
    TooLarge,
    Broken,
}

async fn collect(mut answer: reqwest::Response, most: usize, patience: Duration) -> Result<Bytes, Trouble> {
    let mut whole = BytesMut::new();
    loop {
        let chunk = tokio::time::timeout(patience, answer.chunk()).await.map_err(|_| Trouble::Silent)?.map_err(|_| Trouble::Broken)?;
        let Some(chunk) = chunk else { return Ok(whole.freeze()) };
        if whole.len() + chunk.len() > most {
            return Err(Trouble::TooLarge);
        }
        whole.extend_from_slice(&chunk);
    }
}

/// The model's own error message if the app made a mistake. Errors between us and the model are not shown to the app.
async fn refused(model: &Model, answer: reqwest::Response) -> Result<Response, Refusal> {
    let status = answer.status();
    if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
        return Err(Refusal::upstream(format!("the model {} refused the agent's key", model.name)));
    }
    if !status.is_client_error() {
        return Err(Refusal::upstream(format!("the model {} answered {}", model.name, status.as_u16())));
    }
    let wait = answer.headers().get(RETRY_AFTER).cloned();
    let said = collect(answer, MOST_ERROR, model.timeout).await.unwrap_or_default();
    let mut response = match serde_json::from_slice::<Value>(&said) {
        Ok(value) if value["error"].is_object() => (status, axum::Json(value)).into_response(),
        _ => {
            let said: String = String::from_utf8_lossy(&said).chars().take(500).collect();
            let message = format!("the model {} refused: {said}", model.name);
            Refusal::new(status, "invalid_request_error", None, message).into_response()
        }
    };
    if let Some(wait) = wait {
        response.headers_mut().insert(RETRY_AFTER, wait);
    }
    Ok(response)
}

/// Passes on each event as it arrives, and counts the tokens on the way.
fn stream(host: Host, client: Client, patience: Duration, answer: reqwest::Response) -> Body {
    let chunks = answer.bytes_stream();
    let state = (Box::pin(chunks), BytesMut::new(), host, client);
    Body::from_stream(futures_util::stream::unfold(Some(state), move |state| async move {
        let (mut chunks, mut line, host, client) = state?;
        match tokio::time::timeout(patience, chunks.next()).await {
            Ok(Some(Ok(chunk))) => {
                read_lines(&mut line, &chunk, |event| host.count_tokens(&client.name, event));
                Some((Ok(chunk), Some((chunks, line, host, client))))
            }
            Ok(None) => None,
            Ok(Some(Err(_))) => Some((Err(std::io::Error::other("the model broke off")), None)),
            Err(_) => Some((Err(std::io::Error::from(std::io::ErrorKind::TimedOut)), None)),
        }
    }))
}

fn read_lines(line: &mut BytesMut, chunk: &[u8], mut found: impl FnMut(&Value)) {
    line.extend_from_slice(chunk);
    while let Some(end) = line.iter().position(|byte| *byte == b'\n') {
        let whole = line.split_to(end + 1);
        let Some(data) = whole.strip_prefix(b"data:") else { continue };
        if data.windows(7).any(|part| part == b"\"usage\"")
            && let Ok(event) = serde_json::from_slice(data)
        {
            found(&event);
        }
    }
    if line.len() > LONGEST_LINE {
        line.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_read_off_a_stream_wherever_it_is_cut() {
        let text = "data: {\"choices\":[]}\n\ndata: {\"usage\":{\"prompt_tokens\":3}}\r\n\ndata: [DONE]\n\n";
        for cut in 0..text.len() {
            let (mut line, mut seen) = (BytesMut::new(), Vec::new());
            for part in [&text[..cut], &text[cut..]] {
                read_lines(&mut line, part.as_bytes(), |event| seen.push(event["usage"]["prompt_tokens"].clone()));
            }
            assert_eq!(seen, [Value::from(3)], "{cut}");
        }
    }
}
