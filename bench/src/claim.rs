//! Claims of one row, compared with the raw statement on a copy of the same table: the cost of single claims by agents, REST and
//! psql.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use futures_util::future::try_join_all;
use gleaner::{Acts, Claim};
use tokio_postgres::{Client, Statement};

use crate::copied::{self, Copied, Source};
use crate::orders::{self, ORDERS};
use crate::report::Report;
use crate::rounds::Rounds;
use crate::stage::Stage;
use crate::{drain, raw};

const JOBS: Source = Source { queue: "jobs", table: "gleaner.jobs", status: "status", running: "running", done: "done", hold: "5 minutes" };
const ACTIVITIES: Source = Source {
    queue: "activities",
    table: "public.activities",
    status: "processing_status",
    running: "processing",
    done: "completed",
    hold: "5 minutes",
};

/// One connection that does not wait for the disk shows the cost of a claim; sixteen that do are the usual case.
const WAYS: [(usize, bool, f64); 2] = [(1, false, 0.4), (16, true, 0.7)];
/// More than all rounds of one alternative take.
const ROWS: usize = 60_000;

pub(crate) async fn measure(stage: &Stage, report: &mut Report) -> Result<()> {
    orders::set(stage).await?;
    for source in [JOBS, ORDERS, ACTIVITIES] {
        let copied = Copied::make(stage, source).await?;
        for (connections, durable, aim) in WAYS {
            fill(stage, source).await?;
            copied.fill(stage).await?;
            let (raw, act, library) = rates(stage, source, &copied, connections, durable).await?;
            let way = if durable { "durable" } else { "not durable" };
            let what = |how: &str| format!("claim one of {}, {connections} connections, {way}, {how}", name(source));
            report.figure(what("raw"), raw, "/s");
            report.ratio(what("act"), act, "/s", raw, "raw", Some(aim));
            report.ratio(what("library"), library, "/s", raw, "raw", None);
        }
        copied.strike(stage).await?;
    }
    orders::strike(stage).await
}

fn name(source: Source) -> &'static str {
    if source.queue == ORDERS.queue { "orders" } else { source.queue }
}

async fn fill(stage: &Stage, source: Source) -> Result<()> {
    match source.queue {
        "jobs" => drain::prepare_jobs(stage, ROWS).await,
        "activities" => drain::fill_activities(stage, ROWS).await,
        _ => orders::fill(stage, ROWS).await,
    }
}

/// Claims per second by hand-written SQL, by the SQL function, and by the library, which sends unnamed statements for poolers in
/// transaction mode.
async fn rates(stage: &Stage, source: Source, copied: &Copied, connections: usize, durable: bool) -> Result<(f64, f64, f64)> {
    let by_hand = prepared(stage, &copied.claim(1, "*"), connections, durable).await?;
    let by_act = prepared(stage, &format!("select * from gleaner.claim_{}('bench')", source.queue), connections, durable).await?;
    let by_library = try_join_all((0..connections).map(|_| async {
        let client = connect(stage, durable).await?;
        anyhow::Ok((Acts::of(&client, source.queue).await?, client))
    }))
    .await?;
    let claim = &Claim::by("bench");
    // Rounds are short because nothing has to be prepared in between.
    let (rounds, lasting) = if stage.quick { (5, Duration::from_millis(200)) } else { (9, Duration::from_millis(400)) };
    let (mut raw, mut act, mut library) = (Rounds::default(), Rounds::default(), Rounds::default());
    for _ in 0..rounds {
        for (ready, figures) in [(&by_hand, &mut raw), (&by_act, &mut act)] {
            let once = async |statement, client: &Client| anyhow::Ok(client.query(statement, &[]).await?.len());
            figures.add(raw::rate(ready.iter().map(|(statement, client)| again(lasting, async || once(statement, client).await))).await?);
        }
        let once = async |acts: &Acts, client| anyhow::Ok(acts.claim(client, claim).await?.items.len());
        library.add(raw::rate(by_library.iter().map(|(acts, client)| again(lasting, async || once(acts, client).await))).await?);
    }
    for table in [source.table, copied::NAME] {
        let left = format!("select exists (select from {table} where due_at <= now())");
        ensure!(
            stage.connect().await?.query_one(&left, &[]).await?.get::<_, bool>(0),
            "all {ROWS} rows of {table} were claimed before the end"
        );
    }
    Ok((raw.median(), act.median(), library.median()))
}

/// Claims until the time is over; returns the number of rows.
async fn again(lasting: Duration, once: impl AsyncFn() -> Result<usize>) -> Result<u64> {
    let (begun, mut claimed) = (Instant::now(), 0);
    while begun.elapsed() < lasting {
        claimed += once().await? as u64;
    }
    Ok(claimed)
}

async fn prepared(stage: &Stage, sql: &str, connections: usize, durable: bool) -> Result<Vec<(Statement, Client)>> {
    try_join_all((0..connections).map(|_| async {
        let client = connect(stage, durable).await?;
        anyhow::Ok((client.prepare(sql).await?, client))
    }))
    .await
}

async fn connect(stage: &Stage, durable: bool) -> Result<Client> {
    let client = stage.connect().await?;
    if !durable {
        client.batch_execute("set synchronous_commit = off").await?;
    }
    Ok(client)
}
