//! Runs one item: waits for a free handler, runs it, and passes its result to the completer.

use std::sync::Arc;

use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;

use super::burst::Starting;
use super::context::Context;
use super::held::Row;
use super::limit::Slot;
use super::run::{Finished, Run};
use crate::queue::{Held, Item, Outcome, Progress};

/// Room for one item.
#[derive(Debug)]
pub(super) enum Room {
    /// A handler is free.
    Run(Slot),
    /// It waits for a handler; the permit is returned when it gets one.
    Wait(OwnedSemaphorePermit),
}

/// `begun` says that the claim itself has marked the work as started.
pub(super) fn spawn(run: &Arc<Run>, item: Item, room: Room, begun: bool) {
    let held = item.held();
    let row = Row::new(item.lease_for);
    let context = Context { queue: run.transport.clone(), held: held.clone(), ended: row.ended.subscribe(), control: run.control.clone() };
    run.held.insert(held.clone(), row);
    // Count it here, or a task that waits for the burst misses handlers that no thread has started yet.
    let room = match room {
        Room::Run(slot) => Ok((slot, run.burst.begin())),
        Room::Wait(permit) => Err(permit),
    };
    let task = tokio::spawn(run_item(run.clone(), held.clone(), item, context, room, begun));
    run.held.change(&held, |row| row.abort = Some(task.abort_handle()));
}

async fn run_item(
    run: Arc<Run>,
    held: Held,
    item: Item,
    context: Context,
    room: Result<(Slot, Starting), OwnedSemaphorePermit>,
    begun: bool,
) {
    let (slot, starting) = match room {
        Ok(begins) => begins,
        Err(_waiting) => (run.control.slot().await, run.burst.begin()),
    };
    // No longer held: the worker is stopping or paused, and has released the row.
    let Some(taken) = run.held.change(&held, |row| {
        row.begun = Some(Instant::now());
        row.extended
    }) else {
        return;
    };
    // It may have waited here for most of its lease: make sure that the lease is still held, and extend it.
    let long = taken.elapsed() >= item.lease_for / 2;
    if long && !is_still_ours(&run, &held).await || !begun && !run.starter.start(&*run.transport, &held).await {
        tracing::debug!(key = held.key, "its lease was lost before a handler was free");
        run.held.remove(&held);
        return;
    }
    run.control.begun(run.queue(), &item);
    let reply = starting.until_it_waits(run.handlers.run(item, context)).await;
    run.control.ended(run.queue(), &held);
    if run.held.change(&held, |row| row.finished = true).is_none() {
        // Released at this very moment: the reply of a stopped handler is not a result.
        return;
    }
    // Keep the slot until there is room for the result: results that cannot be written stop the claiming.
    let Ok(unwritten) = run.unwritten.clone().acquire_owned().await else { return };
    drop(slot);
    // The completer outlives every handler.
    let _ = run.finished.send(Finished { held, reply, unwritten });
}

async fn is_still_ours(run: &Run, held: &Held) -> bool {
    match run.transport.progress(held, &Progress::default()).await {
        Ok((answer, left)) if answer.outcome == Outcome::Done => {
            run.held.change(held, |row| (row.extended, row.hold) = (Instant::now(), left));
            true
        }
        _ => false,
    }
}
