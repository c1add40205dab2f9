//! What an agent does with the items it claims.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use gleaner::worker::Context;
use gleaner::{Failure, Item};
use serde_json::Value;

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

    /// Its capabilities, for people and other programs.
    fn capabilities(&self) -> Vec<String> {
        Vec::new()
    }

    /// Called before the first item, once the place was reached. `fetch` gets what belongs to an item there.
    fn opened(&self, fetch: Arc<dyn Fetch>) {
        let _ = fetch;
    }

    async fn run(&self, queue: &str, item: Item, context: Context) -> Result<Option<Value>, Failure>;
}
