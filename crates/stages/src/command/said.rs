//! Reads a command's standard error and writes its progress to the item.

use gleaner::Failure;
use tokio::process::ChildStderr;

use super::super::Share;
use super::super::failure::cancelled;
use crate::said::{self, Progress, Said};

/// Reads to the end, or until progress is refused. In that case another agent holds the item, or it was cancelled, and the
/// command need not finish.
pub(super) async fn listen(stderr: Option<ChildStderr>, share: &Share<'_>) -> Result<Said, Failure> {
    let heard = |line: &str| tracing::debug!(stage = share.stage, line, "a command says");
    let write = |news: Progress| async move {
        let partial = news.partial.filter(|partial| partial.as_object().is_some_and(|partial| !partial.contains_key("gleaner")));
        let ours = share.progress(news.stage.as_deref(), news.percent, partial.as_ref()).await;
        if ours { Ok(()) } else { Err(cancelled()) }
    };
    said::listen(stderr, heard, write).await
}
