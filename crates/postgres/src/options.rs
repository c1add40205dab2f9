//! Options of a cluster.

use std::path::PathBuf;
use std::time::Duration;

use crate::{Home, Installation};

/// What happens to the server when the process that started it dies without stopping it (Linux only).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParentDeath {
    /// A fast shutdown: sessions end, a checkpoint is written, the next start is quick.
    ShutDown,
    /// An immediate shutdown, for data that will not be read again.
    Abort,
}

/// How to run a cluster. [`Options::new`] gives the options that `gleaner up` uses.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Options {
    /// Where everything is kept.
    pub home: Home,
    /// Which PostgreSQL to use. `None` finds the one that fits the data.
    pub installation: Option<Installation>,
    /// Listen on this port of 127.0.0.1 too, with a password. None: the unix socket only.
    pub port: Option<u16>,
    /// Create the socket directory in here, if the path is short enough for a socket. None: in /run as root, else in /tmp.
    pub socket_parent: Option<PathBuf>,
    /// Whether a commit survives a power failure. Disabling it makes tests faster; it must never be disabled elsewhere.
    pub durable: bool,
    /// Connections the server accepts.
    pub max_connections: u32,
    /// Further settings, which override the generated ones and `postgresql.conf`.
    pub settings: Vec<(String, String)>,
    /// What happens to the server when this process dies.
    pub parent_death: ParentDeath,
    /// How long to wait until the server is ready. Long, because recovery after a crash can take any time.
    pub start_timeout: Duration,
    /// How long a fast shutdown may take before it becomes an immediate one, which is safe but makes the next start slower.
    pub stop_timeout: Duration,
}

impl Options {
    /// Durable, on a unix socket, with everything sized by the machine.
    pub fn new(home: Home) -> Self {
        Self {
            home,
            installation: None,
            port: None,
            socket_parent: None,
            durable: true,
            max_connections: 200,
            settings: Vec::new(),
            parent_death: ParentDeath::ShutDown,
            start_timeout: Duration::from_secs(600),
            stop_timeout: Duration::from_secs(60),
        }
    }
}
