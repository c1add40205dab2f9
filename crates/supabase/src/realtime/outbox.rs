//! The queue of frames to a socket. Sending never waits: a socket that does not keep up is closed.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use axum::extract::ws::Utf8Bytes;
use tokio::sync::{Notify, mpsc};

/// The most frames that may wait for a socket. With more it is closed: its client reconnects and reads the tables itself, and no
/// other client had to wait.
const MOST_WAITING: usize = 1000;
/// The most bytes that may wait, because rows may be large.
const MOST_BYTES_WAITING: usize = 16 * 1024 * 1024;
/// The most bytes that may wait for all sockets together. Beyond it a socket that is behind is closed.
const MOST_BYTES_IN_ALL: usize = 128 * 1024 * 1024;

/// What waits for all sockets of a server.
#[derive(Debug, Clone, Default)]
pub(super) struct Budget(Arc<AtomicUsize>);

#[derive(Debug, Clone)]
pub(super) struct Outbox {
    frames: mpsc::Sender<Utf8Bytes>,
    waiting: Arc<Waiting>,
    end: Arc<End>,
}

/// The bytes that wait for one socket, which count in the budget until they are sent or the socket is closed.
#[derive(Debug)]
struct Waiting {
    bytes: AtomicUsize,
    budget: Budget,
}

impl Waiting {
    /// Adds, and returns what waited before for this socket and for all.
    fn add(&self, length: usize) -> (usize, usize) {
        (self.bytes.fetch_add(length, Ordering::Relaxed), self.budget.0.fetch_add(length, Ordering::Relaxed))
    }

    fn remove(&self, length: usize) {
        self.bytes.fetch_sub(length, Ordering::Relaxed);
        self.budget.0.fetch_sub(length, Ordering::Relaxed);
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.budget.0.fetch_sub(*self.bytes.get_mut(), Ordering::Relaxed);
    }
}

impl Outbox {
    pub(super) fn new(budget: &Budget) -> (Self, Frames, Arc<End>) {
        let (frames, receiver) = mpsc::channel(MOST_WAITING);
        let waiting = Arc::new(Waiting { bytes: AtomicUsize::new(0), budget: budget.clone() });
        let end = Arc::new(End::default());
        (Self { frames, waiting: waiting.clone(), end: end.clone() }, Frames { receiver, waiting }, end)
    }

    pub(super) fn push(&self, frame: impl Into<Utf8Bytes>) {
        let frame = frame.into();
        let length = frame.len();
        let (before, in_all) = self.waiting.add(length);
        // One frame always fits, however large: with an empty queue the socket is not behind.
        let fits = before == 0 || (before + length <= MOST_BYTES_WAITING && in_all + length <= MOST_BYTES_IN_ALL);
        if !fits || self.frames.try_send(frame).is_err() {
            self.waiting.remove(length);
            self.cut_off("a subscriber did not keep up");
        }
    }

    /// Closes the socket. The first reason given is kept.
    pub(super) fn cut_off(&self, why: &'static str) {
        self.end.why.get_or_init(|| why);
        self.end.changed.notify_one();
    }
}

/// Whether a socket is to be closed, and why.
#[derive(Debug, Default)]
pub(super) struct End {
    why: OnceLock<&'static str>,
    changed: Notify,
}

impl End {
    pub(super) async fn reached(&self) -> &'static str {
        self.changed.notified().await;
        self.why.get().copied().unwrap_or_default()
    }
}

/// The receiving end of an [`Outbox`], held by the socket.
#[derive(Debug)]
pub(super) struct Frames {
    receiver: mpsc::Receiver<Utf8Bytes>,
    waiting: Arc<Waiting>,
}

impl Frames {
    pub(super) async fn recv(&mut self) -> Option<Utf8Bytes> {
        let frame = self.receiver.recv().await?;
        self.waiting.remove(frame.len());
        Some(frame)
    }
}

#[cfg(test)]
mod tests;
