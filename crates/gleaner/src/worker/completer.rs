//! Writes results as they come: everything that is ready goes in one statement, without waiting for more.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use serde_json::Value;
use tokio::sync::{mpsc, watch};
use tokio::task::{AbortHandle, JoinHandle};

use super::Tally;
use super::handler::Reply;
use super::shift::{Finished, Shift};
use crate::error::Error;
use crate::queue::{Answer, Failure, Outcome};

const BATCH: usize = 1000;

/// The completer at work.
pub(super) struct Completing {
    task: JoinHandle<Tally>,
    closing: watch::Sender<bool>,
}

impl Completing {
    pub(super) fn start(shift: &Arc<Shift>, to_write: mpsc::UnboundedReceiver<Finished>) -> Self {
        let (closing, closed) = watch::channel(false);
        Self { task: tokio::spawn(Completer { shift: shift.clone(), tally: Tally::default() }.run(to_write, closed)), closing }
    }

    pub(super) fn abort_handle(&self) -> AbortHandle {
        self.task.abort_handle()
    }

    /// Writes what has arrived, and ends.
    pub(super) async fn finish(self) -> Result<Tally, Error> {
        self.closing.send_replace(true);
        self.task.await.map_err(|e| Error::Other(format!("the completer stopped: {e}")))
    }
}

struct Completer {
    shift: Arc<Shift>,
    tally: Tally,
}

impl Completer {
    /// Until `closing` turns true; what has arrived by then is still written.
    async fn run(mut self, mut to_write: mpsc::UnboundedReceiver<Finished>, mut closing: watch::Receiver<bool>) -> Tally {
        let mut batch = Vec::new();
        let mut closed = false;
        loop {
            let count = tokio::select! {
                biased;
                count = to_write.recv_many(&mut batch, BATCH) => count,
                // Not by the senders' end: a handler that cannot be ended has one.
                _ = closing.wait_for(|closing| *closing), if !closed => {
                    closed = true;
                    to_write.close();
                    continue;
                }
            };
            if count == 0 {
                return self.tally;
            }
            self.shift.look_after_sleep().await;
            self.write(std::mem::take(&mut batch)).await;
        }
    }

    async fn write(&mut self, batch: Vec<Finished>) {
        let (mut done, mut failed, mut written, mut snoozed) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for finished in &batch {
            match &finished.reply {
                _ if self.shift.held.change(&finished.id, |row| row.lost) == Some(true) => {
                    tracing::info!(key = finished.id.0, "taken by somebody else while we slept; the result is not sent");
                    self.add(Tally { lost: 1, ..Tally::default() });
                }
                Ok(Reply::Complete(result)) => done.push((finished.id.0.as_str(), finished.id.1, result.clone())),
                Ok(Reply::Completed(_)) => written.push(finished),
                Ok(Reply::Snooze(by)) => snoozed.push((finished, *by)),
                Err(failure) => failed.push((finished, failure.clone())),
            }
        }
        self.confirm(&written, &mut failed).await;
        self.fail(&failed).await;
        self.snooze(&snoozed).await;
        self.complete(&done).await;
        for finished in &batch {
            self.shift.held.remove(&finished.id);
        }
    }

    /// Looks whether what handlers completed themselves is completed. A transaction that was rolled back after all is a failure.
    async fn confirm<'a>(&mut self, written: &[&'a Finished], failed: &mut Vec<(&'a Finished, Failure)>) {
        if written.is_empty() {
            return;
        }
        let asked: Vec<(&str, i64)> = written.iter().map(|finished| (finished.id.0.as_str(), finished.id.1)).collect();
        let ended = self.shift.insist(|| self.shift.transport.ended(&asked)).await;
        for finished in written {
            match &ended {
                Ok(ended) if !ended.contains(&finished.id) => {
                    failed.push((finished, Failure::new("its handler completed it in a transaction that was not committed")));
                }
                Ok(_) => self.add(Tally { completed: 1, ..Tally::default() }),
                Err(error) => self.unwritten(&finished.id.0, error),
            }
        }
    }

    async fn fail(&mut self, failed: &[(&Finished, Failure)]) {
        let shift = self.shift.clone();
        let answers = join_all(failed.iter().map(|(finished, failure)| {
            let (shift, (key, lease)) = (&shift, &finished.id);
            async move { shift.insist(|| shift.transport.fail(key, *lease, failure)).await }
        }));
        for ((finished, failure), answer) in failed.iter().zip(answers.await) {
            let told = self.shift.held.change(&finished.id, |row| *row.ended.borrow()) == Some(true);
            match &answer {
                // The handler was told that its row was taken away, and ended for that reason.
                Ok(answer) if told && is_lost(answer) => self.add(Tally { lost: 1, ..Tally::default() }),
                _ => {
                    self.shift.control.failed(self.shift.queue(), &finished.id.0, failure);
                    self.count(&[&finished.id.0], answer.as_ref().map(std::slice::from_ref), Tally { failed: 1, ..Tally::default() });
                }
            }
        }
    }

    async fn snooze(&mut self, snoozed: &[(&Finished, Duration)]) {
        for (finished, by) in snoozed {
            let (key, lease) = &finished.id;
            let answer = self.shift.insist(|| self.shift.transport.snooze(key, *lease, *by)).await;
            self.count(&[key], answer.as_ref().map(std::slice::from_ref), Tally { released: 1, ..Tally::default() });
        }
    }

    async fn complete(&mut self, done: &[(&str, i64, Option<Value>)]) {
        if done.is_empty() {
            return;
        }
        let shift = self.shift.clone();
        let answers = shift.insist(|| shift.transport.complete(done)).await;
        // One that cannot be written, whatever the reason, must not cost the others their results.
        let apart = if answers.is_err() && done.len() > 1 { 1 } else { done.len() };
        let mut answers = Some(answers);
        for some in done.chunks(apart) {
            let answers = match answers.take().filter(|_| apart == done.len()) {
                Some(answers) => answers,
                None => shift.insist(|| shift.transport.complete(some)).await,
            };
            let keys: Vec<&str> = some.iter().map(|done| done.0).collect();
            self.count(&keys, answers.as_deref(), Tally { completed: 1, ..Tally::default() });
        }
    }

    fn count(&mut self, keys: &[&str], answers: Result<&[Answer], &Error>, done: Tally) {
        match answers {
            Ok(answers) => {
                for answer in answers {
                    if is_lost(answer) {
                        tracing::warn!(key = answer.key, status = answer.status, "the lease was lost; the result does not count");
                        self.add(Tally { lost: 1, ..Tally::default() });
                    } else {
                        self.add(done);
                    }
                }
            }
            Err(error) => keys.iter().for_each(|key| self.unwritten(key, error)),
        }
    }

    fn unwritten(&self, key: &str, error: &Error) {
        tracing::error!(%error, key, "a result could not be written; its row becomes due again by itself");
        self.shift.control.mishap(self.shift.queue(), key, "Unwritten", &error.to_string());
    }

    fn add(&mut self, more: Tally) {
        self.tally += more;
        self.shift.control.tallied(more);
    }
}

fn is_lost(answer: &Answer) -> bool {
    matches!(answer.outcome, Outcome::Lost | Outcome::Gone)
}
