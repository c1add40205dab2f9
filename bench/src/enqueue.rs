//! The throughput of enqueueing.

use std::time::Instant;

use anyhow::Result;
use gleaner::Queue;
use serde_json::json;

use crate::peer::Peer;
use crate::raw;
use crate::report::Report;
use crate::rounds::Rounds;
use crate::stage::Stage;

pub(crate) async fn measure(stage: &Stage, report: &mut Report) -> Result<()> {
    let n = stage.rows(200_000);
    let items: Vec<_> = (0..n).map(|_| json!({"kind": "bench", "payload": {"n": 1}})).collect();
    let queue = Queue::open(&gleaner::pool(&stage.url, 4)?, "jobs").await?;
    let peer = Peer::set(stage, report).await?;
    let mut figures: [Rounds; 4] = Default::default();
    let [copy, ours, act, batches] = &mut figures;
    let many = stage.rows(50_000);
    for _ in stage.rounds() {
        stage.clear().await?;
        copy.add(raw::copy(stage, n).await?);
        stage.clear().await?;
        let begun = Instant::now();
        queue.enqueue_copy(&items).await?;
        ours.add(n as f64 / begun.elapsed().as_secs_f64());
        stage.clear().await?;
        let begun = Instant::now();
        for chunk in items[..many].chunks(1000) {
            queue.enqueue(chunk).await?;
        }
        act.add(many as f64 / begun.elapsed().as_secs_f64());
        if let Some(peer) = &peer {
            batches.add(peer.send_batches(n).await?);
        }
    }
    let [copy, ours, act, batches] = figures.map(|rounds| rounds.median());
    report.figure("raw COPY into one index", copy, "/s");
    report.ratio("enqueue by COPY, gleaner.jobs", ours, "/s", copy, "raw COPY", Some(0.6));
    if peer.is_some() {
        report.ratio("enqueue pgmq, 1,000 at a time", batches, "/s", copy, "raw COPY", None);
        report.ratio("enqueue by COPY, gleaner.jobs", ours, "/s", batches, "pgmq, 1,000 at a time", None);
    }

    report.ratio("enqueue by act, 1,000 at a time", act, "/s", copy, "raw COPY", None);
    if peer.is_some() {
        report.ratio("enqueue by act, 1,000 at a time", act, "/s", batches, "pgmq, 1,000 at a time", None);
    }

    for clients in [1, 16] {
        let [baseline, ours, theirs, wide] = single(stage, peer.as_ref(), clients).await?;
        report.figure(format!("raw single-row commits, {clients} clients"), baseline, "/s");
        report.ratio(
            format!("single plain inserts into gleaner.jobs, {clients} clients"),
            ours,
            "/s",
            baseline,
            "raw commits",
            (clients == 16).then_some(0.8),
        );
        if peer.is_some() {
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
        report.ratio(format!("single plain inserts into activities, {clients} clients"), wide, "/s", baseline, "raw commits", None);
    }
    if let Some(peer) = peer {
        peer.strike().await?;
    }
    Ok(())
}

/// Single-row commits per second, alternating: into a hand-written table, into our jobs, to pgmq, into activities.
async fn single(stage: &Stage, peer: Option<&Peer<'_>>, clients: usize) -> Result<[f64; 4]> {
    let seconds = if stage.quick { 1 } else { 3 };
    let mut figures: [Rounds; 4] = Default::default();
    let [baseline, ours, theirs, wide] = &mut figures;
    for _ in stage.rounds() {
        raw::table(stage, "raw_insert").await?;
        let by_hand = "insert into raw_insert (kind, payload) values ('bench', '{\"n\": 1}')";
        baseline.add(raw::insert(stage, by_hand, clients, seconds).await?);
        let job = "insert into gleaner.jobs (kind, payload) values ('bench', '{\"n\": 1}')";
        ours.add(raw::insert(stage, job, clients, seconds).await?);
        if let Some(peer) = peer {
            theirs.add(peer.send(clients, seconds).await?);
        }
        let activity = "insert into activities (type, raw_data, metadata)
             values ('email', jsonb_build_object('source_type', 'text', 'content', repeat('x', 1500)), '{\"from\": \"unknown\"}')";
        wide.add(raw::insert(stage, activity, clients, seconds).await?);
    }
    Ok(figures.map(|rounds| rounds.median()))
}
