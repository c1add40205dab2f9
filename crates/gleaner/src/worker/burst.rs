//! The handlers of one claim begin together, and quick ones end together. Waiting for the whole burst lets the worker claim for
//! all of them and write all their results in one statement. A statement for a few costs nearly as much.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::Notify;

/// How long to wait for the whole burst before claiming or writing.
pub(super) const SHORT: Duration = Duration::from_millis(2);

/// Items that have a slot and whose handlers have reached neither their first wait nor their end.
#[derive(Debug, Default)]
pub(super) struct Burst {
    starting: AtomicUsize,
    settled: Notify,
}

impl Burst {
    pub(super) fn begin(&self, items: usize) {
        self.starting.fetch_add(items, Ordering::AcqRel);
    }

    pub(super) fn settle(&self, items: usize) {
        if items > 0 && self.starting.fetch_sub(items, Ordering::AcqRel) == items {
            self.settled.notify_waiters();
        }
    }

    /// Resolves when every handler of the burst waits or has ended, and after `longest` in any case: some compute for long before
    /// they wait.
    pub(super) async fn settled(&self, longest: Duration) {
        if self.starting.load(Ordering::Acquire) == 0 {
            return;
        }
        let settled = async {
            loop {
                let mut settled = std::pin::pin!(self.settled.notified());
                // Subscribe before checking, or the last one goes unnoticed.
                settled.as_mut().enable();
                if self.starting.load(Ordering::Acquire) == 0 {
                    return;
                }
                settled.await;
            }
        };
        // A timeout is fine too.
        let _ = tokio::time::timeout(longest, settled).await;
    }
}
