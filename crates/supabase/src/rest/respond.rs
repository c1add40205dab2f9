//! Responses: status, headers and body, from the result of a statement.

mod settings;

use axum::body::Body;
use axum::response::Response;
use gleaner_http::WireError;
use http::header::{CONTENT_RANGE, CONTENT_TYPE};
use http::{HeaderName, HeaderValue, StatusCode};

pub(super) use settings::Said;

use super::media::Media;
use super::range::unsatisfiable;
use super::session::Outcome;

const PREFERENCE_APPLIED: HeaderName = HeaderName::from_static("preference-applied");
const CONTENT_PROFILE: HeaderName = HeaderName::from_static("content-profile");

/// Status and headers around a body.
#[derive(Debug)]
pub(super) struct Frame<'a> {
    pub status: StatusCode,
    pub schema: &'a str,
    pub applied: Vec<String>,
    /// `Content-Range`.
    pub range: Option<String>,
}

/// Checks that there is exactly one row.
pub(super) fn exactly_one(outcome: &Outcome) -> Result<(), WireError> {
    if outcome.shown == 1 {
        return Ok(());
    }
    Err(WireError::new(StatusCode::NOT_ACCEPTABLE, "PGRST116", "Cannot coerce the result to a single JSON object")
        .details(format!("The result contains {} rows", outcome.shown)))
}

/// Checks that no more rows are affected than the client allows.
pub(super) fn within(outcome: &Outcome, most: Option<i64>) -> Result<(), WireError> {
    if most.is_none_or(|most| outcome.shown <= most) {
        return Ok(());
    }
    Err(WireError::new(StatusCode::BAD_REQUEST, "PGRST124", "Query result exceeds max-affected preference constraint")
        .details(format!("The query affects {} rows", outcome.shown)))
}

/// 200, or 206 when only part of the counted rows is returned, or an error for a page beyond the end.
pub(super) fn page_status(outcome: &Outcome, offset: u64) -> Result<StatusCode, WireError> {
    let Some(total) = outcome.total else { return Ok(StatusCode::OK) };
    if i64::try_from(offset).is_ok_and(|offset| offset > total) {
        let range = HeaderValue::try_from(format!("*/{total}")).unwrap_or_else(|_| HeaderValue::from_static("*/*"));
        return Err(unsatisfiable()
            .header(CONTENT_RANGE, range)
            .details(format!("An offset of {offset} was requested, but there are only {total} rows.")));
    }
    Ok(if outcome.shown < total { StatusCode::PARTIAL_CONTENT } else { StatusCode::OK })
}

/// Rows as an array, or the one row as an object.
pub(super) fn rows(frame: Frame<'_>, media: Media, outcome: Outcome) -> Response {
    let body = match media {
        Media::Single => outcome.rows,
        Media::List => format!("[{}]", outcome.rows),
    };
    json(frame, media, body)
}

/// A bare JSON value.
pub(super) fn value(frame: Frame<'_>, text: String) -> Response {
    json(frame, Media::List, text)
}

/// No body.
pub(super) fn nothing(frame: Frame<'_>) -> Response {
    framed(frame, Body::empty())
}

fn json(frame: Frame<'_>, media: Media, body: String) -> Response {
    let mut response = framed(frame, Body::from(body));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media.content_type()));
    response
}

fn framed(frame: Frame<'_>, body: Body) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = frame.status;
    insert(&mut response, CONTENT_PROFILE, frame.schema);
    if let Some(range) = &frame.range {
        insert(&mut response, CONTENT_RANGE, range);
    }
    if !frame.applied.is_empty() {
        insert(&mut response, PREFERENCE_APPLIED, &frame.applied.join(", "));
    }
    response
}

/// `0-24/3573`, `0-24/*`, `*/0`.
pub(super) fn range(outcome: &Outcome, offset: u64) -> String {
    let total = total(outcome);
    match u64::try_from(outcome.shown) {
        Ok(shown) if shown > 0 => format!("{offset}-{}/{total}", offset.saturating_add(shown - 1)),
        _ => format!("*/{total}"),
    }
}

/// The range of rows that have no positions: `*/3573`, `*/*`.
pub(super) fn total_range(outcome: &Outcome) -> String {
    format!("*/{}", total(outcome))
}

fn total(outcome: &Outcome) -> String {
    outcome.total.map_or("*".to_owned(), |total| total.to_string())
}

/// A schema's name may contain characters that a header cannot. Then the header is omitted.
fn insert(response: &mut Response, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        response.headers_mut().insert(name, value);
    }
}
