//! The models, as any OpenAI client expects them, for the apps of the page: a token per app, from its own origin alone.
//!
//! - [`door`]: who may come in; [`forward`]: a request to a model and its answer back; [`form`]: requests with a recording.
//! - [`usage`]: what each app has used; [`error`]: what went wrong, in OpenAI's shape.

mod door;
mod error;
mod form;
mod forward;
mod usage;

use std::time::Duration;

use axum::extract::{Extension, Path, Request, State};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use axum::{Json, Router, middleware};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Host;
use door::Client;
use error::Refusal;
pub use usage::Usage;

/// What a model is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    Chat,
    Transcription,
    Embedding,
}

/// A model somewhere, behind an OpenAI-compatible endpoint.
#[derive(Clone, PartialEq, Eq)]
pub struct Model {
    /// What apps call it.
    pub name: String,
    pub kind: Kind,
    /// Up to and including `/v1`, as OpenAI's own clients have it.
    pub base_url: String,
    /// Ours, not the app's; none where the endpoint asks for none.
    pub key: Option<String>,
    /// What the endpoint calls it.
    pub model: String,
    /// How long the endpoint may be silent.
    pub timeout: Duration,
}

impl std::fmt::Debug for Model {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Model")
            .field("name", &self.name)
            .field("kind", &self.kind)
            .field("base_url", &self.base_url)
            .finish_non_exhaustive()
    }
}

/// How much an app may ask for.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Bytes of a request, pictures included.
    pub json_bytes: usize,
    /// Bytes of a request with a recording; OpenAI itself takes 25 MB.
    pub form_bytes: usize,
    /// Bytes of an answer that does not come as a stream.
    pub answer_bytes: usize,
    /// Time for a whole request to arrive.
    pub body_within: Duration,
    /// Requests of one app at a time.
    pub at_once: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            json_bytes: 16 * 1024 * 1024,
            form_bytes: 64 * 1024 * 1024,
            answer_bytes: 64 * 1024 * 1024,
            body_within: Duration::from_secs(60),
            at_once: 8,
        }
    }
}

pub fn routes(host: Host) -> Router {
    Router::new()
        .route("/models", get(models))
        .route("/models/{name}", get(model))
        .route("/chat/completions", post(chat))
        .route("/embeddings", post(embeddings))
        .route("/audio/transcriptions", post(transcriptions))
        .fallback(async || Refusal::not_found("there is no such endpoint here").into_response())
        .method_not_allowed_fallback(async || Refusal::not_found("not with this method").into_response())
        .layer(middleware::from_fn_with_state(host.clone(), door::admit))
        .with_state(host)
}

async fn models(State(host): State<Host>) -> Json<Value> {
    Json(json!({"object": "list", "data": host.shared.models.iter().map(shown).collect::<Vec<_>>()}))
}

async fn model(State(host): State<Host>, Path(name): Path<String>) -> Result<Json<Value>, Refusal> {
    let known = host.shared.models.iter().find(|model| model.name == name);
    known.map(|model| Json(shown(model))).ok_or_else(|| Refusal::no_model(&name))
}

fn shown(model: &Model) -> Value {
    json!({"id": model.name, "object": "model", "created": 0, "owned_by": "gleaner", "kind": model.kind})
}

async fn chat(State(host): State<Host>, Extension(client): Extension<Client>, request: Request) -> Result<Response, Refusal> {
    forward::json(&host, client, Kind::Chat, "chat/completions", request).await
}

async fn embeddings(State(host): State<Host>, Extension(client): Extension<Client>, request: Request) -> Result<Response, Refusal> {
    forward::json(&host, client, Kind::Embedding, "embeddings", request).await
}

async fn transcriptions(State(host): State<Host>, Extension(client): Extension<Client>, request: Request) -> Result<Response, Refusal> {
    forward::form(&host, client, Kind::Transcription, "audio/transcriptions", request).await
}

impl Host {
    /// The model of that name; the first of its kind when none is named, or `default`.
    fn model(&self, kind: Kind, name: Option<&str>) -> Result<&Model, Refusal> {
        let mut of_kind = self.shared.models.iter().filter(|model| model.kind == kind);
        match name.filter(|name| !name.is_empty() && *name != "default") {
            Some(name) => of_kind.find(|model| model.name == name || model.model == name).ok_or_else(|| Refusal::no_model(name)),
            None => of_kind.next().ok_or_else(|| Refusal::not_found("the agent has no model of this kind; its pipeline file names models")),
        }
    }
}
