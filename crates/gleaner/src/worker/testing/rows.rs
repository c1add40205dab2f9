//! The rows of a queue in memory, and what the acts do to them.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;
use uuid::Uuid;

use crate::queue::{Answer, Claim, Claimed, Failure, Held, Item, Outcome};

const DEADLINE: Duration = Duration::from_secs(3600);

/// The state of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It waits.
    Ready,
    /// It is held.
    Running,
    /// It is finished.
    Done,
    /// It failed for good.
    Failed,
    /// It was cancelled.
    Cancelled,
}

impl State {
    fn word(self) -> String {
        format!("{self:?}").to_lowercase()
    }

    fn is_open(self) -> bool {
        matches!(self, Self::Ready | Self::Running)
    }
}

#[derive(Debug)]
pub(super) struct Row {
    pub(super) kind: Option<String>,
    pub(super) payload: Value,
    pub(super) state: State,
    pub(super) due: Instant,
    pub(super) lease: i64,
    pub(super) attempts: i32,
    pub(super) result: Option<Value>,
}

#[derive(Debug)]
pub(super) struct Rows {
    pub(super) rows: BTreeMap<u64, Row>,
    pub(super) hold: Duration,
    leases: i64,
    /// The rows that each request got: a repeated request gets the same.
    requests: HashMap<Uuid, Vec<(u64, i64)>>,
}

impl Rows {
    pub(super) fn new(hold: Duration) -> Self {
        Self { rows: BTreeMap::new(), hold, leases: 0, requests: HashMap::new() }
    }

    pub(super) fn add(&mut self, kind: &str, payload: Value, due: Instant) -> String {
        let id = self.rows.len() as u64 + 1;
        let (kind, state) = (Some(kind.to_owned()), State::Ready);
        self.rows.insert(id, Row { kind, payload, state, due, lease: 0, attempts: 0, result: None });
        id.to_string()
    }

    pub(super) fn get(&self, key: &str) -> Option<&Row> {
        self.rows.get(&key.parse().ok()?)
    }

    fn get_mut(&mut self, key: &str) -> Option<&mut Row> {
        self.rows.get_mut(&key.parse().ok()?)
    }

    pub(super) fn claim(&mut self, claim: &Claim) -> Claimed {
        let now = Instant::now();
        let wanted = |row: &Row| {
            row.state.is_open() && claim.kinds.as_ref().is_none_or(|kinds| row.kind.as_ref().is_some_and(|kind| kinds.contains(kind)))
        };
        let before = claim.request.and_then(|request| self.requests.get(&request)).cloned();
        let got = before.unwrap_or_else(|| {
            let mut due: Vec<(Instant, u64)> =
                self.rows.iter().filter(|(_, row)| wanted(row) && row.due <= now).map(|(id, row)| (row.due, *id)).collect();
            due.sort_unstable();
            due.truncate(usize::try_from(claim.limit).unwrap_or(0));
            due.into_iter().map(|(_, id)| (id, self.take(id))).collect()
        });
        if let Some(request) = claim.request {
            self.requests.insert(request, got.clone());
        }
        let items: Vec<Item> = got.iter().filter_map(|(id, lease)| self.item(*id, *lease)).collect();
        let next = self.rows.values().filter(|row| wanted(row)).map(|row| row.due.saturating_duration_since(now)).min();
        Claimed { next_due_in: next.filter(|_| items.is_empty()), items }
    }

    /// Gives the row to an agent; returns its lease.
    pub(super) fn take(&mut self, id: u64) -> i64 {
        self.leases += 1;
        let (lease, due) = (self.leases, Instant::now() + self.hold);
        if let Some(row) = self.rows.get_mut(&id) {
            (row.state, row.lease, row.due) = (State::Running, lease, due);
        }
        lease
    }

    fn item(&self, id: u64, lease: i64) -> Option<Item> {
        let row = self.rows.get(&id).filter(|row| row.lease == lease && row.state == State::Running)?;
        Some(Item {
            key: id.to_string(),
            lease,
            kind: row.kind.clone(),
            owner: None,
            attempts: row.attempts,
            payload: row.payload.clone(),
            partial: row.result.clone(),
            lease_for: row.due.saturating_duration_since(Instant::now()),
            deadline_in: DEADLINE,
        })
    }

    /// Changes a row for its holder. A caller that has lost the lease changes nothing.
    pub(super) fn held(&mut self, held: &Held, change: impl FnOnce(&mut Row)) -> Answer {
        let key = held.key.clone();
        let Some(row) = self.get_mut(&key) else { return Answer { key, outcome: Outcome::Gone, status: None } };
        let outcome = match row.state {
            State::Running if row.lease == held.lease => {
                change(row);
                Outcome::Done
            }
            State::Done | State::Failed if row.lease == held.lease => Outcome::Already,
            _ => Outcome::Lost,
        };
        Answer { key, outcome, status: Some(row.state.word()) }
    }

    pub(super) fn fail(&mut self, held: &Held, failure: &Failure) -> Answer {
        self.held(held, |row| {
            row.attempts += 1;
            if failure.retryable {
                let wait = failure.retry_in.unwrap_or(Duration::from_secs(1 << row.attempts.clamp(1, 10)));
                (row.state, row.due) = (State::Ready, Instant::now() + wait);
            } else {
                row.state = State::Failed;
            }
        })
    }

    pub(super) fn cancel(&mut self, key: &str) -> Answer {
        match self.get_mut(key) {
            None => Answer { key: key.into(), outcome: Outcome::Gone, status: None },
            Some(row) => {
                let outcome = if row.state.is_open() { Outcome::Done } else { Outcome::Already };
                if row.state.is_open() {
                    row.state = State::Cancelled;
                }
                Answer { key: key.into(), outcome, status: Some(row.state.word()) }
            }
        }
    }

    pub(super) fn is_ended(&self, held: &Held) -> bool {
        self.get(&held.key).is_some_and(|row| row.lease != held.lease || row.state != State::Running)
    }
}
