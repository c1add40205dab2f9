//! Reading a request body: completely, with a limit on its size while it streams, and a limit on time.

use std::time::Duration;

use axum::body::Body;
use axum::http::HeaderMap;
use bytes::{Bytes, BytesMut};
use gleaner_http::memory::{Memory, Share};
use http_body_util::BodyExt as _;
use tokio::time::{Instant, timeout, timeout_at};

use super::rejection::Rejection;
use super::settings;

/// How much a refused sender may still send before the connection is closed. If we stopped reading, many senders would
/// never see the response: their kernel discards it together with the connection.
const LEFTOVER: usize = 16 * 1024 * 1024;

/// A body, and its share of the budget.
#[derive(Debug)]
pub(super) struct Held {
    pub bytes: Bytes,
    _share: Share,
}

/// Reads at most `limit` bytes, whatever the headers promise.
pub(super) async fn read(
    mut body: Body,
    headers: &HeaderMap,
    limit: usize,
    memory: &Memory,
    patience: &settings::Limits,
) -> Result<Held, Rejection> {
    match receive(&mut body, headers, limit, memory, patience).await {
        Ok(held) => Ok(held),
        Err(rejection) => {
            if !matches!(rejection, Rejection::Slow | Rejection::Broken) {
                discard(body);
            }
            Err(rejection)
        }
    }
}

async fn receive(
    body: &mut Body,
    headers: &HeaderMap,
    limit: usize,
    memory: &Memory,
    patience: &settings::Limits,
) -> Result<Held, Rejection> {
    let promised = headers.get("content-length").and_then(|length| length.to_str().ok()).and_then(|length| length.parse::<usize>().ok());
    if promised.is_some_and(|length| length > limit) {
        return Err(Rejection::TooLarge { limit });
    }
    let by = Instant::now() + patience.body_total;
    let mut bytes = BytesMut::new();
    let mut share = Share::default();
    loop {
        let frame = match timeout_at(by.min(Instant::now() + patience.body_idle), body.frame()).await {
            Err(_) => return Err(Rejection::Slow),
            Ok(None) => return Ok(Held { bytes: bytes.freeze(), _share: share }),
            Ok(Some(Err(_))) => return Err(Rejection::Broken),
            Ok(Some(Ok(frame))) => frame,
        };
        let Ok(data) = frame.into_data() else { continue };
        if bytes.len() + data.len() > limit {
            return Err(Rejection::TooLarge { limit });
        }
        if !memory.extend(&mut share, bytes.len() + data.len()) {
            return Err(Rejection::Unavailable("too many large bodies at once".to_owned()));
        }
        bytes.extend_from_slice(&data);
    }
}

/// Keeps reading for a moment, in parallel with the response, so that the sender receives the response.
pub(super) fn discard(mut body: Body) {
    if http_body::Body::is_end_stream(&body) {
        return;
    }
    tokio::spawn(timeout(Duration::from_secs(5), async move {
        let mut left = LEFTOVER;
        while let Some(Ok(frame)) = body.frame().await {
            left = left.saturating_sub(frame.data_ref().map_or(0, Bytes::len));
            if left == 0 {
                break;
            }
        }
    }));
}
