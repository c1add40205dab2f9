//! What can be asked of a worker while it runs, and what it tells of itself.

mod stats;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use tokio::sync::watch;

use self::stats::Seen;
pub use self::stats::{Mishap, Running, Stats};
use super::Tally;
use super::held::Id;
use super::limit::{Limit, Slot};
use crate::error::Error;
use crate::queue::{Failure, Item};

/// A handle on one worker or on several that share it: pause, concurrency and figures are those of all together. Cheap to clone.
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
    /// At most so many handlers run at once, of all workers that share this.
    pub fn new(concurrency: usize) -> Self {
        Self { shared: Arc::new(Shared { paused: watch::Sender::new(false), handlers: Limit::new(concurrency), seen: Mutex::default() }) }
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
        self.shared.handlers.most()
    }

    /// How many handlers may run at once from now on; those beyond a lower number end in their own time.
    pub fn set_concurrency(&self, most: usize) {
        self.shared.handlers.set(most);
    }

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

    /// A look was answered; `due` says that there was something to have, got or not.
    pub(super) fn polled(&self, queue: &str, took: Duration, found: usize, due: bool) {
        let mut seen = self.seen();
        seen.polled(took);
        seen.found += found as u64;
        seen.claims += u64::from(due);
        seen.claims_with_work += u64::from(found > 0);
        seen.queue(queue).consecutive_errors = 0;
    }

    /// A look failed.
    pub(super) fn missed(&self, queue: &str, took: Duration, error: &Error) {
        let category = if error.is_transient() { "Transient" } else { "Refused" };
        let mut seen = self.seen();
        seen.polled(took);
        seen.queue(queue).consecutive_errors += 1;
        seen.mishap(Mishap { queue: queue.into(), key: None, category: category.into(), message: error.to_string(), at: unix_time() });
    }

    /// The next look is in so long; none while there is no telling.
    pub(super) fn waits(&self, queue: &str, wait: Option<Duration>) {
        self.seen().queue(queue).waits(wait);
    }

    /// Whether push works; none where nothing is listened to.
    pub(super) fn pushed(&self, queue: &str, push: Option<bool>) {
        self.seen().queue(queue).push = push;
    }

    /// The worker of this queue has ended.
    pub(super) fn left(&self, queue: &str) {
        self.seen().leave(queue);
    }

    pub(super) fn begun(&self, queue: &str, item: &Item) {
        self.seen().running.push(Running::new(queue, item));
    }

    pub(super) fn progressed(&self, queue: &str, key: &str, lease: i64, stage: &str, percent: Option<f64>) {
        if let Some(running) = self.seen().running.iter_mut().find(|r| r.is(queue, key, lease)) {
            (running.stage, running.percent) = (Some(stage.to_owned()), percent);
        }
    }

    pub(super) fn ended(&self, queue: &str, id: &Id) {
        self.seen().running.retain(|running| !running.is(queue, &id.0, id.1));
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

    /// What became of so many more items.
    pub(super) fn tallied(&self, more: Tally) {
        self.seen().tally += more;
    }
}

fn unix_time() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
