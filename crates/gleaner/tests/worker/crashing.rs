//! Workers that go down with items in hand, against PostgreSQL.

use std::sync::Arc;

use anyhow::Result;
use gleaner::Claim;
use gleaner::transport::DirectQueue;
use gleaner::worker::{Job, Worker};
use serde_json::Value;
use tokio::sync::{mpsc, watch};

use crate::world::{jobs, world};

/// Of three items one had begun: only it may be the one that brings workers down.
#[tokio::test]
async fn a_crash_counts_against_what_had_begun_and_not_against_what_waited() -> Result<()> {
    let w = world().await?;
    let queue = w.queue("jobs").await?;
    queue.enqueue(&jobs("any", 3)).await?;
    let (begin, mut begins) = mpsc::unbounded_channel();
    let worker =
        Worker::builder(Arc::new(DirectQueue::new(queue.clone(), None))).concurrency(1).prefetch(2).otherwise(move |job: Job<Value>| {
            let _ = begin.send(job.key().to_owned());
            std::future::pending::<Result<(), _>>()
        });
    let (_stop, stopped) = watch::channel(false);
    let run = tokio::spawn(worker.build().run_until(stopped));
    let begun = begins.recv().await.unwrap_or_default();
    run.abort();
    assert!(run.await.is_err_and(|error| error.is_cancelled()));
    assert_eq!(w.count("select count(*) from gleaner.jobs where status = 'running'").await?, 3, "it told nobody");
    w.age("jobs", "10 minutes").await?;
    let mut taken = 0;
    // What lost a lease travels alone.
    for _ in 0..3 {
        taken += queue.claim(&Claim::by("heir").limit(5)).await?.items.len();
    }
    assert_eq!(taken, 3);
    assert_eq!(w.text("select string_agg(id::text, ' ') from gleaner.jobs where lost = 1").await?, Some(begun));
    assert_eq!(w.count("select count(*) from gleaner.jobs where lost = 0").await?, 2);
    Ok(())
}
