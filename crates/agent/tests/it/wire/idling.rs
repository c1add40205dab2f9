//! Agents with nothing to do.

use std::time::Duration;

use anyhow::{Context as _, Result};
use gleaner::worker::{Job, Poll, Worker};
use serde_json::Value;
use tokio::sync::watch;

use crate::conformance::stage::{Over, stage};

/// What must be empty the server knows by heart, however many ask and however often.
#[tokio::test]
async fn looks_that_find_nothing_are_answered_without_the_database() -> Result<()> {
    let stage = stage(Over::Native).await?;
    let served = stage.served.as_ref().context("served")?;
    let often = Duration::from_millis(50);
    let poll = Poll { base: often, max: often, pushed_base: often, pushed_max: often, ..Poll::default() };
    let worker = Worker::builder(stage.open("jobs").await?).poll(poll).otherwise(|_: Job<Value>| async { Ok(None::<Value>) }).build();
    let control = worker.control().clone();
    let (stop, stopped) = watch::channel(false);
    let running = tokio::spawn(worker.run_until(stopped));
    while control.stats().polls < 40 {
        tokio::time::sleep(often).await;
    }
    let (spared, statements) = served.tally().await.context("it serves")?;
    assert!(statements < 15 && spared > 25, "{statements} statements, {spared} spared");
    stop.send_replace(true);
    running.await??;
    Ok(())
}
