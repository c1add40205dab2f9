//! What can be asked of a worker while it runs, and what it tells of itself.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Serialize;
use tokio::sync::watch;
use tokio::time::Instant;

/// Mistakes remembered for people to read.
const LAST_ERRORS: usize = 20;
const MINUTE: Duration = Duration::from_secs(60);

/// A handle on one worker or on several that share it. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Control {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    paused: watch::Sender<bool>,
    concurrency: watch::Sender<usize>,
    seen: Mutex<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    polls: VecDeque<Instant>,
    total_polls: u64,
    found: u64,
    claims: u64,
    claims_with_work: u64,
    claim_time: Duration,
    consecutive_errors: u32,
    running: Vec<Running>,
    completed: u64,
    failed: u64,
    lost: u64,
    released: u64,
    errors: VecDeque<Mishap>,
    next_poll: Option<Duration>,
    push: bool,
}

/// An item in work.
#[derive(Debug, Clone, Serialize)]
pub struct Running {
    pub queue: String,
    pub key: String,
    pub kind: Option<String>,
    pub stage: Option<String>,
    pub percent: Option<f64>,
    #[serde(skip)]
    pub since: Instant,
}

/// Something that went wrong, for people.
#[derive(Debug, Clone, Serialize)]
pub struct Mishap {
    pub queue: String,
    pub key: Option<String>,
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
    /// Whether push works now.
    pub push: bool,
    pub polls: u64,
    pub polls_per_minute: f64,
    pub found: u64,
    pub found_per_poll: f64,
    /// Claims that brought work, of all that were made while there was some.
    pub claim_success_rate: f64,
    /// Seconds, on average.
    pub claim_latency: f64,
    pub consecutive_errors: u32,
    pub completed: u64,
    pub failed: u64,
    pub lost: u64,
    pub released: u64,
    pub next_poll_seconds: Option<f64>,
    pub running: Vec<Running>,
    pub errors: Vec<Mishap>,
}

impl Control {
    pub fn new(concurrency: usize) -> Self {
        Self {
            shared: Arc::new(Shared {
                paused: watch::Sender::new(false),
                concurrency: watch::Sender::new(concurrency.max(1)),
                seen: Mutex::default(),
            }),
        }
    }

    /// Takes nothing new; what runs goes on.
    pub fn pause(&self) {
        self.shared.paused.send_replace(true);
    }

    pub fn resume(&self) {
        self.shared.paused.send_replace(false);
    }

    pub fn is_paused(&self) -> bool {
        *self.shared.paused.borrow()
    }

    pub fn concurrency(&self) -> usize {
        *self.shared.concurrency.borrow()
    }

    /// How many handlers may run at once from now on; those beyond a lower number end in their own time.
    pub fn set_concurrency(&self, most: usize) {
        self.shared.concurrency.send_replace(most.max(1));
    }

    /// Changes of the pause, for the worker.
    pub(super) fn pauses(&self) -> watch::Receiver<bool> {
        self.shared.paused.subscribe()
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.shared.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn stats(&self) -> Stats {
        let (paused, concurrency) = (self.is_paused(), self.concurrency());
        let mut seen = self.seen();
        forget_old(&mut seen.polls);
        let rate = |part: u64, whole: u64| if whole == 0 { 0.0 } else { part as f64 / whole as f64 };
        Stats {
            paused,
            concurrency,
            push: seen.push,
            polls: seen.total_polls,
            polls_per_minute: seen.polls.len() as f64,
            found: seen.found,
            found_per_poll: rate(seen.found, seen.total_polls),
            claim_success_rate: rate(seen.claims_with_work, seen.claims),
            claim_latency: if seen.total_polls == 0 { 0.0 } else { seen.claim_time.as_secs_f64() / seen.total_polls as f64 },
            consecutive_errors: seen.consecutive_errors,
            completed: seen.completed,
            failed: seen.failed,
            lost: seen.lost,
            released: seen.released,
            next_poll_seconds: seen.next_poll.map(|wait| wait.as_secs_f64()),
            running: seen.running.clone(),
            errors: seen.errors.iter().cloned().collect(),
        }
    }
}

fn forget_old(polls: &mut VecDeque<Instant>) {
    while polls.front().is_some_and(|poll| poll.elapsed() > MINUTE) {
        polls.pop_front();
    }
}

impl Seen {
    fn mishap(&mut self, mishap: Mishap) {
        if self.errors.len() == LAST_ERRORS {
            self.errors.pop_front();
        }
        self.errors.push_back(mishap);
    }
}
