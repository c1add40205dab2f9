//! The throughput of claim and complete, fenced, with history kept.

use std::time::Instant;

use anyhow::Result;
use futures_util::future::try_join_all;
use gleaner::{Acts, Claim, Completion, Queue};
use serde_json::json;

use crate::peer::Peer;
use crate::raw::{self, Finish};
use crate::report::Report;
use crate::rounds::Rounds;
use crate::stage::Stage;

pub(crate) const BATCH: i32 = 500;

pub(crate) async fn measure(stage: &Stage, report: &mut Report) -> Result<()> {
    let n = stage.rows(100_000);
    let peer = Peer::set(stage, report).await?;
    for connections in [1, 2, 4] {
        // Alternating, so that a drift of the machine's speed affects all of them alike.
        let mut figures: [Rounds; 6] = Default::default();
        let [deleting, keeping, ours, laid, peer_deleting, peer_archiving] = &mut figures;
        for _ in stage.rounds() {
            deleting.add(raw::drain(stage, n, connections, Finish::Delete).await?);
            keeping.add(raw::drain(stage, n, connections, Finish::Keep).await?);
            prepare_jobs(stage, n).await?;
            ours.add(drain(stage, "jobs", connections, None).await?);
            lay_jobs(stage, n).await?;
            laid.add(drain(stage, "jobs", connections, None).await?);
            if let Some(peer) = &peer {
                peer_deleting.add(peer.drain(n, connections, Finish::Delete).await?);
                peer_archiving.add(peer.drain(n, connections, Finish::Keep).await?);
            }
        }
        let [deleting, keeping, ours, laid, peer_deleting, peer_archiving] = figures.map(|rounds| rounds.median());
        report.figure(format!("raw claim-and-delete loop, {connections} connections"), deleting, "/s");
        report.figure(format!("raw claim-and-keep loop, {connections} connections"), keeping, "/s");
        report.ratio(format!("drain gleaner.jobs, {connections} connections"), ours, "/s", keeping, "claim-and-keep", None);
        report.ratio(format!("drain gleaner.jobs, {connections} connections"), ours, "/s", deleting, "claim-and-delete", Some(0.9));
        let bulk = format!("drain gleaner.jobs put in by COPY, {connections} connections");
        report.ratio(bulk.clone(), laid, "/s", keeping, "claim-and-keep", None);
        report.ratio(bulk.clone(), laid, "/s", deleting, "claim-and-delete", Some(0.9));
        if peer.is_some() {
            report.ratio(bulk, laid, "/s", peer_deleting, "pgmq, deleting", Some(1.3));
            for (does, rate, aim) in [("deleting", peer_deleting, Some(1.3)), ("archiving", peer_archiving, None)] {
                report.ratio(format!("drain pgmq, {does}, {connections} connections"), rate, "/s", deleting, "claim-and-delete", None);
                report.ratio(format!("drain gleaner.jobs, {connections} connections"), ours, "/s", rate, format!("pgmq, {does}"), aim);
            }
        }
        if connections == 2 {
            let n = stage.rows(50_000);
            fill_activities(stage, n).await?;
            report.ratio(
                "drain activities (wide rows), 2 connections",
                drain(stage, "activities", 2, None).await?,
                "/s",
                keeping,
                "claim-and-keep",
                None,
            );
        }
    }
    if let Some(peer) = peer {
        peer.strike().await?;
    }
    wal(stage, report).await
}

pub(crate) async fn prepare_jobs(stage: &Stage, n: usize) -> Result<()> {
    stage.clear().await?;
    stage.fill_jobs(n).await
}

/// Inserts jobs with `enqueue_copy`, which wait in bulk ranges.
pub(crate) async fn lay_jobs(stage: &Stage, n: usize) -> Result<()> {
    stage.clear().await?;
    let items: Vec<_> = (0..n).map(|_| json!({"kind": "bench", "payload": {"n": 1}})).collect();
    Queue::open(&gleaner::pool(&stage.url, 1)?, "jobs").await?.enqueue_copy(&items).await?;
    Ok(stage.connect().await?.batch_execute("vacuum analyze gleaner.jobs").await?)
}

/// Unowned activities with a payload of about 1.5 kB.
pub(crate) async fn fill_activities(stage: &Stage, n: usize) -> Result<()> {
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
pub(crate) async fn drain(stage: &Stage, queue: &str, connections: usize, most: Option<u64>) -> Result<f64> {
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
        let mut items = acts.claim(client, &claim).await?.items;
        while !items.is_empty() && share.is_none_or(|s| done < s) {
            let results: Vec<_> = items.iter().map(|i| Completion::new(i.held(), None)).collect();
            // As a worker does: the next claim is running while results are written.
            let (answers, next) = tokio::try_join!(acts.complete(client, &results), acts.claim(client, &claim))?;
            done += answers.len() as u64;
            items = next.items;
        }
        anyhow::Ok(done)
    });
    let done: u64 = try_join_all(workers).await?.iter().sum();
    Ok(done as f64 / begun.elapsed().as_secs_f64())
}

/// The WAL bytes of a job from claim to completion.
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
