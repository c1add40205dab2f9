//! One call: its credentials, its timeouts, and which failures are retried at once.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use ::http::header::{AUTHORIZATION, DATE, RETRY_AFTER};
use ::http::{HeaderMap, HeaderName, HeaderValue, Method};
use chrono::DateTime;
use gleaner::{Error, Result};
use rand::Rng as _;
use reqwest::{RequestBuilder, Response};
use serde_json::Value;

use super::classify::{refused, unanswered};
use super::clock::Clock;
use super::credentials::Credentials;
use super::settings::Settings;

/// The timeout for opening a connection.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);
/// The timeout for the whole response of an act.
const ANSWER_WITHIN: Duration = Duration::from_secs(30);
/// The timeout between two chunks of a long response.
const SILENT_FOR: Duration = Duration::from_secs(60);
/// The longest `Retry-After` that is honoured. A server that asks for more is called again after this long.
const LONGEST_QUIET: Duration = Duration::from_secs(120);
/// How often a serialization failure is retried at once.
const RACES: u32 = 5;

#[derive(Debug)]
pub(super) struct Http {
    pub client: reqwest::Client,
    pub base: String,
    pub credentials: Credentials,
    pub clock: Clock,
    /// The server asked us to send no request before this time.
    quiet_until: Mutex<Option<Instant>>,
}

#[derive(Debug, Clone)]
pub(super) struct Call<'a> {
    pub act: String,
    pub method: Method,
    /// With its query string.
    pub path: &'a str,
    /// The schema, if it is not the default one.
    pub profile: Option<&'a str>,
    pub body: Option<&'a Value>,
    /// The response to a write must contain the written rows.
    pub representation: bool,
    /// Statuses that count as an answer and not as an error.
    pub also: &'a [u16],
    /// Repeats the call at once if the response was lost. The lease makes that safe for every act but a claim.
    pub repeat: bool,
}

impl<'a> Call<'a> {
    pub(super) fn new(method: Method, path: &'a str, act: impl Into<String>) -> Self {
        let repeat = method == Method::GET;
        Self { act: act.into(), method, path, profile: None, body: None, representation: false, also: &[], repeat }
    }
}

#[derive(Debug)]
pub(super) struct Reply {
    pub body: Value,
    /// By the server's clock, in seconds.
    pub date: Option<i64>,
}

impl Http {
    pub(super) fn new(settings: Settings) -> Result<Self> {
        let base = settings.url.trim().trim_end_matches('/').to_owned();
        let client = client()?;
        if !is_address(&base) {
            return Err(Error::Other(format!("{base:?} is not the address of a server; write https://… or http://…")));
        }
        let credentials = Credentials::new(client.clone(), &base, settings)?;
        Ok(Self { client, base, credentials, clock: Clock::default(), quiet_until: Mutex::default() })
    }

    /// Makes the call. An expired token is renewed, and serialization failures are retried.
    pub(super) async fn call(&self, call: &Call<'_>) -> Result<Reply> {
        let (mut renewed, mut races, mut lost) = (false, 0, false);
        loop {
            let token = self.credentials.token().await?;
            let answer = match self.send(call, &token).await {
                Ok(answer) => answer,
                // A connection that was kept open for long may turn out to be dead only when it is used.
                Err(error) if call.repeat && !lost && !error.is_timeout() && !error.is_connect() => {
                    lost = true;
                    continue;
                }
                Err(error) => return Err(unanswered(&call.act, &error)),
            };
            let (status, body, date) = answer;
            if (200..300).contains(&status) || call.also.contains(&status) && body.get("outcome").is_some() {
                return Ok(Reply { body, date });
            }
            let error = refused(&call.act, status, &body, self.credentials.is_renewable());
            let code = if let Error::Remote { code, .. } = &error { code.clone().unwrap_or_default() } else { String::new() };
            match code.as_str() {
                "40001" | "40P01" if races < RACES => {
                    races += 1;
                    let pause = rand::rng().random_range(1..20) * u64::from(races);
                    tokio::time::sleep(Duration::from_millis(pause)).await;
                }
                "PGRST301" | "PGRST303" if status == 401 && self.credentials.is_renewable() => {
                    if renewed {
                        // The token is fresh and still refused: signing in again may help, waiting will not.
                        return Err(refused(&call.act, status, &body, false));
                    }
                    self.credentials.renew(&token).await?;
                    renewed = true;
                }
                _ => return Err(error),
            }
        }
    }

    async fn send(&self, call: &Call<'_>, token: &str) -> Result<(u16, Value, Option<i64>), reqwest::Error> {
        self.wait_until_welcome().await;
        let mut request = self.request(call.method.clone(), &format!("{}{}", self.base, call.path), token).timeout(ANSWER_WITHIN);
        if let Some(schema) = call.profile {
            let reading = call.method == Method::GET || call.method == Method::HEAD;
            request = request.header(if reading { "accept-profile" } else { "content-profile" }, schema);
        }
        if call.representation && call.method != Method::GET {
            request = request.header("prefer", "return=representation");
        }
        if let Some(body) = call.body {
            request = request.json(body);
        }
        let response = request.send().await?;
        self.heed(&response);
        let (status, date) = (response.status().as_u16(), date(response.headers()));
        let bytes = response.bytes().await?;
        self.clock.saw_date(date);
        // A body that is not JSON comes from a proxy in between, and its text is of no use to the reader.
        Ok((status, serde_json::from_slice(&bytes).unwrap_or_default(), date))
    }

    /// A request with our key and token.
    pub(super) fn request(&self, method: Method, url: &str, token: &str) -> RequestBuilder {
        self.client.request(method, url).header("apikey", self.credentials.key()).header(AUTHORIZATION, format!("Bearer {token}"))
    }

    /// Waits as long as the server asked for.
    pub(super) async fn wait_until_welcome(&self) {
        loop {
            let until = *self.quiet_until.lock().expect("no panic holds it");
            match until.filter(|until| *until > Instant::now()) {
                Some(until) => tokio::time::sleep_until(until.into()).await,
                None => return,
            }
        }
    }

    /// Records how long the server asked us to wait.
    pub(super) fn heed(&self, response: &Response) {
        if !matches!(response.status().as_u16(), 429 | 503) {
            return;
        }
        if let Some(wait) = retry_after(response.headers()) {
            let until = Instant::now() + wait.min(LONGEST_QUIET);
            let mut quiet = self.quiet_until.lock().expect("no panic holds it");
            *quiet = Some(quiet.map_or(until, |known| known.max(until)));
        }
    }
}

/// The HTTP client for everything here. It never follows a redirect: our key is only for the configured server.
pub(super) fn client() -> Result<reqwest::Client> {
    // An error means that another caller has already installed one.
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder()
        .default_headers(device())
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(CONNECT_WITHIN)
        .read_timeout(SILENT_FOR)
        .pool_idle_timeout(Duration::from_secs(60))
        .tcp_keepalive(Duration::from_secs(30))
        .tcp_nodelay(true)
        .user_agent(concat!("gleaner-agent/", env!("CARGO_PKG_VERSION")))
        .build()
        .map_err(|error| Error::Other(format!("the HTTP client: {error}")))
}

/// The name of this machine, as people know it. The server shows them which devices work.
fn device() -> HeaderMap {
    let name = nix::unistd::gethostname().ok().and_then(|name| HeaderValue::from_str(name.to_str()?).ok());
    name.map(|name| HeaderMap::from_iter([(HeaderName::from_static("x-client-info"), name)])).unwrap_or_default()
}

fn is_address(base: &str) -> bool {
    base.parse::<::http::Uri>().is_ok_and(|uri| matches!(uri.scheme_str(), Some("http" | "https")) && uri.host().is_some())
}

fn date(headers: &HeaderMap) -> Option<i64> {
    Some(DateTime::parse_from_rfc2822(headers.get(DATE)?.to_str().ok()?).ok()?.timestamp())
}

/// Seconds, or a date. A date is taken relative to the response's own `Date`, because our clock may be wrong.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let at = DateTime::parse_from_rfc2822(text).ok()?.timestamp();
    Some(Duration::from_secs(u64::try_from(at - date(headers)?).unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_read_as_seconds_and_as_a_time() {
        let headers = |pairs: &[(&str, &str)]| -> HeaderMap {
            pairs.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect::<HeaderMap>()
        };
        assert_eq!(retry_after(&headers(&[("retry-after", "7")])), Some(Duration::from_secs(7)));
        let as_time = headers(&[("retry-after", "Wed, 21 Oct 2015 07:28:30 GMT"), ("date", "Wed, 21 Oct 2015 07:28:00 GMT")]);
        assert_eq!(retry_after(&as_time), Some(Duration::from_secs(30)));
        assert_eq!(retry_after(&headers(&[("retry-after", "soon")])), None);
    }

    #[test]
    fn an_address_is_distinguished_from_a_word() {
        assert!(is_address("https://x.supabase.co") && is_address("http://127.0.0.1:54321/sub"));
        assert!(!is_address("x.supabase.co") && !is_address("") && !is_address("postgresql://x/y"));
    }
}
