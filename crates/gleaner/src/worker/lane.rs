//! Runs items: polls each handler once, gives those that wait a task of their own, and passes results on together.
//!
//! A handler that needs no waiting costs no task. As many lanes share a batch as the runtime has threads, so that handlers that
//! compute run in parallel and do not delay each other.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::Instant;

use futures_util::future::BoxFuture;

use super::burst;
use super::completer::Finished;
use super::context::Context;
use super::handler::Replied;
use super::held::Row;
use super::limit::Slots;
use super::run::Run;
use crate::queue::Item;

/// A claimed item with its row.
#[derive(Debug)]
pub(super) struct Claimed {
    pub(super) item: Item,
    pub(super) row: Arc<Row>,
}

/// Items whose handlers are about to begin, each with a slot.
pub(super) struct Batch {
    run: Arc<Run>,
    items: Mutex<(VecDeque<Claimed>, Slots)>,
}

impl Batch {
    pub(super) fn new(run: &Arc<Run>, items: VecDeque<Claimed>, slots: Slots) -> Self {
        run.burst.begin(items.len());
        Self { run: run.clone(), items: Mutex::new((items, slots)) }
    }

    /// Leaves out the rows that were lost before their handlers could begin.
    pub(super) fn retain(&mut self, keep: impl Fn(&Row) -> bool) {
        let (items, slots) = self.items.get_mut().unwrap_or_else(PoisonError::into_inner);
        let before = items.len();
        items.retain(|claimed| keep(&claimed.row));
        let left_out = before - items.len();
        self.run.burst.settle(left_out);
        drop(slots.take(left_out));
    }

    pub(super) fn start(self) {
        let lanes = tokio::runtime::Handle::current().metrics().num_workers().min(self.len());
        let batch = Arc::new(self);
        // All from here: a task that another one spawned last cannot move to a free thread while that one blocks its own.
        for _ in 0..lanes {
            let batch = batch.clone();
            tokio::spawn(async move { work(&batch).await });
        }
    }

    fn len(&self) -> usize {
        self.items.lock().unwrap_or_else(PoisonError::into_inner).0.len()
    }

    fn next(&self) -> Option<(Claimed, Slots)> {
        let mut items = self.items.lock().unwrap_or_else(PoisonError::into_inner);
        let next = items.0.pop_front()?;
        Some((next, items.1.take(1)))
    }
}

/// Also when it never began: the run was dropped.
impl Drop for Batch {
    fn drop(&mut self) {
        self.run.burst.settle(self.len());
    }
}

async fn work(batch: &Batch) {
    let run = &batch.run;
    let (mut finished, mut slots, mut polled, mut since) = (Vec::new(), run.control.no_slots(), 0, Instant::now());
    while let Some((Claimed { item, row }, slot)) = batch.next() {
        // Otherwise the worker is stopping or paused, and has released the row.
        if row.begin() {
            let context = Context { queue: run.transport.clone(), row: row.clone() };
            let mut handling = run.handlers.run(item, context);
            match poll_once(&mut handling).await {
                Some(reply) if row.finish() => {
                    finished.push(Finished { row, reply });
                    slots.add(slot);
                }
                Some(_) => {}
                None => {
                    let task = tokio::spawn(finish(run.clone(), row.clone(), handling, slot));
                    row.runs_as(task.abort_handle());
                }
            }
        }
        polled += 1;
        // Do not keep finished results while others compute.
        if since.elapsed() > burst::SHORT {
            run.deliver(std::mem::take(&mut finished), slots.take(usize::MAX)).await;
            run.burst.settle(std::mem::take(&mut polled));
            tokio::task::yield_now().await;
            since = Instant::now();
        }
    }
    run.deliver(finished, slots).await;
    // Only now: the loop that waits for the burst counts on the slots.
    run.burst.settle(polled);
}

/// `None` if it waits.
async fn poll_once(handling: &mut BoxFuture<'static, Replied>) -> Option<Replied> {
    std::future::poll_fn(|context| match handling.as_mut().poll(context) {
        Poll::Ready(reply) => Poll::Ready(Some(reply)),
        Poll::Pending => Poll::Ready(None),
    })
    .await
}

async fn finish(run: Arc<Run>, row: Arc<Row>, handling: BoxFuture<'static, Replied>, slot: Slots) {
    let reply = handling.await;
    if row.finish() {
        run.deliver(vec![Finished { row, reply }], slot).await;
    }
}
