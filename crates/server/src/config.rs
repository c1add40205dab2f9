//! What the server is told at its start. The command line and the environment fill it in; tests do so themselves.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use gleaner_ingest::Provider;
use ipnet::IpNet;

use crate::clock::Clock;
use crate::{auth, rest};

/// Where webhooks arrive, as Supabase's functions have it.
pub const DOOR: &str = "/functions/v1/ingest-activity";

/// Port of a server that was not told another.
pub const PORT: u16 = 54321;

#[derive(Debug, Clone)]
pub struct Config {
    pub listen: SocketAddr,
    /// What senders were given as our address (`PUBLIC_BASE_URL`): scheme, host and path prefix. Signatures cover it, so it is
    /// configuration and never guessed from a header. Without it the listening address is taken, which fits a laptop only.
    pub public_base: Option<String>,
    /// Peers whose `X-Forwarded-For` is believed (`TRUSTED_PROXIES`).
    pub trusted_proxies: Vec<IpNet>,
    /// Private addresses from which media may be fetched all the same.
    pub allow_private_media: Vec<IpNet>,
    /// How else media are fetched.
    pub media: crate::media::Options,
    /// Where Google is.
    pub google: crate::gmail::Google,
    /// Where files and keys are kept.
    pub home: PathBuf,
    /// Where files go instead (`GLEANER_FILES_URL`), when several servers share one database.
    pub files_url: Option<String>,
    pub clock: Clock,
    /// The senders we know; tests add their own.
    pub providers: &'static [&'static dyn Provider],
    pub limits: Limits,
    pub raw: Raw,
    /// What `/rest/v1` shows, and how much of it.
    pub rest: rest::Settings,
    /// How people sign in. Its base is set at the start, when the address is known.
    pub auth: auth::Settings,
    /// Whether changes are pushed to subscribers; takes a replication slot while the server runs, or
    /// where there is none to be had notes changes by triggers while somebody follows.
    pub realtime: bool,
    /// How often the database is told which devices work.
    pub nodes_every: Duration,
    /// Tasks that commit. Each gathers what waits while the other commits; more than a few only make smaller batches.
    pub committers: usize,
    /// The most requests that share a commit. One is what a door without group commit does; the benchmark shows what that costs.
    pub group: usize,
    /// How long a request may wait for its commit, repetitions after a lost connection included. Twilio hangs up after 15 s.
    pub commit_within: Duration,
    /// A further path of the door, and the key that holds there. For senders whose URL is given, such as published examples.
    pub door_path: Option<DoorPath>,
}

#[derive(Debug, Clone)]
pub struct DoorPath {
    pub path: String,
    pub key: String,
}

/// How much is let in.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Requests a minute that are not authentic, from one client at one channel. Authentic ones are never refused for it.
    pub strangers_per_minute: u32,
    /// Authentic requests a minute at one channel, averaged over an hour: a burst is no flood. Zero: no ceiling.
    pub ceiling_per_minute: u32,
    /// How many minutes' worth of the ceiling may come at once.
    pub ceiling_burst_minutes: u32,
    /// Bytes of bodies held in memory at a time, all requests together.
    pub body_memory: usize,
    /// Silence in the middle of a body before the sender is given up.
    pub body_idle: Duration,
    /// Time for a whole body.
    pub body_total: Duration,
    /// Bytes of request line and headers.
    pub head_bytes: usize,
    /// Time for request line and headers; also how long an idle connection is kept.
    pub head_within: Duration,
}

/// How long what arrived is kept for `gleaner replay`.
#[derive(Debug, Clone)]
pub struct Raw {
    /// Zero: nothing is kept.
    pub keep: Duration,
    /// The oldest go first when there is more than this, files included.
    pub max_bytes: u64,
}

impl Config {
    /// The defaults, with files and keys in `home`.
    pub fn new(home: impl Into<PathBuf>) -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, PORT)),
            public_base: None,
            trusted_proxies: Vec::new(),
            allow_private_media: Vec::new(),
            media: crate::media::Options::default(),
            google: crate::gmail::Google::default(),
            home: home.into(),
            files_url: None,
            clock: Clock::System,
            providers: gleaner_ingest::providers::all(),
            limits: Limits::default(),
            raw: Raw::default(),
            rest: rest::Settings::default(),
            auth: auth::Settings::new(""),
            realtime: true,
            nodes_every: crate::nodes::EVERY,
            committers: 2,
            group: 256,
            commit_within: Duration::from_secs(10),
            door_path: None,
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            strangers_per_minute: 100,
            ceiling_per_minute: 1000,
            ceiling_burst_minutes: 60,
            body_memory: 512 * 1024 * 1024,
            body_idle: Duration::from_secs(10),
            body_total: Duration::from_secs(120),
            head_bytes: 64 * 1024,
            head_within: Duration::from_secs(75),
        }
    }
}

impl Default for Raw {
    fn default() -> Self {
        Self { keep: Duration::from_secs(7 * 24 * 3600), max_bytes: 2 * 1024 * 1024 * 1024 }
    }
}

/// A public base as it is used: without a trailing slash. Says what is wrong with one that would never match a signature.
pub fn public_base(text: &str) -> Result<String, String> {
    let base = text.trim_end_matches('/');
    let rest = base.strip_prefix("https://").or_else(|| base.strip_prefix("http://"));
    match rest {
        Some(host) if !host.is_empty() && !host.starts_with('/') && !base.contains(['?', '#', ' ']) => Ok(base.to_owned()),
        _ => Err(format!("{text:?} is not a base URL; it looks like https://hooks.example.com, with a path if a proxy takes one away")),
    }
}

/// Addresses and networks, separated by commas or spaces: `10.0.0.0/8, 192.0.2.7`.
pub fn networks(text: &str) -> Result<Vec<IpNet>, String> {
    text.split([',', ' ']).filter(|part| !part.is_empty()).map(network).collect()
}

fn network(text: &str) -> Result<IpNet, String> {
    let alone = || text.parse::<std::net::IpAddr>().map(IpNet::from).ok();
    text.parse().ok().or_else(alone).ok_or_else(|| format!("{text:?} is neither an address nor a network; write 192.0.2.7 or 10.0.0.0/8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_that_could_never_match_is_told() {
        assert_eq!(public_base("https://hooks.Example.com/prefix/").as_deref(), Ok("https://hooks.Example.com/prefix"));
        assert_eq!(public_base("http://127.0.0.1:54321").as_deref(), Ok("http://127.0.0.1:54321"));
        for bad in ["", "hooks.example.com", "https://", "https:///x", "https://a?b=c", "https://a#f", "ftp://a"] {
            assert!(public_base(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_list_holds_addresses_and_networks() {
        let list = networks("10.0.0.0/8, 192.0.2.7 ::1").unwrap();
        assert_eq!(list.iter().map(ToString::to_string).collect::<Vec<_>>(), ["10.0.0.0/8", "192.0.2.7/32", "::1/128"]);
        assert!(networks("everybody").is_err());
        assert!(networks("").unwrap().is_empty());
    }
}
