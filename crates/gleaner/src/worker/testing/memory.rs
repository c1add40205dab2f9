//! A queue in memory: the acts of a real one, no more than tests of a worker need. Its clock is tokio's.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::Instant;

use super::ear::Ear;
use super::rows::{Row, Rows, State};
use crate::error::{Error, Result};
use crate::queue::{Answer, Claim, Claimed, Failure, Item};
use crate::transport::{Push, Transport};

/// What every act meets, until it is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    /// As a server that cannot be reached.
    Passing,
    /// As a right that is missing.
    Refusal,
    /// The act is done, and the connection breaks before its answer arrives.
    AnswerLost,
}

/// An act that was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    pub act: &'static str,
    /// Since the queue was made.
    pub at: Duration,
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
    /// Rings so far, and whether they can be heard. None: there is no push.
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
    /// An empty queue that pushes nothing. Claims last five minutes.
    pub fn new(name: &str) -> Self {
        Self::make(name, None)
    }

    /// An empty queue that pushes, while it is connected.
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

    pub fn transport(&self) -> Arc<dyn Transport> {
        Arc::new(self.clone())
    }

    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.shared.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts an item in, and rings. Its key.
    pub fn add(&self, kind: &str, payload: Value) -> String {
        self.add_later(kind, payload, Duration::ZERO)
    }

    /// Puts an item in that is due later, and rings. Its key.
    pub fn add_later(&self, kind: &str, payload: Value, after: Duration) -> String {
        let key = self.add_unheard(kind, payload, after);
        if let Some(push) = &self.shared.push {
            push.send_if_modified(|(rings, connected)| {
                *rings += u64::from(*connected);
                *connected
            });
        }
        key
    }

    /// Puts an item in whose bell is lost. Its key.
    pub fn add_unheard(&self, kind: &str, payload: Value, after: Duration) -> String {
        self.inside().rows.add(kind, payload, Instant::now() + after)
    }

    /// Cuts the push off, or connects it again.
    pub fn connect(&self, connected: bool) {
        if let Some(push) = &self.shared.push {
            push.send_modify(|push| *push = (push.0 + u64::from(connected && !push.1), connected));
        }
    }

    /// How long claims last from now on.
    pub fn lasting(&self, hold: Duration) {
        self.inside().rows.hold = hold;
    }

    /// What every act meets from now on.
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

    /// Somebody else takes the row, whoever has it.
    pub fn steal(&self, key: &str) {
        if let Ok(id) = key.parse() {
            self.inside().rows.take(id);
        }
    }

    /// Somebody cancels the row.
    pub fn call_off(&self, key: &str) {
        self.inside().rows.cancel(key);
    }

    pub fn state(&self, key: &str) -> Option<State> {
        self.inside().rows.get(key).map(|row| row.state)
    }

    pub fn result(&self, key: &str) -> Option<Value> {
        self.inside().rows.get(key).and_then(|row| row.result.clone())
    }

    pub fn attempts(&self, key: &str) -> Option<i32> {
        self.inside().rows.get(key).map(|row| row.attempts)
    }

    /// How many rows are in this state.
    pub fn count(&self, state: State) -> usize {
        self.inside().rows.rows.values().filter(|row| row.state == state).count()
    }

    /// Everything that was asked, in order.
    pub fn statements(&self) -> Vec<Statement> {
        self.inside().statements.clone()
    }

    /// Stages shown with `progress`, of all items.
    pub fn progress(&self) -> Vec<(String, Option<f64>, Option<Value>)> {
        self.inside().progress.clone()
    }

    /// Puts the item in as one that is held already.
    pub(super) fn hold(&self, item: &Item) {
        let (kind, payload, due) = (item.kind.clone(), item.payload.clone(), Instant::now() + item.lease_for);
        let row =
            Row { kind, payload, state: State::Running, due, lease: item.lease, attempts: item.attempts, result: item.partial.clone() };
        if let Ok(id) = item.key.parse() {
            self.inside().rows.rows.insert(id, row);
        }
    }

    /// Every act comes through here: it is written down, takes its time, and may fail.
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

    async fn start(&self, held: &[(&str, i64)]) -> Result<Vec<Answer>> {
        self.act("start", &keys(held), |inside| held.iter().map(|(key, lease)| inside.rows.held(key, *lease, |_| {})).collect()).await
    }

    async fn progress(
        &self,
        key: &str,
        lease: i64,
        stage: Option<&str>,
        percent: Option<f64>,
        partial: Option<&Value>,
    ) -> Result<(Answer, Duration)> {
        self.act("progress", &[key], |inside| {
            if let Some(stage) = stage {
                inside.progress.push((stage.to_owned(), percent, partial.cloned()));
            }
            let hold = inside.rows.hold;
            let answer = inside.rows.held(key, lease, |row| {
                row.due = Instant::now() + hold;
                if let Some(partial) = partial {
                    row.result = Some(partial.clone());
                }
            });
            (answer, hold)
        })
        .await
    }

    async fn complete(&self, done: &[(&str, i64, Option<Value>)]) -> Result<Vec<Answer>> {
        let keys: Vec<&str> = done.iter().map(|done| done.0).collect();
        let complete = |inside: &mut Inside| {
            let one = |(key, lease, result): &(&str, i64, Option<Value>)| {
                inside.rows.held(key, *lease, |row| {
                    row.state = State::Done;
                    row.result = result.clone().or_else(|| row.result.take());
                })
            };
            done.iter().map(one).collect()
        };
        self.act("complete", &keys, complete).await
    }

    async fn fail(&self, key: &str, lease: i64, failure: &Failure) -> Result<Answer> {
        self.act("fail", &[key], |inside| inside.rows.fail(key, lease, failure)).await
    }

    async fn release(&self, held: &[(&str, i64)]) -> Result<Vec<Answer>> {
        let back = |row: &mut Row| (row.state, row.due) = (State::Ready, Instant::now());
        self.act("release", &keys(held), |inside| held.iter().map(|(key, lease)| inside.rows.held(key, *lease, back)).collect()).await
    }

    async fn snooze(&self, key: &str, lease: i64, by: Duration) -> Result<Answer> {
        let put_off = |row: &mut Row| (row.state, row.due) = (State::Ready, Instant::now() + by);
        self.act("snooze", &[key], |inside| inside.rows.held(key, lease, put_off)).await
    }

    async fn cancel(&self, keys: &[&str], _reason: Option<&str>) -> Result<Vec<Answer>> {
        self.act("cancel", keys, |inside| keys.iter().map(|key| inside.rows.cancel(key)).collect()).await
    }

    async fn explain(&self, key: &str, _owner: Option<&str>) -> Result<Option<Value>> {
        self.act("explain", &[key], |inside| inside.rows.get(key).map(|row| json!({"state": format!("{:?}", row.state)}))).await
    }

    async fn ended(&self, held: &[(&str, i64)]) -> Result<Vec<(String, i64)>> {
        let ended = |inside: &mut Inside| {
            held.iter().filter(|(key, lease)| inside.rows.is_ended(key, *lease)).map(|(key, lease)| ((*key).to_owned(), *lease)).collect()
        };
        self.act("ended", &keys(held), ended).await
    }

    fn listen(&self) -> Option<Box<dyn Push>> {
        let heard = self.shared.push.as_ref()?.subscribe();
        Some(Box::new(Ear::new(heard)))
    }
}

fn keys<'a>(held: &[(&'a str, i64)]) -> Vec<&'a str> {
    held.iter().map(|(key, _)| *key).collect()
}
