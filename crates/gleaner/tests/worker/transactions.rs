//! A handler that completes its item in its own transaction, against PostgreSQL: the work and its completion are committed together.

use std::sync::Arc;

use anyhow::{Context as _, Result};
use gleaner::transport::DirectQueue;
use gleaner::worker::{Builder, Job, Tally, Worker};
use gleaner::{Claim, Completion, Failure, Held, Queue};
use serde_json::{Value, json};
use tokio::sync::{Notify, watch};
use tokio_postgres::Client;

use crate::world::{World, jobs, world};

async fn a_job() -> Result<(World, Queue, Builder)> {
    let w = world().await?;
    w.run("create table effect (key text)").await?;
    let queue = w.queue("jobs").await?;
    queue.enqueue(&jobs("any", 1)).await?;
    let worker = Worker::builder(Arc::new(DirectQueue::new(queue.clone(), None))).take(1);
    Ok((w, queue, worker))
}

async fn run(worker: Builder) -> Result<Tally> {
    let (_stop, stopped) = watch::channel(false);
    let run = worker.build().run_until(stopped);
    Ok(tokio::time::timeout(std::time::Duration::from_secs(20), run).await.context("the worker does not end")??)
}

/// The effect of the work.
async fn take_effect(client: &impl tokio_postgres::GenericClient, key: &str) -> Result<(), Failure> {
    client.execute("insert into effect values ($1)", &[&key]).await?;
    Ok(())
}

async fn connect(url: &str) -> Result<Client, Failure> {
    Ok(gleaner::connect(url).await?)
}

/// Effects, completed items, items to be retried after a failure.
async fn counts(w: &World) -> Result<[i64; 3]> {
    Ok([
        w.count("select count(*) from effect").await?,
        w.count("select count(*) from gleaner.jobs where status = 'done'").await?,
        w.count("select count(*) from gleaner.jobs where status <> 'done' and attempts = 1 and due_at < now() + interval '1 day'").await?,
    ])
}

#[tokio::test]
async fn the_work_and_its_completion_are_committed_together_and_once() -> Result<()> {
    let (w, _, worker) = a_job().await?;
    let url = w.url().to_owned();
    let worker = worker.otherwise(move |job: Job<Value>| {
        let url = url.clone();
        async move {
            let mut client = connect(&url).await?;
            let tx = client.transaction().await?;
            take_effect(&tx, job.key()).await?;
            let completed = job.complete_in(&tx, json!({"by": "the handler"})).await?;
            tx.commit().await?;
            Ok(completed)
        }
    });
    assert_eq!(run(worker).await?, Tally { completed: 1, ..Tally::default() });
    assert_eq!(counts(&w).await?, [1, 1, 0]);
    assert_eq!(w.text("select result ->> 'by' from gleaner.jobs").await?.as_deref(), Some("the handler"));
    assert_eq!(w.count("select count(*) from gleaner.late_result").await?, 0);
    Ok(())
}

#[tokio::test]
async fn a_rollback_leaves_the_item_uncompleted() -> Result<()> {
    let (w, _, worker) = a_job().await?;
    let url = w.url().to_owned();
    let worker = worker.otherwise(move |job: Job<Value>| {
        let url = url.clone();
        async move {
            let mut client = connect(&url).await?;
            let tx = client.transaction().await?;
            take_effect(&tx, job.key()).await?;
            let completed = job.complete_in(&tx, json!({"by": "the handler"})).await?;
            // The transaction is dropped when the handler returns.
            tx.batch_execute("select 1 / 0").await?;
            tx.commit().await?;
            Ok(completed)
        }
    });
    assert_eq!(run(worker).await?, Tally { failed: 1, ..Tally::default() });
    assert_eq!(counts(&w).await?, [0, 0, 1]);
    let error = w.text("select error ->> 'message' from gleaner.jobs").await?;
    assert!(error.as_deref().is_some_and(|error| error.contains("division by zero")), "{error:?}");
    Ok(())
}

/// A handler that claims to have completed the item when it has not: a bug, but no reason to lose the item.
#[tokio::test]
async fn a_completion_that_was_not_committed_is_a_failure() -> Result<()> {
    let (w, _, worker) = a_job().await?;
    let url = w.url().to_owned();
    let worker = worker.otherwise(move |job: Job<Value>| {
        let url = url.clone();
        async move {
            let mut client = connect(&url).await?;
            let tx = client.transaction().await?;
            take_effect(&tx, job.key()).await?;
            let completed = job.complete_in(&tx, ()).await?;
            tx.rollback().await?;
            Ok(completed)
        }
    });
    assert_eq!(run(worker).await?, Tally { failed: 1, ..Tally::default() });
    assert_eq!(counts(&w).await?, [0, 0, 1]);
    let error = w.text("select error ->> 'message' from gleaner.jobs").await?;
    assert!(error.as_deref().is_some_and(|error| error.contains("not committed")), "{error:?}");
    Ok(())
}

#[tokio::test]
async fn work_whose_lease_was_lost_takes_no_effect() -> Result<()> {
    let (w, queue, worker) = a_job().await?;
    let url = w.url().to_owned();
    let (begun, taken) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (tell, wait) = (begun.clone(), taken.clone());
    let worker = worker.otherwise(move |job: Job<Value>| {
        let (url, begun, taken) = (url.clone(), tell.clone(), wait.clone());
        async move {
            let mut client = connect(&url).await?;
            let tx = client.transaction().await?;
            take_effect(&tx, job.key()).await?;
            begun.notify_one();
            taken.notified().await;
            let completed = job.complete_in(&tx, ()).await?;
            tx.commit().await?;
            Ok(completed)
        }
    });
    let run = tokio::spawn(run(worker));
    begun.notified().await;
    let key = w.text("select id::text from gleaner.jobs").await?.unwrap_or_default();
    queue.requeue(&[&key]).await?;
    let other = queue.claim(&Claim::by("other")).await?.items.remove(0);
    taken.notify_one();
    assert_eq!(run.await??, Tally { lost: 1, ..Tally::default() });
    assert_eq!(counts(&w).await?, [0, 0, 0]);
    queue.complete(&[Completion::new(Held::new(&key, other.lease), None)]).await?;
    assert_eq!(counts(&w).await?, [0, 1, 0]);
    Ok(())
}
