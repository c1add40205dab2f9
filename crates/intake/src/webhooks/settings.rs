//! The settings that the operator can choose.

use std::time::Duration;

use ipnet::IpNet;

use super::Clock;

/// How webhooks are received.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The public URL that senders have, unless their channel has its own: scheme, host and path prefix, without a slash at
    /// the end.
    pub public_base: String,
    /// Peers whose `X-Forwarded-For` is trusted.
    pub trusted_proxies: Vec<IpNet>,
    pub clock: Clock,
    pub limits: Limits,
    pub raw: Raw,
    /// How long the look-up of a channel may take.
    pub within: Duration,
    pub further_path: Option<FurtherPath>,
}

/// An additional path, and the key that is used there.
#[derive(Debug, Clone)]
pub struct FurtherPath {
    pub path: String,
    pub key: String,
}

/// How much is accepted.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Requests per minute that are not authentic, from one client at one channel. Authentic ones are never refused because
    /// of it.
    pub rejected_per_minute: u32,
    /// Authentic requests per minute at one channel, averaged over an hour, so that a burst is accepted. Zero: no ceiling.
    pub ceiling_per_minute: u32,
    /// How many minutes' worth of the ceiling may arrive at once.
    pub ceiling_burst_minutes: u32,
    /// The most bytes of bodies in memory at a time, for all requests together.
    pub body_memory: usize,
    /// The longest pause in the middle of a body before the request is given up.
    pub body_idle: Duration,
    /// The time limit for a whole body.
    pub body_total: Duration,
}

/// How long requests are stored for `gleaner replay`.
#[derive(Debug, Clone)]
pub struct Raw {
    /// Zero: nothing is stored.
    pub keep: Duration,
    /// When there is more than this, files included, the oldest are deleted first.
    pub max_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            rejected_per_minute: 100,
            ceiling_per_minute: 1000,
            ceiling_burst_minutes: 60,
            body_memory: 512 * 1024 * 1024,
            body_idle: Duration::from_secs(10),
            body_total: Duration::from_secs(120),
        }
    }
}

impl Default for Raw {
    fn default() -> Self {
        Self { keep: Duration::from_secs(7 * 24 * 3600), max_bytes: 2 * 1024 * 1024 * 1024 }
    }
}
