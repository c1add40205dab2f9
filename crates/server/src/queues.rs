//! `/v1/queues`: the engine's acts over HTTP, with leases, batches and claims that wait.
//!
//! - [`claim`]: claims that wait; [`empty_cache`]: answers claims without a query when the queue is known to be empty; [`key`]:
//!   identifies equal claims; [`groups`](self::groups): groups equal claims that wait; [`poll`]: runs one query for a whole
//!   group; [`queue_cache`]: caches the declarations of queues.
//! - [`me`](self::me): who is calling; [`waiting`]: how much work waits; [`acts`]: every other act; [`items`]: rows for people to
//!   see; [`bulk`]: one act on many rows; [`figures`] and [`metrics`](self::metrics): how the queues do; [`failure`]: turns errors into responses; [`worked`]:
//!   records which devices work, for people to see; [`signals`]: realtime channels that are notified of new work.

mod acts;
mod bulk;
mod claim;
mod empty_cache;
mod failure;
mod figures;
mod groups;
mod items;
mod key;
mod me;
mod metrics;
mod poll;
mod queue_cache;
mod signals;
mod transaction;
mod waiting;
mod worked;

use std::sync::Arc;

use axum::extract::FromRef;
use gleaner::notify::{Notifier, SharedListener};
use gleaner::{Acts, Error, Pool};
use gleaner_http::Authenticator;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::nodes::Nodes;
use empty_cache::EmptyCache;
use figures::Figures;
use groups::Groups;
use items::viewing::Views;
use queue_cache::QueueCache;
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
    notifier: Notifier,
    listener: Arc<SharedListener>,
    empty_cache: Arc<EmptyCache>,
    groups: Groups,
    nodes: Nodes,
    counts: Counts,
    queue_cache: QueueCache,
    views: Views,
    figures: Figures,
}

impl FromRef<Queues> for Authenticator {
    fn from_ref(queues: &Queues) -> Self {
        queues.shared.authenticator.clone()
    }
}

impl Queues {
    pub fn new(url: &str, pool: Pool, authenticator: impl Into<Authenticator>) -> Self {
        let (listener, empty_cache) = (Arc::new(SharedListener::new(url)), Arc::<EmptyCache>::default());
        let shared = Shared {
            notifier: Notifier::new(pool.clone()),
            groups: Groups::new(pool.clone(), listener.clone(), empty_cache.clone()),
            listener,
            empty_cache,
            nodes: Nodes::default(),
            counts: Counts::default(),
            queue_cache: QueueCache::new(pool.clone()),
            views: Views::default(),
            figures: Figures::default(),
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
    pub fn record(&self, queue: &str) {
        self.shared.listener.record(queue);
    }

    /// Waits for the next notification of any queue.
    pub async fn any_notified(&self) {
        self.shared.listener.any().await;
    }

    /// Rows were written to this table. If claims wait for a queue of this table, they query again. Workers connected to
    /// the database are notified of inserted rows too, unless a trigger already notifies them. They are not notified of
    /// updated rows, because most updates are claims and completions.
    pub fn record_table(&self, schema: &str, table: &str, inserted: bool) {
        self.shared.queue_cache.for_each(|queue, acts| {
            let declared = &acts.declaration().table;
            if declared.split_once('.').map_or(schema == "public" && declared == table, |(s, t)| s == schema && t == table) {
                self.shared.listener.record(queue);
                if inserted && !acts.is_notified() {
                    self.shared.notifier.notify(queue);
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
        Ok(self.shared.listener.count(queue))
    }

    /// Waits until `queue` has had more notifications than `heard`, and returns their number.
    pub async fn notified(&self, queue: &str, heard: u64) -> u64 {
        self.shared.listener.notified(queue, heard).await
    }

    /// Notifies other processes too.
    fn notify(&self, queue: &str) {
        self.record(queue);
        self.shared.notifier.notify(queue);
    }

    async fn acts(&self, name: &str) -> Result<Arc<Acts>, Error> {
        self.shared.queue_cache.acts(name).await
    }

    /// How many claims wait for work now.
    pub fn waiting_claims(&self) -> usize {
        self.shared.groups.waiting()
    }

    /// How many groups of equal claims a task serves now, and how many claims are in them. A claim that is part of a running
    /// query is not counted.
    pub fn claim_groups(&self) -> (usize, usize) {
        self.shared.groups.size()
    }

    /// How many claims were answered without a query, and how many statements the other claims took.
    pub fn tally(&self) -> (u64, u64) {
        (self.shared.empty_cache.spared(), self.shared.groups.queries())
    }
}

/// The routes, to be merged into the server's.
pub fn routes(queues: Queues) -> OpenApiRouter {
    OpenApiRouter::default()
        .routes(routes!(me::me))
        .routes(routes!(figures::figures))
        .routes(routes!(metrics::metrics))
        .routes(routes!(acts::list::list))
        .routes(routes!(acts::enqueue::enqueue))
        .routes(routes!(claim::claim))
        .routes(routes!(waiting::waiting))
        .routes(routes!(acts::start::start))
        .routes(routes!(acts::progress::progress))
        .routes(routes!(acts::complete::complete))
        .routes(routes!(acts::fail::fail))
        .routes(routes!(acts::ended::ended))
        .routes(routes!(acts::release::release))
        .routes(routes!(acts::snooze::snooze))
        .routes(routes!(acts::cancel::cancel))
        .routes(routes!(acts::requeue::requeue))
        .routes(routes!(acts::bury::bury))
        .routes(routes!(acts::assign::assign))
        .routes(routes!(acts::reschedule::reschedule))
        .routes(routes!(acts::explain::explain))
        .routes(routes!(acts::pause::pause))
        .routes(routes!(acts::pause::resume))
        .routes(routes!(items::list::list))
        .routes(routes!(items::list::count))
        .routes(routes!(items::show::show))
        .routes(routes!(items::causes::causes))
        .routes(routes!(items::stats::stats))
        .routes(routes!(items::declaration::declaration))
        .routes(routes!(bulk::start::start, bulk::watch::list))
        .routes(routes!(bulk::watch::watch, bulk::stop::stop))
        .with_state(queues)
}
