//! The time from the commit of an enqueue until a waiting agent runs its handler.

use anyhow::Result;

use super::crowd::At;
use crate::pickup;
use crate::report::Report;
use crate::serving::Serving;
use crate::stage::Stage;

pub(super) async fn measure(stage: &Stage, report: &mut Report, serving: &Serving) -> Result<()> {
    for (at, way) in [(At::database(stage), "direct"), (At::server(serving), "wire")] {
        stage.clear().await?;
        let latency = pickup::latency(stage, at.place()?.open("jobs").await?).await?;
        for (quantile, name) in [(0.5, "p50"), (0.99, "p99")] {
            report.figure(format!("agent, pickup latency {name}, {way}"), latency.value_at_quantile(quantile) as f64 / 1000.0, "ms");
        }
    }
    Ok(())
}
