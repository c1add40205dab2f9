//! Calls an OpenAI-compatible endpoint, and reads its usage and its errors.

use gleaner::Failure;
use serde_json::Value;

use super::Tokens;
use super::failure::{of_request, of_status};
use crate::models::{Model, Models};

/// A longer response is not accepted.
const LONGEST_ANSWER: usize = 32 * 1024 * 1024;

pub(super) fn model<'a>(models: &'a Models, name: &str, category: &str) -> Result<&'a Model, Failure> {
    models.get(name).ok_or_else(|| Failure::new(format!("there is no model {name:?}")).category(category))
}

/// Sends the request after `fill` has completed it. `key` is the same for each try of the same request.
pub(super) async fn ask(
    models: &Models,
    key: &str,
    model: &Model,
    category: &str,
    fill: impl FnOnce(reqwest::RequestBuilder) -> reqwest::RequestBuilder,
) -> Result<Answer, Failure> {
    let what = format!("model {}", model.name);
    let trouble = |why: String| Failure::new(why).category(category);
    let client = models.client().map_err(|error| of_request(category, &what, error))?;
    let mut request = client.post(model.url().map_err(trouble)?).timeout(model.timeout);
    if let Some(secret) = model.key().map_err(trouble)? {
        request = request.bearer_auth(secret);
    }
    // An endpoint that supports it processes a repeated request only once.
    request = request.header("idempotency-key", key);
    let response = fill(request).send().await.map_err(|error| of_request(category, &what, error))?;
    let (status, headers) = (response.status(), response.headers().clone());
    let body = read(response, category, &what).await?;
    if !status.is_success() {
        return Err(of_status(category, &what, status, &headers, &body));
    }
    let json: Option<Value> = serde_json::from_str(&body).ok();
    Ok(Answer { json, body })
}

/// The text of a response, up to the size limit.
pub(super) async fn read(mut response: reqwest::Response, category: &str, what: &str) -> Result<String, Failure> {
    let mut body = Vec::new();
    while let Some(piece) = response.chunk().await.map_err(|error| of_request(category, what, error))? {
        body.extend_from_slice(&piece);
        if body.len() > LONGEST_ANSWER {
            return Err(Failure::new(format!("{what} answered with more than 32 MiB")).category(category).for_good());
        }
    }
    Ok(String::from_utf8(body).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
}

pub(super) struct Answer {
    pub json: Option<Value>,
    pub body: String,
}

impl Answer {
    pub(crate) fn get(&self, pointer: &str) -> Option<&Value> {
        self.json.as_ref()?.pointer(pointer)
    }

    pub(crate) fn model(&self) -> Option<String> {
        self.get("/model").and_then(Value::as_str).map(str::to_owned)
    }

    /// Chat and embeddings call them prompt and completion, newer transcriptions input and output.
    pub(crate) fn tokens(&self) -> Tokens {
        let number = |names: &[&str]| names.iter().find_map(|name| self.get(&format!("/usage/{name}"))?.as_u64()).unwrap_or(0);
        let (input, output) = (number(&["prompt_tokens", "input_tokens"]), number(&["completion_tokens", "output_tokens"]));
        Tokens { input, output, total: number(&["total_tokens"]).max(input + output) }
    }
}
