//! Controls a worker while it runs, and collects its statistics.

mod stats;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use tokio::sync::watch;

use self::stats::Seen;
pub use self::stats::{Mishap, Running, Stats};
use super::Tally;
use super::held::HeldRows;
use super::limit::{Limit, Slots};
use crate::error::Error;
use crate::queue::Failure;

/// A handle on one worker or on several that share it: pause, concurrency and statistics apply to all together. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Control {
    shared: Arc<Shared>,
}

/// What each worker holds, by its queue.
type HeldByQueue = Vec<(String, Arc<HeldRows>)>;

#[derive(Debug)]
struct Shared {
    paused: Arc<watch::Sender<bool>>,
    handlers: Limit,
    seen: Arc<Mutex<Seen>>,
    held: Arc<Mutex<HeldByQueue>>,
}

impl Control {
    /// At most this many handlers run at once, across all workers that share this.
    pub fn new(concurrency: usize) -> Self {
        let paused = Arc::new(watch::Sender::new(false));
        let shared = Shared { paused, handlers: Limit::new(concurrency), seen: Arc::default(), held: Arc::default() };
        Self { shared: Arc::new(shared) }
    }

    /// The same pause and statistics with handlers of its own, at most this many: for work that must not wait for the other workers'.
    #[must_use]
    pub fn apart(&self, concurrency: usize) -> Self {
        let Shared { paused, seen, held, .. } = &*self.shared;
        let shared = Shared { paused: paused.clone(), handlers: Limit::new(concurrency), seen: seen.clone(), held: held.clone() };
        Self { shared: Arc::new(shared) }
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
        let running = self.held().iter().flat_map(|(queue, held)| held.running(queue)).collect();
        self.seen().stats(paused, concurrency, running)
    }

    /// Changes of the pause, for the worker.
    pub(super) fn pauses(&self) -> watch::Receiver<bool> {
        self.shared.paused.subscribe()
    }

    /// Waits until one more handler may run.
    pub(super) async fn slot(&self) -> Slots {
        self.shared.handlers.slot().await
    }

    /// Room for up to `most` handlers, as far as it is free now.
    pub(super) fn free_slots(&self, most: usize) -> Slots {
        self.shared.handlers.free_slots(most)
    }

    pub(super) fn no_slots(&self) -> Slots {
        self.shared.handlers.no_slots()
    }

    /// Whether no other handler may begin now.
    pub(super) fn is_busy(&self) -> bool {
        self.shared.handlers.is_exhausted()
    }

    fn held(&self) -> MutexGuard<'_, HeldByQueue> {
        self.shared.held.lock().unwrap_or_else(PoisonError::into_inner)
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

    /// Records that a worker of this queue begins, and what it will hold.
    pub(super) fn joined(&self, queue: &str, held: &Arc<HeldRows>) {
        self.held().push((queue.to_owned(), held.clone()));
    }

    /// Records that it has ended.
    pub(super) fn left(&self, queue: &str, held: &Arc<HeldRows>) {
        self.held().retain(|(_, others)| !Arc::ptr_eq(others, held));
        self.seen().leave(queue);
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
