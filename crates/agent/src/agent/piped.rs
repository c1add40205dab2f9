//! The pipelines as the work of an agent.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use async_trait::async_trait;
use gleaner::Item;
use gleaner::worker::{Context, IntoReply as _, Replied};

use super::work::Work;
use crate::config::Config;
use crate::pipeline::fetch::Nothing;
use crate::pipeline::{Error, Fetch, Models, Pipelines, Services};

#[derive(Debug)]
pub(super) struct Piped {
    pipelines: Pipelines,
    /// Replaced once, when the endpoint has been reached.
    services: RwLock<Services>,
}

impl Piped {
    /// Loads the file and logs which of its kinds cannot be worked here.
    pub(super) fn load(config: &Config) -> Result<Self, Error> {
        let pipelines = Pipelines::load(config.pipelines.as_deref())?;
        for missing in pipelines.missing() {
            tracing::warn!("{missing}");
        }
        let services = Services { fetch: Arc::new(Nothing), models: pipelines.models().clone(), home: config.home.clone() };
        Ok(Self { pipelines, services: RwLock::new(services) })
    }

    pub(super) fn models(&self) -> Models {
        self.pipelines.models().clone()
    }
}

#[async_trait]
impl Work for Piped {
    fn queues(&self) -> Vec<String> {
        self.pipelines.queues().into_iter().map(str::to_owned).collect()
    }

    fn kinds(&self, queue: &str) -> Option<Vec<String>> {
        self.pipelines.kinds(queue)
    }

    fn time_limit(&self, queue: &str, kind: Option<&str>) -> Option<Duration> {
        self.pipelines.time_limit(queue, kind)
    }

    fn capabilities(&self) -> Vec<String> {
        self.pipelines.capabilities()
    }

    fn opened(&self, fetch: Arc<dyn Fetch>) {
        self.services.write().unwrap_or_else(PoisonError::into_inner).fetch = fetch;
    }

    async fn run(&self, queue: &str, item: Item, context: Context) -> Replied {
        let services = self.services.read().unwrap_or_else(PoisonError::into_inner).clone();
        self.pipelines.run(queue, item, context, &services).await?.into_reply()
    }
}
