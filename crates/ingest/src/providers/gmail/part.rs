//! The parts of a message, as the API returns them.

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use encoding_rs::Encoding;
use serde_json::Value;

use crate::mail::decode_words;

/// The deepest nesting of parts. Genuine mail is never deeper.
const DEPTH: usize = 50;

/// The parts that were found.
#[derive(Debug, Default)]
pub(super) struct Parts {
    pub text: Option<String>,
    pub html: Option<String>,
    pub files: Vec<File>,
}

/// An attachment that stays at Google.
#[derive(Debug)]
pub(super) struct File {
    pub name: String,
    pub content_type: String,
    pub length: u64,
    pub content_id: Option<String>,
    pub attachment_id: Option<String>,
}

/// Walks depth-first: the first text and the first HTML that are not attachments, and the attachments.
pub(super) fn walk(payload: &Value) -> Parts {
    let mut found = Parts::default();
    visit(payload, &mut found, 0);
    found
}

fn visit(part: &Value, found: &mut Parts, depth: usize) {
    if depth > DEPTH {
        return;
    }
    let kind = part["mimeType"].as_str().unwrap_or_default().to_ascii_lowercase();
    let name = part["filename"].as_str().unwrap_or_default();
    let attachment_id = part["body"]["attachmentId"].as_str();
    if !name.is_empty() || attachment_id.is_some() {
        found.files.push(File {
            name: decode_words(name),
            content_type: kind,
            length: part["body"]["size"].as_u64().unwrap_or_default(),
            content_id: header(part, "content-id").map(|id| id.trim().trim_matches(['<', '>']).to_owned()),
            attachment_id: attachment_id.map(str::to_owned),
        });
    } else if kind == "text/plain" && found.text.is_none() {
        found.text = text(part);
    } else if kind == "text/html" && found.html.is_none() {
        found.html = text(part);
    }
    for inner in part["parts"].as_array().into_iter().flatten() {
        visit(inner, found, depth + 1);
    }
}

/// The text of a part: as UTF-8 if it is valid, else in the declared charset, else with invalid bytes replaced.
fn text(part: &Value) -> Option<String> {
    let bytes = base64_any(part["body"]["data"].as_str()?)?;
    let bytes = match String::from_utf8(bytes) {
        Ok(text) => return Some(text),
        Err(error) => error.into_bytes(),
    };
    let named = header(part, "content-type").and_then(charset).and_then(|name| Encoding::for_label(name.as_bytes()));
    let encoding = named.filter(|encoding| *encoding != encoding_rs::UTF_8);
    Some(match encoding {
        Some(encoding) => encoding.decode(&bytes).0.into_owned(),
        None => String::from_utf8_lossy(&bytes).into_owned(),
    })
}

fn charset(content_type: &str) -> Option<String> {
    content_type.split(';').skip(1).find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        name.trim().eq_ignore_ascii_case("charset").then(|| value.trim().trim_matches('"').to_owned())
    })
}

/// The first header of that name.
pub(super) fn header<'a>(part: &'a Value, name: &str) -> Option<&'a str> {
    let headers = part["headers"].as_array()?;
    headers.iter().find(|header| header["name"].as_str().is_some_and(|n| n.eq_ignore_ascii_case(name)))?["value"].as_str()
}

/// Base64 in either alphabet, with or without padding, with line ends in between.
pub fn base64_any(data: &str) -> Option<Vec<u8>> {
    const LENIENT: GeneralPurposeConfig =
        GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent).with_decode_allow_trailing_bits(true);
    const ENGINE: GeneralPurpose = GeneralPurpose::new(&alphabet::URL_SAFE, LENIENT);
    let data: Vec<u8> = data
        .bytes()
        .filter(|byte| !byte.is_ascii_whitespace())
        .map(|byte| match byte {
            b'+' => b'-',
            b'/' => b'_',
            other => other,
        })
        .collect();
    ENGINE.decode(data).ok()
}
