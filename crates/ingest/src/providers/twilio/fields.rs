//! The fields of a webhook, from the body or the query.

use http::Method;
use serde_json::Value;

use crate::text::parse_json;
use crate::{Refusal, Request};

/// Names and decoded values, in their original order.
#[derive(Debug, Clone)]
pub(super) struct Fields {
    pairs: Vec<(String, String)>,
    pub source: Source,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    Form,
    Json,
    /// A webhook configured as GET has everything in the signed URL.
    Query,
}

impl Fields {
    pub(super) fn read(request: &Request<'_>) -> Result<Self, Refusal> {
        if is_form(request) {
            return Ok(Self::form(request.body));
        }
        if request.body.is_empty() {
            let query = if request.method == Method::GET { request.query().unwrap_or_default() } else { "" };
            return Ok(Self { source: Source::Query, ..Self::form(query.as_bytes()) });
        }
        let value = parse_json(request.body).map_err(|_| Refusal::Malformed("the body is neither a form nor JSON".to_owned()))?;
        let pairs = match value {
            Value::Object(map) => map.into_iter().filter_map(|(name, value)| Some((name, plain(value)?))).collect(),
            _ => Vec::new(),
        };
        Ok(Self { pairs, source: Source::Json })
    }

    pub(super) fn form(bytes: &[u8]) -> Self {
        Self { pairs: form_urlencoded::parse(bytes).into_owned().collect(), source: Source::Form }
    }

    pub(super) fn pairs(&self) -> &[(String, String)] {
        &self.pairs
    }

    /// All values of a name.
    pub(super) fn every<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a str> {
        self.pairs.iter().filter(move |(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The first value that is not empty.
    pub(super) fn text<'a>(&'a self, name: &str) -> Option<&'a str> {
        self.every(name).find(|value| !value.is_empty())
    }

    /// Refuses a form in which one of these fields is missing, empty, or has two values.
    pub(super) fn require_one(&self, names: &[&str]) -> Result<(), Refusal> {
        for name in names {
            let first = self.text(name).ok_or_else(|| Refusal::Malformed(format!("{name} is missing")))?;
            if self.every(name).any(|other| other != first) {
                return Err(Refusal::Malformed(format!("{name} has two values")));
            }
        }
        Ok(())
    }

    /// One of Twilio's ids: a prefix and 32 hex digits, the same wherever it is repeated.
    pub(super) fn id(&self, name: &str, prefixes: &[&str]) -> Result<Option<&str>, Refusal> {
        let Some(id) = self.text(name) else { return Ok(None) };
        if is_id(id, prefixes) && self.every(name).all(|other| other == id) {
            return Ok(Some(id));
        }
        Err(Refusal::Malformed(format!("{name} is not one id of the form {}… with 32 hex digits", prefixes.join("… or "))))
    }
}

pub(super) fn is_form(request: &Request<'_>) -> bool {
    request.content_type().as_deref() == Some("application/x-www-form-urlencoded")
}

pub(super) fn is_id(text: &str, prefixes: &[&str]) -> bool {
    let is_digits = |rest: &str| rest.len() == 32 && rest.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    prefixes.iter().filter_map(|prefix| text.strip_prefix(prefix)).any(is_digits)
}

fn plain(value: Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(truth) => Some(truth.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_well_formed_and_unambiguous() {
        let id = "SM0123456789abcdef0123456789abcdef";
        let read = |body: String| Fields::form(body.as_bytes()).id("MessageSid", &["SM", "MM"]).map(|id| id.map(str::to_owned));
        assert_eq!(read(format!("MessageSid={id}")), Ok(Some(id.to_owned())));
        assert_eq!(read(format!("MessageSid={id}&MessageSid={id}")), Ok(Some(id.to_owned())));
        assert_eq!(read("Body=x&MessageSid=".to_owned()), Ok(None));
        for wrong in
            ["SM123", "CA0123456789abcdef0123456789abcdef", "SM0123456789ABCDEF0123456789ABCDEF", "SM0123456789abcdef0123456789abcdef0"]
        {
            assert!(read(format!("MessageSid={wrong}")).is_err(), "{wrong}");
            assert!(read(format!("MessageSid={id}&MessageSid={wrong}")).is_err(), "{wrong} beside a good one");
        }
    }

    #[test]
    fn a_semicolon_separates_nothing() {
        let fields = Fields::form(b"Body=a;b=c&d=e");
        assert_eq!(fields.text("Body"), Some("a;b=c"));
        assert_eq!(fields.text("b"), None);
    }
}
