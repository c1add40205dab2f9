//! The load on the database while there are no requests.

use std::time::Duration;

use anyhow::Result;

use crate::stage::Stage;

/// Statements per minute of all other sessions on the database, counted for `seconds`. Each statement of ours is its own
/// transaction.
pub(crate) async fn statements_per_minute(stage: &Stage, seconds: u64) -> Result<f64> {
    // Sessions report their statistics within ten seconds. What came before must not be counted.
    tokio::time::sleep(Duration::from_secs(12)).await;
    let watcher = stage.connect().await?;
    let count = || async {
        // This session's own two statements are subtracted.
        watcher.batch_execute("select pg_stat_clear_snapshot()").await?;
        anyhow::Ok(
            watcher
                .query_one("select sum(xact_commit + xact_rollback)::int8 from pg_stat_database where datname = current_database()", &[])
                .await?
                .get::<_, i64>(0),
        )
    };
    // Autovacuum's own transactions would be counted as those of other sessions.
    watcher.batch_execute("alter system set autovacuum = off").await?;
    watcher.batch_execute("select pg_reload_conf()").await?;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let before = count().await?;
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    let after = count().await?;
    watcher.batch_execute("alter system reset autovacuum").await?;
    watcher.batch_execute("select pg_reload_conf()").await?;
    Ok((after - before - 2).max(0) as f64 * 60.0 / seconds as f64)
}
