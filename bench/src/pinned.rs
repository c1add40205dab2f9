//! The effect of a forgotten open transaction: dead index entries pile up at the head of the queue and cannot be removed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;
use futures_util::future::try_join_all;
use gleaner::{Acts, Claim, Completion, Queue};
use serde_json::json;

use crate::drain::BATCH;
use crate::report::Report;
use crate::stage::Stage;

pub(crate) async fn measure(stage: &Stage, report: &mut Report) -> Result<()> {
    let seconds = stage.seconds(60).max(20);
    let slice = seconds / 6;
    let free = minute(stage, seconds, false).await?;
    let pinned = minute(stage, seconds, true).await?;
    let part = |rates: &[f64], range: std::ops::Range<u64>| {
        let some = &rates[range.start as usize..(range.end as usize).min(rates.len())];
        some.iter().sum::<f64>() / some.len().max(1) as f64
    };
    let (first, last) = (part(&pinned, 0..slice), part(&pinned, seconds - slice..seconds));
    let whole = part(&pinned, 0..seconds);
    let unpinned = part(&free, 0..seconds);
    report.figure(format!("continuous work, {seconds} s, unpinned"), unpinned, "/s");
    report.figure(format!("pinned horizon, first {slice} s"), first, "/s");
    report.ratio(format!("pinned horizon, last {slice} s"), last, "/s", first, format!("the first {slice} s"), Some(0.8));
    report.ratio(format!("pinned horizon, all {seconds} s"), whole, "/s", unpinned, "the same time unpinned", Some(0.8));
    Ok(())
}

/// Enqueues and drains concurrently for `seconds`; jobs completed in each second.
async fn minute(stage: &Stage, seconds: u64, pin: bool) -> Result<Vec<f64>> {
    stage.clear().await?;
    stage.fill_jobs(stage.rows(100_000)).await?;
    let pinning = stage.connect().await?;
    if pin {
        pinning.batch_execute("begin isolation level repeatable read; select count(*) from gleaner.queue").await?;
    }
    let begun = Instant::now();
    let done = Arc::new(AtomicU64::new(0));
    let until = Duration::from_secs(seconds);
    let waiting = Arc::new(AtomicU64::new(stage.rows(100_000) as u64));
    let feeder = {
        let (url, waiting) = (stage.url.clone(), waiting.clone());
        tokio::spawn(async move {
            let queue = Queue::open(&gleaner::pool(&url, 1)?, "jobs").await?;
            let items: Vec<_> = (0..10_000).map(|_| json!({"kind": "bench", "payload": {"n": 1}})).collect();
            while begun.elapsed() < until {
                // Keeps enough jobs waiting at all times, without an ever longer queue.
                if waiting.load(Ordering::Relaxed) < 100_000 {
                    queue.enqueue_copy(&items).await?;
                    waiting.fetch_add(10_000, Ordering::Relaxed);
                } else {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
            }
            anyhow::Ok(())
        })
    };
    let workers = (0..2).map(|c| {
        let (done, waiting) = (done.clone(), waiting.clone());
        async move {
            let client = stage.connect().await?;
            let acts = Acts::of(&client, "jobs").await?;
            let claim = Claim::by(format!("bench-{c}")).limit(BATCH);
            while begun.elapsed() < until {
                let items = acts.claim(&client, &claim).await?.items;
                let results: Vec<_> = items.iter().map(|i| Completion::new(i.held(), None)).collect();
                if !results.is_empty() {
                    let n = acts.complete(&client, &results).await?.len() as u64;
                    done.fetch_add(n, Ordering::Relaxed);
                    waiting.fetch_sub(n.min(waiting.load(Ordering::Relaxed)), Ordering::Relaxed);
                }
            }
            anyhow::Ok(())
        }
    });
    let counter = async {
        let mut rates = Vec::new();
        let mut last = 0;
        for second in 1..=seconds {
            tokio::time::sleep_until((begun + Duration::from_secs(second)).into()).await;
            let now = done.load(Ordering::Relaxed);
            rates.push((now - last) as f64);
            last = now;
        }
        anyhow::Ok(rates)
    };
    let (rates, _) = tokio::try_join!(counter, try_join_all(workers))?;
    feeder.await??;
    drop(pinning);
    Ok(rates)
}
