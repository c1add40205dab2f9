//! `/v1/queues`: the engine's acts over HTTP, with leases, batches and claims that wait.
//!
//! - [`claim`]: claims that wait; [`gate`]: answers claims without a query when the queue is known to be empty; [`key`]:
//!   identifies equal claims; [`line`](self::line): groups equal claims that wait; [`look`]: runs one query for a whole
//!   group; [`known`]: caches the declarations of queues.
//! - [`waiting`]: how much work waits; [`acts`]: every other act; [`failure`]: turns errors into responses; [`worked`]:
//!   records which devices work, for people to see; [`signals`]: realtime channels that are notified of new work.

mod acts;
mod claim;
mod failure;
mod gate;
mod key;
mod known;
mod line;
mod look;
mod signals;
mod transaction;
mod waiting;
mod worked;

use std::sync::Arc;

use axum::Router;
use axum::extract::FromRef;
use axum::routing::{get, post};
use gleaner::notify::{Notifier, SharedListener};
use gleaner::{Acts, Error, Pool};
use gleaner_http::Authenticator;

use crate::nodes::Nodes;
use gate::Gate;
use known::Known;
use line::Lines;
use waiting::Counts;

/// The queues of one database. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Queues {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    pool: Pool,
    authenticator: Authenticator,
    bell: Notifier,
    ears: Arc<SharedListener>,
    gate: Arc<Gate>,
    lines: Lines,
    nodes: Nodes,
    counts: Counts,
    known: Known,
}

impl FromRef<Queues> for Authenticator {
    fn from_ref(queues: &Queues) -> Self {
        queues.shared.authenticator.clone()
    }
}

impl Queues {
    pub fn new(url: &str, pool: Pool, authenticator: impl Into<Authenticator>) -> Self {
        let (ears, gate) = (Arc::new(SharedListener::new(url)), Arc::<Gate>::default());
        let shared = Shared {
            bell: Notifier::new(pool.clone()),
            lines: Lines::new(pool.clone(), ears.clone(), gate.clone()),
            ears,
            gate,
            nodes: Nodes::default(),
            counts: Counts::default(),
            known: Known::new(pool.clone()),
            pool,
            authenticator: authenticator.into(),
        };
        Self { shared: Arc::new(shared) }
    }

    /// The devices that claims come from.
    pub fn nodes(&self) -> &Nodes {
        &self.shared.nodes
    }

    /// Records that there may be new work in `queue`, after an act of this server or a change in the log.
    pub fn hear(&self, queue: &str) {
        self.shared.ears.record(queue);
    }

    /// Waits for the next notification of any queue.
    pub async fn any_rung(&self) {
        self.shared.ears.any().await;
    }

    /// Rows were written to this table. If claims wait for a queue of this table, they query again. Workers connected to
    /// the database are notified of inserted rows too, unless a trigger already notifies them. They are not notified of
    /// updated rows, because most updates are claims and completions.
    pub fn hear_table(&self, schema: &str, table: &str, inserted: bool) {
        self.shared.known.for_each(|queue, acts| {
            let declared = &acts.declaration().table;
            if declared.split_once('.').map_or(schema == "public" && declared == table, |(s, t)| s == schema && t == table) {
                self.shared.ears.record(queue);
                if inserted && !acts.is_notified() {
                    self.shared.bell.notify(queue);
                }
            }
        });
    }

    /// Loads the list of queues, so that changes of their tables in the log are recognized before the first claim.
    pub async fn learn(&self) -> Result<(), Error> {
        let client = self.shared.pool.get().await.map_err(|error| Error::Connect(error.to_string()))?;
        let entries = gleaner::registry::list(&**client).await?;
        drop(client);
        for entry in entries {
            // A broken queue must not hide the others. Requests that use it get the error.
            let _ = self.acts(&entry.name).await;
        }
        Ok(())
    }

    /// Subscribes to new work in `queue` and returns the number of notifications so far. An error when there is no such
    /// queue.
    pub async fn follow(&self, queue: &str) -> Result<u64, Error> {
        // The queue is cached from here on, so that changes of its table in the log notify it too.
        self.acts(queue).await?;
        Ok(self.shared.ears.count(queue))
    }

    /// Waits until `queue` has had more notifications than `heard`, and returns their number.
    pub async fn rung(&self, queue: &str, heard: u64) -> u64 {
        self.shared.ears.notified(queue, heard).await
    }

    /// Notifies other processes too.
    fn ring(&self, queue: &str) {
        self.hear(queue);
        self.shared.bell.notify(queue);
    }

    async fn acts(&self, name: &str) -> Result<Arc<Acts>, Error> {
        self.shared.known.acts(name).await
    }

    /// How many claims were answered without a query, and how many statements the other claims took.
    pub fn tally(&self) -> (u64, u64) {
        (self.shared.gate.spared(), self.shared.lines.looks())
    }
}

/// The routes, to be merged into the server's.
pub fn routes(queues: Queues) -> Router {
    Router::new()
        .route("/v1/queues", get(acts::list))
        .route("/v1/queues/{queue}/enqueue", post(acts::enqueue))
        .route("/v1/queues/{queue}/claim", post(claim::claim))
        .route("/v1/queues/{queue}/waiting", post(waiting::waiting))
        .route("/v1/queues/{queue}/start", post(acts::start))
        .route("/v1/queues/{queue}/ended", post(acts::ended))
        .route("/v1/queues/{queue}/progress", post(acts::progress))
        .route("/v1/queues/{queue}/complete", post(acts::complete))
        .route("/v1/queues/{queue}/fail", post(acts::fail))
        .route("/v1/queues/{queue}/release", post(acts::release))
        .route("/v1/queues/{queue}/snooze", post(acts::snooze))
        .route("/v1/queues/{queue}/cancel", post(acts::cancel))
        .route("/v1/queues/{queue}/requeue", post(acts::requeue))
        .route("/v1/queues/{queue}/bury", post(acts::bury))
        .route("/v1/queues/{queue}/assign", post(acts::assign))
        .route("/v1/queues/{queue}/items/{key}/explain", get(acts::explain))
        .with_state(queues)
}
