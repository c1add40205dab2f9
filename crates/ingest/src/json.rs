//! A body that should be JSON.

use serde_json::Value;

use crate::{Refusal, text};

/// Parses it, and repairs what can be repaired ([`text::parse_json`]). Nesting beyond any real event is refused.
pub fn read(body: &[u8]) -> Result<Value, Refusal> {
    // The position helps the sender. The text around it is the sender's and may be private.
    text::parse_json(body).map_err(|error| Refusal::Malformed(format!("not JSON (line {}, column {})", error.line(), error.column())))
}
