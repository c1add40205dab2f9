//! The rows a worker holds, from the claim until their result is written.

use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::control::Running;
use crate::queue::{Held, Item};

/// A held row. Its handler, the lease renewal and the completer share it, so that none of them has to look for it.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) held: Held,
    kind: Option<String>,
    /// In the order of the claims.
    number: u64,
    is_ended: AtomicBool,
    ended: Notify,
    state: Mutex<State>,
}

#[derive(Debug)]
pub(super) struct State {
    phase: Phase,
    pub(super) hold: Duration,
    pub(super) extended: Instant,
    /// The machine slept, so less of the lease is left than our clock shows.
    pub(super) slept: bool,
    /// The row was taken away during that time: its result is not sent.
    pub(super) lost: bool,
    /// What its handler reported last.
    stage: Option<(String, Option<f64>)>,
    /// Ends the task of a handler that waits for something.
    abort: Option<AbortHandle>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// It waits for a handler.
    Waiting,
    Running(Instant),
    /// Its handler has ended; the result is being written.
    Finished,
    /// It was released or abandoned: its handler does not begin, and the reply of one that runs is not a result.
    Dropped,
}

impl State {
    pub(super) fn is_waiting(&self) -> bool {
        self.phase == Phase::Waiting
    }

    pub(super) fn is_finished(&self) -> bool {
        self.phase == Phase::Finished
    }

    /// Whether its handler has begun, however long ago.
    pub(super) fn has_begun(&self) -> bool {
        matches!(self.phase, Phase::Running(_) | Phase::Finished)
    }

    /// Whether its handler has run for at least this long.
    pub(super) fn has_run(&self, least: Duration) -> bool {
        matches!(self.phase, Phase::Running(since) if since.elapsed() >= least)
    }
}

impl Row {
    pub(super) fn new(item: &Item, number: u64) -> Arc<Self> {
        let state = State {
            phase: Phase::Waiting,
            hold: item.lease_for,
            extended: Instant::now(),
            slept: false,
            lost: false,
            stage: None,
            abort: None,
        };
        Arc::new(Self {
            held: item.held(),
            kind: item.kind.clone(),
            number,
            is_ended: AtomicBool::new(false),
            ended: Notify::new(),
            state: Mutex::new(state),
        })
    }

    /// Never held across an await.
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// False if the row was dropped meanwhile: then no handler may begin.
    pub(super) fn begin(&self) -> bool {
        let mut state = self.state();
        let waits = state.is_waiting();
        if waits {
            state.phase = Phase::Running(Instant::now());
        }
        waits
    }

    /// False if the row was dropped meanwhile: then the reply of its handler is not a result.
    pub(super) fn finish(&self) -> bool {
        let mut state = self.state();
        let runs = matches!(state.phase, Phase::Running(_));
        if runs {
            state.phase = Phase::Finished;
        }
        runs
    }

    /// Its handler goes on in a task.
    pub(super) fn runs_as(&self, task: AbortHandle) {
        let mut state = self.state();
        if state.phase == Phase::Dropped {
            task.abort();
        } else {
            state.abort = Some(task);
        }
    }

    pub(super) fn reports(&self, stage: &str, percent: Option<f64>) {
        self.state().stage = Some((stage.to_owned(), percent));
    }

    /// Notifies its handler that it was taken away or cancelled.
    pub(super) fn end(&self) {
        self.is_ended.store(true, Ordering::Release);
        self.ended.notify_waiters();
    }

    pub(super) fn is_ended(&self) -> bool {
        self.is_ended.load(Ordering::Acquire)
    }

    pub(super) async fn ended(&self) {
        let mut ended = std::pin::pin!(self.ended.notified());
        // Subscribe before checking, or an end in between goes unnoticed.
        ended.as_mut().enable();
        if !self.is_ended() {
            ended.await;
        }
    }

    fn running(&self, queue: &str) -> Option<Running> {
        let state = self.state();
        let Phase::Running(since) = state.phase else { return None };
        let (stage, percent) = state.stage.clone().map_or((None, None), |(stage, percent)| (Some(stage), percent));
        Some(Running {
            queue: queue.to_owned(),
            key: self.held.key.clone(),
            lease: self.held.lease,
            kind: self.kind.clone(),
            stage,
            percent,
            seconds: since.elapsed().as_secs_f64(),
            since,
        })
    }
}

/// All of them, in the order of the claims.
#[derive(Debug, Default)]
pub(super) struct HeldRows {
    rows: Mutex<Rows>,
    count: watch::Sender<usize>,
}

#[derive(Debug, Default)]
struct Rows {
    by_number: BTreeMap<u64, Arc<Row>>,
    next: u64,
}

impl HeldRows {
    fn lock(&self) -> MutexGuard<'_, Rows> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn counted<T>(&self, change: impl FnOnce(&mut Rows) -> T) -> T {
        let mut rows = self.lock();
        let changed = change(&mut rows);
        let held = rows.by_number.len();
        self.count.send_if_modified(|count| std::mem::replace(count, held) != held);
        changed
    }

    pub(super) fn insert(&self, items: &[Item]) -> Vec<Arc<Row>> {
        self.counted(|rows| {
            let insert = |item| {
                let row = Row::new(item, rows.next);
                rows.by_number.insert(rows.next, row.clone());
                rows.next += 1;
                row
            };
            items.iter().map(insert).collect()
        })
    }

    pub(super) fn remove<'a>(&self, those: impl IntoIterator<Item = &'a Row>) {
        self.counted(|rows| those.into_iter().for_each(|row| drop(rows.by_number.remove(&row.number))));
    }

    /// Drops the rows that match: their handlers are notified and ended.
    pub(super) fn drop_those(&self, which: impl Fn(&State) -> bool) -> Vec<Arc<Row>> {
        let mut dropped = Vec::new();
        self.counted(|rows| {
            rows.by_number.retain(|_, row| {
                let mut state = row.state();
                let stays = !which(&state);
                if !stays {
                    state.phase = Phase::Dropped;
                    if let Some(task) = state.abort.take() {
                        task.abort();
                    }
                    dropped.push(row.clone());
                }
                stays
            });
        });
        dropped.iter().for_each(|row| row.end());
        dropped
    }

    pub(super) fn those(&self, which: impl Fn(&State) -> bool) -> Vec<Arc<Row>> {
        self.lock().by_number.values().filter(|row| which(&row.state())).cloned().collect()
    }

    pub(super) fn running(&self, queue: &str) -> Vec<Running> {
        self.lock().by_number.values().filter_map(|row| row.running(queue)).collect()
    }

    pub(super) fn shortest_hold(&self) -> Option<Duration> {
        self.lock().by_number.values().map(|row| row.state().hold).min()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lock().by_number.is_empty()
    }

    /// Resolves when no row is held: all results are written.
    pub(super) async fn emptied(&self) {
        // `self` owns the sender, so it cannot be dropped.
        let _ = self.count.subscribe().wait_for(|count| *count == 0).await;
    }

    /// Resolves when a row is held.
    pub(super) async fn occupied(&self) {
        let _ = self.count.subscribe().wait_for(|count| *count > 0).await;
    }
}

/// Keys and leases, as the acts take them.
pub(super) fn held(rows: &[Arc<Row>]) -> Vec<Held> {
    rows.iter().map(|row| row.held.clone()).collect()
}

/// Those of `rows` that an act named.
pub(super) fn named<'a>(rows: &'a [Arc<Row>], named: &[Held]) -> impl Iterator<Item = &'a Row> {
    let named: HashSet<Held> = named.iter().cloned().collect();
    rows.iter().map(Arc::as_ref).filter(move |row| named.contains(&row.held))
}
