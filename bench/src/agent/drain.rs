//! How fast items pass through the runtime, with a handler that does nothing.

use std::time::Instant;

use anyhow::{Result, ensure};
use futures_util::future::try_join_all;

use super::crowd::{At, Crowd, Task};
use crate::drain;
use crate::report::Report;
use crate::serving::Serving;
use crate::stage::Stage;

pub async fn measure(stage: &Stage, report: &mut Report, serving: &Serving) -> Result<()> {
    let n = stage.rows(100_000);
    for processes in [1, 4] {
        // By turns, so that a machine that drifts drifts under all three alike.
        let (mut engine, mut direct, mut wire) = (0.0, 0.0, 0.0);
        for _ in 0..2 {
            drain::prepare_jobs(stage, n).await?;
            engine += drain::drain(stage, "jobs", processes, None).await? / 2.0;
            direct += by(stage, &At::database(stage), n, processes).await? / 2.0;
            wire += by(stage, &At::server(serving), n, processes).await? / 2.0;
        }
        let of = |way: &str| format!("agent, no-op handler, {processes} processes, {way}");
        report.figure(format!("engine's own drain, {processes} connections"), engine, "/s");
        report.ratio(of("direct"), direct, "/s", engine, "the engine's own", None);
        report.ratio(of("wire"), wire, "/s", engine, "the engine's own", None);
    }
    Ok(())
}

/// Items per second, from the word to begin until the last process has ended.
async fn by(stage: &Stage, at: &At, items: usize, processes: usize) -> Result<f64> {
    drain::prepare_jobs(stage, items).await?;
    let mut crowds = try_join_all((0..processes).map(|_| Crowd::gather(at, 1, Task::Drain))).await?;
    let begun = Instant::now();
    for crowd in &mut crowds {
        crowd.go().await?;
    }
    let done: u64 = try_join_all(crowds.into_iter().map(Crowd::end)).await?.iter().sum();
    let took = begun.elapsed();
    ensure!(done == items as u64, "of {items} items {done} were completed");
    Ok(done as f64 / took.as_secs_f64())
}
