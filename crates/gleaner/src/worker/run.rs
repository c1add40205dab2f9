//! State shared by the parts of one run.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Mutex, Semaphore, watch};

use super::Tally;
use super::burst::Burst;
use super::completer::{Finished, Results};
use super::control::Control;
use super::handler::Handlers;
use super::held::{self, HeldRows, State};
use super::limit::Slots;
use super::prefetch::Prefetched;
use super::settings::Settings;
use super::suspend::Sleep;
use crate::error::Result;
use crate::queue::{Held, Outcome};
use crate::transport::Transport;

/// Attempts left once a stopping worker's grace period is over.
const LAST_TRIES: u32 = 3;

#[derive(Debug)]
pub(super) struct Run {
    pub(super) transport: Arc<dyn Transport>,
    pub(super) settings: Settings,
    pub(super) handlers: Handlers,
    pub(super) control: Control,
    pub(super) held: Arc<HeldRows>,
    pub(super) prefetched: Prefetched,
    pub(super) burst: Burst,
    pub(super) sleep: Sleep,
    pub(super) results: Results,
    /// Room for results that are finished and not written.
    pub(super) unwritten: Semaphore,
    /// The grace period is over: what cannot be written now is dropped.
    pub(super) hurry: watch::Sender<bool>,
    /// The number of the last sleep after which the leases were checked.
    checked: Mutex<u64>,
}

impl Run {
    pub(super) fn new(transport: Arc<dyn Transport>, settings: Settings, handlers: Handlers, control: Control) -> Arc<Self> {
        Arc::new(Self {
            transport,
            handlers,
            control,
            held: Arc::default(),
            prefetched: Prefetched::default(),
            burst: Burst::default(),
            sleep: Sleep::new(settings.wall.clone()),
            results: Results::default(),
            unwritten: Semaphore::new(settings.unwritten.min(Semaphore::MAX_PERMITS)),
            hurry: watch::Sender::new(false),
            checked: Mutex::new(0),
            settings,
        })
    }

    pub(super) fn queue(&self) -> &str {
        self.transport.queue()
    }

    /// After a sleep: checks which leases are still held before anything is sent, and notifies the handlers of the others.
    ///
    /// The lease protects the items in any case. This avoids sending results that are rejected, and ends handlers whose work is useless.
    pub(super) async fn look_after_sleep(&self) {
        let mut checked = self.checked.lock().await;
        let slept = self.sleep.times();
        if *checked == slept {
            return;
        }
        let rows = self.held.those(|_| true);
        if !rows.is_empty() {
            let held = held::held(&rows);
            match self.insist(|| self.transport.ended(&held)).await {
                Ok(ended) => {
                    for row in held::named(&rows, &ended) {
                        row.state().lost = true;
                        row.end();
                    }
                }
                Err(error) => tracing::warn!(%error, "could not check the leases; results are sent, and refused if the lease was lost"),
            }
            // Our clock may have stood still while the leases ran: extend them at once.
            rows.iter().for_each(|row| row.state().slept = true);
        }
        *checked = slept;
    }

    /// Resolves when the grace period for running handlers is over or was cut short.
    pub(super) async fn grace_over(&self) {
        let mut hurry = self.hurry.subscribe();
        tokio::select! { () = tokio::time::sleep(self.settings.grace) => {}, _ = hurry.wait_for(|hurry| *hurry) => {} }
    }

    /// Passes results to the completer, as there is room for them. Their slots are kept until then: results that cannot be written
    /// stop the claiming.
    pub(super) async fn deliver(&self, mut finished: Vec<Finished>, mut slots: Slots) {
        while !finished.is_empty() {
            // Closed when the run was dropped.
            let Ok(room) = self.unwritten.acquire().await else { return };
            room.forget();
            let more = self.unwritten.available_permits().min(finished.len() - 1);
            let more = self.unwritten.try_acquire_many(u32::try_from(more).unwrap_or(u32::MAX));
            let room = 1 + more.map_or(0, |more| {
                let count = more.num_permits();
                more.forget();
                count
            });
            self.results.push(finished.drain(..room));
            drop(slots.take(room));
        }
    }

    /// Releases the held rows that match, and ends their handlers.
    pub(super) async fn give_back(&self, which: impl Fn(&State) -> bool) -> u64 {
        let left = self.held.drop_those(which);
        if left.is_empty() {
            return 0;
        }
        self.prefetched.forget_released();
        self.release(&held::held(&left)).await
    }

    /// Releases these rows and returns how many were released.
    pub(super) async fn release(&self, left: &[Held]) -> u64 {
        match self.transport.release(left).await {
            Ok(answers) => {
                let released = answers.iter().filter(|answer| answer.outcome == Outcome::Done).count() as u64;
                self.control.tallied(Tally { released, ..Tally::default() });
                released
            }
            Err(error) => {
                tracing::warn!(%error, "could not release what was left; it becomes due by itself");
                0
            }
        }
    }

    /// Aborts all handlers without an act: their rows become due when the leases expire.
    pub(super) fn abandon(&self) {
        self.unwritten.close();
        self.held.drop_those(|_| true);
        self.prefetched.forget_released();
    }

    /// Retries an act without limit while the connection to the queue has temporary trouble. A lease stays valid until another
    /// agent takes the row, so the result may be accepted even after hours. All acts of a holder can be repeated.
    pub(super) async fn insist<T, F: Future<Output = Result<T>>>(&self, act: impl Fn() -> F) -> Result<T> {
        let mut hurry = self.hurry.subscribe();
        let (mut wait, mut last) = (Duration::from_millis(100), 0);
        loop {
            match act().await {
                Err(error) if (error.is_transient() || error.is_unreached()) && last < LAST_TRIES => {
                    tracing::warn!(%error, wait_ms = wait.as_millis(), "trying again");
                    if *hurry.borrow() {
                        last += 1;
                        tokio::time::sleep(Duration::from_millis(200)).await;
                        continue;
                    }
                    tokio::select! {
                        () = tokio::time::sleep(wait) => wait = (wait * 2).min(Duration::from_secs(10)),
                        _ = hurry.wait_for(|hurry| *hurry) => {}
                    }
                }
                other => return other,
            }
        }
    }
}
