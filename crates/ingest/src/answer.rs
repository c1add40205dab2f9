//! The response to the sender.

use http::StatusCode;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    pub status: StatusCode,
    pub content_type: &'static str,
    pub headers: Vec<(&'static str, String)>,
    pub body: String,
}

impl Answer {
    pub fn json(status: StatusCode, body: &serde_json::Value) -> Self {
        Self { status, content_type: "application/json", headers: Vec::new(), body: body.to_string() }
    }

    pub fn text(status: StatusCode, content_type: &'static str, body: impl Into<String>) -> Self {
        Self { status, content_type, headers: Vec::new(), body: body.into() }
    }

    #[must_use]
    pub fn with(mut self, header: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((header, value.into()));
        self
    }
}
