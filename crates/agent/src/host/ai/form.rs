//! Requests with a recording, `multipart/form-data`.

use axum::body::Body;
use axum::http::{HeaderMap, header};
use bytes::Bytes;
use multer::{Constraints, Multipart, SizeLimit};
use reqwest::multipart::{Form, Part};

use super::super::guard::text;
use super::error::Refusal;

/// How many fields a request may have.
const MOST_FIELDS: usize = 64;

/// A parsed request with a recording.
#[derive(Debug)]
pub(super) struct Recording {
    pub model: Option<String>,
    fields: Vec<Field>,
}

#[derive(Debug)]
struct Field {
    name: String,
    file: Option<String>,
    kind: Option<String>,
    bytes: Bytes,
}

impl Recording {
    pub(super) async fn read(headers: &HeaderMap, body: Body, most: usize) -> Result<Self, Refusal> {
        let kind = text(headers, &header::CONTENT_TYPE).unwrap_or_default();
        let boundary = multer::parse_boundary(kind).map_err(|_| Refusal::bad("a recording comes as multipart/form-data"))?;
        let constraints = Constraints::new().size_limit(SizeLimit::new().whole_stream(most as u64));
        let mut parts = Multipart::with_constraints(body.into_data_stream(), boundary, constraints);
        let mut read = Self { model: None, fields: Vec::new() };
        let refuse = |error: multer::Error| match error {
            multer::Error::StreamSizeExceeded { .. } | multer::Error::FieldSizeExceeded { .. } => Refusal::too_large(most),
            error => Refusal::bad(format!("the form cannot be read: {error}")),
        };
        while let Some(part) = parts.next_field().await.map_err(refuse)? {
            let name = part.name().unwrap_or_default().to_owned();
            let (file, kind) = (part.file_name().map(str::to_owned), part.content_type().map(ToString::to_string));
            let bytes = part.bytes().await.map_err(refuse)?;
            if name == "model" {
                read.model = Some(String::from_utf8_lossy(&bytes).into_owned());
            } else if read.fields.len() < MOST_FIELDS {
                read.fields.push(Field { name, file, kind, bytes });
            } else {
                return Err(Refusal::bad(format!("a form has at most {MOST_FIELDS} fields")));
            }
        }
        if !read.fields.iter().any(|field| field.name == "file") {
            return Err(Refusal::bad("the form has no field `file`"));
        }
        Ok(read)
    }

    /// The same form, for another model.
    pub(super) fn for_model(self, model: &str) -> Result<Form, Refusal> {
        let mut form = Form::new().text("model", model.to_owned());
        for field in self.fields {
            let mut part = Part::stream_with_length(field.bytes.clone(), field.bytes.len() as u64);
            if let Some(file) = field.file {
                part = part.file_name(file);
            }
            if let Some(kind) = field.kind {
                part = part.mime_str(&kind).map_err(|_| Refusal::bad(format!("the type of the field `{}` is none", field.name)))?;
            }
            form = form.part(field.name, part);
        }
        Ok(form)
    }
}
