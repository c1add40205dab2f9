//! The fields of a Mailgun request, in any encoding.

use serde_json::Value;

use crate::form::{self, Form};
use crate::mail::Enclosure;
use crate::{Refusal, Request, draft, json};

#[derive(Debug)]
pub(super) enum Fields {
    Form(Form),
    Json(Value),
}

impl Fields {
    pub(super) fn read(request: &Request<'_>) -> Result<Self, Refusal> {
        if request.content_type().as_deref() == Some("application/json") {
            return Ok(Self::Json(json::read(request.body)?));
        }
        Form::read(request).map(Self::Form)
    }

    pub(super) fn text(&self, name: &str) -> Option<String> {
        match self {
            Self::Form(form) => form.text(name),
            Self::Json(body) => body[name].as_str().map(str::to_owned),
        }
    }

    pub(super) fn bytes(&self, name: &str) -> Option<Vec<u8>> {
        match self {
            Self::Form(form) => form.get(name).map(|field| field.bytes.clone()),
            Self::Json(body) => body[name].as_str().map(|text| text.as_bytes().to_vec()),
        }
    }

    /// Whether this is a delivery event: under `event-data` (delivered, opened, bounced), or in older webhooks a form with an
    /// `event`. A mail may have a header of that name, which Mailgun repeats as a field, but a mail has a body.
    pub(super) fn is_delivery_event(&self) -> bool {
        let has_body = || ["body-plain", "body-html", "body-mime"].iter().any(|name| self.text(name).is_some());
        matches!(self, Self::Json(body) if body["event-data"].is_object()) || (self.text("event").is_some() && !has_body())
    }

    /// The mail's headers: a list of pairs, as JSON also inside a form.
    pub(super) fn headers(&self) -> Vec<(String, String)> {
        let listed = match self {
            Self::Json(body) if body["message-headers"].is_array() => body["message-headers"].clone(),
            _ => self.text("message-headers").and_then(|text| json::read(text.as_bytes()).ok()).unwrap_or_default(),
        };
        let pair = |pair: &Value| Some((pair[0].as_str()?.to_owned(), pair[1].as_str()?.to_owned()));
        listed.as_array().into_iter().flatten().filter_map(pair).collect()
    }

    /// Files in the form, or a list of files that stay at Mailgun (a route that stores).
    pub(super) fn enclosures(&self) -> Vec<Enclosure> {
        let listed = match self {
            Self::Form(form) if form.files().next().is_some() => {
                let content_ids = form::content_ids(form.text("content-id-map"));
                return form.files().map(|file| file.enclosure(&content_ids)).collect();
            }
            Self::Json(body) if body["attachments"].is_array() => body["attachments"].clone(),
            _ => self.text("attachments").and_then(|text| json::read(text.as_bytes()).ok()).unwrap_or_default(),
        };
        let enclosure = |one: &Value| Enclosure {
            name: one["name"].as_str().unwrap_or_default().to_owned(),
            content_type: one["content-type"].as_str().unwrap_or_default().to_owned(),
            length: one["size"].as_u64().unwrap_or_default(),
            ..Enclosure::default()
        };
        listed.as_array().into_iter().flatten().map(enclosure).collect()
    }

    /// A digest that distinguishes this mail from others without an id. It does not depend on the token.
    pub(super) fn digest(&self) -> String {
        match self {
            Self::Form(form) => format!("sha256:{}", form.digest_without(&["timestamp", "token", "signature"])),
            Self::Json(body) => {
                let mut body = body.clone();
                if let Some(fields) = body.as_object_mut() {
                    fields.remove("signature");
                }
                draft::digest(body.to_string().as_bytes())
            }
        }
    }
}
