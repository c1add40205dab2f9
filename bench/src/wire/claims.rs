//! Agents that wait for work at the server: their combined load on the database, and how soon work reaches one, and all, of them.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use futures_util::future::try_join_all;
use hdrhistogram::Histogram;
use hyper::body::Bytes;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::subscribers::need_files;
use crate::asking::Connection;
use crate::quiet;
use crate::report::Report;
use crate::serving::Serving;
use crate::stage::Stage;

const WAIT_SECONDS: u64 = 20;
const PATIENCE: Duration = Duration::from_secs(30);
/// Connections that are opened at once, because the speed of connecting is not measured.
const TOGETHER: usize = 50;

pub(super) async fn measure(stage: &Stage, report: &mut Report, serving: &Serving) -> Result<()> {
    // Zero agents first: the server's own load is subtracted from the others.
    for agents in [0, 10, 1000] {
        stage.clear().await?;
        let mut crowd = Crowd::gather(serving, agents).await?;
        let looks = serving.state().queues.tally().1;
        let begun = Instant::now();
        let statements = quiet::statements_per_minute(stage, stage.seconds(120).max(30)).await?;
        let looks = (serving.state().queues.tally().1 - looks) as f64 * 60.0 / begun.elapsed().as_secs_f64();
        report.figure(format!("{agents} agents waiting in claims, statements"), statements, "/min");
        if agents == 0 {
            continue;
        }
        report.figure(format!("{agents} agents waiting in claims, looks among them"), looks, "/min");
        crowd.reach_one(stage, report, serving).await?;
        crowd.reach_all(report, serving).await?;
    }
    Ok(())
}

/// Agents that request a job, and again after each response, with or without a job. No job is ever finished.
#[derive(Debug)]
struct Crowd {
    many: usize,
    agents: JoinSet<Result<()>>,
    /// The times at which an agent received a job.
    given: mpsc::UnboundedReceiver<Instant>,
}

impl Crowd {
    /// Returns when all of them have sent their request and wait.
    async fn gather(serving: &Serving, many: usize) -> Result<Self> {
        // Both ends of each connection are in this process.
        need_files(2 * many as u64 + 200)?;
        let (give, given) = mpsc::unbounded_channel();
        let mut agents = JoinSet::new();
        while agents.len() < many {
            let some = (many - agents.len()).min(TOGETHER);
            for connection in try_join_all((0..some).map(|_| Connection::open(&serving.address))).await? {
                let name = format!("bench-{}", agents.len());
                agents.spawn(work(connection, serving.key.clone(), name, give.clone()));
            }
        }
        tokio::time::sleep(Duration::from_secs(5)).await;
        Ok(Self { many, agents, given })
    }

    /// Waits until an agent receives a job. An agent that stops waiting is an error.
    async fn given(&mut self) -> Result<Instant> {
        tokio::select! {
            given = tokio::time::timeout(PATIENCE, self.given.recv()) => given.context("no agent was given the job")?.context("nobody waits"),
            Some(ended) = self.agents.join_next() => Err(ended?.err().context("an agent stopped waiting")?),
        }
    }

    /// One job at a time, from the request that enqueues it until one of the agents has it.
    async fn reach_one(&mut self, stage: &Stage, report: &mut Report, serving: &Serving) -> Result<()> {
        let mut writer = Connection::open(&serving.address).await?;
        let looks = serving.state().queues.tally().1;
        let jobs = if stage.quick { 100 } else { 500 };
        let mut latency = Histogram::<u64>::new(3)?;
        for i in 0..jobs {
            let asked = Instant::now();
            enqueue(&mut writer, &serving.key, 1).await?;
            latency.record(u64::try_from((self.given().await? - asked).as_micros())?)?;
            // Irregular, so that it does not align with any interval, and after the polls that follow a notification.
            tokio::time::sleep(Duration::from_micros(40_000 + (i * 7919) % 20_000)).await;
        }
        let looks = (serving.state().queues.tally().1 - looks) as f64 / jobs as f64;
        let of = format!("enqueue to claim, {} waiting", self.many);
        report.figure(format!("{of}, p50"), latency.value_at_quantile(0.5) as f64 / 1000.0, "ms");
        report.figure(format!("{of}, p99"), latency.value_at_quantile(0.99) as f64 / 1000.0, "ms");
        report.figure(format!("{of}, looks per job"), looks, "");
        Ok(())
    }

    /// As many jobs as agents at once, until the last agent has received one.
    async fn reach_all(&mut self, report: &mut Report, serving: &Serving) -> Result<()> {
        let mut writer = Connection::open(&serving.address).await?;
        let looks = serving.state().queues.tally().1;
        let asked = Instant::now();
        enqueue(&mut writer, &serving.key, self.many).await?;
        let mut last = asked;
        for _ in 0..self.many {
            last = last.max(self.given().await?);
        }
        let looks = serving.state().queues.tally().1 - looks;
        report.figure(format!("{0} jobs to {0} waiting claims", self.many), (last - asked).as_secs_f64() * 1000.0, "ms");
        report.figure(format!("{0} jobs to {0} waiting claims, looks", self.many), looks as f64, "");
        ensure!(self.given.try_recv().is_err(), "more was given than was there");
        Ok(())
    }
}

async fn work(mut connection: Connection, key: String, name: String, give: mpsc::UnboundedSender<Instant>) -> Result<()> {
    let asked = json!({"agent": name, "wait_seconds": WAIT_SECONDS}).to_string();
    loop {
        let answer = post(&mut connection, &key, "claim", asked.clone()).await?;
        let now = Instant::now();
        let answer: Value = serde_json::from_slice(&answer)?;
        for _ in answer["items"].as_array().into_iter().flatten() {
            // The receiver is dropped before the agents end.
            let _ = give.send(now);
        }
    }
}

async fn enqueue(connection: &mut Connection, key: &str, many: usize) -> Result<()> {
    let items = vec![json!({"kind": "bench", "payload": {"n": 1}}); many];
    post(connection, key, "enqueue", json!({"items": items}).to_string()).await.map(drop)
}

async fn post(connection: &mut Connection, key: &str, act: &str, body: String) -> Result<Bytes> {
    let request = http::Request::post(format!("/v1/queues/jobs/{act}")).header("authorization", format!("Bearer {key}"));
    connection.send(request, body).await
}
