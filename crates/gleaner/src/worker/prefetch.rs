//! Items that were claimed beyond the free handlers, and wait for one.

use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use super::held::{Row, held};
use super::lane::{Batch, Claimed};
use super::run::Run;
use crate::queue::{Outcome, Progress};

#[derive(Debug, Default)]
pub(super) struct Prefetched {
    items: Mutex<VecDeque<Claimed>>,
    changed: Notify,
}

impl Prefetched {
    fn items(&self) -> MutexGuard<'_, VecDeque<Claimed>> {
        self.items.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn len(&self) -> usize {
        self.items().len()
    }

    pub(super) fn push(&self, items: impl IntoIterator<Item = Claimed>) {
        self.items().extend(items);
        self.changed.notify_waiters();
    }

    fn take(&self, count: usize) -> VecDeque<Claimed> {
        let mut items = self.items();
        let count = count.min(items.len());
        items.drain(..count).collect()
    }

    /// Forgets those that were released.
    pub(super) fn forget_released(&self) {
        self.items().retain(|claimed| claimed.row.state().is_waiting());
        self.changed.notify_waiters();
    }

    /// Resolves when there are fewer than `most`.
    pub(super) async fn fewer_than(&self, most: usize) {
        self.until(|len| len < most).await;
    }

    /// Waits until some of them begin, or all handlers are busy. Handlers that end at once make prefetching useless.
    pub(super) async fn settled(&self, run: &Run, longest: Duration) {
        let settled = async {
            loop {
                run.burst.settled(longest).await;
                let before = self.len();
                if before == 0 || run.control.is_busy() {
                    return;
                }
                self.until(|len| len != before).await;
            }
        };
        // A timeout is fine too.
        let _ = tokio::time::timeout(longest, settled).await;
    }

    async fn until(&self, is_so: impl Fn(usize) -> bool) {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            // Subscribe before checking, or a change in between goes unnoticed.
            changed.as_mut().enable();
            if is_so(self.len()) {
                return;
            }
            changed.await;
        }
    }
}

/// Begins waiting items as handlers become free, until it is aborted.
///
/// A crash must count against the rows being worked on and not against those that only waited. So items that begin together are
/// marked as started in one statement, before their handlers run.
pub(super) async fn begin_prefetched(run: &Arc<Run>) {
    let prefetched = &run.prefetched;
    loop {
        prefetched.until(|len| len > 0).await;
        let mut slots = run.control.slot().await;
        slots.add(run.control.free_slots(prefetched.len().saturating_sub(1)));
        let items = prefetched.take(slots.count());
        drop(slots.take(slots.count() - items.len()));
        let rows: Vec<Arc<Row>> = items.iter().map(|claimed| claimed.row.clone()).collect();
        let mut batch = Batch::new(run, items, slots);
        prefetched.changed.notify_waiters();
        let lost = lost(run, &rows).await;
        if !lost.is_empty() {
            tracing::debug!(queue = run.queue(), rows = lost.len(), "leases were lost before a handler was free");
            batch.retain(|row| !lost.iter().any(|lost| std::ptr::eq(*lost, row)));
            run.held.remove(lost);
        }
        batch.start();
    }
}

/// Marks the rows as started, and returns those that are no longer held. If the call fails, the work begins anyway: only a crash
/// would go uncounted.
async fn lost<'a>(run: &Run, rows: &'a [Arc<Row>]) -> Vec<&'a Row> {
    let (mut ours, mut lost) = (Vec::new(), Vec::new());
    for row in rows.iter().filter(|row| row.state().is_waiting()) {
        // It may have waited here for most of its lease: make sure that the lease is still held, and extend it.
        let long = {
            let state = row.state();
            state.extended.elapsed() >= state.hold / 2
        };
        if long && !is_still_ours(run, row).await { lost.push(&**row) } else { ours.push(row.clone()) }
    }
    if ours.is_empty() {
        return lost;
    }
    let answers = run.transport.start(&held(&ours)).await.unwrap_or_else(|error| {
        tracing::warn!(%error, "could not say that work has begun");
        Vec::new()
    });
    let gone: HashSet<&str> = answers.iter().filter(|answer| answer.is_lost()).map(|answer| answer.key.as_str()).collect();
    lost.extend(rows.iter().map(Arc::as_ref).filter(|row| gone.contains(row.held.key.as_str())));
    lost
}

async fn is_still_ours(run: &Run, row: &Row) -> bool {
    match run.transport.progress(&row.held, &Progress::default()).await {
        Ok((answer, left)) if answer.outcome == Outcome::Done => {
            let mut state = row.state();
            (state.extended, state.hold) = (Instant::now(), left);
            true
        }
        _ => false,
    }
}
