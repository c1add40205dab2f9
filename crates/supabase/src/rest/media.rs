//! The `Accept` header: a list of rows, or exactly one.

use gleaner_http::WireError;
use http::header::ACCEPT;
use http::{HeaderMap, StatusCode};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Media {
    List,
    /// Exactly one row, as an object.
    Single,
}

impl Media {
    pub(super) fn content_type(self) -> &'static str {
        match self {
            Self::List => "application/json; charset=utf-8",
            Self::Single => "application/vnd.pgrst.object+json; charset=utf-8",
        }
    }

    /// The first of the accepted types that we support.
    pub(super) fn negotiate(headers: &HeaderMap) -> Result<Self, WireError> {
        let values: Vec<_> =
            headers.get_all(ACCEPT).iter().map(|value| String::from_utf8_lossy(value.as_bytes()).to_ascii_lowercase()).collect();
        let mut accepted = values.iter().flat_map(|value| value.split(',')).map(str::trim).filter(|kind| !kind.is_empty()).peekable();
        if accepted.peek().is_none() {
            return Ok(Self::List);
        }
        accepted.find_map(offered).ok_or_else(|| {
            let message = format!("None of these media types are available: {}", values.join(", "));
            WireError::new(StatusCode::NOT_ACCEPTABLE, "PGRST107", message)
        })
    }
}

fn offered(kind: &str) -> Option<Media> {
    let mut parts = kind.split(';').map(str::trim);
    let essence = parts.next().unwrap_or_default();
    // Omitting null columns is another format, which we do not support.
    if parts.any(|parameter| parameter.replace(' ', "") == "nulls=stripped") {
        return None;
    }
    match essence {
        "*/*" | "application/*" | "application/json" | "application/vnd.pgrst.array+json" => Some(Media::List),
        "application/vnd.pgrst.object+json" | "application/vnd.pgrst.object" => Some(Media::Single),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use http::header::ACCEPT;
    use http::{HeaderMap, HeaderValue};

    use super::Media;

    fn negotiate(accept: &'static str) -> Option<Media> {
        Media::negotiate(&HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static(accept))])).ok()
    }

    #[test]
    fn the_first_type_we_have_is_taken() {
        assert_eq!(Media::negotiate(&HeaderMap::new()).ok(), Some(Media::List));
        assert_eq!(negotiate("text/html,application/xhtml+xml;q=0.9,*/*;q=0.8"), Some(Media::List));
        assert_eq!(negotiate("application/vnd.pgrst.object+json"), Some(Media::Single));
        assert_eq!(negotiate("application/vnd.pgrst.object+json;nulls=stripped"), None);
        assert_eq!(negotiate("text/csv"), None);
    }
}
