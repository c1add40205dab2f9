//! The rows a worker holds, from the claim until their result is written.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::Instant;

use crate::queue::Held;

#[derive(Debug)]
pub(super) struct Row {
    pub(super) ended: watch::Sender<bool>,
    pub(super) hold: Duration,
    /// When its handler began; `None` while it waits for one.
    pub(super) begun: Option<Instant>,
    /// Its handler has ended; the result is being written.
    pub(super) finished: bool,
    pub(super) extended: Instant,
    /// The machine slept, so less of the lease is left than our clock shows.
    pub(super) slept: bool,
    /// The row was taken away during that time: its result is not sent.
    pub(super) lost: bool,
    pub(super) abort: Option<AbortHandle>,
}

impl Row {
    pub(super) fn new(hold: Duration) -> Self {
        Self {
            ended: watch::Sender::new(false),
            hold,
            begun: None,
            finished: false,
            extended: Instant::now(),
            slept: false,
            lost: false,
            abort: None,
        }
    }
}

/// By key and lease: a row that was taken away and claimed again is held twice for a moment, and the former handler must be notified.
#[derive(Debug, Default)]
pub(super) struct HeldRows {
    /// A plain mutex: never held across an await.
    rows: Mutex<HashMap<Held, Row>>,
    count: watch::Sender<usize>,
}

impl HeldRows {
    fn lock(&self) -> MutexGuard<'_, HashMap<Held, Row>> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn counted<T>(&self, change: impl FnOnce(&mut HashMap<Held, Row>) -> T) -> T {
        let mut rows = self.lock();
        let changed = change(&mut rows);
        self.count.send_if_modified(|count| std::mem::replace(count, rows.len()) != rows.len());
        changed
    }

    pub(super) fn insert(&self, held: Held, row: Row) {
        self.counted(|rows| rows.insert(held, row));
    }

    pub(super) fn remove(&self, held: &Held) -> Option<Row> {
        self.counted(|rows| rows.remove(held))
    }

    pub(super) fn remove_all<'a>(&self, those: impl Iterator<Item = &'a Held>) {
        self.counted(|rows| those.for_each(|held| drop(rows.remove(held))));
    }

    pub(super) fn extract(&self, which: impl Fn(&Row) -> bool) -> Vec<(Held, Row)> {
        self.counted(|rows| rows.extract_if(|_, row| which(row)).collect())
    }

    /// Changes one row; `None` when it is no longer held.
    pub(super) fn change<T>(&self, held: &Held, change: impl FnOnce(&mut Row) -> T) -> Option<T> {
        self.lock().get_mut(held).map(change)
    }

    pub(super) fn change_all(&self, change: impl Fn(&mut Row)) {
        self.lock().values_mut().for_each(change);
    }

    pub(super) fn those(&self, which: impl Fn(&Row) -> bool) -> Vec<Held> {
        self.lock().iter().filter(|(_, row)| which(row)).map(|(held, _)| held.clone()).collect()
    }

    pub(super) fn shortest_hold(&self) -> Option<Duration> {
        self.lock().values().map(|row| row.hold).min()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lock().is_empty()
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
