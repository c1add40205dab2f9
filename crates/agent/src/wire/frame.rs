//! The messages on the WebSocket: Phoenix channels, version 2.0.0, `[join_ref, ref, topic, event, payload]`.

use serde_json::{Value, json};

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Frame {
    pub join_ref: Option<String>,
    pub reference: Option<String>,
    pub topic: String,
    pub event: String,
    pub payload: Value,
}

impl Frame {
    pub(super) fn encode(&self) -> String {
        json!([self.join_ref, self.reference, self.topic, self.event, self.payload]).to_string()
    }

    /// None for a message that is not a frame: one malformed message is no reason to lose all channels.
    pub(super) fn decode(text: &str) -> Option<Self> {
        let (join_ref, reference, topic, event, payload): (Option<String>, Option<String>, String, String, Value) =
            serde_json::from_str(text).ok()?;
        Some(Self { join_ref, reference, topic, event, payload })
    }

    /// Whether this reply reports success. If not, the message it contains.
    pub(super) fn verdict(&self) -> Result<(), String> {
        if self.payload["status"] == "ok" {
            return Ok(());
        }
        let said = ["/response/reason", "/message", "/response"].iter().find_map(|at| self.payload.pointer(at));
        Err(said.map_or_else(|| "no reason given".to_owned(), |said| said.as_str().map_or_else(|| said.to_string(), str::to_owned)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_read_as_they_are_written_and_others_passed_over() {
        let frame = Frame {
            join_ref: Some("1".into()),
            reference: None,
            topic: "realtime:x".into(),
            event: "phx_reply".into(),
            payload: json!({"status": "error", "response": {"reason": "no"}}),
        };
        assert_eq!(Frame::decode(&frame.encode()).as_ref(), Some(&frame));
        assert_eq!(frame.verdict(), Err("no".into()));
        for odd in ["", "[]", "{}", "[1,2,3,4,5]", "null"] {
            assert_eq!(Frame::decode(odd), None, "{odd}");
        }
    }
}
