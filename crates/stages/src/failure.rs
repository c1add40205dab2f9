//! Why a stage failed: the categories in docs/reference/pipelines.md, and whether a retry makes sense.

use std::time::{Duration, SystemTime};

use gleaner::Failure;
use http::StatusCode;
use http::header::{HeaderMap, RETRY_AFTER};

/// Transcription failed: the audio is broken or in an unknown format, or the transcriber failed.
pub const TRANSCRIPTION: &str = "TranscriptionError";
/// The recording could not be fetched.
pub const DOWNLOAD: &str = "DownloadError";
/// A language model failed, or its answer cannot be used.
pub const MODEL: &str = "LLMError";
/// The item is not what the pipeline expects. A retry does not change that.
pub const VALIDATION: &str = "ValidationError";
/// A command or an HTTP call of the pipeline failed.
pub const STAGE: &str = "StageError";
/// The item was cancelled or its lease was lost: the result is no longer needed.
pub const CANCELLED: &str = "Cancelled";

/// The longest retry delay that a server can request. Longer ones are shortened to it, because they are not plausible.
const LONGEST_WAIT: Duration = Duration::from_secs(24 * 3600);
/// How much of a response is quoted in the error.
const EXCERPT: usize = 500;

pub fn cancelled() -> Failure {
    Failure::new("the item was cancelled or taken away").category(CANCELLED)
}

pub fn invalid(message: impl Into<String>) -> Failure {
    Failure::new(message).category(VALIDATION).for_good()
}

/// An error response. It is retried if the server may accept it later, at the time it names.
pub fn of_status(category: &str, what: &str, status: StatusCode, headers: &HeaderMap, body: &str) -> Failure {
    let mut failure = Failure::new(format!("{what} answered {}{}", describe(status), excerpt(body))).category(category);
    failure.retryable = is_retryable(status);
    failure.retry_in = retry_after(headers).filter(|_| failure.retryable);
    failure
}

/// Temporary problems of the server or the network. Any other status is our own mistake, and a retry does not help.
pub fn is_retryable(status: StatusCode) -> bool {
    status.is_server_error() || matches!(status.as_u16(), 408 | 409 | 425 | 429)
}

/// A request without a response. The URL is left out, because it may contain a key.
pub fn of_request(category: &str, what: &str, error: reqwest::Error) -> Failure {
    let error = error.without_url();
    let mut text = error.to_string();
    let mut source = std::error::Error::source(&error);
    while let Some(inner) = source {
        text = format!("{text}: {inner}");
        source = inner.source();
    }
    let failure = Failure::new(format!("{what}: {text}")).category(category);
    if error.is_builder() || error.is_redirect() { failure.for_good() } else { failure }
}

/// Seconds, or a date.
pub fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    let wait = match text.parse::<f64>() {
        Ok(seconds) => Duration::try_from_secs_f64(seconds).ok()?,
        Err(_) => {
            let date = chrono::DateTime::parse_from_rfc2822(text).ok()?;
            SystemTime::from(date).duration_since(SystemTime::now()).unwrap_or_default()
        }
    };
    Some(wait.min(LONGEST_WAIT))
}

fn describe(status: StatusCode) -> String {
    match status.canonical_reason() {
        Some(reason) => format!("{} {reason}", status.as_u16()),
        None => status.as_u16().to_string(),
    }
}

/// The message in the response. OpenAI's form `{"error": {"message": …}}` and PostgREST's `{"message": …}` are unwrapped.
fn excerpt(body: &str) -> String {
    let found = serde_json::from_str::<serde_json::Value>(body).ok().and_then(|json| {
        [&json["error"]["message"], &json["message"], &json["error"]].into_iter().find_map(|found| found.as_str().map(str::to_owned))
    });
    let text = found.unwrap_or_else(|| body.trim().to_owned()).replace('\0', "\u{fffd}");
    let short: String = text.chars().take(EXCERPT).collect();
    if short.is_empty() { String::new() } else { format!(": {short}") }
}

#[cfg(test)]
mod tests;
