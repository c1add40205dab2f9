//! What an agent does with the items it claims.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use gleaner::Item;
use gleaner::worker::{Context, Poll, Replied};

use crate::pipeline::Fetch;

/// The pipelines, or the work that an embedding program provides instead.
#[async_trait]
pub trait Work: Debug + Send + Sync + 'static {
    /// The queues it can work.
    fn queues(&self) -> Vec<String>;

    /// The kinds of a queue it can process. None means all of them.
    fn kinds(&self, queue: &str) -> Option<Vec<String>>;

    /// How long one item may take.
    fn time_limit(&self, queue: &str, kind: Option<&str>) -> Option<Duration> {
        let _ = (queue, kind);
        None
    }

    /// How a queue is worked that does not share handlers and poll interval with the others.
    fn apart(&self, queue: &str) -> Option<Apart> {
        let _ = queue;
        None
    }

    /// Its capabilities, for people and other programs.
    fn capabilities(&self) -> Vec<String> {
        Vec::new()
    }

    /// Called before the first item, once the endpoint was reached. `fetch` gets what belongs to an item there.
    fn opened(&self, fetch: Arc<dyn Fetch>) {
        let _ = fetch;
    }

    async fn run(&self, queue: &str, item: Item, context: Context) -> Replied;
}

/// The pace of a queue that is worked apart from the others.
#[derive(Debug, Clone)]
pub struct Apart {
    /// Items in work at once.
    pub concurrency: usize,
    /// The most items of one claim.
    pub batch: usize,
    /// How long before their time items are claimed.
    pub early: Duration,
    /// How long a lease lasts without a sign of life.
    pub hold: Duration,
    pub poll: Poll,
}
