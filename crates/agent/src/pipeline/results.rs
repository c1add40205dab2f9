//! The results of a pipeline as they are stored with the item: results by key, and the bookkeeping under `gleaner`.
//!
//! ```json
//! {
//!   "transcript": "…", "summary": "…", "facts": ["…"],
//!   "gleaner": {
//!     "version": 1,
//!     "stages": {"summary": {"by": "built in: …", "at": "…", "seconds": 0.01, "keys": ["summary"], "fingerprint": "…"}},
//!     "tokens": {"input": 0, "output": 0, "total": 0},
//!     "models_used": false,
//!     "note": "No model was used for summary: …"
//!   }
//! }
//! ```

use std::collections::BTreeMap;

use gleaner_stages::{Output, Stage, Tokens, Work};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// Increased when older agents could misread the format.
const VERSION: u64 = 1;
const BOOKS: &str = "gleaner";

/// One finished stage: a checkpoint.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
struct Done {
    by: String,
    at: String,
    seconds: f64,
    /// The keys of the results it wrote.
    keys: Vec<String>,
    /// The hash of its configuration and its input. If it differs, the stage runs again.
    fingerprint: String,
    #[serde(skip_serializing_if = "Tokens::is_none")]
    tokens: Tokens,
    /// Its output, if that is not for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<Value>,
    /// Why it did not run.
    #[serde(skip_serializing_if = "Option::is_none")]
    skipped: Option<String>,
    model: bool,
}

#[derive(Debug)]
pub(super) struct Results {
    /// Results of earlier holders.
    before: Map<String, Value>,
    left: BTreeMap<String, Done>,
    /// Results of this run, computed now or taken over.
    found: Map<String, Value>,
    hidden: Map<String, Value>,
    stages: BTreeMap<String, Done>,
    builtin: Vec<String>,
}

impl Results {
    pub(super) fn behind(partial: Option<&Value>) -> Self {
        let before = partial.and_then(Value::as_object).cloned().unwrap_or_default();
        let books = before.get(BOOKS).filter(|books| books["version"] == VERSION);
        // Anything that people or other programs have written there is not a checkpoint.
        let left = books.and_then(|books| serde_json::from_value(books["stages"].clone()).ok()).unwrap_or_default();
        Self { before, left, found: Map::new(), hidden: Map::new(), stages: BTreeMap::new(), builtin: Vec::new() }
    }

    /// The results that later stages see.
    pub(super) fn seen(&self) -> Map<String, Value> {
        self.found.iter().chain(&self.hidden).map(|(key, value)| (key.clone(), value.clone())).collect()
    }

    pub(super) fn text(&self) -> Option<&str> {
        self.found.get("transcript").or_else(|| self.hidden.get("transcript")).and_then(Value::as_str)
    }

    /// Takes over a stage that an earlier holder finished, if its fingerprint is the same.
    pub(super) fn resume(&mut self, stage: &Stage, fingerprint: &str) -> bool {
        let same = |done: &&Done| done.fingerprint == fingerprint && done.skipped.is_none();
        let Some(done) = self.left.get(&stage.name).filter(same).cloned() else { return false };
        if stage.keep {
            let values: Option<Vec<(String, Value)>> =
                done.keys.iter().map(|key| Some((key.clone(), self.before.get(key)?.clone()))).collect();
            let Some(values) = values else { return false };
            self.found.extend(values);
        } else {
            let Some(output) = done.output.clone() else { return false };
            self.hidden.insert(stage.key.clone(), output);
        }
        self.note(stage);
        self.stages.insert(stage.name.clone(), done);
        true
    }

    /// Adds the output of a stage. Returns what is to be stored now.
    pub(super) fn add(&mut self, stage: &Stage, fingerprint: String, output: Output, seconds: f64) -> Value {
        let mut done = Done {
            by: stage.by(&output),
            at: chrono::Utc::now().to_rfc3339_opts(chrono::SecondsFormat::Secs, true),
            seconds: (seconds * 1000.0).round() / 1000.0,
            fingerprint,
            tokens: output.tokens,
            model: stage.asks_model(),
            ..Done::default()
        };
        let value = storable(unwrapped(output.value, &stage.key));
        let mut news = Map::new();
        if !stage.keep {
            self.hidden.insert(stage.key.clone(), value.clone());
            done.output = Some(value);
        } else if stage.key == "*" {
            if let Value::Object(mut all) = value {
                // Only we write the bookkeeping.
                all.remove(BOOKS);
                news = all;
            }
        } else {
            news.insert(stage.key.clone(), value);
        }
        done.keys = news.keys().cloned().collect();
        self.found.extend(news.clone());
        self.note(stage);
        self.stages.insert(stage.name.clone(), done);
        news.insert(BOOKS.into(), self.books());
        news.into()
    }

    pub(super) fn skip(&mut self, stage: &Stage, why: &str) {
        self.stages.insert(stage.name.clone(), Done { skipped: Some(why.to_owned()), ..Done::default() });
    }

    fn note(&mut self, stage: &Stage) {
        if matches!(stage.work, Work::Builtin(_)) && stage.key != "transcript" {
            self.builtin.push(stage.key.clone());
        }
    }

    /// All results, for the completion.
    pub(super) fn finish(mut self) -> Value {
        let books = self.books();
        self.found.insert(BOOKS.into(), books);
        self.found.into()
    }

    fn books(&self) -> Value {
        let tokens = self.stages.values().fold(Tokens::default(), |all, done| all.plus(done.tokens));
        let mut books = json!({
            "version": VERSION, "stages": self.stages, "tokens": tokens, "models_used": self.stages.values().any(|done| done.model),
        });
        if !self.builtin.is_empty() {
            books["note"] = json!(format!(
                "No model was used for {}: words are counted and patterns matched, which finds much and understands nothing.",
                self.builtin.join(", ")
            ));
        }
        books
    }
}

/// Unwraps `{"summary": "…"}` for the key `summary`, and `{"text": "…"}`.
fn unwrapped(value: Value, key: &str) -> Value {
    match value {
        Value::Object(mut object) if object.len() == 1 && key != "*" => {
            let inner = object.remove(key).or_else(|| object.remove("text"));
            inner.unwrap_or_else(|| object.into())
        }
        other => other,
    }
}

/// PostgreSQL's jsonb cannot store the null character.
fn storable(value: Value) -> Value {
    match value {
        Value::String(text) if text.contains('\0') => text.replace('\0', "\u{fffd}").into(),
        Value::Array(values) => values.into_iter().map(storable).collect(),
        Value::Object(object) => object.into_iter().map(|(key, value)| (key.replace('\0', "\u{fffd}"), storable(value))).collect(),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_in_an_envelope_is_taken_out() {
        assert_eq!(unwrapped(json!({"summary": "s"}), "summary"), json!("s"));
        assert_eq!(unwrapped(json!({"text": "t"}), "transcript"), json!("t"));
        assert_eq!(unwrapped(json!({"a": 1}), "summary"), json!({"a": 1}));
        assert_eq!(unwrapped(json!({"summary": "s", "more": 1}), "summary"), json!({"summary": "s", "more": 1}));
        assert_eq!(storable(json!({"a\0": ["b\0"]})), json!({"a\u{fffd}": ["b\u{fffd}"]}));
    }
}
