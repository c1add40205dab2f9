//! The figures of a worker, as they are gathered and as they are shown.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use serde::Serialize;
use tokio::time::Instant;

use crate::queue::Item;
use crate::worker::Tally;

/// Mistakes remembered for people to read.
const LAST_ERRORS: usize = 20;
/// Polls a minute are counted over three: with push they are more than a minute apart at times.
const WINDOW: Duration = Duration::from_secs(180);
/// Errors in a row after which a worker is not well; the number is the polling strategy's.
const UNHEALTHY_ERRORS: u32 = 5;
/// A poll that is later than this does not come.
const OVERDUE: Duration = Duration::from_secs(60);

#[derive(Debug, Default)]
pub(super) struct Seen {
    first_poll: Option<Instant>,
    polls: VecDeque<Instant>,
    total_polls: u64,
    pub(super) found: u64,
    pub(super) claims: u64,
    pub(super) claims_with_work: u64,
    claim_time: Duration,
    pub(super) running: Vec<Running>,
    pub(super) tally: Tally,
    errors: VecDeque<Mishap>,
    queues: BTreeMap<String, Queue>,
}

/// What is told by each worker.
#[derive(Debug, Default)]
pub(super) struct Queue {
    pub(super) consecutive_errors: u32,
    pub(super) push: Option<bool>,
    next_poll: Option<Instant>,
}

impl Queue {
    pub(super) fn waits(&mut self, wait: Option<Duration>) {
        self.next_poll = wait.and_then(|wait| Instant::now().checked_add(wait));
    }
}

/// An item in work.
#[derive(Debug, Clone, Serialize)]
pub struct Running {
    pub queue: String,
    pub key: String,
    pub lease: i64,
    pub kind: Option<String>,
    pub stage: Option<String>,
    pub percent: Option<f64>,
    /// How long it has been running, at the time of asking.
    pub seconds: f64,
    #[serde(skip)]
    pub since: Instant,
}

impl Running {
    pub(super) fn new(queue: &str, item: &Item) -> Self {
        Self {
            queue: queue.to_owned(),
            key: item.key.clone(),
            lease: item.lease,
            kind: item.kind.clone(),
            stage: None,
            percent: None,
            seconds: 0.0,
            since: Instant::now(),
        }
    }

    pub(super) fn is(&self, queue: &str, key: &str, lease: i64) -> bool {
        self.lease == lease && self.key == key && self.queue == queue
    }
}

/// Something that went wrong, for people.
#[derive(Debug, Clone, Serialize)]
pub struct Mishap {
    pub queue: String,
    pub key: Option<String>,
    /// The failure's own; `Transient` or `Refused` for a look that failed, `Unwritten` for a result that could not be written.
    pub category: String,
    pub message: String,
    /// Seconds since the Unix epoch.
    pub at: u64,
}

/// What a worker did and does: the polling metrics of the specification, and what people look at.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Stats {
    pub paused: bool,
    pub concurrency: usize,
    /// Whether push works now, for all workers that listen.
    pub push: bool,
    pub polls: u64,
    /// Over the last three minutes.
    pub polls_per_minute: f64,
    pub found: u64,
    pub found_per_poll: f64,
    /// Claims that brought work, of all that were made while there was some.
    pub claim_success_rate: f64,
    /// Seconds, on average.
    pub claim_latency: f64,
    /// Of the worker that has most.
    pub consecutive_errors: u32,
    pub completed: u64,
    pub failed: u64,
    pub lost: u64,
    pub released: u64,
    /// Until the first of the workers looks again; none while all wait for push, for room or for the end of a pause.
    pub next_poll_seconds: Option<f64>,
    /// A worker should have looked again more than a minute ago and has not.
    pub overdue: bool,
    pub running: Vec<Running>,
    pub errors: Vec<Mishap>,
}

impl Stats {
    /// Fewer than five errors in a row, and nobody is overdue. Paused is healthy, and so is one that has its hands full.
    pub fn is_healthy(&self) -> bool {
        self.consecutive_errors < UNHEALTHY_ERRORS && (self.paused || !self.overdue)
    }
}

impl Seen {
    pub(super) fn queue(&mut self, name: &str) -> &mut Queue {
        if !self.queues.contains_key(name) {
            self.queues.insert(name.to_owned(), Queue::default());
        }
        self.queues.entry(name.to_owned()).or_default()
    }

    pub(super) fn leave(&mut self, name: &str) {
        self.queues.remove(name);
    }

    pub(super) fn polled(&mut self, took: Duration) {
        let now = Instant::now();
        self.first_poll.get_or_insert(now);
        self.polls.push_back(now);
        self.forget_old();
        self.total_polls += 1;
        self.claim_time += took;
    }

    fn forget_old(&mut self) {
        while self.polls.front().is_some_and(|poll| poll.elapsed() > WINDOW) {
            self.polls.pop_front();
        }
    }

    pub(super) fn mishap(&mut self, mishap: Mishap) {
        if self.errors.len() == LAST_ERRORS {
            self.errors.pop_front();
        }
        self.errors.push_back(mishap);
    }

    pub(super) fn stats(&mut self, paused: bool, concurrency: usize) -> Stats {
        self.forget_old();
        let rate = |part: f64, whole: u64| if whole == 0 { 0.0 } else { part / whole as f64 };
        let minutes = self.first_poll.map_or(1.0, |first| first.elapsed().min(WINDOW).as_secs_f64() / 60.0).max(1.0);
        let (now, next) = (Instant::now(), self.queues.values().filter_map(|queue| queue.next_poll).min());
        let listening: Vec<bool> = self.queues.values().filter_map(|queue| queue.push).collect();
        let mut running = self.running.clone();
        running.iter_mut().for_each(|running| running.seconds = running.since.elapsed().as_secs_f64());
        Stats {
            paused,
            concurrency,
            push: !listening.is_empty() && listening.iter().all(|push| *push),
            polls: self.total_polls,
            polls_per_minute: self.polls.len() as f64 / minutes,
            found: self.found,
            found_per_poll: rate(self.found as f64, self.total_polls),
            claim_success_rate: rate(self.claims_with_work as f64, self.claims),
            claim_latency: rate(self.claim_time.as_secs_f64(), self.total_polls),
            consecutive_errors: self.queues.values().map(|queue| queue.consecutive_errors).max().unwrap_or(0),
            completed: self.tally.completed,
            failed: self.tally.failed,
            lost: self.tally.lost,
            released: self.tally.released,
            next_poll_seconds: next.map(|next| next.saturating_duration_since(now).as_secs_f64()),
            overdue: next.is_some_and(|next| now.saturating_duration_since(next) > OVERDUE),
            running,
            errors: self.errors.iter().cloned().collect(),
        }
    }
}
