//! The rows a worker holds, from the claim until their result is written.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::Instant;

/// Key and lease: a row that was taken away and claimed again is held twice for a moment, and the former handler must learn of it.
pub(super) type Id = (String, i64);

#[derive(Debug)]
pub(super) struct Row {
    pub(super) ended: watch::Sender<bool>,
    pub(super) hold: Duration,
    /// When its handler began; none while it waits for one.
    pub(super) begun: Option<Instant>,
    /// Its handler has ended; the result is being written.
    pub(super) finished: bool,
    pub(super) extended: Instant,
    /// The machine slept: the lease is shorter than our clock knows.
    pub(super) slept: bool,
    /// It was taken away in that time: its result is not sent.
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

#[derive(Debug, Default)]
pub(super) struct Held {
    /// A plain mutex: never held across an await.
    rows: Mutex<HashMap<Id, Row>>,
    count: watch::Sender<usize>,
}

impl Held {
    fn lock(&self) -> MutexGuard<'_, HashMap<Id, Row>> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn counted<T>(&self, change: impl FnOnce(&mut HashMap<Id, Row>) -> T) -> T {
        let mut rows = self.lock();
        let changed = change(&mut rows);
        self.count.send_if_modified(|count| std::mem::replace(count, rows.len()) != rows.len());
        changed
    }

    pub(super) fn insert(&self, id: Id, row: Row) {
        self.counted(|rows| rows.insert(id, row));
    }

    pub(super) fn remove(&self, id: &Id) -> Option<Row> {
        self.counted(|rows| rows.remove(id))
    }

    pub(super) fn extract(&self, which: impl Fn(&Row) -> bool) -> Vec<(Id, Row)> {
        self.counted(|rows| rows.extract_if(|_, row| which(row)).collect())
    }

    /// Changes one row; none when it is no longer held.
    pub(super) fn change<T>(&self, id: &Id, change: impl FnOnce(&mut Row) -> T) -> Option<T> {
        self.lock().get_mut(id).map(change)
    }

    pub(super) fn change_all(&self, change: impl Fn(&mut Row)) {
        self.lock().values_mut().for_each(change);
    }

    pub(super) fn ids(&self, which: impl Fn(&Row) -> bool) -> Vec<Id> {
        self.lock().iter().filter(|(_, row)| which(row)).map(|(id, _)| id.clone()).collect()
    }

    pub(super) fn shortest_hold(&self) -> Option<Duration> {
        self.lock().values().map(|row| row.hold).min()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    /// Resolves when nothing is held: all results are written.
    pub(super) async fn emptied(&self) {
        // We own the sender, so it cannot be gone.
        let _ = self.count.subscribe().wait_for(|count| *count == 0).await;
    }

    /// Resolves when something is held.
    pub(super) async fn occupied(&self) {
        let _ = self.count.subscribe().wait_for(|count| *count > 0).await;
    }
}
