//! Turns a text into an embedding vector.

use gleaner::Failure;
use serde_json::{Value, json};

use super::failure::MODEL;
use super::{Output, Seen, openai};

#[derive(Debug, Clone)]
pub struct Embed {
    pub model: String,
}

impl Embed {
    pub async fn run(&self, seen: &Seen<'_>) -> Result<Output, Failure> {
        let model = openai::model(seen.models, &self.model, MODEL)?;
        let body = json!({"model": model.model, "input": seen.text, "encoding_format": "float"});
        let answer = openai::ask(seen.models, &seen.key(), model, MODEL, |request| request.json(&body)).await?;
        let vector = answer.get("/data/0/embedding").filter(|vector| vector.as_array().is_some_and(|v| v.iter().all(Value::is_number)));
        let vector = vector.ok_or_else(|| Failure::new("the model's answer has no data[0].embedding of numbers").category(MODEL))?;
        let name = answer.model().unwrap_or_else(|| model.model.clone());
        Ok(Output { value: json!({"model": name, "vector": vector}), tokens: answer.tokens(), model: Some(name) })
    }
}
