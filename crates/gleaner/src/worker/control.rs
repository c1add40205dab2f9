//! Controls a worker while it runs, and collects its statistics.

mod stats;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use tokio::sync::watch;

use self::stats::Seen;
pub use self::stats::{Mishap, Running, Stats};
use super::Tally;
use super::limit::{Limit, Slot};
use crate::error::Error;
use crate::queue::{Failure, Held, Item};

/// A handle on one worker or on several that share it: pause, concurrency and statistics apply to all together. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Control {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    paused: watch::Sender<bool>,
    handlers: Limit,
    seen: Mutex<Seen>,
}

impl Control {
    /// At most this many handlers run at once, across all workers that share this.
    pub fn new(concurrency: usize) -> Self {
        Self { shared: Arc::new(Shared { paused: watch::Sender::new(false), handlers: Limit::new(concurrency), seen: Mutex::default() }) }
    }

    /// Stops claiming; running handlers continue.
    pub fn pause(&self) {
        self.shared.paused.send_replace(true);
    }

    /// Ends the pause.
    pub fn resume(&self) {
        self.shared.paused.send_replace(false);
    }

    /// Whether claiming is paused.
    pub fn is_paused(&self) -> bool {
        *self.shared.paused.borrow()
    }

    /// How many handlers may run at once.
    pub fn concurrency(&self) -> usize {
        self.shared.handlers.most()
    }

    /// Changes how many handlers may run at once. If the number is lower, the handlers beyond it still run to their end.
    pub fn set_concurrency(&self, most: usize) {
        self.shared.handlers.set(most);
    }

    /// The statistics of the workers.
    pub fn stats(&self) -> Stats {
        let (paused, concurrency) = (self.is_paused(), self.concurrency());
        self.seen().stats(paused, concurrency)
    }

    /// Changes of the pause, for the worker.
    pub(super) fn pauses(&self) -> watch::Receiver<bool> {
        self.shared.paused.subscribe()
    }

    /// Waits until one more handler may run.
    pub(super) async fn slot(&self) -> Slot {
        self.shared.handlers.slot().await
    }

    pub(super) fn try_slot(&self) -> Option<Slot> {
        self.shared.handlers.try_slot()
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.shared.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records an answered claim; `due` says that there was a row to claim, whether or not this worker got it.
    pub(super) fn polled(&self, queue: &str, took: Duration, found: usize, due: bool) {
        let mut seen = self.seen();
        seen.polled(took);
        seen.found += found as u64;
        seen.claims += u64::from(due);
        seen.claims_with_work += u64::from(found > 0);
        seen.queue(queue).consecutive_errors = 0;
    }

    /// Records a failed claim.
    pub(super) fn missed(&self, queue: &str, took: Duration, error: &Error) {
        let category = if error.is_transient() { "Transient" } else { "Refused" };
        let mut seen = self.seen();
        seen.polled(took);
        seen.queue(queue).consecutive_errors += 1;
        seen.mishap(Mishap { queue: queue.into(), key: None, category: category.into(), message: error.to_string(), at: unix_time() });
    }

    /// Records the time until the next claim; `None` while it is unknown.
    pub(super) fn waits(&self, queue: &str, wait: Option<Duration>) {
        self.seen().queue(queue).waits(wait);
    }

    /// Records whether notifications arrive; `None` if the worker does not listen.
    pub(super) fn pushed(&self, queue: &str, push: Option<bool>) {
        self.seen().queue(queue).push = push;
    }

    /// Records that the worker of this queue has ended.
    pub(super) fn left(&self, queue: &str) {
        self.seen().leave(queue);
    }

    pub(super) fn begun(&self, queue: &str, item: &Item) {
        self.seen().begin(queue, item);
    }

    pub(super) fn progressed(&self, queue: &str, held: &Held, stage: &str, percent: Option<f64>) {
        if let Some(running) = self.seen().running.get_mut(queue).and_then(|running| running.get_mut(held)) {
            (running.stage, running.percent) = (Some(stage.to_owned()), percent);
        }
    }

    pub(super) fn ended(&self, queue: &str, held: &Held) {
        if let Some(running) = self.seen().running.get_mut(queue) {
            running.remove(held);
        }
    }

    pub(super) fn failed(&self, queue: &str, key: &str, failure: &Failure) {
        self.mishap(queue, key, &failure.category, &failure.message);
    }

    pub(super) fn mishap(&self, queue: &str, key: &str, category: &str, message: &str) {
        self.seen().mishap(Mishap {
            queue: queue.into(),
            key: Some(key.into()),
            category: category.into(),
            message: message.into(),
            at: unix_time(),
        });
    }

    /// Adds the outcomes of more items.
    pub(super) fn tallied(&self, more: Tally) {
        self.seen().tally += more;
    }
}

fn unix_time() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
