//! The queue of frames to a socket. Sending never waits: a socket that does not keep up is closed.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use tokio::sync::{Notify, mpsc};

/// The most frames that may wait for a socket. With more it is closed: its client reconnects and reads the tables itself, and no
/// other client had to wait.
const MOST_WAITING: usize = 1000;
/// The most bytes that may wait, because rows may be large.
const MOST_BYTES_WAITING: usize = 16 * 1024 * 1024;

#[derive(Debug, Clone)]
pub(super) struct Outbox {
    frames: mpsc::Sender<String>,
    waiting: Arc<AtomicUsize>,
    end: Arc<End>,
}

impl Outbox {
    pub(super) fn new() -> (Self, Frames, Arc<End>) {
        let (frames, receiver) = mpsc::channel(MOST_WAITING);
        let (waiting, end) = (Arc::new(AtomicUsize::new(0)), Arc::new(End::default()));
        (Self { frames, waiting: waiting.clone(), end: end.clone() }, Frames { receiver, waiting }, end)
    }

    pub(super) fn push(&self, frame: String) {
        let length = frame.len();
        let before = self.waiting.fetch_add(length, Ordering::Relaxed);
        // One frame always fits, however large: with an empty queue the socket is not behind.
        let fits = before == 0 || before + length <= MOST_BYTES_WAITING;
        if !fits || self.frames.try_send(frame).is_err() {
            self.waiting.fetch_sub(length, Ordering::Relaxed);
            self.cut_off("a subscriber did not keep up");
        }
    }

    /// Closes the socket. The first reason given is kept.
    pub(super) fn cut_off(&self, why: &'static str) {
        self.end.why.get_or_init(|| why);
        self.end.told.notify_one();
    }
}

/// Whether a socket is to be closed, and why.
#[derive(Debug, Default)]
pub(super) struct End {
    why: OnceLock<&'static str>,
    told: Notify,
}

impl End {
    pub(super) async fn reached(&self) -> &'static str {
        self.told.notified().await;
        self.why.get().copied().unwrap_or_default()
    }
}

/// The receiving end of an [`Outbox`], held by the socket.
#[derive(Debug)]
pub(super) struct Frames {
    receiver: mpsc::Receiver<String>,
    waiting: Arc<AtomicUsize>,
}

impl Frames {
    pub(super) async fn recv(&mut self) -> Option<String> {
        let frame = self.receiver.recv().await?;
        self.waiting.fetch_sub(frame.len(), Ordering::Relaxed);
        Some(frame)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_socket_is_cut_off_for_what_waits_in_frames_and_in_bytes() {
        let large = || "x".repeat(MOST_BYTES_WAITING + 1);
        let (out, mut frames, end) = Outbox::new();
        for _ in 0..3 {
            out.push(large());
            assert_eq!(frames.recv().await.map(|frame| frame.len()), Some(MOST_BYTES_WAITING + 1), "one at a time is fine");
        }
        out.push(large());
        out.push("one more".into());
        end.reached().await;

        let (out, _frames, end) = Outbox::new();
        for _ in 0..=MOST_WAITING {
            out.push("x".into());
        }
        end.reached().await;
    }
}
