//! The loop: find room, look for work, wait for the next look.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, mpsc, watch};
use tokio::task::AbortHandle;
use tokio::time::Instant;
use uuid::Uuid;

use super::Tally;
use super::completer::Completing;
use super::control::Control;
use super::keeper;
use super::pace::{Pace, Wake};
use super::runner::{self, Room};
use super::shift::{Finished, Shift};
use crate::error::{Error, Result};
use crate::queue::Claim;
use crate::transport::Push;

/// How often a waiting worker makes sure that push still works. Costs no statement.
const LOOK_AT_PUSH: Duration = Duration::from_secs(5);
/// Refusals in a row after which a worker that used to get answers ends.
const REFUSALS: u32 = 5;

/// Runs until `stop` turns true or an error ends it, and leaves nothing behind.
pub(super) async fn run(shift: Arc<Shift>, to_write: mpsc::UnboundedReceiver<Finished>, stop: watch::Receiver<bool>) -> Result<Tally> {
    let mut looker = Looker::new(shift.clone(), stop)?;
    let completing = Completing::start(&shift, to_write);
    let background = tokio::spawn({
        let shift = shift.clone();
        async move { tokio::join!(shift.sleep.tick(), keeper::keep(&shift)) }
    });
    let _ending = Ending(shift.clone(), [background.abort_handle(), completing.abort_handle()]);
    let outcome = looker.work().await;
    let mut released = looker.released;
    drop(looker);

    // Give back at once what has not begun, let what runs finish, and then give back what did not.
    released += shift.give_back(|row| row.begun.is_none()).await;
    if tokio::time::timeout(shift.settings.grace, shift.held.emptied()).await.is_err() {
        shift.hurry.send_replace(true);
        released += shift.give_back(|row| !row.finished).await;
    }
    let tally = completing.finish().await;
    let mut tally = tally?;
    tally.released += released;
    outcome.map(|()| tally)
}

/// Ends everything with the run, also with one that is dropped: nobody shows life any more for rows that nobody works.
struct Ending(Arc<Shift>, [AbortHandle; 2]);

impl Drop for Ending {
    fn drop(&mut self) {
        let Self(shift, tasks) = self;
        tasks.iter().for_each(AbortHandle::abort);
        shift.abandon();
        shift.control.left(shift.queue());
    }
}

struct Looker {
    shift: Arc<Shift>,
    stop: watch::Receiver<bool>,
    pauses: watch::Receiver<bool>,
    slept: watch::Receiver<u64>,
    push: Option<Box<dyn Push>>,
    pace: Pace,
    claim: Claim,
    prefetch: Arc<Semaphore>,
    to_take: usize,
    released: u64,
    /// Whether a claim was ever answered, and how often in a row it was refused.
    answered: bool,
    refused: u32,
}

/// How long to wait for the next look; none waits for push. After an error a push is not heeded.
struct Wait {
    so_long: Option<Duration>,
    answered: bool,
}

impl Looker {
    fn new(shift: Arc<Shift>, stop: watch::Receiver<bool>) -> Result<Self> {
        let settings = &shift.settings;
        let push = if settings.wake == Wake::PollOnly { None } else { shift.transport.listen() };
        if push.is_none() && settings.wake == Wake::PushOnly {
            let what = "pushes nothing on this way to it: poll, or listen where bells can be heard".into();
            return Err(Error::Unsupported { queue: shift.queue().into(), what });
        }
        let kinds = shift.handlers.kinds(settings.kinds.as_deref());
        if kinds.as_ref().is_some_and(Vec::is_empty) {
            return Err(Error::Other(format!("the worker of {} has no handler for any kind it should claim", shift.queue())));
        }
        let mut claim = Claim::by(&settings.agent);
        claim.owner.clone_from(&settings.owner);
        claim.kinds = kinds;
        // Who ends when nothing is left wants to know, and not to be told from memory.
        (claim.request, claim.first) = (Some(Uuid::new_v4()), !settings.until_empty);
        // Everything begins at once unless it has to wait for a handler.
        claim.started = settings.prefetch == 0;
        Ok(Self {
            pace: Pace::new(settings.poll.clone(), settings.backoff.clone(), settings.wake),
            prefetch: Arc::new(Semaphore::new(settings.prefetch)),
            to_take: settings.take.unwrap_or(usize::MAX),
            pauses: shift.control.pauses(),
            slept: shift.sleep.subscribe(),
            shift,
            stop,
            push,
            claim,
            released: 0,
            answered: false,
            refused: 0,
        })
    }

    async fn work(&mut self) -> Result<()> {
        let shift = self.shift.clone();
        loop {
            if *self.stop.borrow() {
                return Ok(());
            }
            if self.to_take == 0 {
                // Not asked to stop, only to take no more: what runs may take its time.
                tokio::select! { () = shift.held.emptied() => {}, _ = self.stop.wait_for(|stop| *stop) => {} }
                return Ok(());
            }
            if *self.pauses.borrow_and_update() {
                self.rest().await;
                continue;
            }
            shift.control.waits(shift.queue(), None);
            let rooms = tokio::select! {
                rooms = rooms(&shift.control, &self.prefetch, self.to_take) => rooms,
                _ = self.pauses.changed() => continue,
                _ = self.stop.wait_for(|stop| *stop) => return Ok(()),
            };
            let Some(wait) = self.look(rooms).await? else { continue };
            if shift.settings.until_empty && wait.answered && shift.held.is_empty() {
                return Ok(());
            }
            self.wait(&wait).await;
        }
    }

    /// Paused: gives back what waits for a handler, so that others may have it, and waits for the end of the pause.
    async fn rest(&mut self) {
        tracing::info!(queue = self.shift.queue(), "paused");
        self.shift.control.waits(self.shift.queue(), None);
        self.released += self.shift.give_back(|row| row.begun.is_none()).await;
        tokio::select! {
            _ = self.pauses.wait_for(|paused| !*paused) => tracing::info!(queue = self.shift.queue(), "resumed"),
            _ = self.stop.wait_for(|stop| *stop) => {}
        }
    }

    /// Claims what there is room for. None: look again at once.
    async fn look(&mut self, rooms: Vec<Room>) -> Result<Option<Wait>> {
        let shift = self.shift.clone();
        if let Some(push) = &mut self.push {
            push.mark();
        }
        self.claim.limit = i32::try_from(rooms.len()).unwrap_or(i32::MAX);
        // Due now: an answer that does not come makes the worker overdue.
        shift.control.waits(shift.queue(), Some(Duration::ZERO));
        let asked = Instant::now();
        let claimed = tokio::select! {
            claimed = shift.transport.claim(&self.claim) => claimed,
            // Not at once: what it claims would be lost until its lease lapses.
            () = stopped_for(&mut self.stop, shift.settings.grace) => return Ok(None),
        };
        let claimed = match claimed {
            Ok(claimed) => claimed,
            Err(error) => {
                self.claim.first = false;
                return self.endure(error, asked.elapsed()).map(Some);
            }
        };
        // Only now: had an earlier try succeeded and its answer been lost, the same id brought its rows.
        (self.claim.request, self.claim.first) = (Some(Uuid::new_v4()), !shift.settings.until_empty);
        (self.answered, self.refused) = (true, 0);
        let (found, queue) = (claimed.items.len(), shift.queue());
        shift.control.polled(queue, asked.elapsed(), found, found > 0 || claimed.next_due_in == Some(Duration::ZERO));
        self.to_take = self.to_take.saturating_sub(found);
        for (item, room) in claimed.items.into_iter().zip(rooms) {
            runner::spawn(&shift, item, room);
        }
        if found > 0 {
            self.pace.found();
            tracing::debug!(queue, found, next_ms = 0, "polled");
            return Ok(None);
        }
        let so_long = self.pace.empty(self.is_pushed(), claimed.next_due_in);
        tracing::debug!(queue, found, next_ms = so_long.map(|wait| wait.as_millis()), "polled");
        Ok(Some(Wait { so_long, answered: true }))
    }

    /// What to do about an error. One that may pass is waited out, for as long as it takes. Another ends a worker that never had an
    /// answer, because then something is set up wrongly; one that had is more patient, for queues are migrated and rights
    /// corrected under running agents, but it ends too, with the error, when the fifth answer in a row is a refusal. One that is no
    /// longer let in at all goes on for as long as it takes: a password is changed here and there, and not at the same moment.
    fn endure(&mut self, error: Error, took: Duration) -> Result<Wait> {
        let queue = self.shift.queue();
        self.shift.control.missed(queue, took, &error);
        let wait = if error.is_transient() {
            let wait = self.pace.after_error();
            tracing::warn!(queue, %error, wait_ms = wait.as_millis(), "claim failed; trying again");
            wait
        } else {
            let locked_out = error.is_unreached();
            self.refused += u32::from(!locked_out);
            let hopeless = matches!(error, Error::UnknownQueue { .. } | Error::Unsupported { .. });
            if hopeless || !self.answered || self.refused >= REFUSALS {
                return Err(error);
            }
            let wait = self.pace.after_refusal();
            if locked_out {
                tracing::error!(queue, %error, wait_ms = wait.as_millis(), "not let in any more; trying again until somebody mends it");
            } else {
                let left = REFUSALS - self.refused;
                tracing::error!(queue, %error, wait_ms = wait.as_millis(), "claim refused; trying again {left} more times");
            }
            wait
        };
        Ok(Wait { so_long: Some(wait), answered: false })
    }

    fn is_pushed(&self) -> bool {
        self.push.as_ref().is_some_and(|push| push.is_connected())
    }

    async fn wait(&mut self, wait: &Wait) {
        let shift = self.shift.clone();
        let until = wait.so_long.and_then(|so_long| Instant::now().checked_add(so_long));
        shift.control.waits(shift.queue(), wait.so_long);
        let pushed = self.is_pushed();
        loop {
            shift.control.pushed(shift.queue(), self.push.as_ref().map(|push| push.is_connected()));
            let glance = Instant::now() + LOOK_AT_PUSH;
            tokio::select! {
                () = tokio::time::sleep_until(until.map_or(glance, |until| until.min(glance))) => {}
                () = heard(self.push.as_mut()), if wait.answered => return self.pace.rung(),
                // The last handler of a draining worker ends: look once more.
                () = shift.held.emptied(), if shift.settings.until_empty && wait.answered => return,
                // The timers stood still in the meantime.
                _ = self.slept.changed() => return,
                _ = self.pauses.changed() => return,
                _ = self.stop.wait_for(|stop| *stop) => return,
            }
            // Without push the poll is quicker, from now on and not after the long wait.
            let lost = wait.answered && pushed && !self.is_pushed() && shift.settings.wake == Wake::Hybrid;
            if lost || until.is_some_and(|until| until <= Instant::now()) {
                return;
            }
        }
    }
}

/// Waits for room for one item, then takes what there is: free handlers first.
async fn rooms(control: &Control, prefetch: &Arc<Semaphore>, most: usize) -> Vec<Room> {
    let first = tokio::select! {
        biased;
        slot = control.slot() => Room::Run(slot),
        Ok(permit) = prefetch.clone().acquire_owned() => Room::Wait(permit),
    };
    let runs = std::iter::from_fn(|| control.try_slot().map(Room::Run));
    let waits = std::iter::from_fn(|| prefetch.clone().try_acquire_owned().ok().map(Room::Wait));
    std::iter::once(first).chain(runs).chain(waits).take(most).collect()
}

async fn heard(push: Option<&mut Box<dyn Push>>) {
    match push {
        Some(push) => push.rung().await,
        None => std::future::pending().await,
    }
}

async fn stopped_for(stop: &mut watch::Receiver<bool>, grace: Duration) {
    if stop.wait_for(|stop| *stop).await.is_err() {
        std::future::pending::<()>().await;
    }
    tokio::time::sleep(grace).await;
}
