//! Forms: URL-encoded and multipart fields of a body that is already in memory.

use std::collections::HashMap;

use encoding_rs::{Encoding, UTF_8};
use futures_util::FutureExt;
use futures_util::stream;
use multer::bytes::Bytes;
use sha2::{Digest, Sha256};

use crate::mail::Enclosure;
use crate::{Refusal, Request};

/// The most fields accepted: more than any mail has headers and attachments.
const MOST_FIELDS: usize = 2000;

#[derive(Debug, Default)]
pub struct Form {
    fields: Vec<Field>,
}

/// One field as received. Its bytes are text in some charset, or a file.
#[derive(Debug)]
pub struct Field {
    pub name: String,
    pub file_name: Option<String>,
    /// With its parameters.
    pub content_type: Option<String>,
    pub bytes: Vec<u8>,
}

impl Form {
    /// The fields of a request whose content type is a form.
    pub fn read(request: &Request<'_>) -> Result<Self, Refusal> {
        match request.content_type().as_deref() {
            Some("application/x-www-form-urlencoded") => Self::urlencoded(request.body),
            Some("multipart/form-data") => Self::multipart(request.header("content-type").unwrap_or_default(), request.body),
            Some(other) => Err(Refusal::Unsupported(format!("{}; send a form", other.escape_debug()))),
            None => Err(Refusal::Unsupported("none was given; send a form".to_owned())),
        }
    }

    pub fn urlencoded(body: &[u8]) -> Result<Self, Refusal> {
        let pairs = form_urlencoded::parse(body);
        let field = |(name, value): (_, std::borrow::Cow<'_, str>)| Field {
            name: std::borrow::Cow::into_owned(name),
            file_name: None,
            content_type: None,
            bytes: value.into_owned().into_bytes(),
        };
        Self::bounded(pairs.map(field).take(MOST_FIELDS + 1).collect())
    }

    pub fn multipart(content_type: &str, body: &[u8]) -> Result<Self, Refusal> {
        let malformed = |error: multer::Error| Refusal::Malformed(format!("multipart body: {error}"));
        let boundary = multer::parse_boundary(content_type).map_err(malformed)?;
        let body = Bytes::copy_from_slice(body);
        let mut parts = multer::Multipart::new(stream::iter([Ok::<_, std::io::Error>(body)]), boundary);
        let all = async {
            let mut fields = Vec::new();
            while let Some(part) = parts.next_field().await? {
                let name = part.name().unwrap_or_default().to_owned();
                let file_name = part.file_name().map(str::to_owned);
                // The raw header and not the parsed type: a type that the parser refuses is still what the sender sent.
                let content_type = part.headers().get("content-type").and_then(|value| value.to_str().ok()).map(str::to_owned);
                let bytes = part.bytes().await?.to_vec();
                fields.push(Field { name, file_name, content_type, bytes });
                if fields.len() > MOST_FIELDS {
                    break;
                }
            }
            Ok(fields)
        };
        // Everything is in memory, so nothing can block. A parser that would wait needs bytes that were never sent.
        let fields = all.now_or_never().ok_or_else(|| Refusal::Malformed("multipart body: ends too early".to_owned()))?;
        Self::bounded(fields.map_err(malformed)?)
    }

    fn bounded(fields: Vec<Field>) -> Result<Self, Refusal> {
        if fields.len() > MOST_FIELDS {
            return Err(Refusal::Malformed(format!("more than {MOST_FIELDS} fields")));
        }
        Ok(Self { fields })
    }

    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// Fields that are files.
    pub fn files(&self) -> impl Iterator<Item = &Field> {
        self.fields.iter().filter(|field| field.file_name.is_some())
    }

    /// The first field of this name.
    pub fn get(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.name == name)
    }

    /// The first field of this name as text.
    pub fn text(&self, name: &str) -> Option<String> {
        self.get(name).map(|field| field.text(None))
    }

    /// A field that occurs exactly once, as text.
    pub fn only(&self, name: &str) -> Option<String> {
        let mut all = self.fields.iter().filter(|field| field.name == name);
        let field = all.next()?;
        all.next().is_none().then(|| field.text(None))
    }

    /// A digest of the content, which does not depend on the multipart boundary.
    pub fn digest(&self) -> String {
        self.digest_without(&[])
    }

    /// [`Self::digest`] of all but these fields.
    pub fn digest_without(&self, names: &[&str]) -> String {
        let mut digest = Sha256::new();
        for field in self.fields.iter().filter(|field| !names.contains(&field.name.as_str())) {
            // Lengths are included, so that the end of one part cannot be read as the beginning of the next.
            for bytes in [field.name.as_bytes(), field.file_name.as_deref().unwrap_or_default().as_bytes(), &field.bytes] {
                digest.update((bytes.len() as u64).to_be_bytes());
                digest.update(bytes);
            }
        }
        hex::encode(digest.finalize())
    }
}

/// Which file of the form an inline image's `cid:` refers to, by the field's name. Both mail providers write the mapping in the
/// opposite direction.
pub fn content_ids(text: Option<String>) -> HashMap<String, String> {
    let by_id: HashMap<String, String> = text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
    by_id.into_iter().map(|(id, name)| (name, id.trim_matches(['<', '>']).to_owned())).collect()
}

impl Field {
    /// The file in the field.
    pub fn enclosure(&self, content_ids: &HashMap<String, String>) -> Enclosure {
        let content_type = self.content_type.as_deref().unwrap_or("application/octet-stream");
        Enclosure {
            name: self.file_name.clone().unwrap_or_default(),
            content_type: content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase(),
            content_id: content_ids.get(&self.name).cloned(),
            length: self.bytes.len() as u64,
            bytes: Some(self.bytes.clone()),
        }
    }

    /// The field as text: in the given charset, else in the part's own, else in UTF-8. Invalid bytes are replaced.
    pub fn text(&self, charset: Option<&str>) -> String {
        let own = || self.content_type.as_deref().and_then(charset_parameter);
        decode(&self.bytes, charset.map(str::to_owned).or_else(own).as_deref())
    }
}

/// `charset` of a content type.
pub fn charset_parameter(content_type: &str) -> Option<String> {
    let parameters = content_type.split(';').skip(1).filter_map(|parameter| parameter.split_once('='));
    let mut charsets = parameters.filter(|(name, _)| name.trim().eq_ignore_ascii_case("charset"));
    charsets.next().map(|(_, value)| value.trim().trim_matches('"').to_owned())
}

/// Decodes bytes in a charset that may be unknown or wrong. Invalid bytes are replaced, because the rest is still worth reading.
pub fn decode(bytes: &[u8], charset: Option<&str>) -> String {
    let encoding = charset.and_then(|label| Encoding::for_label_no_replacement(label.as_bytes())).unwrap_or(UTF_8);
    encoding.decode(bytes).0.into_owned()
}

#[cfg(test)]
mod tests;
