//! A language model: sends a prompt, checks the answer against its schema, and asks once for a correction.

use std::sync::Arc;

use gleaner::Failure;
use serde_json::{Value, json};

use super::failure::MODEL;
use super::openai::{self, Answer};
use super::template::Template;
use super::{Output, Seen};
use crate::models::Models;

/// The most schema errors that are reported back to a model.
const COMPLAINTS: usize = 5;

#[derive(Debug, Clone)]
pub struct Chat {
    pub model: String,
    pub system: Option<Template>,
    pub user: Template,
    pub schema: Option<Schema>,
    /// How the schema is requested. Not every server supports the newest form.
    pub format: Format,
    pub temperature: Option<f64>,
    pub max_tokens: Option<u32>,
    pub language: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    JsonSchema,
    JsonObject,
    Plain,
}

/// The required shape of an answer.
#[derive(Debug, Clone)]
pub struct Schema {
    pub json: Value,
    validator: Arc<jsonschema::Validator>,
}

impl Schema {
    pub fn new(json: Value) -> Result<Self, String> {
        let validator = jsonschema::validator_for(&json).map_err(|error| error.to_string())?;
        Ok(Self { json, validator: Arc::new(validator) })
    }

    /// The schema errors, for the model to correct.
    fn complaints(&self, value: &Value) -> Vec<String> {
        let complaint = |error: jsonschema::ValidationError<'_>| {
            let place = error.instance_path().to_string();
            if place.is_empty() { error.to_string() } else { format!("{place}: {error}") }
        };
        self.validator.iter_errors(value).take(COMPLAINTS).map(complaint).collect()
    }
}

impl Chat {
    pub fn configuration(&self) -> Value {
        json!([
            self.schema.as_ref().map(|schema| &schema.json),
            format!("{:?}", self.format),
            self.temperature,
            self.max_tokens,
            self.language
        ])
    }

    pub fn messages(&self, seen: &Seen<'_>) -> Result<Vec<Value>, Failure> {
        let language = self.language.as_deref();
        let mut messages = Vec::new();
        if let Some(system) = &self.system {
            messages.push(json!({"role": "system", "content": system.render(seen, language)?}));
        }
        messages.push(json!({"role": "user", "content": self.user.render(seen, language)?}));
        Ok(messages)
    }

    pub async fn run(&self, seen: &Seen<'_>) -> Result<Output, Failure> {
        let mut messages = self.messages(seen)?;
        let answer = self.ask(seen, &messages).await?;
        let (text, mut tokens, model) = (content(&answer)?, answer.tokens(), answer.model());
        let Some(schema) = &self.schema else { return Ok(Output { value: json!(text.trim()), tokens, model }) };
        let complaints = match read(&text, schema) {
            Ok(value) => return Ok(Output { value, tokens, model }),
            Err(complaints) => complaints,
        };
        tracing::debug!(
            id = seen.item.key,
            complaints = complaints.join("; "),
            "an answer does not fit its schema; asking the model to correct it"
        );
        messages.push(json!({"role": "assistant", "content": text}));
        messages.push(json!({"role": "user", "content": format!(
            "Your answer does not fit the JSON schema:\n- {}\nAnswer again with the corrected JSON only, and nothing else.\nThe schema: {}",
            complaints.join("\n- "), schema.json
        )}));
        let answer = self.ask(seen, &messages).await?;
        tokens = tokens.plus(answer.tokens());
        match read(&content(&answer)?, schema) {
            Ok(value) => Ok(Output { value, tokens, model }),
            Err(complaints) => {
                Err(Failure::new(format!("the answer does not fit its schema, nor when asked again: {}", complaints.join("; ")))
                    .category(MODEL))
            }
        }
    }

    async fn ask(&self, seen: &Seen<'_>, messages: &[Value]) -> Result<Answer, Failure> {
        let model = openai::model(seen.models, &self.model, MODEL)?;
        let mut body = json!({"model": model.model, "messages": messages});
        if let Some(temperature) = self.temperature {
            body["temperature"] = json!(temperature);
        }
        if let Some(most) = self.max_tokens {
            body["max_tokens"] = json!(most);
        }
        match (&self.schema, self.format) {
            (Some(schema), Format::JsonSchema) => {
                body["response_format"] =
                    json!({"type": "json_schema", "json_schema": {"name": "answer", "strict": true, "schema": schema.json}});
            }
            (Some(_), Format::JsonObject) => body["response_format"] = json!({"type": "json_object"}),
            _ => {}
        }
        openai::ask(seen.models, &seen.key(), model, MODEL, |request| request.json(&body)).await
    }
}

/// What a model says to these messages. `key` is the same for each try.
pub async fn say(models: &Models, name: &str, key: &str, messages: &[Value]) -> Result<String, Failure> {
    let model = openai::model(models, name, MODEL)?;
    let body = json!({"model": model.model, "messages": messages});
    let answer = openai::ask(models, key, model, MODEL, |request| request.json(&body)).await?;
    let text = content(&answer)?;
    Ok(text.rsplit("</think>").next().unwrap_or(&text).trim().to_owned())
}

/// The text of the model's answer. A refusal is final, because a retry gives the same answer.
fn content(answer: &Answer) -> Result<String, Failure> {
    if let Some(refusal) = answer.get("/choices/0/message/refusal").and_then(Value::as_str) {
        return Err(Failure::new(format!("the model refuses: {refusal}")).category(MODEL).for_good());
    }
    let cut = answer.get("/choices/0/finish_reason").and_then(Value::as_str) == Some("length");
    match answer.get("/choices/0/message/content").and_then(Value::as_str) {
        Some(_) if cut => Err(Failure::new("the model's answer was cut off; raise max_tokens").category(MODEL).for_good()),
        Some(text) => Ok(text.to_owned()),
        None => {
            let start: String = answer.body.chars().take(200).collect();
            Err(Failure::new(format!("the model's answer has no choices[0].message.content: {start}")).category(MODEL))
        }
    }
}

/// The JSON in an answer, if it matches the schema. It may be in a code fence or follow a thinking block.
fn read(text: &str, schema: &Schema) -> Result<Value, Vec<String>> {
    let text = text.rsplit("</think>").next().unwrap_or(text).trim();
    let fenced = text.strip_prefix("```json").or_else(|| text.strip_prefix("```")).and_then(|rest| rest.rsplit_once("```"));
    let text = fenced.map_or(text, |(inside, _)| inside).trim();
    let value: Value = serde_json::from_str(text).map_err(|error| vec![format!("it is not JSON: {error}")])?;
    let complaints = schema.complaints(&value);
    if complaints.is_empty() { Ok(value) } else { Err(complaints) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_found_in_what_models_put_around_it() {
        let schema = Schema::new(json!({"type": "object", "required": ["summary"], "properties": {"summary": {"type": "string"}}}))
            .expect("a schema");
        for text in [r#"{"summary": "s"}"#, "```json\n{\"summary\": \"s\"}\n```", "<think>hm {}</think>\n{\"summary\": \"s\"}"] {
            assert_eq!(read(text, &schema), Ok(json!({"summary": "s"})), "{text}");
        }
        assert_eq!(read(r#"{"summary": 1}"#, &schema).expect_err("a number"), [r#"/summary: 1 is not of type "string""#]);
        assert!(read("Sure!", &schema).expect_err("no JSON")[0].starts_with("it is not JSON"));
    }
}
