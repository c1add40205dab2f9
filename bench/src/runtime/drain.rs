//! `Worker` with a handler that does nothing, compared with pgmq's read and delete loop.

use std::time::Instant;

use anyhow::{Result, ensure};
use futures_util::future::try_join_all;

use super::library::{self, Setup};
use crate::agent::{At, Crowd, Task};
use crate::drain::{lay_jobs, prepare_jobs};
use crate::peer::Peer;
use crate::raw::Finish;
use crate::report::Report;
use crate::rounds::Rounds;
use crate::stage::Stage;

const PREFETCH: usize = 2000;

pub(crate) async fn measure(stage: &Stage, report: &mut Report) -> Result<()> {
    let peer = Peer::set(stage, report).await?;
    one_process(stage, report, peer.as_ref()).await?;
    processes(stage, report, peer.as_ref(), 4).await?;
    match peer {
        Some(peer) => peer.strike().await,
        None => Ok(()),
    }
}

async fn one_process(stage: &Stage, report: &mut Report, peer: Option<&Peer<'_>>) -> Result<()> {
    let n = stage.rows(100_000);
    let ahead = Setup { prefetch: PREFETCH, ..Setup::default() };
    let (mut inserted, mut copied, mut prefetched, mut theirs) =
        (Rounds::default(), Rounds::default(), Rounds::default(), Rounds::default());
    for _ in stage.rounds() {
        prepare_jobs(stage, n).await?;
        inserted.add(library::drain(stage, "jobs", Setup::default(), n).await?);
        lay_jobs(stage, n).await?;
        copied.add(library::drain(stage, "jobs", Setup::default(), n).await?);
        lay_jobs(stage, n).await?;
        prefetched.add(library::drain(stage, "jobs", ahead, n).await?);
        if let Some(peer) = peer {
            theirs.add(peer.drain(n, 1, Finish::Delete).await?);
        }
    }
    let (inserted, copied) = (inserted.median(), copied.median());
    let (by_insert, by_copy) = ("Worker, jobs inserted one by one, 1 process", "Worker, jobs by enqueue_copy, 1 process");
    if peer.is_some() {
        report.figure("pgmq read and delete, 1 process", theirs.median(), "/s");
        report.ratio(by_insert, inserted, "/s", theirs.median(), "pgmq", Some(1.2));
        report.ratio(by_copy, copied, "/s", theirs.median(), "pgmq", Some(1.2));
    } else {
        report.figure(by_insert, inserted, "/s");
        report.figure(by_copy, copied, "/s");
    }
    let what = format!("Worker with .prefetch({PREFETCH}), jobs by enqueue_copy, 1 process");
    report.ratio(what, prefetched.median(), "/s", copied, "without prefetch", Some(1.0));
    Ok(())
}

async fn processes(stage: &Stage, report: &mut Report, peer: Option<&Peer<'_>>, processes: usize) -> Result<()> {
    let n = stage.rows(200_000);
    let at = At::database(stage);
    let (mut ours, mut theirs) = (Rounds::default(), Rounds::default());
    for _ in stage.rounds() {
        lay_jobs(stage, n).await?;
        ours.add(together(&at, n, processes, Task::Drain).await?);
        if let Some(peer) = peer {
            peer.clear().await?;
            peer.fill(n).await?;
            theirs.add(together(&at, n, processes, Task::Pgmq).await?);
        }
    }
    let what = format!("Worker, jobs by enqueue_copy, {processes} processes");
    if peer.is_some() {
        report.figure(format!("pgmq read and delete, {processes} processes"), theirs.median(), "/s");
        report.ratio(what, ours.median(), "/s", theirs.median(), "pgmq", Some(2.0));
    } else {
        report.figure(what, ours.median(), "/s");
    }
    Ok(())
}

/// Items per second of separate processes, from the start signal until the last has ended.
pub(crate) async fn together(at: &At, items: usize, processes: usize, task: Task) -> Result<f64> {
    let mut crowds = try_join_all((0..processes).map(|_| Crowd::gather(at, 1, task))).await?;
    let begun = Instant::now();
    for crowd in &mut crowds {
        crowd.go().await?;
    }
    let done: u64 = try_join_all(crowds.into_iter().map(Crowd::end)).await?.iter().sum();
    let took = begun.elapsed();
    ensure!(done == items as u64, "of {items} items {done} were completed");
    Ok(done as f64 / took.as_secs_f64())
}
