//! Bodies are read in full, checked for their shape, and passed to PostgreSQL unchanged. Values are not parsed here, so that no
//! digit of a number is lost.

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use axum::body::{Body, Bytes};
use bytes::BytesMut;
use gleaner_http::WireError;
use gleaner_http::memory::{Memory, Share};
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderMap, StatusCode};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// An object, or an array of objects.
#[derive(Debug)]
pub(super) struct Rows {
    pub text: String,
    pub is_array: bool,
    pub count: usize,
    /// Keys of the first row.
    pub keys: Vec<String>,
    /// All rows have the keys of the first.
    pub even: bool,
}

impl Rows {
    /// The SQL function that turns the body into rows.
    pub(super) fn taken_apart_by(&self) -> &'static str {
        if self.is_array { "pg_catalog.json_to_recordset" } else { "pg_catalog.json_to_record" }
    }

    pub(super) fn parse(body: &[u8]) -> Result<Self, WireError> {
        let text = std::str::from_utf8(body).map_err(|_| unusable())?;
        let shape: Shape = serde_json::from_str(text).map_err(|error| unusable().details(error.to_string()))?;
        let first = shape.rows.first().cloned().unwrap_or_default();
        let even = shape.rows.iter().all(|keys| *keys == first);
        Ok(Self { text: text.to_owned(), is_array: shape.is_array, count: shape.rows.len(), keys: first.into_iter().collect(), even })
    }
}

/// A body this large is read only from callers who may write what it is for.
pub(super) const LARGE: usize = 64 << 10;

/// The memory that bodies may take, all together. Anonymous callers have a quarter of their own, so that they cannot use up what
/// signed-in callers have.
#[derive(Debug, Clone)]
pub(super) struct Bodies {
    anonymous: Memory,
    known: Memory,
}

impl Bodies {
    pub(super) fn within(bytes: usize) -> Self {
        Self { anonymous: Memory::new(bytes / 4), known: Memory::new(bytes - bytes / 4) }
    }

    pub(super) fn of(&self, anonymous: bool) -> &Memory {
        if anonymous { &self.anonymous } else { &self.known }
    }
}

/// A body, and its share of the memory, for as long as the request takes.
#[derive(Debug, Default)]
pub(super) struct Held {
    pub bytes: Bytes,
    _share: Share,
}

/// Whether the body may be larger than [`LARGE`].
pub(super) fn may_be_large(headers: &HeaderMap) -> bool {
    let length = headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()).and_then(|length| length.parse::<usize>().ok());
    length.is_none_or(|length| length > LARGE)
}

/// Reads a body of at most `most` bytes, for as long as `within`, while there is memory for it.
pub(super) async fn read(body: Body, most: usize, within: Duration, memory: &Memory) -> Result<Held, WireError> {
    let mut body = Limited::new(body, most);
    let reading = async {
        let (mut bytes, mut share) = (BytesMut::new(), Share::default());
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| {
                if error.is::<LengthLimitError>() {
                    WireError::new(StatusCode::PAYLOAD_TOO_LARGE, "PGRST102", format!("The body is larger than {most} bytes"))
                } else {
                    WireError::new(StatusCode::BAD_REQUEST, "PGRST102", "The body ended early")
                }
            })?;
            let Ok(data) = frame.into_data() else { continue };
            if !memory.extend(&mut share, bytes.len() + data.len()) {
                let message = "The server is reading as many large bodies as it has memory for; try again";
                return Err(WireError::new(StatusCode::SERVICE_UNAVAILABLE, "PGRST003", message));
            }
            bytes.extend_from_slice(&data);
        }
        Ok(Held { bytes: bytes.freeze(), _share: share })
    };
    let late = |_| WireError::new(StatusCode::REQUEST_TIMEOUT, "PGRST102", "The body took too long to arrive");
    tokio::time::timeout(within, reading).await.map_err(late)?
}

/// Accepts JSON, or no content type at all; for a function also plain text. Returns whether it is that.
pub(super) fn check_type(headers: &HeaderMap, for_function: bool) -> Result<bool, WireError> {
    let Some(declared) = headers.get(CONTENT_TYPE) else { return Ok(false) };
    let declared = String::from_utf8_lossy(declared.as_bytes());
    let essence = declared.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    if essence == "application/json" || (essence.starts_with("application/") && essence.ends_with("+json")) {
        return Ok(false);
    }
    if for_function && essence == "text/plain" {
        return Ok(true);
    }
    Err(WireError::new(StatusCode::BAD_REQUEST, "PGRST102", format!("Content-Type not acceptable: {essence}"))
        .hint("Send application/json."))
}

pub(super) fn unusable() -> WireError {
    WireError::new(StatusCode::BAD_REQUEST, "PGRST102", "Empty or invalid json")
}

#[derive(Debug)]
struct Shape {
    is_array: bool,
    rows: Vec<BTreeSet<String>>,
}

impl<'de> Deserialize<'de> for Shape {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = Shape;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object or an array of objects")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Shape, A::Error> {
                Ok(Shape { is_array: false, rows: vec![keys(map)?] })
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Shape, A::Error> {
                let mut rows = Vec::new();
                while let Some(Keys(keys)) = sequence.next_element()? {
                    rows.push(keys);
                }
                Ok(Shape { is_array: true, rows })
            }
        }
        deserializer.deserialize_any(Either)
    }
}

struct Keys(BTreeSet<String>);

impl<'de> Deserialize<'de> for Keys {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = Keys;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Keys, A::Error> {
                keys(map).map(Keys)
            }
        }
        deserializer.deserialize_map(Object)
    }
}

fn keys<'de, A: MapAccess<'de>>(mut map: A) -> Result<BTreeSet<String>, A::Error> {
    let mut keys = BTreeSet::new();
    while let Some((key, IgnoredAny)) = map.next_entry::<String, IgnoredAny>()? {
        keys.insert(key);
    }
    Ok(keys)
}
