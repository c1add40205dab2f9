//! How fast work is put in.

use std::time::Instant;

use anyhow::Result;
use gleaner::Queue;
use serde_json::json;

use crate::peer::Peer;
use crate::raw;
use crate::report::Report;
use crate::stage::Stage;

pub async fn measure(stage: &Stage, report: &mut Report) -> Result<()> {
    let n = stage.rows(500_000);
    let items: Vec<_> = (0..n).map(|_| json!({"kind": "bench", "payload": {"n": 1}})).collect();
    let queue = Queue::open(&gleaner::pool(&stage.url, 4)?, "jobs").await?;
    let peer = Peer::set(stage, report).await?;
    let (mut copy, mut ours, mut batches) = (0.0, 0.0, 0.0);
    for _ in 0..2 {
        stage.clear().await?;
        copy += raw::copy(stage, n).await? / 2.0;
        stage.clear().await?;
        let begun = Instant::now();
        queue.enqueue_copy(&items).await?;
        ours += n as f64 / begun.elapsed().as_secs_f64() / 2.0;
        if let Some(peer) = &peer {
            batches += peer.send_batches(n).await? / 2.0;
        }
    }
    report.figure("raw COPY into one index", copy, "/s");
    report.ratio("enqueue by COPY, gleaner.jobs", ours, "/s", copy, "raw COPY", Some(0.6));
    if peer.is_some() {
        report.ratio("enqueue pgmq, 1,000 at a time", batches, "/s", copy, "raw COPY", None);
        report.ratio("enqueue by COPY, gleaner.jobs", ours, "/s", batches, "pgmq, 1,000 at a time", None);
    }

    stage.clear().await?;
    let begun = Instant::now();
    let many = stage.rows(50_000);
    for chunk in items[..many].chunks(1000) {
        queue.enqueue(chunk).await?;
    }
    let act = many as f64 / begun.elapsed().as_secs_f64();
    report.ratio("enqueue by act, 1,000 at a time", act, "/s", copy, "raw COPY", None);
    if peer.is_some() {
        report.ratio("enqueue by act, 1,000 at a time", act, "/s", batches, "pgmq, 1,000 at a time", None);
    }

    let seconds = stage.seconds(10);
    for clients in [1, 16] {
        raw::table(stage, "raw_insert").await?;
        let baseline =
            raw::insert(stage, "insert into raw_insert (kind, payload) values ('bench', '{\"n\": 1}')", clients, seconds).await?;
        let ours = raw::insert(stage, "insert into gleaner.jobs (kind, payload) values ('bench', '{\"n\": 1}')", clients, seconds).await?;
        report.figure(format!("raw single-row commits, {clients} clients"), baseline, "/s");
        report.ratio(
            format!("single plain inserts into gleaner.jobs, {clients} clients"),
            ours,
            "/s",
            baseline,
            "raw commits",
            (clients == 16).then_some(0.8),
        );
        if let Some(peer) = peer.as_ref().filter(|_| clients == 16) {
            let theirs = peer.send(clients, seconds).await?;
            report.ratio(format!("single sends to pgmq, {clients} clients"), theirs, "/s", baseline, "raw commits", None);
            report.ratio(
                format!("single plain inserts into gleaner.jobs, {clients} clients"),
                ours,
                "/s",
                theirs,
                "pgmq, single sends",
                None,
            );
        }
        let wide = raw::insert(
            stage,
            "insert into activities (type, raw_data, metadata) values ('email', jsonb_build_object('source_type', 'text', 'content', repeat('x', 1500)), '{\"from\": \"unknown\"}')",
            clients,
            seconds,
        )
        .await?;
        report.ratio(format!("single plain inserts into activities, {clients} clients"), wide, "/s", baseline, "raw commits", None);
    }
    if let Some(peer) = peer {
        peer.strike().await?;
    }
    Ok(())
}
