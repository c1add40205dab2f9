//! The main loop: wait for a free slot, claim, wait for the next claim.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::Instant;
use uuid::Uuid;

use super::Tally;
use super::burst;
use super::completer::Completing;
use super::held::State;
use super::lane::{Batch, Claimed};
use super::limit::Slots;
use super::pace::{Pace, Wake};
use super::prefetch;
use super::renewal;
use super::run::Run;
use crate::error::{Error, Result};
use crate::queue::{Claim, Held, Item};
use crate::transport::Push;

/// How often a waiting worker checks that notifications still arrive. Needs no statement.
const CHECK_PUSH_EVERY: Duration = Duration::from_secs(5);
/// How long a claim for prefetched items waits for handlers that are about to begin.
const PATIENCE: Duration = Duration::from_millis(100);
/// Refusals in a row after which a worker that used to get answers ends.
const REFUSALS: u32 = 5;

/// Runs until `stop` turns true or an error ends it, and releases what it holds.
pub(super) async fn run(run: Arc<Run>, stop: watch::Receiver<bool>) -> Result<Tally> {
    let mut poll_loop = PollLoop::new(run.clone(), stop)?;
    run.control.joined(run.queue(), &run.held);
    let completing = Completing::start(&run);
    let background = tokio::spawn({
        let run = run.clone();
        async move { tokio::join!(run.sleep.tick(), renewal::renew_leases(&run), prefetch::begin_prefetched(&run)) }
    });
    let _ending = Ending(run.clone(), [background.abort_handle(), completing.abort_handle()]);
    let outcome = poll_loop.work().await;
    let mut released = poll_loop.released;
    drop(poll_loop);

    // Release at once what has not begun, let running handlers finish, and then release what is left.
    released += run.give_back(State::is_waiting).await;
    let all_ended = tokio::select! { () = run.held.emptied() => true, () = run.grace_over() => false };
    if !all_ended {
        run.hurry.send_replace(true);
        released += run.give_back(|row| !row.is_finished()).await;
    }
    let tally = completing.finish().await;
    let mut tally = tally?;
    tally.released += released;
    outcome.map(|()| tally)
}

/// Ends all tasks with the run, even if the run is dropped: leases of rows that are no longer worked on must not be renewed.
struct Ending(Arc<Run>, [AbortHandle; 2]);

impl Drop for Ending {
    fn drop(&mut self) {
        let Self(run, tasks) = self;
        tasks.iter().for_each(AbortHandle::abort);
        run.abandon();
        run.control.left(run.queue(), &run.held);
    }
}

struct PollLoop {
    run: Arc<Run>,
    stop: watch::Receiver<bool>,
    pauses: watch::Receiver<bool>,
    slept: watch::Receiver<u64>,
    push: Option<Box<dyn Push>>,
    pace: Pace,
    claim: Claim,
    to_take: usize,
    released: u64,
    /// Whether a claim was ever answered, and how often in a row it was refused.
    answered: bool,
    refused: u32,
    /// The last claim failed, and the next one repeats it.
    repeats: bool,
    /// The last claim returned rows.
    found: bool,
}

/// How long to wait before the next claim; `None` waits for a notification. After an error notifications are ignored.
struct Wait {
    so_long: Option<Duration>,
    answered: bool,
    /// The queue said that no row is due. Otherwise rows may be due that no claim can take yet, because another session holds
    /// their locks.
    empty: bool,
}

impl PollLoop {
    fn new(run: Arc<Run>, stop: watch::Receiver<bool>) -> Result<Self> {
        let settings = &run.settings;
        let push = if settings.wake == Wake::PollOnly { None } else { run.transport.listen() };
        if push.is_none() && settings.wake == Wake::PushOnly {
            let what = "has no notifications on this way to it: poll, or connect where they arrive".into();
            return Err(Error::Unsupported { queue: run.queue().into(), what });
        }
        let kinds = run.handlers.kinds(settings.kinds.as_deref());
        if kinds.as_ref().is_some_and(Vec::is_empty) {
            return Err(Error::Other(format!("the worker of {} has no handler for any kind it should claim", run.queue())));
        }
        let mut claim = Claim::by(&settings.agent);
        claim.owner.clone_from(&settings.owner);
        claim.kinds = kinds;
        (claim.early, claim.hold) = (settings.early, settings.hold);
        // A worker that ends when the queue is empty needs an answer from the database, not one from a server's memory.
        (claim.request, claim.first) = (Some(Uuid::new_v4()), !settings.until_empty);
        Ok(Self {
            pace: Pace::new(settings.poll.clone(), settings.backoff.clone(), settings.wake),
            to_take: settings.take.unwrap_or(usize::MAX),
            pauses: run.control.pauses(),
            slept: run.sleep.subscribe(),
            run,
            stop,
            push,
            claim,
            released: 0,
            answered: false,
            refused: 0,
            repeats: false,
            found: false,
        })
    }

    async fn work(&mut self) -> Result<()> {
        let run = self.run.clone();
        loop {
            if *self.stop.borrow() {
                return Ok(());
            }
            if self.to_take == 0 {
                // No stop was requested, only no more claims: running handlers may take their time.
                tokio::select! { () = run.held.emptied() => {}, _ = self.stop.wait_for(|stop| *stop) => {} }
                return Ok(());
            }
            if *self.pauses.borrow_and_update() {
                self.rest().await;
                continue;
            }
            run.control.waits(run.queue(), None);
            let (slots, beyond) = tokio::select! {
                room = room(&run, self.to_take.min(run.settings.batch), self.found) => room,
                _ = self.pauses.changed() => continue,
                _ = self.stop.wait_for(|stop| *stop) => return Ok(()),
            };
            let Some(wait) = self.poll(slots, beyond).await? else { continue };
            if run.settings.until_empty && wait.empty && run.held.is_empty() {
                return Ok(());
            }
            self.wait(&wait).await;
        }
    }

    /// Paused: releases items that wait for a handler, so that other workers can claim them, and waits for the end of the pause.
    async fn rest(&mut self) {
        tracing::info!(queue = self.run.queue(), "paused");
        self.run.control.waits(self.run.queue(), None);
        self.released += self.run.give_back(State::is_waiting).await;
        tokio::select! {
            _ = self.pauses.wait_for(|paused| !*paused) => tracing::info!(queue = self.run.queue(), "resumed"),
            _ = self.stop.wait_for(|stop| *stop) => {}
        }
    }

    /// Claims as many items as there are slots, and `beyond` that. `None`: claim again at once.
    async fn poll(&mut self, mut slots: Slots, beyond: usize) -> Result<Option<Wait>> {
        let run = self.run.clone();
        if let Some(push) = &mut self.push {
            push.mark();
        }
        let room = slots.count() + beyond;
        self.claim.limit = i32::try_from(room).unwrap_or(i32::MAX);
        if !self.repeats {
            // An item with a free handler begins at once, unless it is claimed together with items that must wait.
            self.claim.started = beyond == 0;
        }
        // The next poll is due now: if no answer comes, the worker counts as overdue.
        run.control.waits(run.queue(), Some(Duration::ZERO));
        let asked = Instant::now();
        let claimed = tokio::select! {
            claimed = run.transport.claim(&self.claim) => claimed,
            // Do not cancel at once: the rows it claims would be stuck until their leases expire.
            () = stopped_for_good(&mut self.stop, &run) => return Ok(None),
        };
        let answer = match claimed {
            Ok(answer) => answer,
            Err(error) => {
                (self.claim.first, self.repeats) = (false, true);
                return self.endure(error, asked.elapsed()).map(Some);
            }
        };
        // Only now: if an earlier attempt succeeded and its answer was lost, the same id has returned its rows.
        (self.claim.request, self.claim.first) = (Some(Uuid::new_v4()), !run.settings.until_empty);
        (self.answered, self.refused, self.repeats) = (true, 0, false);
        let (found, queue) = (answer.items.len(), run.queue());
        run.control.polled(queue, asked.elapsed(), found, found > 0 || answer.next_due_in == Some(Duration::ZERO));
        self.to_take = self.to_take.saturating_sub(found);
        self.found = found > 0;
        let mut items = answer.items;
        self.give_back_beyond(&mut items, room).await;
        let rows = run.held.insert(&items);
        let claimed = items.into_iter().zip(rows).map(|(item, row)| Claimed { item, row });
        if self.claim.started {
            let slots = slots.take(claimed.len());
            Batch::new(&run, claimed.collect(), slots).start();
        } else {
            // Each must be marked as started when it begins.
            drop(slots);
            run.prefetched.push(claimed);
        }
        if found > 0 {
            self.pace.found();
            tracing::debug!(queue, found, next_ms = 0, "polled");
            return Ok(None);
        }
        let so_long = self.pace.empty(self.is_pushed(), answer.next_due_in);
        tracing::debug!(queue, found, next_ms = so_long.map(|wait| wait.as_millis()), "polled");
        Ok(Some(Wait { so_long, answered: true, empty: answer.next_due_in != Some(Duration::ZERO) }))
    }

    /// A repeated claim returns the rows of the lost answer, for which there may be fewer slots now.
    async fn give_back_beyond(&mut self, items: &mut Vec<Item>, room: usize) {
        if items.len() <= room {
            return;
        }
        let beyond: Vec<Held> = items.drain(room..).map(|item| item.held()).collect();
        self.to_take = self.to_take.saturating_add(beyond.len());
        self.released += self.run.release(&beyond).await;
    }

    /// Decides what to do about an error. A temporary error is retried without limit. Any other error ends a worker that never
    /// got an answer, because then the configuration is wrong. A worker that did get answers is more patient, because queues are
    /// migrated and rights corrected while agents run. It also ends, with the error, at the fifth refusal in a row. A worker
    /// whose login is rejected later retries without limit: a changed password does not reach the server and its clients at the
    /// same moment.
    fn endure(&mut self, error: Error, took: Duration) -> Result<Wait> {
        let queue = self.run.queue();
        self.run.control.missed(queue, took, &error);
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
                tracing::error!(queue, %error, wait_ms = wait.as_millis(), "connection rejected; trying again until the settings are corrected");
            } else {
                let left = REFUSALS - self.refused;
                tracing::error!(queue, %error, wait_ms = wait.as_millis(), "claim refused; trying again {left} more times");
            }
            wait
        };
        Ok(Wait { so_long: Some(wait), answered: false, empty: false })
    }

    fn is_pushed(&self) -> bool {
        self.push.as_ref().is_some_and(|push| push.is_certain())
    }

    async fn wait(&mut self, wait: &Wait) {
        let run = self.run.clone();
        let until = wait.so_long.and_then(|so_long| Instant::now().checked_add(so_long));
        run.control.waits(run.queue(), wait.so_long);
        let pushed = self.is_pushed();
        loop {
            run.control.pushed(run.queue(), self.push.as_ref().map(|push| push.is_connected()));
            let glance = Instant::now() + CHECK_PUSH_EVERY;
            tokio::select! {
                () = tokio::time::sleep_until(until.map_or(glance, |until| until.min(glance))) => {}
                () = notified(self.push.as_mut()), if wait.answered => return self.pace.notified(),
                // The last handler of a worker that drains the queue has ended: claim once more.
                () = run.held.emptied(), if run.settings.until_empty && wait.empty => return,
                // The timers stood still during the sleep.
                _ = self.slept.changed() => return,
                _ = self.pauses.changed() => return,
                _ = self.stop.wait_for(|stop| *stop) => return,
            }
            // Without notifications the poll is faster. Apply that now, not after the long delay.
            let lost = wait.answered && pushed && !self.is_pushed() && run.settings.wake == Wake::Hybrid;
            if lost || until.is_some_and(|until| until <= Instant::now()) {
                return;
            }
        }
    }
}

/// Waits for room for one item, then takes all there is: slots of free handlers, and how many items may be claimed beyond. With
/// `apart`, takes only free handlers if there are any: items that begin at once are claimed as started, and need no extra
/// statement for that.
async fn room(run: &Run, most: usize, apart: bool) -> (Slots, usize) {
    let (prefetch, prefetched) = (run.settings.prefetch, &run.prefetched);
    let mut slots = run.control.no_slots();
    tokio::select! {
        biased;
        // Items that wait already have the next free handlers.
        slot = run.control.slot(), if prefetched.len() == 0 => slots = slot,
        () = prefetched.fewer_than(prefetch) => {}
    }
    // Handlers that end together free their slots together, and a claim for all of them costs hardly more than for one. Also,
    // handlers that are about to begin may end at once: then nothing needs to be prefetched.
    if slots.count() > 0 {
        run.burst.settled(burst::SHORT).await;
    } else {
        prefetched.settled(run, PATIENCE).await;
    }
    if prefetched.len() == 0 {
        slots.add(run.control.free_slots(most - slots.count()));
    }
    let beyond = if apart && slots.count() > 0 { 0 } else { prefetch.saturating_sub(prefetched.len()).min(most - slots.count()) };
    (slots, beyond)
}

async fn notified(push: Option<&mut Box<dyn Push>>) {
    match push {
        Some(push) => push.notified().await,
        None => std::future::pending().await,
    }
}

async fn stopped_for_good(stop: &mut watch::Receiver<bool>, run: &Run) {
    if stop.wait_for(|stop| *stop).await.is_err() {
        std::future::pending::<()>().await;
    }
    run.grace_over().await;
}
