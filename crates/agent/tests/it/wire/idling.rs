//! Agents with nothing to do.

use std::time::Duration;

use anyhow::{Context as _, Result};
use gleaner::Claim;
use gleaner::queue::Waiting;
use gleaner::worker::{Job, Poll, Worker};
use serde_json::Value;
use tokio::sync::watch;

use crate::conformance::stage::{Over, stage};

/// The server answers claims that must find nothing from memory, however many clients ask and however often.
#[tokio::test]
async fn empty_claims_are_answered_without_the_database() -> Result<()> {
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

/// The page of an agent requests the number of waiting items as long as it is open. After a claim found nothing, no count is
/// needed.
#[tokio::test]
async fn an_agent_knows_what_waits_and_asks_the_server_only_when_something_does() -> Result<()> {
    let stage = stage(Over::Native).await?;
    let served = stage.served.as_ref().context("served")?;
    let jobs = stage.open("jobs").await?;
    let claim = Claim::by("laptop");
    stage.world.client.batch_execute("insert into gleaner.jobs (kind) select 'any' from generate_series(1, 7)").await?;
    assert_eq!(jobs.waiting(&claim).await?, Some(Waiting { count: 7, capped: false }));
    let taken = jobs.claim(&Claim { limit: 10, ..claim.clone() }).await?;
    assert_eq!(taken.items.len(), 7);
    assert!(jobs.claim(&claim).await?.items.is_empty());
    let before = served.counted().await.context("it serves")?;
    for _ in 0..50 {
        assert_eq!(jobs.waiting(&claim).await?, Some(Waiting::default()));
    }
    assert_eq!(served.counted().await, Some(before), "counted although nothing can be there");
    Ok(())
}
