//! A server with OpenAI's API as it is published: it records the requests, and sends the responses that the test sets.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result};
use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use serde_json::{Value, json};

#[derive(Clone, Default)]
pub(super) struct Endpoint {
    pub base: String,
    asked: Arc<Mutex<Vec<Recorded>>>,
    answers: Arc<Mutex<VecDeque<Answer>>>,
}

#[derive(Debug, Clone)]
pub(super) struct Recorded {
    pub method: String,
    pub path: String,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Recorded {
    pub(super) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    pub(super) fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    /// The fields of a multipart form: name, file name, type, content.
    pub(super) async fn form(&self) -> Result<Vec<(String, Option<String>, Option<String>, Bytes)>> {
        let boundary = multer::parse_boundary(self.header("content-type"))?;
        let body = self.body.clone();
        let stream = futures_util::stream::once(async move { Ok::<_, std::io::Error>(body) });
        let mut form = multer::Multipart::new(stream, boundary);
        let mut fields = Vec::new();
        while let Some(field) = form.next_field().await? {
            let name = field.name().context("a name")?.to_owned();
            let (file, kind) = (field.file_name().map(str::to_owned), field.content_type().map(ToString::to_string));
            fields.push((name, file, kind, field.bytes().await?));
        }
        Ok(fields)
    }
}

#[derive(Debug, Clone)]
pub(super) struct Answer {
    status: u16,
    headers: Vec<(&'static str, String)>,
    body: String,
    after: Duration,
}

/// A chat completion, as the API documents it.
pub(super) fn chat(content: &str) -> Answer {
    ok(json!({
        "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "test-model-2026",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": content, "refusal": null}, "logprobs": null, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 19, "completion_tokens": 10, "total_tokens": 29},
    }))
}

pub(super) fn ok(body: Value) -> Answer {
    Answer { status: 200, headers: vec![("content-type", "application/json".into())], body: body.to_string(), after: Duration::ZERO }
}

/// An error, as the API documents it.
pub(super) fn error(status: u16, message: &str, code: &str) -> Answer {
    let body = json!({"error": {"message": message, "type": "error", "param": null, "code": code}});
    Answer { status, ..ok(body) }
}

impl Answer {
    pub(super) fn with(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }

    pub(super) fn after(self, after: Duration) -> Self {
        Self { after, ..self }
    }
}

impl Endpoint {
    pub(super) async fn start(answers: impl IntoIterator<Item = Answer>) -> Result<Self> {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        let base = format!("http://{}/v1", listener.local_addr()?);
        let endpoint = Self { base, asked: Arc::default(), answers: Arc::new(Mutex::new(answers.into_iter().collect())) };
        let router = Router::new().fallback(answer).with_state(endpoint.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        Ok(endpoint)
    }

    pub(super) fn asked(&self) -> Vec<Recorded> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

async fn answer(State(endpoint): State<Endpoint>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body = axum::body::to_bytes(body, 64 * 1024 * 1024).await.unwrap_or_default();
    let asked = Recorded { method: parts.method.to_string(), path: parts.uri.path().to_owned(), headers: parts.headers, body };
    endpoint.asked.lock().unwrap_or_else(PoisonError::into_inner).push(asked);
    let next = endpoint.answers.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
    let Some(next) = next else { return (StatusCode::IM_A_TEAPOT, "the test has no more answers").into_response() };
    tokio::time::sleep(next.after).await;
    let mut response = (StatusCode::from_u16(next.status).unwrap_or(StatusCode::IM_A_TEAPOT), next.body).into_response();
    for (name, value) in next.headers {
        if let Ok(value) = value.parse() {
            response.headers_mut().insert(name, value);
        }
    }
    response
}
