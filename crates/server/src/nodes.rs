//! Which devices are at work, for people to see (`public.crm_processing_nodes`). Devices send no heartbeats for it. The
//! data is a by-product of claims, acts and live connections. It is collected in memory and written to the database in one
//! statement a minute. Nothing depends on it, so a server that crashes may lose what it had not written yet.
//!
//! - [`node`]: whose device it is, and its name; [`ledger`]: what is known of it in memory; [`write`](self::write): writes that to the
//!   database; [`observe`]: what function calls and open sockets show.
//!
//! Agents that connect to the database directly pass no server and are not shown. The rows they hold are visible in
//! `locked_by`.

mod ledger;
mod node;
mod observe;
mod write;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use uuid::Uuid;

use ledger::Ledger;
pub use node::{Named, Node, Who};
pub use write::keep_writing;

/// How often the rows are written; a device counts as offline after two minutes without a write.
pub const EVERY: Duration = Duration::from_secs(60);

/// The devices this server has had requests from. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Nodes {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    ledger: Mutex<Ledger>,
    rounds: AtomicU64,
    statements: AtomicU64,
}

/// A row that was claimed.
#[derive(Debug, Clone, Copy)]
pub struct ClaimedRow<'a> {
    pub key: &'a str,
    /// None where the response has no lease, as when a client selects other columns of a claim function.
    pub lease: Option<i64>,
    /// The id of the activity. None for rows of other tables.
    pub activity: Option<Uuid>,
    pub lease_for: Duration,
}

impl Nodes {
    /// The device asked for work, or is connected.
    pub fn heard(&self, node: &Node) {
        self.ledger().heard(node, Instant::now());
    }

    /// The device claimed rows of `queue`.
    pub fn gave<'a>(&self, node: &Node, queue: &str, rows: impl Iterator<Item = ClaimedRow<'a>>) {
        self.ledger().gave(node, queue, rows, Instant::now());
    }

    /// The holder of the row is still working on it. Its lease lasts for `left`.
    pub fn kept(&self, queue: &str, key: &str, lease: i64, left: Duration) {
        self.ledger().kept(queue, key, lease, left, Instant::now());
    }

    /// The holder of these rows has ended its work on them. `completed` says whether it finished the work.
    pub fn ended<'a>(&self, queue: &str, rows: impl Iterator<Item = (&'a str, i64)>, completed: bool) {
        self.ledger().ended(queue, rows, completed, Instant::now());
    }

    /// Another client wrote to the table directly, so there may be rows to mark offline later.
    pub fn reported(&self) {
        self.ledger().look_by(Instant::now());
    }

    /// How often [`Self::write`] was called.
    pub fn rounds(&self) -> u64 {
        self.shared.rounds.load(Ordering::Relaxed)
    }

    /// How many statements this has taken so far.
    pub fn statements(&self) -> u64 {
        self.shared.statements.load(Ordering::Relaxed)
    }

    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.shared.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
