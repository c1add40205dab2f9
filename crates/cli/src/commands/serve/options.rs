//! The settings of a server, by flags or by the environment; the same for `serve` and `up`.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::Args;
use gleaner::Pool;
use gleaner_intake::mailboxes::Google;
use gleaner_intake::media;
use gleaner_server::config;
use gleaner_server::{Config, Server, StartError};
use ipnet::IpNet;
use tokio::process::Command;

use crate::serving::kept_port;

/// How far to look for a free port when the usual one is taken.
const FURTHER: u16 = 100;

/// Which port to take in a home that has not kept one, where `--listen` names none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FirstPort {
    /// The usual one.
    Usual,
    /// The usual one or the next that is free. The home keeps it from then on.
    NextFree,
}

#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "The server")]
pub(crate) struct Options {
    /// Address to listen on [default: 127.0.0.1 with the port this home keeps, else 54321]
    #[arg(long, env = "GLEANER_LISTEN", value_name = "ADDRESS:PORT", value_parser = address, default_value = "", hide_default_value = true)]
    listen: Maybe<SocketAddr>,
    /// The public address of this server, for webhook URLs; signatures cover it
    #[arg(long, env = "PUBLIC_BASE_URL", value_name = "URL", value_parser = base, default_value = "", hide_default_value = true)]
    public_base_url: Maybe<String>,
    /// Proxies whose X-Forwarded-For is trusted
    #[arg(long, env = "TRUSTED_PROXIES", value_name = "NETWORKS", value_parser = networks, default_value = "", hide_default_value = true)]
    trusted_proxies: Networks,
    /// Private networks from which media may be fetched
    #[arg(long, env = "GLEANER_ALLOW_PRIVATE_MEDIA", value_name = "NETWORKS", value_parser = networks, default_value = "", hide_default_value = true)]
    allow_private_media: Networks,
    /// Requests a minute that may fail verification, from one client at one channel
    #[arg(long, env = "GLEANER_REJECTED_PER_MINUTE", value_name = "COUNT", default_value_t = 100)]
    rejected_per_minute: u32,
    /// Authentic requests a minute at one channel, averaged over an hour; 0 is no limit
    #[arg(long, env = "GLEANER_CEILING_PER_MINUTE", value_name = "COUNT", default_value_t = 1000)]
    ceiling_per_minute: u32,
    /// How long requests are kept for `gleaner replay`; 0 keeps none
    #[arg(long, env = "GLEANER_KEEP_RAW_DAYS", value_name = "DAYS", default_value_t = 7)]
    keep_raw_days: u32,
    /// The most megabytes of kept requests
    #[arg(long, env = "GLEANER_KEEP_RAW_MEGABYTES", value_name = "MEGABYTES", default_value_t = 2048)]
    keep_raw_megabytes: u64,
    /// The most connections to the database
    #[arg(long, env = "GLEANER_CONNECTIONS", value_name = "COUNT", default_value_t = 16, value_parser = clap::value_parser!(u16).range(4..))]
    connections: u16,
}

/// Something, or nothing: a variable set to nothing is how shells unset one.
#[derive(Debug, Clone)]
struct Maybe<T>(Option<T>);

fn address(text: &str) -> Result<Maybe<SocketAddr>, String> {
    let address = || text.parse().map_err(|_| format!("{text:?} is no address with a port; write 127.0.0.1:54321"));
    if text.is_empty() { Ok(Maybe(None)) } else { Ok(Maybe(Some(address()?))) }
}

fn base(text: &str) -> Result<Maybe<String>, String> {
    if text.is_empty() { Ok(Maybe(None)) } else { Ok(Maybe(Some(config::public_base(text)?))) }
}

/// A list that is one argument.
#[derive(Debug, Clone)]
struct Networks(Vec<IpNet>);

fn networks(text: &str) -> Result<Networks, String> {
    config::networks(text).map(Networks)
}

impl Options {
    /// The address that senders are given, if it was set.
    pub(crate) fn public_base(&self) -> Option<&str> {
        self.public_base_url.0.as_deref()
    }

    pub(crate) fn pool(&self, url: &str) -> Result<Pool> {
        Ok(gleaner::pool(url, usize::from(self.connections))?)
    }

    /// Whether an address was asked for.
    pub(crate) fn names_address(&self) -> bool {
        self.listen.0.is_some()
    }

    fn config(&self, home: &Path) -> Result<Config> {
        let mut config = Config::new(home);
        config.listen = self.listen.0.unwrap_or(config.listen);
        config.public_base = self.public_base_url.0.clone();
        config.trusted_proxies = self.trusted_proxies.0.clone();
        config.allow_private_media = self.allow_private_media.0.clone();
        config.google = Google::from_env().map_err(anyhow::Error::msg)?;
        config.media = media::Options::from_env().map_err(anyhow::Error::msg)?;
        config.document_limit = gleaner_intake::dumps::limit_from_env().map_err(anyhow::Error::msg)?;
        let variable = |name: &str| std::env::var(name).ok();
        config.rest = gleaner_supabase::rest::Settings::from_variables(variable).map_err(anyhow::Error::msg)?;
        config.rest_url = variable("GLEANER_REST_DATABASE_URL").filter(|url| !url.trim().is_empty());
        config.auth = gleaner_supabase::auth::Settings::from_variables("", variable).map_err(anyhow::Error::msg)?;
        config.connections = config::Connections::from_variables(variable).map_err(anyhow::Error::msg)?;
        config.files_url = std::env::var("GLEANER_FILES_URL").ok().filter(|url| !url.is_empty());
        let frames = variable("GLEANER_FRAME_ORIGINS").unwrap_or_default();
        config.frames = config::origins(&frames).map_err(|error| anyhow::anyhow!("GLEANER_FRAME_ORIGINS: {error}"))?;
        config.limits.rejected_per_minute = self.rejected_per_minute;
        config.limits.ceiling_per_minute = self.ceiling_per_minute;
        config.raw.keep = Duration::from_secs(u64::from(self.keep_raw_days) * 24 * 3600);
        config.raw.max_bytes = self.keep_raw_megabytes.saturating_mul(1024 * 1024);
        Ok(config)
    }

    /// Starts a server for this home.
    pub(crate) async fn start(&self, home: &Path, url: &str, pool: Pool, first: FirstPort) -> Result<Server> {
        let mut config = self.config(home)?;
        let kept = kept_port(home).filter(|_| !self.names_address());
        if let Some(port) = kept {
            config.listen.set_port(port);
        }
        let chooses = first == FirstPort::NextFree && kept.is_none() && !self.names_address();
        let last = config.listen.port() + if chooses { FURTHER } else { 0 };
        loop {
            match Server::start(config.clone(), url, pool.clone()).await {
                Err(StartError::Listen { source, .. }) if source.kind() == std::io::ErrorKind::AddrInUse && config.listen.port() < last => {
                    config.listen.set_port(config.listen.port() + 1);
                }
                Err(error @ StartError::Listen { .. }) => match kept {
                    Some(port) => bail!(
                        "{error}\n  This home keeps port {port}: webhook URLs, sessions and links name it\n  \
                         Stop the program that uses the port, or let the home keep another one: gleaner up --listen 127.0.0.1:PORT"
                    ),
                    None => bail!("{error}\n  Choose another with --listen ADDRESS:PORT; port 0 is any free one"),
                },
                other => return Ok(other?),
            }
        }
    }

    /// The same for a process of ours. Through the environment: what comes from there goes back there, and nothing of it is listed
    /// among the machine's processes.
    pub(crate) fn hand_over(&self, command: &mut Command) {
        let list = |networks: &Networks| networks.0.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
        let all = [
            ("GLEANER_LISTEN", self.listen.0.map(|listen| listen.to_string())),
            ("PUBLIC_BASE_URL", self.public_base_url.0.clone()),
            ("TRUSTED_PROXIES", Some(list(&self.trusted_proxies))),
            ("GLEANER_ALLOW_PRIVATE_MEDIA", Some(list(&self.allow_private_media))),
            ("GLEANER_REJECTED_PER_MINUTE", Some(self.rejected_per_minute.to_string())),
            ("GLEANER_CEILING_PER_MINUTE", Some(self.ceiling_per_minute.to_string())),
            ("GLEANER_KEEP_RAW_DAYS", Some(self.keep_raw_days.to_string())),
            ("GLEANER_KEEP_RAW_MEGABYTES", Some(self.keep_raw_megabytes.to_string())),
            ("GLEANER_CONNECTIONS", Some(self.connections.to_string())),
        ];
        for (name, value) in all {
            if let Some(value) = value {
                command.env(name, value);
            }
        }
    }
}
