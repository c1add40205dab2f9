//! Says that work on a prefetched row has begun, so that a crash counts against it and not against what only waited.
//!
//! Before the handler runs, and so many at once as begin at once: whoever is first says it for all.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use super::held::Id;
use crate::queue::Outcome;
use crate::transport::Transport;

#[derive(Debug, Default)]
pub(super) struct Starter {
    waiting: Mutex<Vec<(Id, oneshot::Sender<bool>)>>,
    turn: tokio::sync::Mutex<()>,
}

impl Starter {
    /// False when the row is no longer ours. When it cannot be said the work begins all the same: only a crash would go uncounted.
    pub(super) async fn start(&self, transport: &dyn Transport, id: &Id) -> bool {
        let (tell, mut told) = oneshot::channel();
        self.waiting().push((id.clone(), tell));
        let _turn = tokio::select! {
            biased;
            ours = &mut told => return ours.unwrap_or(true),
            turn = self.turn.lock() => turn,
        };
        // What was claimed together begins together: let the others say so first.
        tokio::task::yield_now().await;
        let waiting = std::mem::take(&mut *self.waiting());
        if !waiting.is_empty() {
            let rows: Vec<(&str, i64)> = waiting.iter().map(|((key, lease), _)| (key.as_str(), *lease)).collect();
            let answers = transport.start(&rows).await.unwrap_or_else(|error| {
                tracing::warn!(%error, "could not say that work has begun");
                Vec::new()
            });
            for ((key, _), tell) in waiting {
                let lost = answers.iter().any(|answer| answer.key == key && matches!(answer.outcome, Outcome::Lost | Outcome::Gone));
                // Whoever has gone needs no answer.
                let _ = tell.send(!lost);
            }
        }
        told.await.unwrap_or(true)
    }

    fn waiting(&self) -> MutexGuard<'_, Vec<(Id, oneshot::Sender<bool>)>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
