//! Marks prefetched rows as started, so that a crash counts against the row being worked on and not against rows that only waited.
//!
//! Runs before the handler. Items that begin together are marked in one statement: the first sends it for all.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use crate::queue::{Held, Outcome};
use crate::transport::Transport;

#[derive(Debug, Default)]
pub(super) struct Starter {
    waiting: Mutex<Vec<(Held, oneshot::Sender<bool>)>>,
    turn: tokio::sync::Mutex<()>,
}

impl Starter {
    /// False when the row is no longer held. If the call fails, the work begins anyway: only a crash would go uncounted.
    pub(super) async fn start(&self, transport: &dyn Transport, held: &Held) -> bool {
        let (answer, mut answered) = oneshot::channel();
        self.waiting().push((held.clone(), answer));
        let _turn = tokio::select! {
            biased;
            ours = &mut answered => return ours.unwrap_or(true),
            turn = self.turn.lock() => turn,
        };
        // Items that were claimed together begin together: let the others register first.
        tokio::task::yield_now().await;
        let waiting = std::mem::take(&mut *self.waiting());
        if !waiting.is_empty() {
            let (rows, to_answer): (Vec<Held>, Vec<_>) = waiting.into_iter().unzip();
            let answers = transport.start(&rows).await.unwrap_or_else(|error| {
                tracing::warn!(%error, "could not say that work has begun");
                Vec::new()
            });
            let lost = answers.iter().filter(|answer| matches!(answer.outcome, Outcome::Lost | Outcome::Gone));
            let lost: HashSet<&str> = lost.map(|answer| answer.key.as_str()).collect();
            for (held, answer) in rows.iter().zip(to_answer) {
                // The receiver is gone if its task has ended.
                let _ = answer.send(!lost.contains(held.key.as_str()));
            }
        }
        answered.await.unwrap_or(true)
    }

    fn waiting(&self) -> MutexGuard<'_, Vec<(Held, oneshot::Sender<bool>)>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
