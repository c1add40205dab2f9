//! The pipelines, and the systems that are executed by code of their own: follow-ups are sent, and recur.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use async_trait::async_trait;
use gleaner::Item;
use gleaner::worker::{Context, Poll, Replied};
use gleaner_systems::followups::{self, Followups};
use gleaner_systems::schedules;

use super::piped::Piped;
use super::work::{Apart, Work};
use super::{Error, Result};
use crate::config::{Config, EndpointAt};
use crate::pipeline::Fetch;
use crate::pipeline::fetch::Nothing;

#[derive(Debug)]
pub(super) struct Systems {
    piped: Piped,
    /// None where a pipeline works the queue, or where it must be asked for.
    followups: Option<Followups>,
    /// Replaced once, when the place has been reached.
    database: RwLock<Arc<dyn Fetch>>,
}

impl Systems {
    pub(super) fn load(config: &Config) -> Result<Self> {
        let piped = Piped::load(config)?;
        let named = config.queues.as_ref().is_some_and(|queues| queues.iter().any(|queue| is_own(queue)));
        // Only trusted callers work these queues. Who signs in at a server as a person is none, so there it must be named.
        let trusted = config.queues.is_none() && config.kinds.is_none() && !matches!(config.endpoint, EndpointAt::Wire(_));
        let wanted = (named || trusted) && !piped.queues().iter().any(|queue| queue == followups::QUEUE);
        let sender = || Followups::new(config.followups.clone(), piped.models()).map_err(Error::Followups);
        let followups = wanted.then(sender).transpose()?;
        Ok(Self { piped, followups, database: RwLock::new(Arc::new(Nothing)) })
    }

    /// What sends follow-ups, where the queue is one of those that it concerns.
    fn followups(&self, queue: &str) -> Option<&Followups> {
        self.followups.as_ref().filter(|_| is_own(queue))
    }
}

/// Whether a queue is executed by code of its own.
fn is_own(queue: &str) -> bool {
    [followups::QUEUE, schedules::QUEUE].contains(&queue)
}

#[async_trait]
impl Work for Systems {
    fn queues(&self) -> Vec<String> {
        let own = self.followups.iter().flat_map(|_| [followups::QUEUE.to_owned(), schedules::QUEUE.to_owned()]);
        self.piped.queues().into_iter().chain(own).collect()
    }

    fn kinds(&self, queue: &str) -> Option<Vec<String>> {
        if self.followups(queue).is_some() { None } else { self.piped.kinds(queue) }
    }

    fn time_limit(&self, queue: &str, kind: Option<&str>) -> Option<Duration> {
        // A message that is being sent is not dropped half-way.
        if self.followups(queue).is_some() { None } else { self.piped.time_limit(queue, kind) }
    }

    fn apart(&self, queue: &str) -> Option<Apart> {
        let followups = self.followups(queue)?;
        let polling = followups.polling();
        let every = polling.poll_interval;
        let (concurrency, hold) =
            if queue == schedules::QUEUE { (polling.batch_size, schedules::HOLD) } else { (followups.room(), followups::HOLD) };
        Some(Apart {
            concurrency,
            batch: polling.batch_size,
            early: polling.preemptive_window,
            hold,
            poll: Poll { base: every, max: every, unnotified: every, pushed_base: every, pushed_max: every, ..Poll::default() },
        })
    }

    fn capabilities(&self) -> Vec<String> {
        let own = self.followups.iter().map(|_| followups::QUEUE.to_owned());
        self.piped.capabilities().into_iter().chain(own).collect()
    }

    fn opened(&self, fetch: Arc<dyn Fetch>) {
        *self.database.write().unwrap_or_else(PoisonError::into_inner) = fetch.clone();
        self.piped.opened(fetch);
    }

    async fn run(&self, queue: &str, item: Item, context: Context) -> Replied {
        let Some(followups) = self.followups(queue) else { return self.piped.run(queue, item, context).await };
        let database = self.database.read().unwrap_or_else(PoisonError::into_inner).clone();
        if queue == schedules::QUEUE {
            return schedules::run(&*database, item, followups.polling().preemptive_window).await;
        }
        followups.run(&*database, item, context).await
    }
}
