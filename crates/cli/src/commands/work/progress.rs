//! Reads a command's standard error: progress is stored, the rest is shown.

use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, Ordering};

use gleaner::{Item, Outcome, Queue};
use gleaner_stages::said::{self, Progress, Said};
use tokio::process::ChildStderr;

use super::report::Report;

/// What was read.
#[derive(Debug, Default)]
pub(super) struct Errors {
    said: Said,
    /// Progress was refused: another worker holds the item now, or it was cancelled.
    pub lost: bool,
}

impl Errors {
    /// The last lines, if there are any.
    pub(super) fn message(&self) -> Option<String> {
        self.said.message()
    }
}

/// Reads to the end, even when the item is lost, because the output is also shown to the user.
pub(super) async fn read_errors(stderr: Option<ChildStderr>, queue: &Queue, item: &Item, report: &Report) -> Errors {
    let refused = AtomicBool::new(false);
    let lost = &refused;
    let write = |news: Progress| async move {
        if !lost.load(Ordering::Relaxed) {
            let shown = gleaner::Progress { stage: news.stage, percent: news.percent, partial: news.partial, hold: None };
            match queue.progress(&item.held(), &shown).await {
                Ok((answer, _)) => lost.store(answer.outcome != Outcome::Done, Ordering::Relaxed),
                Err(error) => tracing::warn!(%error, id = item.key, "progress was not written"),
            }
        }
        Ok::<_, Infallible>(())
    };
    let Ok(said) = said::listen(stderr, |line| report.heard(item, line), write).await;
    Errors { said, lost: refused.into_inner() }
}
