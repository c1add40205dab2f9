//! `/v1/queues`: the engine's acts over HTTP, with leases, batches and claims that wait.
//!
//! - [`claim`]: claims that wait; [`gate`]: which need not ask the database; [`key`]: which are alike; [`line`](self::line): where
//!   those stand together; [`look`]: what the database is asked for all of them; [`known`]: what queues look like.
//! - [`waiting`]: how much there is; [`acts`]: everything else; [`failure`]: what went wrong, as an answer; [`worked`]: who works, for
//!   people to see.

mod acts;
mod claim;
mod failure;
mod gate;
mod key;
mod known;
mod line;
mod look;
mod waiting;
mod worked;

use std::sync::Arc;

use axum::Router;
use axum::extract::FromRef;
use axum::routing::{get, post};
use gleaner::bell::{Bell, Ears};
use gleaner::{Acts, Error, Pool};

use crate::access::Access;
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
    access: Access,
    bell: Bell,
    ears: Arc<Ears>,
    gate: Arc<Gate>,
    lines: Lines,
    nodes: Nodes,
    counts: Counts,
    known: Known,
}

impl FromRef<Queues> for Access {
    fn from_ref(queues: &Queues) -> Self {
        queues.shared.access.clone()
    }
}

impl Queues {
    pub fn new(url: &str, pool: Pool, access: Access) -> Self {
        let (ears, gate) = (Arc::new(Ears::new(url)), Arc::<Gate>::default());
        let shared = Shared {
            bell: Bell::new(pool.clone()),
            lines: Lines::new(pool.clone(), ears.clone(), gate.clone()),
            ears,
            gate,
            nodes: Nodes::default(),
            counts: Counts::default(),
            known: Known::new(pool.clone()),
            pool,
            access,
        };
        Self { shared: Arc::new(shared) }
    }

    /// The devices that claims come from.
    pub fn nodes(&self) -> &Nodes {
        &self.shared.nodes
    }

    /// There may be new work in `queue`: an act of this server, or a change seen in the log.
    pub fn hear(&self, queue: &str) {
        self.shared.ears.hear(queue);
    }

    /// Waits for the next bell of any queue.
    pub async fn any_rung(&self) {
        self.shared.ears.any().await;
    }

    /// Rows were written to this table; if claims wait for one of its queue, they look.
    pub fn hear_table(&self, schema: &str, table: &str) {
        self.shared.known.for_each(|queue, declared| {
            if declared.split_once('.').map_or(schema == "public" && declared == table, |(s, t)| s == schema && t == table) {
                self.shared.ears.hear(queue);
            }
        });
    }

    /// Begins to hear of new work in `queue`: how often its bell rang so far. An error when there is no such queue.
    pub async fn follow(&self, queue: &str) -> Result<u64, Error> {
        // Known from here on, so that changes of its table in the log ring for it too.
        self.acts(queue).await?;
        Ok(self.shared.ears.rings(queue))
    }

    /// Waits until the bell of `queue` rang more often than `heard`; how often that is.
    pub async fn rung(&self, queue: &str, heard: u64) -> u64 {
        self.shared.ears.rung(queue, heard).await
    }

    /// Tells other processes too.
    fn ring(&self, queue: &str) {
        self.hear(queue);
        self.shared.bell.ring(queue);
    }

    async fn acts(&self, name: &str) -> Result<Arc<Acts>, Error> {
        self.shared.known.acts(name).await
    }

    /// How many claims were answered without asking the database, and how many statements the rest took.
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
