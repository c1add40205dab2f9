//! Writes results as they come: everything that is finished goes in one statement, without waiting for more.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;
use serde_json::Value;
use tokio::sync::{Notify, watch};
use tokio::task::{AbortHandle, JoinHandle};

use super::Tally;
use super::burst;
use super::handler::{Replied, Reply};
use super::held::{Row, held};
use super::run::Run;
use crate::error::Error;
use crate::queue::{Answer, Completion, Failure};

const BATCH: usize = 1000;

/// A handler that has ended, with its result.
#[derive(Debug)]
pub(super) struct Finished {
    pub(super) row: Arc<Row>,
    pub(super) reply: Replied,
}

/// Results that wait to be written.
#[derive(Debug, Default)]
pub(super) struct Results {
    waiting: Mutex<VecDeque<Finished>>,
    arrived: Notify,
}

impl Results {
    pub(super) fn push(&self, finished: impl IntoIterator<Item = Finished>) {
        self.waiting().extend(finished);
        self.arrived.notify_one();
    }

    fn take(&self, most: usize) -> Vec<Finished> {
        let mut waiting = self.waiting();
        let count = most.min(waiting.len());
        waiting.drain(..count).collect()
    }

    fn is_empty(&self) -> bool {
        self.waiting().is_empty()
    }

    fn waiting(&self) -> MutexGuard<'_, VecDeque<Finished>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The running completer.
pub(super) struct Completing {
    task: JoinHandle<Tally>,
    closing: watch::Sender<bool>,
}

impl Completing {
    pub(super) fn start(run: &Arc<Run>) -> Self {
        let (closing, closed) = watch::channel(false);
        Self { task: tokio::spawn(Completer { run: run.clone(), tally: Tally::default() }.run(closed)), closing }
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
    async fn run(mut self, mut closing: watch::Receiver<bool>) -> Tally {
        let run = self.run.clone();
        loop {
            if run.results.is_empty() {
                if *closing.borrow() {
                    return self.tally;
                }
                tokio::select! { () = run.results.arrived.notified() => {}, _ = closing.wait_for(|closing| *closing) => {} }
                continue;
            }
            // These are the first of the handlers that end together: wait for the others and write all with one statement.
            run.burst.settled(burst::SHORT).await;
            run.look_after_sleep().await;
            let batch = run.results.take(BATCH);
            let written = batch.len();
            self.write(batch).await;
            run.unwritten.add_permits(written);
        }
    }

    async fn write(&mut self, batch: Vec<Finished>) {
        let (mut done, mut failed, mut written, mut snoozed) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for Finished { row, reply } in batch {
            match reply {
                _ if row.state().lost => {
                    tracing::info!(key = row.held.key, "taken by another holder while we slept; the result is not sent");
                    self.add(Tally { lost: 1, ..Tally::default() });
                    self.run.held.remove([&*row]);
                }
                Ok(Reply::Complete(result)) => done.push((row, result)),
                Ok(Reply::Completed(_)) => written.push(row),
                Ok(Reply::Snooze(by)) => snoozed.push((row, by)),
                Ok(Reply::Ended) => {
                    self.add(Tally { lost: 1, ..Tally::default() });
                    self.run.held.remove([&*row]);
                }
                Err(failure) => failed.push((row, failure)),
            }
        }
        self.confirm(written, &mut failed).await;
        self.fail(&failed).await;
        self.snooze(&snoozed).await;
        self.complete(done).await;
    }

    /// Checks that items which handlers completed themselves are completed. A transaction that was rolled back is a failure.
    async fn confirm(&mut self, written: Vec<Arc<Row>>, failed: &mut Vec<(Arc<Row>, Failure)>) {
        if written.is_empty() {
            return;
        }
        let rows = held(&written);
        let ended = self.run.insist(|| self.run.transport.ended(&rows)).await;
        for row in written {
            match &ended {
                Ok(ended) if !ended.contains(&row.held) => {
                    failed.push((row, Failure::new("its handler completed it in a transaction that was not committed")));
                    continue;
                }
                Ok(_) => self.add(Tally { completed: 1, ..Tally::default() }),
                Err(error) => self.unwritten(&row.held.key, error),
            }
            self.run.held.remove([&*row]);
        }
    }

    async fn fail(&mut self, failed: &[(Arc<Row>, Failure)]) {
        let run = self.run.clone();
        let answers = join_all(failed.iter().map(|(row, failure)| {
            let run = &run;
            async move { run.insist(|| run.transport.fail(&row.held, failure)).await }
        }));
        for ((row, failure), answer) in failed.iter().zip(answers.await) {
            match &answer {
                // The handler was notified that its row was taken away, and ended for that reason.
                Ok(answer) if row.is_ended() && answer.is_lost() => self.add(Tally { lost: 1, ..Tally::default() }),
                _ => {
                    self.run.control.failed(self.run.queue(), &row.held.key, failure);
                    self.count(
                        std::slice::from_ref(row),
                        answer.as_ref().map(std::slice::from_ref),
                        Tally { failed: 1, ..Tally::default() },
                    );
                }
            }
        }
        self.run.held.remove(failed.iter().map(|(row, _)| &**row));
    }

    async fn snooze(&mut self, snoozed: &[(Arc<Row>, Duration)]) {
        for (row, by) in snoozed {
            let answer = self.run.insist(|| self.run.transport.snooze(&row.held, *by)).await;
            self.count(std::slice::from_ref(row), answer.as_ref().map(std::slice::from_ref), Tally { released: 1, ..Tally::default() });
            self.run.held.remove([&**row]);
        }
    }

    async fn complete(&mut self, done: Vec<(Arc<Row>, Option<Value>)>) {
        if done.is_empty() {
            return;
        }
        let run = self.run.clone();
        let (rows, done): (Vec<Arc<Row>>, Vec<Completion>) = done
            .into_iter()
            .map(|(row, result)| {
                let completion = Completion::new(row.held.clone(), result);
                (row, completion)
            })
            .unzip();
        let answers = run.insist(|| run.transport.complete(&done)).await;
        // One result that cannot be written, whatever the reason, must not lose the others.
        if answers.is_err() && done.len() > 1 {
            for (row, done) in rows.iter().zip(done.chunks(1)) {
                let answers = run.insist(|| run.transport.complete(done)).await;
                self.completed(std::slice::from_ref(row), answers.as_deref());
            }
        } else {
            self.completed(&rows, answers.as_deref());
        }
    }

    fn completed(&mut self, rows: &[Arc<Row>], answers: Result<&[Answer], &Error>) {
        self.count(rows, answers, Tally { completed: 1, ..Tally::default() });
        self.run.held.remove(rows.iter().map(|row| &**row));
    }

    fn count(&mut self, rows: &[Arc<Row>], answers: Result<&[Answer], &Error>, done: Tally) {
        match answers {
            Ok(answers) => {
                let mut sum = Tally::default();
                for answer in answers {
                    if answer.is_lost() {
                        tracing::warn!(key = answer.key, status = answer.status, "the lease was lost; the result does not count");
                        sum.lost += 1;
                    } else {
                        sum += done;
                    }
                }
                self.add(sum);
            }
            Err(error) => rows.iter().for_each(|row| self.unwritten(&row.held.key, error)),
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
