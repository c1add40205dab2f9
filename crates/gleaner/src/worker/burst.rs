//! The handlers of one claim begin together, and quick ones end together. Waiting for the whole burst lets the worker claim for
//! all of them and write all their results in one statement. A statement for a few costs nearly as much.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;

use tokio::sync::Notify;

/// How long to wait for the whole burst before claiming or writing.
pub(super) const SHORT: Duration = Duration::from_millis(2);

/// Handlers that have a slot and have reached neither their first wait nor their end. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(super) struct Burst(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    starting: AtomicUsize,
    settled: Notify,
}

/// Counts one handler until it is dropped.
pub(super) struct Starting(Burst);

impl Burst {
    pub(super) fn begin(&self) -> Starting {
        self.0.starting.fetch_add(1, Ordering::AcqRel);
        Starting(self.clone())
    }

    /// Resolves when every handler of the burst waits or has ended, and after `longest` in any case: some compute for long before
    /// they wait.
    pub(super) async fn settled(&self, longest: Duration) {
        let settled = async {
            loop {
                let mut settled = std::pin::pin!(self.0.settled.notified());
                // Subscribe before checking, or the last one goes unnoticed.
                settled.as_mut().enable();
                if self.0.starting.load(Ordering::Acquire) == 0 {
                    return;
                }
                settled.await;
            }
        };
        // A timeout is fine too.
        let _ = tokio::time::timeout(longest, settled).await;
    }
}

impl Starting {
    /// Runs `work` as part of the burst until its first wait or its end.
    pub(super) async fn until_it_waits<F: Future>(self, work: F) -> F::Output {
        let mut work = std::pin::pin!(work);
        let mut starting = Some(self);
        std::future::poll_fn(move |context| -> Poll<F::Output> {
            let polled = work.as_mut().poll(context);
            starting.take();
            polled
        })
        .await
    }
}

impl Drop for Starting {
    fn drop(&mut self) {
        let shared = &self.0.0;
        if shared.starting.fetch_sub(1, Ordering::AcqRel) == 1 {
            shared.settled.notify_waiters();
        }
    }
}
