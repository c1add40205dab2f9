//! Whether the speed of a claim depends on other rows: waiting rows, finished rows, private rows at the head of the queue.

use anyhow::Result;

use crate::drain::drain;
use crate::report::Report;
use crate::stage::Stage;

pub(crate) async fn measure(stage: &Stage, report: &mut Report) -> Result<()> {
    let large = stage.rows(2_000_000);
    let sample = stage.rows(100_000) as u64;

    stage.clear().await?;
    stage.fill_jobs(sample as usize).await?;
    let empty = drain(stage, "jobs", 2, None).await?;
    report.figure(format!("drain {sample} jobs, nothing else there"), empty, "/s");

    stage.clear().await?;
    stage.fill_jobs(large).await?;
    let waiting = drain(stage, "jobs", 2, Some(sample)).await?;
    report.ratio(format!("drain with {large} waiting"), waiting, "/s", empty, "empty", Some(0.9));

    let client = stage.connect().await?;
    stage.clear().await?;
    client
        .batch_execute(&format!(
            "begin; set local role gleaner_engine;
             insert into gleaner.jobs (kind, status, due_at, finished_at, payload) select 'bench', 'done', now() - interval '1 day', now() - interval '1 day', '{{}}' from generate_series(1, {large});
             commit;"
        ))
        .await?;
    stage.fill_jobs(sample as usize).await?;
    let finished = drain(stage, "jobs", 2, None).await?;
    report.ratio(format!("drain with {large} finished"), finished, "/s", empty, "empty", Some(0.9));

    let sample = stage.rows(20_000);
    let private = stage.rows(100_000);
    crate::drain::fill_activities(stage, sample).await?;
    let plain = drain(stage, "activities", 2, None).await?;
    crate::drain::fill_activities(stage, sample).await?;
    client
        .batch_execute(&format!(
            "insert into sales (first_name, last_name, email) values ('p', '', 'p@example.com');
             insert into activities (type, sales_id, raw_data, created_at)
             select 'call', (select max(id) from sales), '{{}}', clock_timestamp() - interval '2 days' from generate_series(1, {private});
             update sales set allow_remote_processing = false;"
        ))
        .await?;
    client.batch_execute("vacuum analyze activities").await?;
    // Stamped while they were shared and now private: all of them are at the head of the steal probe.
    let behind = drain(stage, "activities", 2, None).await?;
    report.figure(format!("drain {sample} activities, nothing else there"), plain, "/s");
    report.ratio(format!("drain with {private} private rows at the head"), behind, "/s", plain, "empty", Some(0.9));

    one_by_one(stage, report).await
}

/// The cost of a single claim, with an empty and with a long queue.
async fn one_by_one(stage: &Stage, report: &mut Report) -> Result<()> {
    use gleaner::{Acts, Claim};
    use std::time::Instant;
    let mut milliseconds = Vec::new();
    for waiting in [1_000, stage.rows(1_000_000)] {
        stage.clear().await?;
        stage.fill_jobs(waiting).await?;
        let client = stage.connect().await?;
        let acts = Acts::of(&client, "jobs").await?;
        let claim = Claim::by("bench");
        for _ in 0..20 {
            acts.claim(&client, &claim).await?;
        }
        let begun = Instant::now();
        for _ in 0..500 {
            acts.claim(&client, &claim).await?;
        }
        milliseconds.push((waiting, begun.elapsed().as_secs_f64() * 1000.0 / 500.0));
    }
    for (waiting, ms) in &milliseconds {
        report.figure(format!("claim of one job, {waiting} waiting"), *ms, "ms");
    }
    Ok(())
}
