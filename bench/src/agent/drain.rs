//! The throughput of the runtime, with a handler that does nothing.

use anyhow::Result;

use super::crowd::{At, Task};
use crate::drain;
use crate::report::Report;
use crate::rounds::Rounds;
use crate::runtime::drain::together;
use crate::serving::Serving;
use crate::stage::Stage;

pub(super) async fn measure(stage: &Stage, report: &mut Report, serving: &Serving) -> Result<()> {
    let n = stage.rows(100_000);
    for processes in [1, 4] {
        // Alternating, so that a drift of the machine's speed affects all three alike.
        let mut figures: [Rounds; 3] = Default::default();
        let [engine, direct, wire] = &mut figures;
        for _ in stage.rounds() {
            drain::prepare_jobs(stage, n).await?;
            engine.add(drain::drain(stage, "jobs", processes, None).await?);
            direct.add(by(stage, &At::database(stage), n, processes).await?);
            wire.add(by(stage, &At::server(serving), n, processes).await?);
        }
        let [engine, direct, wire] = figures.map(|rounds| rounds.median());
        let of = |protocol: &str| format!("agent, no-op handler, {processes} processes, {protocol}");
        report.figure(format!("engine's own drain, {processes} connections"), engine, "/s");
        report.ratio(of("direct"), direct, "/s", engine, "the engine's own", None);
        report.ratio(of("wire"), wire, "/s", engine, "the engine's own", None);
    }
    Ok(())
}

/// Items per second, from the start signal until the last process has ended.
async fn by(stage: &Stage, at: &At, items: usize, processes: usize) -> Result<f64> {
    drain::prepare_jobs(stage, items).await?;
    together(at, items, processes, Task::Drain).await
}
