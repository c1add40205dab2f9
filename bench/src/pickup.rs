//! The time from the commit of an enqueue until a waiting worker runs its handler.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use gleaner::notify::Notifier;
use gleaner::transport::{DirectQueue, Transport};
use gleaner::worker::Job;
use gleaner::{Queue, Worker};
use hdrhistogram::Histogram;
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};

use crate::report::Report;
use crate::stage::Stage;

pub(crate) async fn measure(stage: &Stage, report: &mut Report) -> Result<()> {
    stage.clear().await?;
    let queue = Queue::open(&gleaner::pool(&stage.url, 6)?, "jobs").await?;
    let latency = latency(stage, Arc::new(DirectQueue::new(queue, Some(&stage.url)))).await?;
    report.figure("pickup latency p50 (aim 2 ms)", latency.value_at_quantile(0.5) as f64 / 1000.0, "ms");
    report.figure("pickup latency p99 (aim 10 ms)", latency.value_at_quantile(0.99) as f64 / 1000.0, "ms");
    Ok(())
}

/// In microseconds, for a worker that reaches its queue by `transport`.
pub(crate) async fn latency(stage: &Stage, transport: Arc<dyn Transport>) -> Result<Histogram<u64>> {
    let pool = gleaner::pool(&stage.url, 6)?;
    let queue = Queue::open(&pool, "jobs").await?;
    let bell = Notifier::new(pool.clone());
    let (stop, stopped) = watch::channel(false);
    let (picked, mut picks) = mpsc::unbounded_channel::<Instant>();
    let picked = Arc::new(picked);
    let handler = move |_: Job<Value>| {
        let picked = picked.clone();
        async move {
            let _ = picked.send(Instant::now());
            Ok(())
        }
    };
    let running = tokio::spawn(Worker::builder(transport).otherwise(handler).build().run_until(stopped));
    tokio::time::sleep(Duration::from_secs(2)).await;
    let mut latency = Histogram::<u64>::new(3)?;
    for i in 0..if stage.quick { 200 } else { 1000 } {
        queue.enqueue(&[json!({"kind": "bench", "payload": {"n": i}})]).await?;
        bell.notify("jobs");
        let committed = Instant::now();
        let Some(at) = picks.recv().await else { break };
        latency.record(u64::try_from(at.saturating_duration_since(committed).as_micros())?)?;
        // Irregular, so that it does not align with the interval of notifications.
        tokio::time::sleep(Duration::from_micros(30_000 + (i * 7919) % 20_000)).await;
    }
    stop.send_replace(true);
    running.await??;
    Ok(latency)
}
