//! The models behind an OpenAI-compatible API, for the apps of the page. Each app has a token, which is valid only from its own
//! origin.
//!
//! - [`authenticate`]: authenticates the apps; [`forward`]: forwards a request to a model and returns its response; [`form`]: requests
//!   with a recording.
//! - [`usage`]: what each app has used; [`error`]: errors in OpenAI's format.

mod authenticate;
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
use authenticate::Client;
use error::Refusal;
pub use usage::Usage;

/// The purpose of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    Chat,
    Transcription,
    Embedding,
}

/// A model behind an OpenAI-compatible endpoint.
#[derive(Clone, PartialEq, Eq)]
pub struct Model {
    /// The name that apps use.
    pub name: String,
    pub kind: Kind,
    /// The base URL up to and including `/v1`, as in OpenAI's own clients.
    pub base_url: String,
    /// Our key, not the app's. None if the endpoint needs none.
    pub key: Option<String>,
    /// The name that the endpoint uses.
    pub model: String,
    /// How long the endpoint may take without sending anything.
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

/// The limits of an app's requests.
#[derive(Debug, Clone)]
pub struct Limits {
    /// The largest request in bytes, pictures included.
    pub json_bytes: usize,
    /// The largest request with a recording in bytes. OpenAI itself accepts 25 MB.
    pub form_bytes: usize,
    /// The largest response in bytes that is not a stream.
    pub answer_bytes: usize,
    /// The timeout for receiving a whole request.
    pub body_within: Duration,
    /// How many requests one app may have at a time.
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
        .layer(middleware::from_fn_with_state(host.clone(), authenticate::admit))
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
    /// The model of that name. The first of its kind when none is named, or when the name is `default`.
    fn model(&self, kind: Kind, name: Option<&str>) -> Result<&Model, Refusal> {
        let mut of_kind = self.shared.models.iter().filter(|model| model.kind == kind);
        match name.filter(|name| !name.is_empty() && *name != "default") {
            Some(name) => of_kind.find(|model| model.name == name || model.model == name).ok_or_else(|| Refusal::no_model(name)),
            None => of_kind.next().ok_or_else(|| Refusal::not_found("the agent has no model of this kind; its pipeline file names models")),
        }
    }
}
