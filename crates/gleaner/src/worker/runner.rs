//! Runs one item: waits for a handler to be free, runs it, hands on how it ended.

use std::sync::Arc;

use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;

use super::context::Context;
use super::held::{Id, Row};
use super::limit::Slot;
use super::shift::{Finished, Shift};
use crate::queue::{Item, Outcome};

/// Room for one item.
#[derive(Debug)]
pub(super) enum Room {
    /// A handler is free.
    Run(Slot),
    /// It waits for one; given back when it gets it.
    Wait(OwnedSemaphorePermit),
}

pub(super) fn spawn(shift: &Arc<Shift>, item: Item, room: Room) {
    let id = (item.key.clone(), item.lease);
    let row = Row::new(item.lease_for);
    let context = Context {
        queue: shift.transport.clone(),
        key: item.key.clone(),
        lease: item.lease,
        ended: row.ended.subscribe(),
        control: shift.control.clone(),
    };
    shift.held.insert(id.clone(), row);
    let task = tokio::spawn(run(shift.clone(), id.clone(), item, context, room));
    shift.held.change(&id, |row| row.abort = Some(task.abort_handle()));
}

async fn run(shift: Arc<Shift>, id: Id, item: Item, context: Context, room: Room) {
    let slot = match room {
        Room::Run(slot) => slot,
        Room::Wait(_waiting) => shift.control.slot().await,
    };
    // Gone: the worker is about to stop or paused, and has given the row back.
    let Some(taken) = shift.held.change(&id, |row| {
        row.begun = Some(Instant::now());
        row.extended
    }) else {
        return;
    };
    // It may have waited here for most of its lease: make sure that it is still ours, and stays so.
    let long = taken.elapsed() >= item.lease_for / 2;
    // Without prefetch the claim itself has said that everything begins.
    let begins = shift.settings.prefetch > 0;
    if long && !is_still_ours(&shift, &id).await || begins && !shift.starter.start(&*shift.transport, &id).await {
        tracing::debug!(key = id.0, "its lease was lost before a handler was free");
        shift.held.remove(&id);
        return;
    }
    shift.control.begun(shift.queue(), &item);
    let reply = shift.handlers.run(item, context).await;
    shift.control.ended(shift.queue(), &id);
    if shift.held.change(&id, |row| row.finished = true).is_none() {
        // Given back in this very moment: how a handler ended that was told to end is no result.
        return;
    }
    // Keeps its slot until there is room for the result: results that cannot be written stop the claiming.
    let Ok(unwritten) = shift.unwritten.clone().acquire_owned().await else { return };
    drop(slot);
    // The completer outlives every handler.
    let _ = shift.finished.send(Finished { id, reply, _unwritten: unwritten });
}

async fn is_still_ours(shift: &Shift, id: &Id) -> bool {
    match shift.transport.progress(&id.0, id.1, None, None, None).await {
        Ok((answer, left)) if answer.outcome == Outcome::Done => {
            shift.held.change(id, |row| (row.extended, row.hold) = (Instant::now(), left));
            true
        }
        _ => false,
    }
}
