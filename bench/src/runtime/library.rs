//! The library as its users call it. Of these benchmarks only this file builds workers and queues.

use std::sync::Arc;
use std::time::Instant;

use anyhow::{Result, ensure};
use gleaner::Queue;
use gleaner::transport::{Direct, Endpoint as _};
use gleaner::worker::{Builder, Job, Worker};
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::drain::BATCH;
use crate::stage::Stage;

/// How a worker is set up.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Setup {
    /// The connections of its pool. It listens on one more.
    pub connections: usize,
    /// Concurrent handlers: as many as the hand-written loops claim.
    pub concurrency: usize,
    /// Items claimed beyond that.
    pub prefetch: usize,
}

impl Default for Setup {
    fn default() -> Self {
        Self { connections: 4, concurrency: BATCH as usize, prefetch: 0 }
    }
}

/// A worker without a handler.
pub(crate) async fn worker(url: &str, queue: &str, setup: Setup) -> Result<Builder> {
    let transport = Direct::new(url, setup.connections)?.open(queue).await?;
    let builder = Worker::builder(transport).concurrency(setup.concurrency);
    // Not called without prefetch, so that the default is measured.
    Ok(if setup.prefetch > 0 { builder.prefetch(setup.prefetch) } else { builder })
}

/// Runs `n` items through a handler that does nothing; items per second, from the start of the worker to its end.
pub(crate) async fn drain(stage: &Stage, queue: &str, setup: Setup, n: usize) -> Result<f64> {
    let worker = worker(&stage.url, queue, setup).await?.take(n).otherwise(no_op).build();
    let (_stop, stopped) = watch::channel(false);
    let begun = Instant::now();
    let done = worker.run_until(stopped).await?.completed;
    let took = begun.elapsed();
    ensure!(done == n as u64, "of {n} items {done} were completed");
    Ok(done as f64 / took.as_secs_f64())
}

/// The handler that does nothing.
pub(crate) async fn no_op(_: Job<Value>) -> Result<Option<Value>, gleaner::Failure> {
    Ok(None)
}

/// A worker that calls `picked` with the payload of each job; it runs until stopped.
pub(crate) async fn run(
    url: &str,
    queue: &str,
    setup: Setup,
    picked: impl Fn(&Value) + Send + Sync + 'static,
    stopped: watch::Receiver<bool>,
) -> Result<tokio::task::JoinHandle<gleaner::Result<u64>>> {
    let picked = Arc::new(picked);
    let handler = move |job: Job<Value>| {
        let picked = picked.clone();
        async move {
            picked(&job.payload);
            Ok(None::<Value>)
        }
    };
    let worker = worker(url, queue, setup).await?.otherwise(handler).build();
    Ok(tokio::spawn(async move { Ok(worker.run_until(stopped).await?.completed) }))
}

/// The queue `jobs` for programs that enqueue.
pub(crate) async fn jobs(url: &str, connections: usize) -> Result<Queue> {
    Ok(Queue::open(&gleaner::pool(url, connections)?, "jobs").await?)
}

/// One job.
pub(crate) fn job(n: u64) -> Value {
    json!({"kind": "bench", "payload": {"n": n}})
}
