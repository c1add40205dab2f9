//! How fast work passes: claim and complete, fenced, with history kept.

use std::time::Instant;

use anyhow::Result;
use futures_util::future::try_join_all;
use gleaner::{Acts, Claim};

use crate::raw;
use crate::report::Report;
use crate::stage::Stage;

pub const BATCH: i32 = 500;

pub async fn measure(stage: &Stage, report: &mut Report) -> Result<()> {
    let n = stage.rows(200_000);
    for connections in [1, 2, 4] {
        let baseline = (raw::drain(stage, n, connections).await?, prepare_jobs(stage, n).await?).0;
        let ours = drain(stage, "jobs", connections, None).await?;
        let again = raw::drain(stage, n, connections).await?;
        prepare_jobs(stage, n).await?;
        let ours_again = drain(stage, "jobs", connections, None).await?;
        let baseline = f64::midpoint(baseline, again);
        report.figure(format!("raw claim-and-delete loop, {connections} connections"), baseline, "/s");
        report.ratio(
            format!("drain gleaner.jobs, {connections} connections"),
            f64::midpoint(ours, ours_again),
            "/s",
            baseline,
            "the raw loop",
            Some(0.9),
        );
        if connections == 2 {
            let n = stage.rows(50_000);
            fill_activities(stage, n).await?;
            report.ratio(
                "drain activities (wide rows), 2 connections",
                drain(stage, "activities", 2, None).await?,
                "/s",
                baseline,
                "the raw loop",
                None,
            );
        }
    }
    wal(stage, report).await
}

async fn prepare_jobs(stage: &Stage, n: usize) -> Result<()> {
    stage.clear().await?;
    stage.fill_jobs(n).await
}

/// Unowned activities with a payload of about 1.5 kB.
pub async fn fill_activities(stage: &Stage, n: usize) -> Result<()> {
    stage.clear().await?;
    let client = stage.connect().await?;
    client
        .batch_execute(&format!(
            "insert into activities (type, raw_data, metadata, created_at)
             select (array['call', 'email', 'sms'])[1 + g % 3], jsonb_build_object('source_type', 'text', 'content', repeat(md5(g::text), 44)), '{{\"from\": \"unknown\"}}',
                    clock_timestamp() - interval '1 hour' + g * interval '1 microsecond'
             from generate_series(1, {n}) g"
        ))
        .await?;
    Ok(client.batch_execute("vacuum analyze activities").await?)
}

/// Claims and completes batches until the queue is empty, or `most` items are done; items per second.
pub async fn drain(stage: &Stage, queue: &str, connections: usize, most: Option<u64>) -> Result<f64> {
    let mut ready = Vec::new();
    for _ in 0..connections {
        let client = stage.connect().await?;
        let acts = Acts::of(&client, queue).await?;
        ready.push((client, acts));
    }
    let begun = Instant::now();
    let share = most.map(|m| m / connections as u64);
    let workers = ready.iter().enumerate().map(|(c, (client, acts))| async move {
        let claim = Claim::by(format!("bench-{c}")).limit(BATCH);
        let mut done = 0u64;
        while share.is_none_or(|s| done < s) {
            let items = acts.claim(client, &claim).await?.items;
            if items.is_empty() {
                break;
            }
            let results: Vec<_> = items.iter().map(|i| (i.key.as_str(), i.lease, None)).collect();
            done += acts.complete(client, &results).await?.len() as u64;
        }
        anyhow::Ok(done)
    });
    let done: u64 = try_join_all(workers).await?.iter().sum();
    Ok(done as f64 / begun.elapsed().as_secs_f64())
}

/// Bytes of WAL that a job costs from claim to completion.
async fn wal(stage: &Stage, report: &mut Report) -> Result<()> {
    let n = stage.rows(100_000);
    prepare_jobs(stage, n).await?;
    let client = stage.connect().await?;
    let before: String = client.query_one("select pg_current_wal_lsn()::text", &[]).await?.get(0);
    drain(stage, "jobs", 2, None).await?;
    let bytes: f64 = client.query_one(&format!("select pg_wal_lsn_diff(pg_current_wal_lsn(), '{before}')::float8"), &[]).await?.get(0);
    report.figure("WAL per job, claim and complete", bytes / n as f64, "B");
    Ok(())
}
