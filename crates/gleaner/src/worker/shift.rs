//! What the parts of one run share.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore, mpsc, watch};

use super::Tally;
use super::control::Control;
use super::handler::{Handlers, Replied};
use super::held::{Held, Id, Row};
use super::options::Settings;
use super::starter::Starter;
use super::suspend::Sleep;
use crate::error::Result;
use crate::queue::Outcome;
use crate::transport::Transport;

/// Tries that are left once a stopping worker's grace is over.
const LAST_TRIES: u32 = 3;

#[derive(Debug)]
pub(super) struct Shift {
    pub(super) transport: Arc<dyn Transport>,
    pub(super) settings: Settings,
    pub(super) handlers: Handlers,
    pub(super) control: Control,
    pub(super) held: Held,
    pub(super) starter: Starter,
    pub(super) sleep: Sleep,
    pub(super) finished: mpsc::UnboundedSender<Finished>,
    /// The bound on what has finished and is not written.
    pub(super) unwritten: Arc<Semaphore>,
    /// The grace is over: what cannot be written now is left.
    pub(super) hurry: watch::Sender<bool>,
    /// Up to which sleep the leases were looked at again.
    looked: Mutex<u64>,
}

/// A handler has ended, this way.
#[derive(Debug)]
pub(super) struct Finished {
    pub(super) id: Id,
    pub(super) reply: Replied,
    pub(super) _unwritten: OwnedSemaphorePermit,
}

impl Shift {
    pub(super) fn new(
        transport: Arc<dyn Transport>,
        settings: Settings,
        handlers: Handlers,
        control: Control,
    ) -> (Arc<Self>, mpsc::UnboundedReceiver<Finished>) {
        let (finished, to_write) = mpsc::unbounded_channel();
        let shift = Self {
            transport,
            handlers,
            control,
            held: Held::default(),
            starter: Starter::default(),
            sleep: Sleep::new(settings.wall.clone()),
            finished,
            unwritten: Arc::new(Semaphore::new(settings.unwritten.min(Semaphore::MAX_PERMITS))),
            hurry: watch::Sender::new(false),
            looked: Mutex::new(0),
            settings,
        };
        (Arc::new(shift), to_write)
    }

    pub(super) fn queue(&self) -> &str {
        self.transport.queue()
    }

    /// After a sleep: looks which leases are still ours before anything is sent, and tells the handlers of the others.
    ///
    /// The lease would have protected the items anyway. This spares everybody the late results, and handlers their useless work.
    pub(super) async fn look_after_sleep(&self) {
        let mut looked = self.looked.lock().await;
        let slept = self.sleep.times();
        if *looked == slept {
            return;
        }
        let held = self.held.ids(|_| true);
        if !held.is_empty() {
            let asked: Vec<(&str, i64)> = held.iter().map(|(key, lease)| (key.as_str(), *lease)).collect();
            match self.insist(|| self.transport.ended(&asked)).await {
                Ok(ended) => {
                    self.tell(&ended);
                    for id in &ended {
                        self.held.change(id, |row| row.lost = true);
                    }
                }
                Err(error) => tracing::warn!(%error, "could not look at the leases; results are sent, and refused where they must be"),
            }
            // Our clock may have stood still while the leases ran: show life at once.
            self.held.change_all(|row| row.slept = true);
        }
        *looked = slept;
    }

    pub(super) fn tell(&self, ended: &[Id]) {
        for id in ended {
            self.held.change(id, |row| row.ended.send_replace(true));
        }
    }

    /// Releases those of the held rows, and ends their handlers.
    pub(super) async fn give_back(&self, which: impl Fn(&Row) -> bool) -> u64 {
        let left = self.held.extract(which);
        if left.is_empty() {
            return 0;
        }
        self.end(&left);
        let left: Vec<(&str, i64)> = left.iter().map(|((key, lease), _)| (key.as_str(), *lease)).collect();
        match self.transport.release(&left).await {
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

    /// Ends all handlers and tells nobody.
    pub(super) fn abandon(&self) {
        self.end(&self.held.extract(|_| true));
    }

    fn end(&self, rows: &[(Id, Row)]) {
        for (id, row) in rows {
            row.ended.send_replace(true);
            if let Some(abort) = &row.abort {
                abort.abort();
            }
            self.control.ended(self.queue(), id);
        }
    }

    /// Repeats an act while the way to the queue is only momentarily in trouble, for as long as it takes: a lease does not end by
    /// itself, so the result may count even after hours. All acts of a holder can be repeated.
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
