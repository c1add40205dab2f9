//! A file as a response: whole, or the requested part.

use axum::body::Body;
use axum::http::header::{
    ACCEPT_RANGES, CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_SECURITY_POLICY, CONTENT_TYPE, RANGE, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::Response;
use bytes::Bytes;
use futures_util::{StreamExt as _, stream};

use super::Failure;
use super::medium::{Medium, Place};
use super::origin::Fetched;
use crate::files::{self, Copied, Files, Found, Span};

/// The part of a file that is requested. Several parts, and ranges that we do not understand, mean the whole file, as RFC
/// 9110 allows.
pub(super) fn span(headers: &HeaderMap) -> Option<Span> {
    let text = headers.get(RANGE)?.to_str().ok()?.strip_prefix("bytes=")?;
    let (first, last) = text.split_once('-')?;
    let number = |text: &str| text.trim().parse::<u64>();
    match (first.trim(), last.trim()) {
        ("", last) => number(last).ok().map(Span::Last),
        (first, "") => Some(Span::From { first: number(first).ok()?, last: None }),
        (first, last) => {
            let (first, last) = (number(first).ok()?, number(last).ok()?);
            (first <= last).then_some(Span::From { first, last: Some(last) })
        }
    }
}

/// Serves a file of our store that belongs to something other than an activity.
pub(crate) async fn stored_file(
    files: &Files,
    path: &str,
    name: &str,
    content_type: &str,
    headers: &HeaderMap,
) -> Result<Option<Response>, Failure> {
    let medium = Medium { place: Place::File(path.to_owned()), content_type: Some(content_type.to_owned()), name: Some(name.to_owned()) };
    stored(files, path, &medium, headers).await
}

/// Serves a file from our store.
pub(super) async fn stored(files: &Files, path: &str, medium: &Medium, headers: &HeaderMap) -> Result<Option<Response>, Failure> {
    let span = span(headers);
    let away = |error: files::Error| Failure::Away(error.to_string());
    match files.get_span(path, span).await {
        Ok(None) => Ok(None),
        Ok(Some(found)) => Ok(Some(found_response(found, medium, span.is_some()))),
        Err(files::Error::Outside { size }) => {
            let mut response = Response::new(Body::empty());
            *response.status_mut() = StatusCode::RANGE_NOT_SATISFIABLE;
            response.headers_mut().insert(CONTENT_RANGE, header(&format!("bytes */{size}")));
            Ok(Some(response))
        }
        Err(error) => Err(away(error)),
    }
}

fn found_response(found: Found, medium: &Medium, partial: bool) -> Response {
    let Found { size, range, stream } = found;
    let mut response = Response::new(Body::from_stream(stream));
    describe(response.headers_mut(), medium, medium.content_type.as_deref());
    let headers = response.headers_mut();
    headers.insert(ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    headers.insert(CONTENT_LENGTH, header(&(range.end - range.start).to_string()));
    if partial {
        headers.insert(CONTENT_RANGE, header(&format!("bytes {}-{}/{size}", range.start, range.end.saturating_sub(1))));
        *response.status_mut() = StatusCode::PARTIAL_CONTENT;
    }
    response
}

/// Streams a file from its provider to the client; a copy goes into `beside`.
pub(super) fn passing(fetched: Fetched, medium: &Medium, beside: Option<tokio::sync::mpsc::Sender<Copied>>) -> Response {
    let Fetched { content_type, length, stream } = fetched;
    let handed_on = stream::unfold((stream, beside, length), |(mut stream, mut beside, mut left)| async move {
        match stream.next().await {
            None => {
                copy(&mut beside, Copied::Whole).await;
                None
            }
            Some(Ok(piece)) => {
                left = left.map(|left| left.saturating_sub(piece.len() as u64));
                copy(&mut beside, Copied::Piece(piece.clone())).await;
                // A client that knows the length may disconnect after the last byte, without waiting for the end of the
                // stream.
                if left == Some(0) {
                    copy(&mut beside, Copied::Whole).await;
                    beside = None;
                }
                Some((Ok::<Bytes, Failure>(piece), (stream, beside, left)))
            }
            Some(Err(error)) => {
                tracing::debug!(%error, "a file was cut short");
                Some((Err(error), (stream::empty().boxed(), None, left)))
            }
        }
    });
    let mut response = Response::new(Body::from_stream(handed_on));
    describe(response.headers_mut(), medium, medium.content_type.as_deref().or(content_type.as_deref()));
    if let Some(length) = length {
        response.headers_mut().insert(CONTENT_LENGTH, header(&length.to_string()));
    }
    response
}

/// If the copy cannot be written, the client still gets the file.
async fn copy(beside: &mut Option<tokio::sync::mpsc::Sender<Copied>>, piece: Copied) {
    if let Some(sender) = beside
        && sender.send(piece).await.is_err()
    {
        *beside = None;
    }
}

/// The file was sent by an external sender and must not run scripts under our origin. Types that could are only offered for
/// download.
fn describe(headers: &mut HeaderMap, medium: &Medium, content_type: Option<&str>) {
    let content_type = content_type.filter(|kind| kind.is_ascii() && kind.contains('/')).unwrap_or("application/octet-stream");
    let essence = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let is_shown = ["audio/", "video/", "image/"].iter().any(|kind| essence.starts_with(kind)) && essence != "image/svg+xml";
    headers.insert(CONTENT_TYPE, HeaderValue::try_from(content_type).unwrap_or(HeaderValue::from_static("application/octet-stream")));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static("sandbox; default-src 'none'"));
    headers.insert("cache-control", HeaderValue::from_static("private, no-store"));
    let way = if is_shown { "inline" } else { "attachment" };
    let disposition = match medium.name.as_deref().map(file_name).filter(|name| !name.is_empty()) {
        Some(name) => format!("{way}; filename*=UTF-8''{name}"),
        None => way.to_owned(),
    };
    headers.insert(CONTENT_DISPOSITION, header(&disposition));
}

/// A file's name as RFC 8187 writes it, without folders.
fn file_name(name: &str) -> String {
    let name = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let mut written = String::new();
    for byte in name.bytes().take(200) {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.') {
            written.push(char::from(byte));
        } else {
            written.push_str(&format!("%{byte:02X}"));
        }
    }
    written
}

fn header(text: &str) -> HeaderValue {
    HeaderValue::try_from(text).unwrap_or(HeaderValue::from_static(""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(range: &str) -> Option<Span> {
        let mut headers = HeaderMap::new();
        headers.insert(RANGE, HeaderValue::try_from(range).unwrap());
        span(&headers)
    }

    #[test]
    fn one_range_is_understood_and_everything_else_means_the_whole() {
        assert_eq!(asked("bytes=0-499"), Some(Span::From { first: 0, last: Some(499) }));
        assert_eq!(asked("bytes=500-"), Some(Span::From { first: 500, last: None }));
        assert_eq!(asked("bytes=-5"), Some(Span::Last(5)));
        for whole in ["bytes=5-4", "bytes=a-b", "bytes=0-1,3-4", "items=0-1", "bytes=", "bytes=-", "bytes=99999999999999999999-"] {
            assert_eq!(asked(whole), None, "{whole}");
        }
    }

    #[test]
    fn a_name_cannot_leave_its_header_or_its_folder() {
        assert_eq!(file_name("../../etc/pass\"wd\r\nX: y"), "pass%22wd%0D%0AX%3A%20y");
        assert_eq!(file_name("Grüße.pdf"), "Gr%C3%BC%C3%9Fe.pdf");
    }
}
