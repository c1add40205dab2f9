//! A queue in memory: the acts of a real one, no more than tests of a worker need. Its clock is tokio's.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::Instant;

use super::push::MemoryPush;
use super::rows::{Row, Rows, State};
use crate::error::{Error, Result};
use crate::queue::{Answer, Claim, Claimed, Completion, Failure, Held, Item, Progress};
use crate::transport::{Push, Transport};

/// A simulated error for every act, until it is reset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    /// A server that cannot be reached.
    Passing,
    /// A missing right.
    Refusal,
    /// The act is done, and the connection breaks before its answer arrives.
    AnswerLost,
}

/// An act that was called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    /// The verb.
    pub act: &'static str,
    /// Time since the queue was created.
    pub at: Duration,
    /// The rows it was about.
    pub keys: Vec<String>,
}

/// A queue without a database. Cheap to clone: all clones are the same queue.
#[derive(Debug, Clone)]
pub struct Memory {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    name: String,
    made: Instant,
    inside: Mutex<Inside>,
    /// Notifications so far, and whether they arrive. `None`: the queue sends no notifications.
    push: Option<watch::Sender<(u64, bool)>>,
}

#[derive(Debug)]
struct Inside {
    rows: Rows,
    statements: Vec<Statement>,
    progress: Vec<(String, Option<f64>, Option<Value>)>,
    trouble: Option<Trouble>,
    latency: Duration,
    slow: HashMap<&'static str, Duration>,
}

impl Memory {
    /// An empty queue without notifications. Claims last five minutes.
    pub fn new(name: &str) -> Self {
        Self::make(name, None)
    }

    /// An empty queue that sends notifications while it is connected.
    pub fn pushing(name: &str) -> Self {
        Self::make(name, Some(watch::Sender::new((1, true))))
    }

    fn make(name: &str, push: Option<watch::Sender<(u64, bool)>>) -> Self {
        let inside = Inside {
            rows: Rows::new(Duration::from_secs(300)),
            statements: Vec::new(),
            progress: Vec::new(),
            trouble: None,
            latency: Duration::ZERO,
            slow: HashMap::new(),
        };
        Self { shared: Arc::new(Shared { name: name.into(), made: Instant::now(), inside: Mutex::new(inside), push }) }
    }

    /// The queue as a transport for a worker.
    pub fn transport(&self) -> Arc<dyn Transport> {
        Arc::new(self.clone())
    }

    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.shared.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an item and notifies. Returns its key.
    pub fn add(&self, kind: &str, payload: Value) -> String {
        self.add_later(kind, payload, Duration::ZERO)
    }

    /// Adds an item that is due later and notifies. Returns its key.
    pub fn add_later(&self, kind: &str, payload: Value, after: Duration) -> String {
        let key = self.add_silently(kind, payload, after);
        if let Some(push) = &self.shared.push {
            push.send_if_modified(|(count, connected)| {
                *count += u64::from(*connected);
                *connected
            });
        }
        key
    }

    /// Adds an item whose notification is lost. Returns its key.
    pub fn add_silently(&self, kind: &str, payload: Value, after: Duration) -> String {
        self.inside().rows.add(kind, payload, Instant::now() + after)
    }

    /// Disconnects the listener, or connects it again.
    pub fn connect(&self, connected: bool) {
        if let Some(push) = &self.shared.push {
            push.send_modify(|push| *push = (push.0 + u64::from(connected && !push.1), connected));
        }
    }

    /// How long claims last from now on.
    pub fn lasting(&self, hold: Duration) {
        self.inside().rows.hold = hold;
    }

    /// The error that every act returns from now on.
    pub fn trouble(&self, trouble: Option<Trouble>) {
        self.inside().trouble = trouble;
    }

    /// How long every act takes from now on.
    pub fn latency(&self, latency: Duration) {
        self.inside().latency = latency;
    }

    /// How long this act takes from now on.
    pub fn slow(&self, act: &'static str, latency: Duration) {
        self.inside().slow.insert(act, latency);
    }

    /// Another agent takes the row, even from its holder.
    pub fn steal(&self, key: &str) {
        if let Ok(id) = key.parse() {
            self.inside().rows.take(id);
        }
    }

    /// An operator cancels the row.
    pub fn call_off(&self, key: &str) {
        self.inside().rows.cancel(key);
    }

    /// The state of a row; none where there is no such row.
    pub fn state(&self, key: &str) -> Option<State> {
        self.inside().rows.get(key).map(|row| row.state)
    }

    /// The result of a row.
    pub fn result(&self, key: &str) -> Option<Value> {
        self.inside().rows.get(key).and_then(|row| row.result.clone())
    }

    /// The failures of a row so far.
    pub fn attempts(&self, key: &str) -> Option<i32> {
        self.inside().rows.get(key).map(|row| row.attempts)
    }

    /// How many rows are in this state.
    pub fn count(&self, state: State) -> usize {
        self.inside().rows.rows.values().filter(|row| row.state == state).count()
    }

    /// Every act that was called, in order.
    pub fn statements(&self) -> Vec<Statement> {
        self.inside().statements.clone()
    }

    /// Stages reported with `progress`, of all items.
    pub fn progress(&self) -> Vec<(String, Option<f64>, Option<Value>)> {
        self.inside().progress.clone()
    }

    /// Adds the item as one that is already held.
    pub(super) fn hold(&self, item: &Item) {
        let (kind, payload, due) = (item.kind.clone(), item.payload.clone(), Instant::now() + item.lease_for);
        let row =
            Row { kind, payload, state: State::Running, due, lease: item.lease, attempts: item.attempts, result: item.partial.clone() };
        if let Ok(id) = item.key.parse() {
            self.inside().rows.rows.insert(id, row);
        }
    }

    /// Every act goes through here: it is recorded, takes the set latency, and may fail.
    async fn act<T>(&self, act: &'static str, keys: &[&str], change: impl FnOnce(&mut Inside) -> T) -> Result<T> {
        let statement = Statement { act, at: self.shared.made.elapsed(), keys: keys.iter().map(|key| (*key).to_owned()).collect() };
        let (latency, trouble) = {
            let mut inside = self.inside();
            inside.statements.push(statement);
            (inside.slow.get(act).copied().unwrap_or(inside.latency), inside.trouble)
        };
        if !latency.is_zero() {
            tokio::time::sleep(latency).await;
        }
        let (status, message, transient) = match trouble {
            None => return Ok(change(&mut self.inside())),
            Some(Trouble::AnswerLost) => {
                change(&mut self.inside());
                (None, "connection reset", true)
            }
            Some(Trouble::Passing) => (None, "connection refused", true),
            Some(Trouble::Refusal) => (Some(403), "permission denied", false),
        };
        Err(Error::Remote { act: format!("{act} in {}", self.shared.name), message: message.into(), status, code: None, transient })
    }
}

#[async_trait]
impl Transport for Memory {
    fn queue(&self) -> &str {
        &self.shared.name
    }

    async fn claim(&self, claim: &Claim) -> Result<Claimed> {
        self.act("claim", &[], |inside| inside.rows.claim(claim)).await
    }

    async fn start(&self, held: &[Held]) -> Result<Vec<Answer>> {
        self.act("start", &keys(held), |inside| held.iter().map(|held| inside.rows.held(held, |_| {})).collect()).await
    }

    async fn progress(&self, held: &Held, progress: &Progress) -> Result<(Answer, Duration)> {
        self.act("progress", &[&held.key], |inside| {
            if let Some(stage) = &progress.stage {
                inside.progress.push((stage.clone(), progress.percent, progress.partial.clone()));
            }
            let hold = progress.hold.unwrap_or(inside.rows.hold);
            let answer = inside.rows.held(held, |row| {
                row.due = Instant::now() + hold;
                if let Some(partial) = &progress.partial {
                    row.result = Some(partial.clone());
                }
            });
            (answer, hold)
        })
        .await
    }

    async fn complete(&self, done: &[Completion]) -> Result<Vec<Answer>> {
        let keys: Vec<&str> = done.iter().map(|done| done.held.key.as_str()).collect();
        let complete = |inside: &mut Inside| {
            let one = |done: &Completion| {
                inside.rows.held(&done.held, |row| {
                    row.state = State::Done;
                    row.result = done.result.clone().or_else(|| row.result.take());
                })
            };
            done.iter().map(one).collect()
        };
        self.act("complete", &keys, complete).await
    }

    async fn fail(&self, held: &Held, failure: &Failure) -> Result<Answer> {
        self.act("fail", &[&held.key], |inside| inside.rows.fail(held, failure)).await
    }

    async fn release(&self, held: &[Held]) -> Result<Vec<Answer>> {
        let back = |row: &mut Row| (row.state, row.due) = (State::Ready, Instant::now());
        self.act("release", &keys(held), |inside| held.iter().map(|held| inside.rows.held(held, back)).collect()).await
    }

    async fn snooze(&self, held: &Held, by: Duration) -> Result<Answer> {
        let put_off = |row: &mut Row| (row.state, row.due) = (State::Ready, Instant::now() + by);
        self.act("snooze", &[&held.key], |inside| inside.rows.held(held, put_off)).await
    }

    async fn cancel(&self, keys: &[&str], _reason: Option<&str>) -> Result<Vec<Answer>> {
        self.act("cancel", keys, |inside| keys.iter().map(|key| inside.rows.cancel(key)).collect()).await
    }

    async fn explain(&self, key: &str, _owner: Option<&str>) -> Result<Option<Value>> {
        self.act("explain", &[key], |inside| inside.rows.get(key).map(|row| json!({"state": format!("{:?}", row.state)}))).await
    }

    async fn ended(&self, held: &[Held]) -> Result<Vec<Held>> {
        let ended = |inside: &mut Inside| held.iter().filter(|held| inside.rows.is_ended(held)).cloned().collect();
        self.act("ended", &keys(held), ended).await
    }

    fn listen(&self) -> Option<Box<dyn Push>> {
        let counts = self.shared.push.as_ref()?.subscribe();
        Some(Box::new(MemoryPush::new(counts)))
    }
}

fn keys(held: &[Held]) -> Vec<&str> {
    held.iter().map(|held| held.key.as_str()).collect()
}
