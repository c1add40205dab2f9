//! The pipelines, and the systems that are executed by code of their own: follow-ups are sent and recur, runs are replayed.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use async_trait::async_trait;
use gleaner::Item;
use gleaner::worker::{Context, Poll, Replied};
use gleaner_systems::followups::{self, Followups};
use gleaner_systems::runs::{self, Runs};
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
    /// None also where this machine has no browser.
    runs: Option<Runs>,
    poll: Poll,
    /// Replaced once, when the place has been reached.
    database: RwLock<Arc<dyn Fetch>>,
}

impl Systems {
    pub(super) fn load(config: &Config) -> Result<Self> {
        let piped = Piped::load(config)?;
        let named = |queue: &str| config.queues.as_ref().is_some_and(|queues| queues.iter().any(|named| named == queue));
        // Only trusted callers work these queues. Who signs in at a server as a person is none, so there they must be named.
        let trusted = config.queues.is_none() && config.kinds.is_none() && !matches!(config.endpoint, EndpointAt::Wire(_));
        let wanted = |queue: &str| (named(queue) || trusted) && !piped.queues().iter().any(|piped| piped == queue);
        let sender = || Followups::new(config.followups.clone(), piped.models()).map_err(Error::Followups);
        let followups = (wanted(followups::QUEUE) || named(schedules::QUEUE)).then(sender).transpose()?;
        let runs = match (wanted(runs::QUEUE) && config.runs.slots > 0).then(|| Runs::new(config.runs.clone())).transpose() {
            Ok(runs) => runs,
            Err(missing) if named(runs::QUEUE) => return Err(Error::Runs(missing)),
            // Other agents take them.
            Err(missing) => {
                tracing::info!("runs are not replayed here: there is no {missing}");
                None
            }
        };
        Ok(Self { piped, followups, runs, poll: config.poll.clone(), database: RwLock::new(Arc::new(Nothing)) })
    }

    fn runs(&self, queue: &str) -> Option<&Runs> {
        self.runs.as_ref().filter(|_| queue == runs::QUEUE)
    }

    fn own(&self) -> impl Iterator<Item = String> {
        let followups = self.followups.iter().flat_map(|_| [followups::QUEUE.to_owned(), schedules::QUEUE.to_owned()]);
        followups.chain(self.runs.iter().map(|_| runs::QUEUE.to_owned()))
    }

    /// What sends follow-ups, where the queue is one of those that it concerns.
    fn followups(&self, queue: &str) -> Option<&Followups> {
        self.followups.as_ref().filter(|_| is_followups(queue))
    }
}

/// Whether a queue is one of those that the executor of follow-ups works.
fn is_followups(queue: &str) -> bool {
    [followups::QUEUE, schedules::QUEUE].contains(&queue)
}

#[async_trait]
impl Work for Systems {
    fn queues(&self) -> Vec<String> {
        self.piped.queues().into_iter().chain(self.own()).collect()
    }

    fn kinds(&self, queue: &str) -> Option<Vec<String>> {
        match (self.followups(queue), self.runs(queue)) {
            (Some(_), _) => None,
            (_, Some(runs)) => Some(runs.kinds()),
            _ => self.piped.kinds(queue),
        }
    }

    fn time_limit(&self, queue: &str, kind: Option<&str>) -> Option<Duration> {
        // A message that is being sent is not dropped half-way; a run has a time for each step.
        if self.followups(queue).is_some() || self.runs(queue).is_some() { None } else { self.piped.time_limit(queue, kind) }
    }

    fn apart(&self, queue: &str) -> Option<Apart> {
        if let Some(runs) = self.runs(queue) {
            let slots = runs.slots();
            return Some(Apart { concurrency: slots, batch: slots, early: Duration::ZERO, hold: runs::HOLD, poll: self.poll.clone() });
        }
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
        self.piped.capabilities().into_iter().chain(self.own()).collect()
    }

    fn opened(&self, fetch: Arc<dyn Fetch>) {
        *self.database.write().unwrap_or_else(PoisonError::into_inner) = fetch.clone();
        self.piped.opened(fetch);
    }

    async fn run(&self, queue: &str, item: Item, context: Context) -> Replied {
        let database = self.database.read().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(followups) = self.followups(queue) {
            if queue == schedules::QUEUE {
                return schedules::run(&*database, item, followups.polling().preemptive_window).await;
            }
            return followups.run(&*database, item, context).await;
        }
        match self.runs(queue) {
            Some(runs) => runs.run(&*database, item, context).await,
            None => self.piped.run(queue, item, context).await,
        }
    }
}
