//! Workers that crash or are suspended while they hold items, against PostgreSQL.

use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use gleaner::transport::DirectQueue;
use gleaner::worker::{Job, Worker};
use gleaner::{Claim, Completion, Held};
use serde_json::{Value, json};
use tokio::process::{Child, Command};
use tokio::sync::{mpsc, watch};

use crate::world::{World, jobs, world};

/// One of three items had started: only that one can be what crashed the worker.
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
    assert_eq!(w.count("select count(*) from gleaner.jobs where status = 'running'").await?, 3, "the crash was not reported");
    w.age("jobs", "10 minutes").await?;
    let mut taken = 0;
    // Rows that lost a lease are claimed alone.
    for _ in 0..3 {
        taken += queue.claim(&Claim::by("heir").limit(5)).await?.items.len();
    }
    assert_eq!(taken, 3);
    assert_eq!(w.text("select string_agg(id::text, ' ') from gleaner.jobs where lost = 1").await?, Some(begun));
    assert_eq!(w.count("select count(*) from gleaner.jobs where lost = 0").await?, 2);
    Ok(())
}

/// A worker process: two items, whose results are ready when the gate is open. Does nothing unless the test below starts it.
#[tokio::test]
async fn is_a_worker_process_when_started_as_one() -> Result<()> {
    let Ok(url) = std::env::var("GLEANER_WORK") else { return Ok(()) };
    let queue = gleaner::Queue::open(&gleaner::pool(&url, 4)?, "jobs").await?;
    // Notifications and the regular check would report it too; here only its clock does.
    let worker = Worker::builder(Arc::new(DirectQueue::new(queue, None))).watch(Duration::from_secs(1000)).take(2).otherwise(
        move |_: Job<Value>| {
            let url = url.clone();
            async move {
                let client = gleaner::connect(&url).await?;
                while client.query_one("select not exists (select from gate)", &[]).await?.get(0) {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                Ok(json!({"by": "the sleeper"}))
            }
        },
    );
    let (_stop, stopped) = watch::channel(false);
    let tally = worker.build().run_until(stopped).await?;
    assert_eq!((tally.completed, tally.lost), (1, 1));
    Ok(())
}

async fn signal(worker: &Child, name: &str) -> Result<()> {
    let pid = worker.id().context("it has ended")?;
    Command::new("sh").args(["-c", &format!("kill -{name} {pid}")]).status().await?;
    Ok(())
}

async fn running(w: &World) -> Result<i64> {
    w.count("select count(*) from gleaner.jobs where status = 'running'").await
}

/// SIGSTOP, like closing a laptop. Results of rows that were claimed by others meanwhile are not even sent; the others are completed.
#[tokio::test]
async fn a_process_that_stood_still_does_not_send_what_was_taken_meanwhile() -> Result<()> {
    let w = world().await?;
    w.run("create table gate ()").await?;
    let queue = w.queue("jobs").await?;
    let keys: Vec<String> = queue.enqueue(&jobs("any", 2)).await?.into_iter().map(|item| item.key).collect();
    let mut worker = Command::new(std::env::current_exe()?)
        .args(["--exact", "crashing::is_a_worker_process_when_started_as_one", "--test-threads=1"])
        .env("GLEANER_WORK", w.url())
        .stdout(Stdio::null())
        .kill_on_drop(true)
        .spawn()?;
    while running(&w).await? < 2 {
        anyhow::ensure!(worker.try_wait()?.is_none(), "the worker has ended");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    signal(&worker, "STOP").await?;
    queue.requeue(&[&keys[1]]).await?;
    let other = queue.claim(&Claim::by("other")).await?.items.remove(0);
    w.run("insert into gate default values").await?;
    // Longer than the process takes for a pause of the machine. Its clock cannot be moved: it is really stopped.
    tokio::time::sleep(Duration::from_secs(9)).await;
    signal(&worker, "CONT").await?;
    let ended = tokio::time::timeout(Duration::from_secs(30), worker.wait()).await.context("the worker does not end")??;
    assert!(ended.success());
    assert_eq!(w.text("select string_agg(id::text, ' ') from gleaner.jobs where status = 'done'").await?.as_ref(), Some(&keys[0]));
    assert_eq!(w.count("select count(*) from gleaner.late_result").await?, 0, "the lost result was sent");
    queue.complete(&[Completion::new(Held::new(&keys[1], other.lease), None)]).await?;
    assert_eq!(running(&w).await?, 0);
    Ok(())
}
