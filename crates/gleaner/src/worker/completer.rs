//! Writes results as they come: everything that is finished goes in one statement, without waiting for more.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::sync::{mpsc, watch};
use tokio::task::{AbortHandle, JoinHandle};

use super::Tally;
use super::burst;
use super::handler::Reply;
use super::run::{Finished, Run};
use crate::error::Error;
use crate::queue::{Answer, Completion, Failure, Held, Outcome};

const BATCH: usize = 1000;

/// The running completer.
pub(super) struct Completing {
    task: JoinHandle<Tally>,
    closing: watch::Sender<bool>,
}

impl Completing {
    pub(super) fn start(run: &Arc<Run>, to_write: mpsc::UnboundedReceiver<Finished>) -> Self {
        let (closing, closed) = watch::channel(false);
        Self { task: tokio::spawn(Completer { run: run.clone(), tally: Tally::default() }.run(to_write, closed)), closing }
    }

    pub(super) fn abort_handle(&self) -> AbortHandle {
        self.task.abort_handle()
    }

    /// Writes the results received so far, and ends.
    pub(super) async fn finish(self) -> Result<Tally, Error> {
        self.closing.send_replace(true);
        self.task.await.map_err(|e| Error::Other(format!("the completer stopped: {e}")))
    }
}

struct Completer {
    run: Arc<Run>,
    tally: Tally,
}

impl Completer {
    /// Runs until `closing` turns true; results received by then are still written.
    async fn run(mut self, mut to_write: mpsc::UnboundedReceiver<Finished>, mut closing: watch::Receiver<bool>) -> Tally {
        let mut batch = Vec::new();
        let mut closed = false;
        loop {
            let count = tokio::select! {
                biased;
                count = to_write.recv_many(&mut batch, BATCH) => count,
                // Not when all senders are dropped: a handler that cannot be stopped keeps one.
                _ = closing.wait_for(|closing| *closing), if !closed => {
                    closed = true;
                    to_write.close();
                    continue;
                }
            };
            if count == 0 {
                return self.tally;
            }
            // This is the first of the handlers that end together: wait for the others and write all with one statement.
            self.run.burst.settled(burst::SHORT).await;
            while batch.len() < BATCH
                && let Ok(finished) = to_write.try_recv()
            {
                batch.push(finished);
            }
            self.run.look_after_sleep().await;
            self.write(std::mem::take(&mut batch)).await;
        }
    }

    async fn write(&mut self, batch: Vec<Finished>) {
        let (mut done, mut failed, mut written, mut snoozed) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        // The permits are released when these results are written.
        let mut unwritten = Vec::with_capacity(batch.len());
        for Finished { held, reply, unwritten: permit } in batch {
            unwritten.push(permit);
            match reply {
                _ if self.run.held.change(&held, |row| row.lost) == Some(true) => {
                    tracing::info!(key = held.key, "taken by another holder while we slept; the result is not sent");
                    self.add(Tally { lost: 1, ..Tally::default() });
                    self.run.held.remove(&held);
                }
                Ok(Reply::Complete(result)) => done.push(Completion { held, result }),
                Ok(Reply::Completed(_)) => written.push(held),
                Ok(Reply::Snooze(by)) => snoozed.push((held, by)),
                Err(failure) => failed.push((held, failure)),
            }
        }
        self.confirm(written, &mut failed).await;
        self.fail(&failed).await;
        self.snooze(&snoozed).await;
        self.complete(&done).await;
    }

    /// Checks that items which handlers completed themselves are completed. A transaction that was rolled back is a failure.
    async fn confirm(&mut self, written: Vec<Held>, failed: &mut Vec<(Held, Failure)>) {
        if written.is_empty() {
            return;
        }
        let ended = self.run.insist(|| self.run.transport.ended(&written)).await;
        for held in written {
            match &ended {
                Ok(ended) if !ended.contains(&held) => {
                    failed.push((held, Failure::new("its handler completed it in a transaction that was not committed")));
                    continue;
                }
                Ok(_) => self.add(Tally { completed: 1, ..Tally::default() }),
                Err(error) => self.unwritten(&held.key, error),
            }
            self.run.held.remove(&held);
        }
    }

    async fn fail(&mut self, failed: &[(Held, Failure)]) {
        let run = self.run.clone();
        let answers = join_all(failed.iter().map(|(held, failure)| {
            let run = &run;
            async move { run.insist(|| run.transport.fail(held, failure)).await }
        }));
        for ((held, failure), answer) in failed.iter().zip(answers.await) {
            let knew = self.run.held.change(held, |row| *row.ended.borrow()) == Some(true);
            match &answer {
                // The handler was notified that its row was taken away, and ended for that reason.
                Ok(answer) if knew && is_lost(answer) => self.add(Tally { lost: 1, ..Tally::default() }),
                _ => {
                    self.run.control.failed(self.run.queue(), &held.key, failure);
                    self.count(&[&held.key], answer.as_ref().map(std::slice::from_ref), Tally { failed: 1, ..Tally::default() });
                }
            }
            self.run.held.remove(held);
        }
    }

    async fn snooze(&mut self, snoozed: &[(Held, Duration)]) {
        for (held, by) in snoozed {
            let answer = self.run.insist(|| self.run.transport.snooze(held, *by)).await;
            self.count(&[&held.key], answer.as_ref().map(std::slice::from_ref), Tally { released: 1, ..Tally::default() });
            self.run.held.remove(held);
        }
    }

    async fn complete(&mut self, done: &[Completion]) {
        if done.is_empty() {
            return;
        }
        let run = self.run.clone();
        let answers = run.insist(|| run.transport.complete(done)).await;
        // One result that cannot be written, whatever the reason, must not lose the others.
        let apart = if answers.is_err() && done.len() > 1 { 1 } else { done.len() };
        let mut answers = Some(answers);
        for some in done.chunks(apart) {
            let answers = match answers.take().filter(|_| apart == done.len()) {
                Some(answers) => answers,
                None => run.insist(|| run.transport.complete(some)).await,
            };
            let keys: Vec<&str> = some.iter().map(|done| done.held.key.as_str()).collect();
            self.count(&keys, answers.as_deref(), Tally { completed: 1, ..Tally::default() });
            self.run.held.remove_all(some.iter().map(|done| &done.held));
        }
    }

    fn count(&mut self, keys: &[&str], answers: Result<&[Answer], &Error>, done: Tally) {
        match answers {
            Ok(answers) => {
                let mut sum = Tally::default();
                for answer in answers {
                    if is_lost(answer) {
                        tracing::warn!(key = answer.key, status = answer.status, "the lease was lost; the result does not count");
                        sum.lost += 1;
                    } else {
                        sum += done;
                    }
                }
                self.add(sum);
            }
            Err(error) => keys.iter().for_each(|key| self.unwritten(key, error)),
        }
    }

    fn unwritten(&self, key: &str, error: &Error) {
        tracing::error!(%error, key, "a result could not be written; its row becomes due again by itself");
        self.run.control.mishap(self.run.queue(), key, "Unwritten", &error.to_string());
    }

    fn add(&mut self, more: Tally) {
        self.tally += more;
        self.run.control.tallied(more);
    }
}

fn is_lost(answer: &Answer) -> bool {
    matches!(answer.outcome, Outcome::Lost | Outcome::Gone)
}
