//! The structure of a generic body: named fields, or just text.

use serde_json::{Map, Value};

use crate::form::{self, Form};
use crate::{Refusal, Request, json};

#[derive(Debug)]
pub(super) struct Shape {
    /// The members of a JSON object, or the fields of a form.
    pub fields: Map<String, Value>,
    /// The whole body as text.
    pub text: String,
}

impl Shape {
    pub(super) fn read(request: &Request<'_>) -> Result<Self, Refusal> {
        if request.body.iter().all(u8::is_ascii_whitespace) {
            return Err(Refusal::Malformed("the body is empty".to_owned()));
        }
        let content_type = request.content_type();
        match content_type.as_deref() {
            // No content type, or the one that `curl -d` sends for every body: it is JSON when it parses as such.
            None | Some("application/x-www-form-urlencoded") if matches!(json::read(request.body), Ok(Value::Object(_))) => {
                Self::of_json(request)
            }
            Some("application/x-www-form-urlencoded") => {
                Ok(Self { fields: fields(&Form::urlencoded(request.body)?), text: text(request)? })
            }
            Some("multipart/form-data") => {
                let form = Form::read(request)?;
                // The body itself is boundaries and headers. People want to read the fields.
                let lines = form.fields().iter().filter(|field| field.file_name.is_none());
                let text = lines.map(|field| format!("{}: {}", field.name, field.text(None))).collect::<Vec<_>>().join("\n");
                Ok(Self { fields: fields(&form), text })
            }
            Some(kind) if kind == "application/json" || kind.ends_with("+json") => Self::of_json(request),
            Some(kind) if kind.starts_with("image/") || kind.starts_with("audio/") || kind.starts_with("video/") => {
                Err(Refusal::Unsupported("a file; send JSON with its url".to_owned()))
            }
            _ => Ok(Self { fields: Map::new(), text: text(request)? }),
        }
    }

    fn of_json(request: &Request<'_>) -> Result<Self, Refusal> {
        let fields = match json::read(request.body)? {
            Value::Object(fields) => fields,
            _ => Map::new(),
        };
        Ok(Self { fields, text: text(request)? })
    }

    /// The challenge that Slack sends when a URL is entered there, which must be returned to it.
    pub(super) fn slack_challenge(&self) -> Option<String> {
        let is_challenge = self.fields.get("type").and_then(Value::as_str) == Some("url_verification");
        let challenge = self.fields.get("challenge").filter(|_| is_challenge)?.as_str()?;
        Some(challenge.to_owned())
    }
}

/// The first field of each name, as text. `metadata` in a form is JSON, because a form has no other structure.
fn fields(form: &Form) -> Map<String, Value> {
    let mut fields = Map::new();
    for field in form.fields().iter().filter(|field| field.file_name.is_none()) {
        let value = field.text(None);
        let value = match field.name.as_str() {
            "metadata" => json::read(value.as_bytes()).unwrap_or(Value::String(value)),
            _ => Value::String(value),
        };
        fields.entry(field.name.clone()).or_insert(value);
    }
    fields
}

/// The body as text, in its declared charset. Bytes that are not text are refused rather than stored as garbage.
fn text(request: &Request<'_>) -> Result<String, Refusal> {
    match request.header("content-type").and_then(form::charset_parameter).filter(|charset| !charset.eq_ignore_ascii_case("utf-8")) {
        Some(charset) => Ok(form::decode(request.body, Some(&charset))),
        None => match std::str::from_utf8(request.body) {
            Ok(text) => Ok(text.strip_prefix('\u{feff}').unwrap_or(text).to_owned()),
            Err(_) => Err(Refusal::Malformed("the body is not UTF-8 and names no other charset".to_owned())),
        },
    }
}
