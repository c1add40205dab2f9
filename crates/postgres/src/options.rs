//! How a cluster is to be run.

use std::path::PathBuf;
use std::time::Duration;

use crate::{Home, Installation};

/// What happens to the server when the process that started it dies without stopping it (Linux only).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParentDeath {
    /// A fast shutdown: sessions end, a checkpoint is written, the next start is quick.
    ShutDown,
    /// An immediate one, for data nobody will read again.
    Abort,
}

/// How to run a cluster. [`Options::new`] gives what `gleaner up` uses.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Options {
    /// Where everything is kept.
    pub home: Home,
    /// Which PostgreSQL; none looks for the one that fits the data.
    pub installation: Option<Installation>,
    /// Listen on this port of 127.0.0.1 too, with a password. None: the unix socket only.
    pub port: Option<u16>,
    /// Make the socket directory in here, if the path is short enough for a socket. None: in /run as root, else in /tmp.
    pub socket_parent: Option<PathBuf>,
    /// Whether a commit survives a power cut. Off makes tests faster and must never be off elsewhere.
    pub durable: bool,
    /// Connections the server accepts.
    pub max_connections: u32,
    /// Further settings, which win over the generated ones and over `postgresql.conf`.
    pub settings: Vec<(String, String)>,
    /// What becomes of the server when we die.
    pub parent_death: ParentDeath,
    /// How long to wait for readiness. Long, because recovery after a crash takes as long as it takes.
    pub start_timeout: Duration,
    /// How long a fast shutdown may take before it becomes an immediate one, which is safe but makes the next start slower.
    pub stop_timeout: Duration,
}

impl Options {
    /// Durable, on a unix socket, everything sized by the machine.
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
