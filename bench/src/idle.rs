//! What a worker with nothing to do costs the database.

use std::time::Duration;

use anyhow::Result;
use gleaner::worker::Options;
use gleaner::{Queue, Worker};
use tokio::sync::watch;

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
    let watcher = stage.connect().await?;
    let statements = || async {
        // Each statement of a worker is a transaction of its own; the watcher's own two are taken off.
        watcher.batch_execute("select pg_stat_clear_snapshot()").await?;
        anyhow::Ok(
            watcher
                .query_one("select sum(xact_commit + xact_rollback)::int8 from pg_stat_database where datname = current_database()", &[])
                .await?
                .get::<_, i64>(0),
        )
    };
    // The vacuum's own transactions would be counted as the worker's.
    watcher.batch_execute("alter system set autovacuum = off").await?;
    watcher.batch_execute("select pg_reload_conf()").await?;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let before = statements().await?;
    let seconds = stage.seconds(120).max(30);
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    let after = statements().await?;
    watcher.batch_execute("alter system reset autovacuum").await?;
    watcher.batch_execute("select pg_reload_conf()").await?;
    stop.send_replace(true);
    running.await??;
    report.figure("idle worker, statements (aim at most 2)", (after - before - 2).max(0) as f64 * 60.0 / seconds as f64, "/min");
    Ok(())
}
