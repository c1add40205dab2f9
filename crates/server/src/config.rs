//! The configuration of the server. The command line and the environment fill it in; tests fill it in themselves.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use gleaner_ingest::Provider;
use gleaner_intake::webhooks::{Clock, FurtherPath, Limits, Raw};
use gleaner_supabase::{auth, rest};
use ipnet::IpNet;

/// The default port.
pub const PORT: u16 = 54321;

#[derive(Debug, Clone)]
pub struct Config {
    pub listen: SocketAddr,
    /// The public URL of this server as senders have it (`PUBLIC_BASE_URL`): scheme, host and path prefix. Signatures cover
    /// it, so it is configured and never guessed from a header. The default is the listening address, which works only on a
    /// developer's machine.
    pub public_base: Option<String>,
    /// Peers whose `X-Forwarded-For` is trusted (`TRUSTED_PROXIES`).
    pub trusted_proxies: Vec<IpNet>,
    /// Private addresses from which media may be fetched anyway.
    pub allow_private_media: Vec<IpNet>,
    /// The largest document that people may add, in bytes.
    pub document_limit: u64,
    /// Further options for fetching media.
    pub media: gleaner_intake::media::Options,
    /// The addresses of Google's services.
    pub google: gleaner_intake::mailboxes::Google,
    /// The directory for files and keys.
    pub home: PathBuf,
    /// Where files are stored instead (`GLEANER_FILES_URL`), when several servers share one database.
    pub files_url: Option<String>,
    pub clock: Clock,
    /// The known providers. Tests add their own.
    pub providers: &'static [&'static dyn Provider],
    pub limits: Limits,
    pub head: Head,
    pub connections: Connections,
    pub raw: Raw,
    /// What `/rest/v1` exposes, and its limits.
    pub rest: rest::Settings,
    /// The database URL of `/rest/v1` (`GLEANER_REST_DATABASE_URL`), where the server cannot make that login itself.
    pub rest_url: Option<String>,
    /// How people sign in. Its base URL is set at the start, when the address is known.
    pub auth: auth::Settings,
    /// Whether changes are pushed to subscribers. This takes a replication slot while the server runs. Where no slot is
    /// available, triggers record changes while there are subscribers.
    pub realtime: bool,
    /// How often the working devices are written to the database.
    pub nodes_every: Duration,
    /// The number of tasks that commit. Each collects waiting requests while another commits. More than a few only make
    /// smaller batches.
    pub committers: usize,
    /// The most requests that share a commit. One means no group commit; the benchmark shows what that costs.
    pub group: usize,
    /// How long a request may wait for its commit, including retries after a lost connection. Twilio hangs up after 15 s.
    pub commit_within: Duration,
    /// The origins that may show the web interface in a frame (`GLEANER_FRAME_ORIGINS`). The page sends them the address of its project.
    pub frames: Vec<String>,
    /// An additional path for webhooks, for senders whose URL is fixed, such as published examples.
    pub further_path: Option<FurtherPath>,
}

/// Limits for a request's head: its size, and the time to send it.
#[derive(Debug, Clone, Copy)]
pub struct Head {
    /// Bytes of request line and headers.
    pub bytes: usize,
    /// Time for request line and headers of the first request, from the moment the connection is made.
    pub first_within: Duration,
    /// Time for those of further requests; also how long an idle connection is kept.
    pub within: Duration,
}

/// How many connections may be open at the same time. Further ones are closed at once.
#[derive(Debug, Clone, Copy)]
pub struct Connections {
    /// In total (`GLEANER_CLIENTS`), and never more than there are file descriptors for.
    pub most: usize,
    /// From one IPv4 address or one /64 of IPv6 (`GLEANER_CLIENTS_PER_ADDRESS`). Trusted proxies are exempt.
    pub per_address: usize,
}

impl Connections {
    /// The defaults, changed by the variables. The error names the one that is invalid.
    pub fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Result<Self, String> {
        let number = |name: &str, default: usize| match variable(name).filter(|text| !text.trim().is_empty()) {
            Some(text) => {
                text.trim().parse().ok().filter(|count| *count > 0).ok_or_else(|| format!("{name} is a number above zero, not {text:?}"))
            }
            None => Ok(default),
        };
        let default = Self::default();
        Ok(Self {
            most: number("GLEANER_CLIENTS", default.most)?,
            per_address: number("GLEANER_CLIENTS_PER_ADDRESS", default.per_address)?,
        })
    }
}

impl Default for Connections {
    fn default() -> Self {
        Self { most: 20_000, per_address: 2_000 }
    }
}

impl Config {
    /// The defaults, with files and keys in `home`.
    pub fn new(home: impl Into<PathBuf>) -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, PORT)),
            public_base: None,
            trusted_proxies: Vec::new(),
            allow_private_media: Vec::new(),
            document_limit: gleaner_intake::dumps::LIMIT,
            media: gleaner_intake::media::Options::default(),
            google: gleaner_intake::mailboxes::Google::default(),
            home: home.into(),
            files_url: None,
            clock: Clock::System,
            providers: gleaner_ingest::providers::all(),
            limits: Limits::default(),
            head: Head::default(),
            connections: Connections::default(),
            raw: Raw::default(),
            rest: rest::Settings::default(),
            rest_url: None,
            auth: auth::Settings::new(""),
            realtime: true,
            nodes_every: crate::nodes::EVERY,
            committers: 2,
            group: 256,
            commit_within: Duration::from_secs(10),
            frames: Vec::new(),
            further_path: None,
        }
    }
}

impl Default for Head {
    fn default() -> Self {
        Self { bytes: 64 * 1024, first_within: Duration::from_secs(10), within: Duration::from_secs(75) }
    }
}

/// Normalizes a public base URL by removing a trailing slash. The error says why a URL would never match a signature.
pub fn public_base(text: &str) -> Result<String, String> {
    let base = text.trim_end_matches('/');
    let rest = base.strip_prefix("https://").or_else(|| base.strip_prefix("http://"));
    match rest {
        Some(host) if !host.is_empty() && !host.starts_with('/') && !base.contains(['?', '#', ' ']) => Ok(base.to_owned()),
        _ => Err(format!("{text:?} is not a base URL; it looks like https://hooks.example.com, with a path if a proxy takes one away")),
    }
}

/// Origins, separated by commas or spaces: `https://crm.example.com, http://127.0.0.1:7433`.
pub fn origins(text: &str) -> Result<Vec<String>, String> {
    let origin = |text: &str| match public_base(text) {
        Ok(base) if base == text && base.matches('/').count() == 2 && !base.contains([';', '\'']) => Ok(base),
        _ => Err(format!("{text:?} is not an origin; it looks like https://crm.example.com, without a path")),
    };
    text.split([',', ' ']).filter(|part| !part.is_empty()).map(origin).collect()
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
    fn a_base_that_could_never_match_is_reported() {
        assert_eq!(public_base("https://hooks.Example.com/prefix/").as_deref(), Ok("https://hooks.Example.com/prefix"));
        assert_eq!(public_base("http://127.0.0.1:54321").as_deref(), Ok("http://127.0.0.1:54321"));
        for bad in ["", "hooks.example.com", "https://", "https:///x", "https://a?b=c", "https://a#f", "ftp://a"] {
            assert!(public_base(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn an_origin_has_no_path() {
        let list = origins("https://crm.example.com, http://127.0.0.1:7433").unwrap();
        assert_eq!(list, ["https://crm.example.com", "http://127.0.0.1:7433"]);
        for bad in ["*", "https://a/", "https://a/b", "https://a;script-src", "crm.example.com"] {
            assert!(origins(bad).is_err(), "{bad}");
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
