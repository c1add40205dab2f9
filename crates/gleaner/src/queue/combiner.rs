//! Combines calls of [`Queue::enqueue`] that arrive while others are running: one statement and one commit for all that wait.
//!
//! A call that finds few running statements sends its own at once. The others wait for one of these to end, and the first of them
//! sends for all. Each statement is a task of its own, so that a dropped call does not affect the others.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use super::Queue;
use super::answer::Enqueued;
use crate::error::{Error, Result};

/// Statements that run at once: one is executed while others wait for the disk or the network.
const STATEMENTS: usize = 3;
/// Items in one statement.
const MOST: usize = 1000;
/// A call with this many items gains nothing from combining. It is sent alone, which avoids a copy.
const MANY: usize = 100;

#[derive(Debug)]
pub(super) struct Combiner {
    /// By the order of arrival.
    waiting: Mutex<Waiting>,
    statements: Arc<Semaphore>,
}

#[derive(Debug, Default)]
struct Waiting {
    next: u64,
    calls: BTreeMap<u64, Call>,
}

#[derive(Debug)]
struct Call {
    items: Vec<Value>,
    answer: oneshot::Sender<Result<Vec<Enqueued>>>,
}

impl Combiner {
    /// For a pool of `connections`: while all of them are busy, waiting here is better than waiting for the pool.
    pub(super) fn new(connections: usize) -> Self {
        Self { waiting: Mutex::default(), statements: Arc::new(Semaphore::new(STATEMENTS.min(connections).max(1))) }
    }

    pub(super) async fn enqueue(&self, queue: &Queue, items: &[Value]) -> Result<Vec<Enqueued>> {
        if items.len() >= MANY || items.iter().any(|item| queue.acts.may_wait(item)) {
            return queue.enqueue_alone(items).await;
        }
        let (answer, mut answered) = oneshot::channel();
        let _place = self.wait(Call { items: items.to_vec(), answer });
        loop {
            let statement = tokio::select! {
                biased;
                answer = &mut answered => return answer.unwrap_or_else(|_| Err(interrupted())),
                Ok(statement) = self.statements.clone().acquire_owned() => statement,
            };
            let calls = self.take();
            if calls.is_empty() {
                // Our call is being sent.
                drop(statement);
                return answered.await.unwrap_or_else(|_| Err(interrupted()));
            }
            tokio::spawn(send(queue.clone(), calls, statement));
        }
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait(&self, call: Call) -> Place<'_> {
        let mut waiting = self.waiting();
        let number = waiting.next;
        waiting.next += 1;
        waiting.calls.insert(number, call);
        Place { combiner: self, number }
    }

    /// The calls for the next statement.
    fn take(&self) -> Vec<Call> {
        let mut waiting = self.waiting();
        let (mut taken, mut items) = (Vec::new(), 0);
        while let Some(first) = waiting.calls.first_entry() {
            items += first.get().items.len();
            if items > MOST {
                break;
            }
            taken.push(first.remove());
        }
        taken
    }
}

/// The place of a waiting call. A call that is dropped before it was sent is not sent.
struct Place<'a> {
    combiner: &'a Combiner,
    number: u64,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.combiner.waiting().calls.remove(&self.number);
    }
}

async fn send(queue: Queue, calls: Vec<Call>, _statement: OwnedSemaphorePermit) {
    if calls.len() == 1 {
        for call in calls {
            // The receiver is gone if the call was dropped.
            let _ = call.answer.send(queue.enqueue_alone(&call.items).await);
        }
        return;
    }
    let mut items = Vec::new();
    let mut to_answer = Vec::with_capacity(calls.len());
    for call in calls {
        to_answer.push((call.items.len(), call.answer));
        items.extend(call.items);
    }
    let mut all = queue.enqueue_combined(&items).await;
    let mut rest = items.as_slice();
    for (count, answer) in to_answer {
        let (own, others) = rest.split_at(count);
        rest = others;
        let _ = answer.send(match &mut all {
            // Empty if a trigger on the table rejected all rows.
            Ok(all) => Ok(all.drain(..count.min(all.len())).collect()),
            // One of the calls caused the error: run each alone, so that each gets its own answer.
            Err(error) if is_rolled_back(error) => queue.enqueue_alone(own).await,
            Err(error) => Err(error.again()),
        });
    }
}

/// Whether the statement was certainly rolled back. After a lost connection it may have been committed.
fn is_rolled_back(error: &Error) -> bool {
    error.code().is_some_and(|code| !code.code().starts_with("08") && !code.code().starts_with("57P"))
}

fn interrupted() -> Error {
    Error::Other("the runtime that ran the enqueue was shut down; whether the items were enqueued is unknown".into())
}
