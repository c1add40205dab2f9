//! The statistics of a worker, as they are collected and as they are reported.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use serde::Serialize;
use tokio::time::Instant;

use crate::worker::Tally;

/// Errors kept for people to read.
const LAST_ERRORS: usize = 20;
/// Polls per minute are averaged over three minutes: with notifications they can be more than a minute apart.
const WINDOW: Duration = Duration::from_secs(180);
/// Errors in a row after which a worker is reported as unhealthy.
const UNHEALTHY_ERRORS: u32 = 5;
/// A poll that is later than this counts as missing.
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
    pub(super) tally: Tally,
    errors: VecDeque<Mishap>,
    queues: BTreeMap<String, Queue>,
}

/// What each worker reports.
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

/// An item being worked on.
#[derive(Debug, Clone, Serialize)]
pub struct Running {
    /// The queue's name.
    pub queue: String,
    /// The item's key, as text.
    pub key: String,
    /// The lease under which it is held.
    pub lease: i64,
    /// Its kind.
    pub kind: Option<String>,
    /// The last reported stage.
    pub stage: Option<String>,
    /// The last reported percentage.
    pub percent: Option<f64>,
    /// How long it has been running, when the statistics were read.
    pub seconds: f64,
    /// When it began.
    #[serde(skip)]
    pub since: Instant,
}

/// An error, for people to read.
#[derive(Debug, Clone, Serialize)]
pub struct Mishap {
    /// The queue's name.
    pub queue: String,
    /// The item's key; `None` if the error is not about one item.
    pub key: Option<String>,
    /// The failure's own category; `Transient` or `Refused` for a failed claim, `Unwritten` for a result that could not be written.
    pub category: String,
    /// What failed, and why.
    pub message: String,
    /// Seconds since the Unix epoch.
    pub at: u64,
}

/// The statistics of a worker: its polls, its items, its errors.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Stats {
    /// Whether claiming is paused.
    pub paused: bool,
    /// How many handlers may run at once.
    pub concurrency: usize,
    /// Whether notifications arrive now, for all workers that listen.
    pub push: bool,
    /// How many polls were made.
    pub polls: u64,
    /// Over the last three minutes.
    pub polls_per_minute: f64,
    /// How many items were claimed.
    pub found: u64,
    /// How many items a poll returned, on average.
    pub found_per_poll: f64,
    /// The share of claims that returned work, among those made while there was some.
    pub claim_success_rate: f64,
    /// Average latency of a claim, in seconds.
    pub claim_latency: f64,
    /// The number of errors in a row, of the worker that has most.
    pub consecutive_errors: u32,
    /// Items that are done.
    pub completed: u64,
    /// Items that failed.
    pub failed: u64,
    /// Items whose lease was lost before their result was written.
    pub lost: u64,
    /// Items that were given back unfinished.
    pub released: u64,
    /// Seconds until the first of the workers polls again; `None` while all wait for a notification, a free slot or the end of a pause.
    pub next_poll_seconds: Option<f64>,
    /// A worker should have polled more than a minute ago and has not.
    pub overdue: bool,
    /// Items being worked on.
    pub running: Vec<Running>,
    /// The latest errors.
    pub errors: Vec<Mishap>,
}

impl Stats {
    /// Fewer than five errors in a row, and no worker is overdue. A paused worker is healthy, and so is one whose handlers are all busy.
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

    pub(super) fn stats(&mut self, paused: bool, concurrency: usize, mut running: Vec<Running>) -> Stats {
        self.forget_old();
        let rate = |part: f64, whole: u64| if whole == 0 { 0.0 } else { part / whole as f64 };
        let minutes = self.first_poll.map_or(1.0, |first| first.elapsed().min(WINDOW).as_secs_f64() / 60.0).max(1.0);
        let (now, next) = (Instant::now(), self.queues.values().filter_map(|queue| queue.next_poll).min());
        let listening: Vec<bool> = self.queues.values().filter_map(|queue| queue.push).collect();
        running.sort_by_key(|running| running.since);
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
