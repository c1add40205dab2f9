//! The load of an idle worker on the database.

use std::time::Duration;

use anyhow::Result;
use gleaner::{Direct, Job};
use serde_json::Value;
use tokio::sync::watch;

use crate::quiet;
use crate::report::Report;
use crate::stage::Stage;

pub(crate) async fn measure(stage: &Stage, report: &mut Report) -> Result<()> {
    stage.clear().await?;
    let worker = Direct::new(&stage.url, 2)?.worker("jobs").await?.otherwise(|_: Job<Value>| async { Ok(()) }).build();
    let (stop, stopped) = watch::channel(false);
    let running = tokio::spawn(worker.run_until(stopped));
    // After the first polls, when the interval is that of a worker that has been idle for long.
    tokio::time::sleep(Duration::from_secs(if stage.quick { 5 } else { 65 })).await;
    let statements = quiet::statements_per_minute(stage, stage.seconds(120).max(30)).await?;
    stop.send_replace(true);
    running.await??;
    report.figure("idle worker, statements (aim at most 2)", statements, "/min");
    Ok(())
}
