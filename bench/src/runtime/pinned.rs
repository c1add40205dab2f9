//! The effect of a forgotten open transaction on `Worker` and `Queue`, compared with pgmq: both work in turns under the same open
//! transaction.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;
use tokio::sync::watch;

use super::library::{self, Setup, job};
use crate::peer::{Peer, Reader};
use crate::raw::Finish;
use crate::report::Report;
use crate::rounds::Rounds;
use crate::stage::Stage;

/// The number of jobs enqueued at once, and the most that wait.
const CHUNK: u64 = 10_000;
const AHEAD: u64 = 100_000;
/// Each alternative has the same number of turns, so that its first and last turn are a minute of its own work apart.
const TURNS: usize = 6;

pub(crate) async fn measure(stage: &Stage, report: &mut Report) -> Result<()> {
    let turn = Duration::from_secs(if stage.quick { 2 } else { 10 });
    let peer = Peer::set(stage, report).await?;
    let (ours_free, theirs_free) = turns(stage, peer.as_ref(), turn, false).await?;
    let (ours, theirs) = turns(stage, peer.as_ref(), turn, true).await?;
    tell(report, "Worker", &ours_free, &ours, turn, Some(0.9));
    if let Some(peer) = peer {
        peer.strike().await?;
        tell(report, "pgmq", &theirs_free, &theirs, turn, None);
        report.ratio("Worker, pinned horizon, last turn", ours.last(), "/s", theirs.last(), "pgmq", None);
    }
    Ok(())
}

fn tell(report: &mut Report, who: &str, free: &Rounds, pinned: &Rounds, turn: Duration, aim: Option<f64>) {
    let seconds = turn.as_secs();
    report.figure(format!("{who}, continuous work, unpinned"), free.median(), "/s");
    report.figure(format!("{who}, pinned horizon, first {seconds} s"), pinned.first(), "/s");
    report.ratio(
        format!("{who}, pinned horizon, last {seconds} s of {}", TURNS as u64 * seconds),
        pinned.last(),
        "/s",
        pinned.first(),
        "the first",
        aim,
    );
    report.ratio(format!("{who}, pinned horizon, all turns"), pinned.median(), "/s", free.median(), "unpinned", aim);
}

/// Rates of both, turn by turn.
async fn turns(stage: &Stage, peer: Option<&Peer<'_>>, turn: Duration, pin: bool) -> Result<(Rounds, Rounds)> {
    stage.clear().await?;
    if let Some(peer) = peer {
        peer.clear().await?;
    }
    let pinning = stage.connect().await?;
    if pin {
        pinning.batch_execute("begin isolation level repeatable read; select count(*) from gleaner.queue").await?;
    }
    let (mut ours, mut theirs) = (Rounds::default(), Rounds::default());
    let (waiting, their_waiting) = (Arc::new(AtomicU64::new(0)), AtomicU64::new(0));
    for _ in 0..TURNS {
        ours.add(ours_for(stage, turn, &waiting).await?);
        if let Some(peer) = peer {
            theirs.add(theirs_for(stage, peer, turn, &their_waiting).await?);
        }
    }
    drop(pinning);
    Ok((ours, theirs))
}

/// Keeps enough jobs waiting, without an ever longer queue.
async fn feed(begun: Instant, turn: Duration, waiting: &AtomicU64, put: impl AsyncFn() -> Result<()>) -> Result<()> {
    while begun.elapsed() < turn {
        if waiting.load(Ordering::Relaxed) < AHEAD {
            put().await?;
            waiting.fetch_add(CHUNK, Ordering::Relaxed);
        } else {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
    Ok(())
}

/// Fills the queue at the start of each turn, so that no time is spent waiting.
async fn fill(waiting: &AtomicU64, put: &impl AsyncFn() -> Result<()>) -> Result<()> {
    while waiting.load(Ordering::Relaxed) < AHEAD {
        put().await?;
        waiting.fetch_add(CHUNK, Ordering::Relaxed);
    }
    Ok(())
}

/// Enqueues and works concurrently for one turn; jobs completed per second.
async fn ours_for(stage: &Stage, turn: Duration, waiting: &Arc<AtomicU64>) -> Result<f64> {
    let queue = library::jobs(&stage.url, 1).await?;
    let items: Vec<_> = (0..CHUNK).map(job).collect();
    let put = async || Ok(queue.enqueue_copy(&items).await.map(|_| ())?);
    fill(waiting, &put).await?;
    let (stop, stopped) = watch::channel(false);
    let left = waiting.clone();
    let handled = move |_: &serde_json::Value| {
        left.fetch_sub(1, Ordering::Relaxed);
    };
    let begun = Instant::now();
    let working = library::run(&stage.url, "jobs", Setup::default(), handled, stopped).await?;
    feed(begun, turn, waiting, put).await?;
    stop.send_replace(true);
    Ok(working.await?? as f64 / begun.elapsed().as_secs_f64())
}

/// The same with pgmq.
async fn theirs_for(stage: &Stage, peer: &Peer<'_>, turn: Duration, waiting: &AtomicU64) -> Result<f64> {
    let feeder = stage.connect().await?;
    let reader = Reader::connect(&stage.url, Finish::Delete).await?;
    let put = async || peer.send_many(&feeder, CHUNK as usize).await;
    fill(waiting, &put).await?;
    let begun = Instant::now();
    let reading = async {
        let mut total = 0;
        // A drain ends when it finds no message, and more may follow.
        while begun.elapsed() < turn {
            let mut before = 0;
            total += reader
                .drain(|done| {
                    waiting.fetch_sub(done - before, Ordering::Relaxed);
                    before = done;
                    begun.elapsed() < turn
                })
                .await?;
        }
        anyhow::Ok(total)
    };
    let (total, ()) = tokio::try_join!(reading, feed(begun, turn, waiting, put))?;
    Ok(total as f64 / begun.elapsed().as_secs_f64())
}
