//! What a command says on standard error: progress is written down, the rest is shown.

use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, Ordering};

use gleaner::{Item, Outcome, Queue};
use gleaner_agent::said::{self, Progress, Said};
use tokio::process::ChildStderr;

use super::report::Report;

/// What was said.
#[derive(Debug, Default)]
pub struct Errors {
    said: Said,
    /// Progress was refused: the item is somebody else's, or cancelled.
    pub lost: bool,
}

impl Errors {
    /// The last lines, if there are any.
    pub fn message(&self) -> Option<String> {
        self.said.message()
    }
}

/// Listens to the end, also when the item is lost: what the command says is for people too.
pub async fn read_errors(stderr: Option<ChildStderr>, queue: &Queue, item: &Item, report: &Report) -> Errors {
    let refused = AtomicBool::new(false);
    let lost = &refused;
    let write = |news: Progress| async move {
        if !lost.load(Ordering::Relaxed) {
            match queue.progress(&item.key, item.lease, news.stage.as_deref(), news.percent, news.partial.as_ref()).await {
                Ok((answer, _)) => lost.store(answer.outcome != Outcome::Done, Ordering::Relaxed),
                Err(error) => tracing::warn!(%error, id = item.key, "progress was not written"),
            }
        }
        Ok::<_, Infallible>(())
    };
    let Ok(said) = said::listen(stderr, |line| report.heard(item, line), write).await;
    Errors { said, lost: refused.into_inner() }
}
