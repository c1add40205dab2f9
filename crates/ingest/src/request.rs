//! A request as it was received.

use std::net::IpAddr;
use std::time::SystemTime;

use http::{HeaderMap, Method};

/// Everything a provider may use. The target and the body are the exact bytes received: signatures cover them, and parsing a URL
/// may change it.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    pub method: &'a Method,
    /// Path and query as received, `?key=…` included.
    pub target: &'a str,
    pub headers: &'a HeaderMap,
    pub body: &'a [u8],
    /// The sender's address, set only if every proxy on the way is trusted.
    pub client: Option<IpAddr>,
    /// When the request arrived. Verification uses no other clock, so that replay windows can be tested.
    pub now: SystemTime,
    /// Our address as the sender was given it: scheme, host and path prefix, without a trailing slash.
    pub public_base: &'a str,
}

impl<'a> Request<'a> {
    /// A header that occurs exactly once and is valid text. No honest sender repeats one, so a repeated header counts as missing.
    pub fn header(&self, name: &str) -> Option<&'a str> {
        let mut all = self.headers.get_all(name).iter();
        let first = all.next()?;
        if all.next().is_some() {
            return None;
        }
        first.to_str().ok()
    }

    /// The media type without parameters, in lower case.
    pub fn content_type(&self) -> Option<String> {
        let value = self.header("content-type")?;
        Some(value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase())
    }

    /// The query as received, without the question mark.
    pub fn query(&self) -> Option<&'a str> {
        self.target.split_once('?').map(|(_, query)| query)
    }

    /// The full URL that the sender used for this request: public base and target.
    pub fn public_url(&self) -> String {
        format!("{}{}", self.public_base, self.target)
    }

    /// Seconds since 1970; zero for a clock before that.
    pub fn unix_now(&self) -> i64 {
        self.now.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| i64::try_from(since.as_secs()).unwrap_or(i64::MAX))
    }
}
