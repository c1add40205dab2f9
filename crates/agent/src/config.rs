//! The settings of an agent, from flags, environment and file.
//!
//! - [`settings`]: all settings, each with its variable and its default; the manual and `--print-config` read the same list.
//! - [`layers`]: flags override the environment, which overrides the file, which overrides the defaults; and where each value
//!   came from.
//! - `followups`: the sections `followup_polling` and `followups`; `runs`: the section of that name.
//! - [`read`]: parses durations, lists and other values as people write them.

mod followups;
pub mod layers;
mod read;
mod runs;
pub mod settings;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use gleaner::worker::{Poll, Wake};
use uuid::Uuid;

pub use self::layers::{Effective, Error, Origin, Sources};
use crate::wire::sessions::{self, Kept};
use crate::wire::{Settings, session};

/// Everything an agent needs to know. Start from [`Config::load`].
#[derive(Debug, Clone)]
pub struct Config {
    /// Distinguishes the agents of one home.
    pub name: Name,
    /// The id under which the database records it as the holder of its claims.
    pub worker: String,
    /// The directory of the notes, the sessions and the configuration file.
    pub home: PathBuf,
    pub endpoint: EndpointAt,
    /// The server through which recordings are fetched when the database is accessed directly.
    pub server: Option<Settings>,
    /// URL prefixes from which recordings may be fetched without a server.
    pub recordings: Vec<String>,
    /// The owner whose work comes first. Over the wire that is the signed-in user, unless another owner is named.
    pub owner: Option<String>,
    /// The queues to work. By default the queues of the pipelines.
    pub queues: Option<Vec<String>>,
    pub kinds: Option<Vec<String>>,
    pub pipelines: Option<PathBuf>,
    pub concurrency: usize,
    pub prefetch: usize,
    pub grace: Duration,
    pub watch: Duration,
    pub wake: Wake,
    pub poll: Poll,
    /// How follow-ups are polled and sent.
    pub followups: gleaner_systems::followups::Settings,
    /// What this machine offers for runs.
    pub runs: gleaner_systems::runs::Settings,
    /// Where the status page listens. None turns it off.
    pub status: Option<Listen>,
    pub until: Until,
    effective: Vec<Effective>,
}

/// A name, and whether the user chose it. A chosen name is not replaced by another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Name {
    pub text: String,
    pub chosen: bool,
}

/// Where the queues are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EndpointAt {
    /// A database, by its URL.
    Direct(String),
    /// A server, Gleaner's own or a Supabase project.
    Wire(Settings),
    /// The database that `gleaner up` runs in this home, once it runs.
    Home(PathBuf),
}

/// An address, and whether the next free port may be used instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Listen {
    pub address: SocketAddr,
    pub or_next: bool,
}

/// When the agent ends by itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Until {
    #[default]
    Stopped,
    /// Nothing is due and nothing runs.
    Empty,
    /// One item was worked, or nothing was due.
    Once,
}

impl Config {
    /// Reads all sources. Reports all mistakes in them at once.
    pub fn load(sources: Sources) -> Result<Self, Error> {
        let home = sources.home.clone();
        let secrets = runs::secrets(&sources.variables);
        let mut layers = sources.read()?;
        let chosen = !matches!(layers.origin("name"), Origin::Default);
        let config = Self {
            name: Name { text: layers.maybe("name", read::name).unwrap_or_default(), chosen },
            // New for each start: a restarted worker is not the same holder as before.
            worker: layers.maybe("worker", read::text).unwrap_or_else(|| Uuid::now_v7().to_string()),
            endpoint: endpoint(&mut layers, &home),
            server: server(&mut layers),
            recordings: layers.maybe("recordings", read::list).unwrap_or_default(),
            owner: layers.maybe("owner", read::text),
            queues: layers.maybe("queues", read::list),
            kinds: layers.maybe("kinds", read::list),
            pipelines: layers.maybe("pipelines", read::text).map(|path| layers.beside("pipelines", Path::new(&path))),
            concurrency: layers.maybe("concurrency", read::number(1..=1000)).unwrap_or(1),
            prefetch: layers.maybe("prefetch", read::number(0..=10_000)).unwrap_or(0),
            grace: layers.maybe("grace", read::span).unwrap_or_default(),
            watch: layers.maybe("watch", read::some_span).unwrap_or_default(),
            wake: layers.maybe("wake", read::wake).unwrap_or(Wake::Hybrid),
            poll: Poll {
                base: layers.maybe("poll.base", read::some_span).unwrap_or_default(),
                max: layers.maybe("poll.max", read::some_span).unwrap_or_default(),
                factor: layers.maybe("poll.factor", read::factor).unwrap_or(1.0),
                unnotified: layers.maybe("poll.unnotified", read::some_span).unwrap_or_default(),
                pushed_base: layers.maybe("poll.pushed_base", read::some_span).unwrap_or_default(),
                pushed_max: layers.maybe("poll.pushed_max", read::some_span).unwrap_or_default(),
                jitter: layers.maybe("poll.jitter", read::share).unwrap_or(0.0),
                seed: layers.maybe("poll.seed", read::seed),
            },
            followups: followups::read(&mut layers, &home),
            runs: runs::read(&mut layers, secrets),
            status: layers
                .maybe("status", read::listen)
                .flatten()
                .map(|address| Listen { address, or_next: matches!(layers.origin("status"), Origin::Default) }),
            until: Until::Stopped,
            home,
            effective: Vec::new(),
        };
        for (low, high, names) in [
            (config.poll.base, config.poll.max, "poll.base|poll.max"),
            (config.poll.pushed_base, config.poll.pushed_max, "poll.pushed_base|poll.pushed_max"),
        ] {
            if low > high
                && let Some((least, most)) = names.split_once('|')
            {
                layers.mistake(most, format!("is less than {least}"));
            }
        }
        let effective = layers.finish()?;
        Ok(Self { effective, ..config })
    }

    /// Every setting with its value and where it came from, in the order of the manual. Secrets are masked.
    pub fn effective(&self) -> &[Effective] {
        &self.effective
    }
}

/// The source with the higher precedence names the endpoint. If both come from the same source, the database wins over the server.
/// If neither is named, it is the server of the latest sign-in, otherwise the database of `gleaner up`.
fn endpoint(layers: &mut layers::Layers, home: &Path) -> EndpointAt {
    let server_first = layers.origin("url").rank() < layers.origin("database_url").rank();
    let server = layers.maybe("url", read::url);
    if let Some(url) = layers.maybe("database_url", read::text).filter(|_| server.is_none() || !server_first) {
        return EndpointAt::Direct(url);
    }
    let found = match layers.maybe("session", read::text).map(|path| layers.beside("session", Path::new(&path))) {
        Some(path) => session::load(&path).map(|session| session.map(|session| Kept { path, session })),
        None => sessions::find(home, server.as_deref()),
    };
    let kept = found.unwrap_or_else(|error| {
        layers.mistake("session", error);
        None
    });
    let Some(url) = server.or_else(|| kept.as_ref().map(|kept| kept.session.url.clone())) else { return EndpointAt::Home(home.to_owned()) };
    // A session belongs to its server. It does not contain the key of another one.
    let kept = kept.filter(|kept| kept.session.url == url);
    let service_key = layers.maybe("service_key", read::text);
    let anon_key = layers.maybe("anon_key", read::text).or_else(|| kept.as_ref().map(|kept| kept.session.anon_key.clone()));
    if service_key.is_none() && (anon_key.is_none() || kept.is_none()) {
        let why = "there is no key and no session for it: set SUPABASE_ANON_KEY and run `gleaner agent login`, or set SUPABASE_SERVICE_ROLE_KEY or GLEANER_KEY";
        layers.mistake("url", why);
    }
    EndpointAt::Wire(Settings { url, anon_key: anon_key.unwrap_or_default(), service_key, session: kept.map(|kept| kept.path) })
}

/// A server that is configured with a key, whether or not it is the endpoint.
fn server(layers: &mut layers::Layers) -> Option<Settings> {
    let (url, service_key) = (layers.maybe("url", read::url)?, layers.maybe("service_key", read::text)?);
    Some(Settings {
        url,
        anon_key: layers.maybe("anon_key", read::text).unwrap_or_default(),
        service_key: Some(service_key),
        session: None,
    })
}

#[cfg(test)]
mod tests;
