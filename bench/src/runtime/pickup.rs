//! The time from the commit of an enqueue until a waiting worker runs its handler, at a job every 20 ms, compared with pgmq.

use std::time::{Duration, Instant};

use anyhow::Result;
use hdrhistogram::Histogram;
use serde_json::json;
use tokio::sync::{mpsc, watch};
use tokio::time::MissedTickBehavior;

use super::library::{self, Setup, job};
use crate::peer::{Peer, waiter};
use crate::report::Report;
use crate::rounds::Rounds;
use crate::stage::Stage;

const EVERY: Duration = Duration::from_millis(20);
/// How long to wait for the last job of a round. A job that was not picked up by then counts with this time.
const PATIENCE: Duration = Duration::from_secs(20);
/// The time until a worker has polled once and receives notifications.
const SETTLING: Duration = Duration::from_secs(1);

/// How jobs are enqueued.
#[derive(Debug, Clone, Copy)]
enum How {
    Enqueue,
    Copy,
    Pgmq,
}

impl How {
    fn name(self) -> String {
        match self {
            Self::Enqueue => "Queue::enqueue to Worker".into(),
            Self::Copy => "Queue::enqueue_copy to Worker".into(),
            Self::Pgmq => format!("pgmq send to read_with_poll, {} ms", waiter::POLL_MILLISECONDS),
        }
    }
}

#[derive(Debug, Default, Clone)]
struct Latency {
    p50: Rounds,
    p99: Rounds,
    late: f64,
}

pub(crate) async fn measure(stage: &Stage, report: &mut Report) -> Result<()> {
    let jobs = if stage.quick { 100 } else { 500 };
    let peer = Peer::set(stage, report).await?;
    let mut all = vec![(How::Enqueue, Latency::default()), (How::Copy, Latency::default())];
    if peer.is_some() {
        all.push((How::Pgmq, Latency::default()));
    }
    for _ in stage.rounds() {
        for (how, latency) in &mut all {
            stage.clear().await?;
            let (milliseconds, late) = round(stage, *how, peer.as_ref(), jobs).await?;
            latency.p50.add(milliseconds.value_at_quantile(0.5) as f64 / 1000.0);
            latency.p99.add(milliseconds.value_at_quantile(0.99) as f64 / 1000.0);
            latency.late += late as f64;
        }
    }
    if let Some(peer) = peer {
        peer.strike().await?;
    }
    for (how, latency) in all {
        let what = |quantile: &str| format!("pick-up {quantile}, {}", how.name());
        if matches!(how, How::Pgmq) {
            report.figure(what("p50"), latency.p50.median(), "ms");
            report.figure(what("p99"), latency.p99.median(), "ms");
        } else {
            report.at_most(what("p50"), latency.p50.median(), "ms", 3.0);
            report.at_most(what("p99"), latency.p99.median(), "ms", 10.0);
            report.at_most(what(&format!("not within {} s", PATIENCE.as_secs())), latency.late, "jobs", 0.0);
        }
    }
    Ok(())
}

/// Microseconds from commit to handler, and how many were not picked up in time.
async fn round(stage: &Stage, how: How, peer: Option<&Peer<'_>>, jobs: u64) -> Result<(Histogram<u64>, u64)> {
    let (stop, stopped) = watch::channel(false);
    let (picked, picks) = mpsc::unbounded_channel();
    if let (How::Pgmq, Some(peer)) = (how, peer) {
        peer.clear().await?;
        let url = stage.url.clone();
        let waiting = tokio::spawn(async move { waiter::wait(&url, &picked, stopped).await });
        let client = stage.connect().await?;
        let latency = steady(jobs, picks, async |n| peer.send_one(&client, &json!({"n": n})).await).await?;
        stop.send_replace(true);
        waiting.await??;
        return Ok(latency);
    }
    let setup = Setup { concurrency: 4, ..Setup::default() };
    let tell = move |payload: &serde_json::Value| {
        // The receiver is dropped when it has everything.
        let _ = picked.send((payload["n"].as_u64().unwrap_or_default(), Instant::now()));
    };
    let working = library::run(&stage.url, "jobs", setup, tell, stopped).await?;
    let queue = library::jobs(&stage.url, 2).await?;
    let put = async |n| match how {
        How::Copy => anyhow::Ok(queue.enqueue_copy(&[job(n)]).await.map(|_| ())?),
        _ => Ok(queue.enqueue(&[job(n)]).await.map(|_| ())?),
    };
    let latency = steady(jobs, picks, put).await?;
    stop.send_replace(true);
    working.await??;
    Ok(latency)
}

/// Enqueues a job every 20 ms, however long the last took, and waits until all are picked up.
async fn steady(
    jobs: u64,
    mut picks: mpsc::UnboundedReceiver<(u64, Instant)>,
    put: impl AsyncFn(u64) -> Result<()>,
) -> Result<(Histogram<u64>, u64)> {
    tokio::time::sleep(SETTLING).await;
    let mut ticks = tokio::time::interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut committed = Vec::new();
    for n in 0..jobs {
        ticks.tick().await;
        put(n).await?;
        committed.push(Some(Instant::now()));
    }
    let (mut latency, mut left) = (Histogram::<u64>::new(3)?, jobs);
    let until = tokio::time::Instant::now() + PATIENCE;
    while left > 0
        && let Ok(Some((n, at))) = tokio::time::timeout_at(until, picks.recv()).await
    {
        // A job that is picked up before its commit returned counts as zero.
        if let Some(committed) = committed.get_mut(n as usize).and_then(Option::take) {
            latency.record(u64::try_from(at.saturating_duration_since(committed).as_micros())?)?;
            left -= 1;
        }
    }
    latency.record_n(u64::try_from(PATIENCE.as_micros())?, left)?;
    Ok((latency, left))
}
