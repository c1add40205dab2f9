//! What a worker with nothing to do costs the database.

use std::time::Duration;

use anyhow::Result;
use gleaner::worker::Options;
use gleaner::{Queue, Worker};
use tokio::sync::watch;

use crate::quiet;
use crate::report::Report;
use crate::stage::Stage;

pub async fn measure(stage: &Stage, report: &mut Report) -> Result<()> {
    stage.clear().await?;
    let pool = gleaner::pool(&stage.url, 2)?;
    let queue = Queue::open(&pool, "jobs").await?;
    let (stop, stopped) = watch::channel(false);
    let running = tokio::spawn(Worker::new(queue, Some(&stage.url), Options::default()).run(|_, _| async { Ok(None) }, stopped));
    // Past the first looks, when the pace is that of a worker that has been idle for long.
    tokio::time::sleep(Duration::from_secs(if stage.quick { 5 } else { 65 })).await;
    let statements = quiet::statements_per_minute(stage, stage.seconds(120).max(30)).await?;
    stop.send_replace(true);
    running.await??;
    report.figure("idle worker, statements (aim at most 2)", statements, "/min");
    Ok(())
}
