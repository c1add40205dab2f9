//! Serves recordings and attachments to callers that may read the row they belong to. Providers' credentials never leave
//! the server, and are used only for files that the webhook endpoint recorded (`gleaner.media_reference`).
//!
//! # Layout
//!
//! - `medium` finds the files of an activity; `origin` fetches them from their provider; `guard` prevents
//!   requests to addresses that must not be reachable from outside.
//! - `serve` turns a file into a response; [`routes`] has the route.

mod guard;
pub(crate) mod medium;
mod origin;
mod routes;
mod serve;

use std::sync::Arc;
use std::time::Duration;

use gleaner_http::database::Pool;
use ipnet::IpNet;

use self::guard::Guard;
pub use self::routes::router;
pub(crate) use self::serve::stored_file;
use crate::channels::Channels;
use crate::files::Files;
use crate::mailboxes::Gmail;

/// How media are fetched.
#[derive(Debug, Clone)]
pub struct Options {
    /// Private networks from which media may be fetched anyway.
    pub allow_private: Vec<IpNet>,
    /// Larger files are not fetched (`GLEANER_MEDIA_LIMIT`, in bytes).
    pub limit: u64,
    /// The longest pause in the middle of a file before it is given up.
    pub idle: Duration,
    /// The time limit for a whole file.
    pub within: Duration,
    /// Whether fetched files are stored, so that each is fetched once (`GLEANER_KEEP_MEDIA`).
    pub keep: bool,
    /// `TWILIO_API_BASE`, when Twilio is not reached at `https://api.twilio.com`.
    pub twilio_base: Option<String>,
    /// `WHATSAPP_API_BASE`
    pub whatsapp_base: String,
    /// `TELEGRAM_API_BASE`
    pub telegram_base: String,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            allow_private: Vec::new(),
            limit: 256 * 1024 * 1024,
            idle: Duration::from_secs(30),
            within: Duration::from_secs(15 * 60),
            keep: true,
            twilio_base: None,
            whatsapp_base: "https://graph.facebook.com/v23.0".into(),
            telegram_base: "https://api.telegram.org".into(),
        }
    }
}

impl Options {
    /// The defaults, overridden by the environment.
    pub fn from_env() -> Result<Self, String> {
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let base = |name: &str| variable(name).map(|base| base.trim_end_matches('/').to_owned());
        let default = Self::default();
        let limit = match variable("GLEANER_MEDIA_LIMIT") {
            Some(text) => text.parse().map_err(|_| format!("GLEANER_MEDIA_LIMIT is a number of bytes, not {text:?}"))?,
            None => default.limit,
        };
        let keep = match variable("GLEANER_KEEP_MEDIA").as_deref() {
            None | Some("true" | "1" | "yes") => true,
            Some("false" | "0" | "no") => false,
            Some(other) => return Err(format!("GLEANER_KEEP_MEDIA is true or false, not {other:?}")),
        };
        Ok(Self {
            limit,
            keep,
            twilio_base: base("TWILIO_API_BASE"),
            whatsapp_base: base("WHATSAPP_API_BASE").unwrap_or(default.whatsapp_base),
            telegram_base: base("TELEGRAM_API_BASE").unwrap_or(default.telegram_base),
            ..default
        })
    }

    /// The base URLs that the operator has configured for a provider. They may be private, for example a relay in the same
    /// network.
    fn configured_bases(&self) -> Vec<reqwest::Url> {
        let default = Self::default();
        let named = [
            self.twilio_base.clone(),
            (self.whatsapp_base != default.whatsapp_base).then(|| self.whatsapp_base.clone()),
            (self.telegram_base != default.telegram_base).then(|| self.telegram_base.clone()),
        ];
        named.into_iter().flatten().filter_map(|base| reqwest::Url::parse(&base).ok()).collect()
    }
}

/// Why a file is not available. No message names a credential, or an address that may contain one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The file does not exist, or the caller may not read the row.
    #[error("there is no such file")]
    Unknown,
    /// The provider no longer has it.
    #[error("the provider no longer has this file")]
    Gone,
    /// The address is one that we never fetch from.
    #[error("this file is not fetched: {0}")]
    Refused(String),
    /// The provider fails, or refuses our credentials.
    #[error("the provider does not hand the file out: {0}")]
    Provider(String),
    /// The database or our own store is unavailable.
    #[error("{0}")]
    Away(String),
}

/// Everything needed to serve media.
#[derive(Debug)]
pub struct Media {
    options: Options,
    guard: Guard,
    pool: Pool,
    channels: Channels,
    files: Files,
    gmail: Arc<Gmail>,
}

impl Media {
    pub fn new(options: Options, pool: Pool, channels: Channels, files: Files, gmail: Arc<Gmail>) -> Result<Self, reqwest::Error> {
        let guard = Guard::new(options.allow_private.clone(), options.configured_bases(), options.idle)?;
        Ok(Self { options, guard, pool, channels, files, gmail })
    }
}
