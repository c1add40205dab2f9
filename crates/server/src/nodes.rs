//! Which devices are at work, for people to see (`public.crm_processing_nodes`). Nobody sends heartbeats for it: it is a
//! by-product of claims, acts and live connections, gathered in memory and told to the database in one statement a minute.
//! Nothing depends on it, so what a server that dies had not told yet is forgotten.
//!
//! - [`node`]: whose device it is, and what it is called; [`ledger`]: what has been heard from it; [`told`]: telling.
//!
//! Agents that are connected to the database itself pass no server and are not shown. The rows they hold are: `locked_by`.

mod ledger;
mod node;
mod told;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use uuid::Uuid;

use ledger::Ledger;
pub use node::{Named, Node, Who};
pub use told::keep_telling;

/// How often the database is told; the specification calls a device offline after two minutes of silence.
pub const EVERY: Duration = Duration::from_secs(60);

/// The devices this server has heard from. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Nodes {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    ledger: Mutex<Ledger>,
    statements: AtomicU64,
}

/// A row that a claim gave out.
#[derive(Debug, Clone, Copy)]
pub struct Given<'a> {
    pub key: &'a str,
    /// None where the claim did not tell, as with the functions of the specification.
    pub lease: Option<i64>,
    /// The activity that it is; none for rows of other tables.
    pub activity: Option<Uuid>,
    pub lease_for: Duration,
}

impl Nodes {
    /// The device asked for work, or is connected.
    pub fn heard(&self, node: &Node) {
        self.ledger().heard(node, Instant::now());
    }

    /// The device was given rows of `queue`.
    pub fn gave<'a>(&self, node: &Node, queue: &str, rows: impl Iterator<Item = Given<'a>>) {
        self.ledger().gave(node, queue, rows, Instant::now());
    }

    /// The holder of the row is still at it, for as long as `left`.
    pub fn kept(&self, queue: &str, key: &str, lease: i64, left: Duration) {
        self.ledger().kept(queue, key, lease, left, Instant::now());
    }

    /// The holder of these rows has ended its work on them; `completed` says whether by finishing it.
    pub fn ended<'a>(&self, queue: &str, rows: impl Iterator<Item = (&'a str, i64)>, completed: bool) {
        self.ledger().ended(queue, rows, completed, Instant::now());
    }

    /// Somebody wrote to the table itself; there may be rows to mark offline, in time.
    pub fn reported(&self) {
        self.ledger().look_by(Instant::now());
    }

    /// How many statements all this has taken so far.
    pub fn statements(&self) -> u64 {
        self.shared.statements.load(Ordering::Relaxed)
    }

    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.shared.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
