//! How a run ended.

use serde_json::Value;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Outcome {
    /// Whether every line of the data passed.
    pub passed: bool,
    pub text: String,
}

impl Outcome {
    /// None while it has not ended. `dead`: it failed and is not tried again.
    pub(super) fn of(status: &str, dead: bool, result: Option<&Value>, error: Option<&str>) -> Option<Self> {
        let message = result.and_then(|result| result["message"].as_str());
        let failed = |text: &str| Some(Self { passed: false, text: text.to_owned() });
        match status {
            // A runner of one's own may leave another result, or none.
            "completed" => {
                let passed = result.is_none_or(|result| result["outcome"].as_str().is_none_or(|outcome| outcome == "passed"));
                Some(Self { passed, text: message.unwrap_or("completed").to_owned() })
            }
            "cancelled" => failed("cancelled"),
            _ if dead => failed(error.unwrap_or("failed")),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_run_ends_as_passed_only_if_every_line_did() {
        let passed = |status, dead, result: Option<Value>| Outcome::of(status, dead, result.as_ref(), None).map(|outcome| outcome.passed);
        assert_eq!(passed("completed", false, Some(json!({"outcome": "passed"}))), Some(true));
        assert_eq!(passed("completed", false, Some(json!({"outcome": "failed"}))), Some(false));
        assert_eq!(passed("completed", false, None), Some(true));
        assert_eq!(passed("cancelled", false, None), Some(false));
        assert_eq!((passed("failed", false, None), passed("failed", true, None)), (None, Some(false)));
        assert_eq!((passed("queued", false, None), passed("running", false, None)), (None, None));
    }
}
