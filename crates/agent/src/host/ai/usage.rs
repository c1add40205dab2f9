//! What each app has used since the agent started.

use serde::Serialize;
use serde_json::Value;

use super::super::{Host, locked};

#[derive(Debug, Clone, Default, Serialize)]
pub struct Usage {
    pub requests: u64,
    pub failed: u64,
    /// As the models report them. Models that report no usage count as zero.
    pub prompt_tokens: u64,
    pub completion_tokens: u64,
}

impl Host {
    /// How much the app of that name has used the models.
    pub fn usage(&self, name: &str) -> Usage {
        locked(&self.shared.usage).get(name).cloned().unwrap_or_default()
    }

    pub(super) fn count(&self, name: &str, add: impl FnOnce(&mut Usage)) {
        add(locked(&self.shared.usage).entry(name.to_owned()).or_default());
    }

    /// Counts the tokens of a response, or of one event of a stream.
    pub(super) fn count_tokens(&self, name: &str, answer: &Value) {
        let Some(reported) = answer.get("usage").filter(|usage| usage.is_object()) else { return };
        let number = |names: [&str; 2]| names.iter().find_map(|name| reported.get(*name).and_then(Value::as_u64)).unwrap_or(0);
        let (prompt, completion) = (number(["prompt_tokens", "input_tokens"]), number(["completion_tokens", "output_tokens"]));
        self.count(name, |usage| {
            usage.prompt_tokens = usage.prompt_tokens.saturating_add(prompt);
            usage.completion_tokens = usage.completion_tokens.saturating_add(completion);
        });
    }
}
