//! The workers of an agent, one per queue.

use std::sync::Arc;
use std::time::Duration;

use gleaner::queue::Claim;
use gleaner::transport::{Endpoint, Transport};
use gleaner::worker::{Job, Tally, Worker};
use serde_json::Value;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::endpoint::{Opened, Opening};
use super::meter::{Meter, Trouble};
use super::shared::Shared;
use super::work::Work;
use super::{Error, Result};
use crate::config::{Config, EndpointAt, Until};

/// How long to wait before reopening a queue that failed.
const FIRST_WAIT: Duration = Duration::from_secs(1);
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// The queues of the work, or those of them that the configuration names.
pub(super) fn queues_of(config: &Config, work: &dyn Work) -> Result<Vec<String>> {
    let known = work.queues();
    let Some(named) = &config.queues else { return wanted(config, work, known) };
    match named.iter().find(|queue| !known.contains(queue)) {
        Some(queue) => Err(Error::NoPipeline { queue: queue.clone(), known }),
        None => wanted(config, work, named.clone()),
    }
}

/// The queues that have at least one wanted kind.
fn wanted(config: &Config, work: &dyn Work, queues: Vec<String>) -> Result<Vec<String>> {
    let left: Vec<String> =
        queues.into_iter().filter(|queue| kinds_of(config, work, queue).is_none_or(|kinds| !kinds.is_empty())).collect();
    if left.is_empty() { Err(Error::NoKinds(config.kinds.clone().unwrap_or_default())) } else { Ok(left) }
}

/// Works until stopped, or until nothing is left if the configuration says so.
pub(super) async fn run(shared: Arc<Shared>, opening: Opening, stop: watch::Receiver<bool>) -> Result<Tally> {
    tokio::select! {
        tally = work(shared.clone(), &opening, stop) => tally,
        () = opening.follow(&shared) => Ok(Tally::default()),
    }
}

async fn work(shared: Arc<Shared>, opening: &Opening, mut stop: watch::Receiver<bool>) -> Result<Tally> {
    let Some(Opened { endpoint, queues: there, fetch }) = opening.open(&shared, &mut stop).await? else { return Ok(Tally::default()) };
    shared.work.opened(fetch);
    let (here, mut missing): (Vec<String>, Vec<String>) = shared.queues.iter().cloned().partition(|queue| there.contains(queue));
    // A database that is being migrated will have its queues in a moment.
    let may_come = there.is_empty() || matches!(shared.config.endpoint, EndpointAt::Home(_));
    let ends = shared.config.until != Until::Stopped;
    if !missing.is_empty() && (here.is_empty() || shared.config.queues.is_some()) && (ends || !may_come) {
        return Err(Error::NoQueues { endpoint: endpoint.describe(), wanted: missing, there });
    }
    if here.is_empty() {
        let trouble = format!("{} has none of the queues {} yet; `gleaner migrate` makes them", endpoint.describe(), missing.join(", "));
        tracing::warn!("{trouble}");
        shared.change(|now| (now.errors_in_a_row, now.trouble) = (1, Some(Trouble::saying(trouble, false))));
    }
    let mut total = Tally::default();
    if shared.config.until == Until::Once {
        for queue in here {
            total += work_queue(shared.clone(), endpoint.clone(), begin(&shared, &queue), stop.clone()).await?;
            if total != Tally::default() {
                break;
            }
        }
        return Ok(total);
    }
    let mut workers = JoinSet::new();
    for queue in here {
        workers.spawn(work_queue(shared.clone(), endpoint.clone(), begin(&shared, &queue), stop.clone()));
    }
    let mut wait = FIRST_WAIT;
    loop {
        let more_may_come = !missing.is_empty() && !ends && !*stop.borrow();
        if workers.is_empty() && !more_may_come {
            return Ok(total);
        }
        tokio::select! {
            Some(ended) = workers.join_next() => total += ended.map_err(|error| Error::Other(format!("a worker stopped: {error}")))??,
            () = stop_requested(stop.clone()), if workers.is_empty() => {}
            there = later(&*endpoint, wait), if more_may_come => {
                wait = (wait * 2).min(LONGEST_WAIT);
                for queue in missing.extract_if(.., |queue| there.contains(queue)) {
                    workers.spawn(work_queue(shared.clone(), endpoint.clone(), begin(&shared, &queue), stop.clone()));
                }
            }
        }
    }
}

/// The queues of the endpoint, after a delay. If the endpoint does not answer then, the caller asks again.
async fn later(endpoint: &dyn Endpoint, wait: Duration) -> Vec<String> {
    tokio::time::sleep(wait).await;
    endpoint.queues().await.unwrap_or_default()
}

async fn stop_requested(mut stop: watch::Receiver<bool>) {
    let _ = stop.wait_for(|stop| *stop).await;
}

/// Registers the queue as being worked.
fn begin(shared: &Shared, queue: &str) -> Arc<Meter> {
    let meter = Meter::new(queue);
    shared.change(|now| {
        (now.open, now.errors_in_a_row, now.trouble) = (true, 0, None);
        now.meters.push(meter.clone());
    });
    meter
}

/// Works one queue. An error that concerns only this queue is logged and retried, so that the other queues are not affected.
async fn work_queue(shared: Arc<Shared>, endpoint: Arc<dyn Endpoint>, meter: Arc<Meter>, mut stop: watch::Receiver<bool>) -> Result<Tally> {
    let mut wait = FIRST_WAIT;
    loop {
        let polls = meter.read().polls;
        let ended = match endpoint.open(&meter.queue).await {
            Ok(transport) => work_once(&shared, transport, &meter, stop.clone()).await,
            Err(error) => Err(error),
        };
        let error = match ended {
            Ok(tally) => return Ok(tally),
            Err(error) if shared.config.until != Until::Stopped && !error.is_transient() => return Err(error.into()),
            Err(error) => error,
        };
        if meter.read().polls > polls + 1 {
            // It had worked for a while, so the back-off starts over.
            wait = FIRST_WAIT;
        }
        tracing::error!(queue = meter.queue, %error, wait_ms = wait.as_millis(), "cannot work this queue; trying again");
        meter.trouble(&error);
        tokio::select! {
            () = tokio::time::sleep(wait) => wait = (wait * 2).min(LONGEST_WAIT),
            _ = stop.wait_for(|stop| *stop) => return Ok(Tally::default()),
        }
    }
}

async fn work_once(
    shared: &Arc<Shared>,
    transport: Arc<dyn Transport>,
    meter: &Arc<Meter>,
    stop: watch::Receiver<bool>,
) -> gleaner::Result<Tally> {
    let config = &shared.config;
    let owner = shared.now().owner.filter(|_| transport.has_owners());
    let kinds = kinds_of(config, &*shared.work, &meter.queue).filter(|_| transport.has_kinds());
    let claim = Claim { owner: owner.clone(), kinds: kinds.clone(), ..Claim::by(&config.worker) };
    let transport = meter.on(transport, claim);
    let mut builder =
        Worker::builder(transport).agent(&config.worker).owner(owner).grace(config.grace).watch(config.watch).wake(config.wake);
    builder = match shared.work.apart(&meter.queue) {
        Some(apart) => {
            builder.control(shared.control.apart(apart.concurrency)).batch(apart.batch).early(apart.early).hold(apart.hold).poll(apart.poll)
        }
        None => builder.control(shared.control.clone()).prefetch(config.prefetch).poll(config.poll.clone()),
    };
    if let Some(limit) = shared.work.time_limit(&meter.queue, None) {
        builder = builder.time_limit_default(limit);
    }
    for kind in kinds.iter().flatten() {
        if let Some(limit) = shared.work.time_limit(&meter.queue, Some(kind)) {
            builder = builder.time_limit(kind, limit);
        }
    }
    if let Some(kinds) = kinds {
        builder = builder.kinds(kinds);
    }
    builder = match config.until {
        Until::Stopped => builder,
        Until::Empty => builder.until_empty(),
        Until::Once => builder.until_empty().take(1),
    };
    let (work, queue): (Arc<dyn Work>, Arc<str>) = (shared.work.clone(), meter.queue.as_str().into());
    let handler = move |job: Job<Value>| {
        let (work, queue) = (work.clone(), queue.clone());
        async move { work.run(&queue, job.item, job.context).await }
    };
    builder.otherwise(handler).build().run_until(stop).await
}

/// The kinds that the work can process and the configuration wants.
fn kinds_of(config: &Config, work: &dyn Work, queue: &str) -> Option<Vec<String>> {
    match (work.kinds(queue), &config.kinds) {
        (Some(can), Some(want)) => Some(can.into_iter().filter(|kind| want.contains(kind)).collect()),
        (Some(kinds), None) => Some(kinds),
        (None, want) => want.clone(),
    }
}
