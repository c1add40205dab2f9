//! Agents that wait for work at the server: what they cost the database together.

use std::time::Duration;

use anyhow::Result;
use futures_util::future::try_join_all;
use serde_json::json;

use crate::asking::Connection;
use crate::quiet;
use crate::report::Report;
use crate::serving::Serving;
use crate::stage::Stage;

const WAIT_SECONDS: u64 = 20;

pub async fn measure(stage: &Stage, report: &mut Report, serving: &Serving) -> Result<()> {
    stage.clear().await?;
    for agents in [10, 1000] {
        let connections = try_join_all((0..agents).map(|_| Connection::open(&serving.address))).await?;
        let waiting: Vec<_> =
            connections.into_iter().enumerate().map(|(n, connection)| tokio::spawn(wait(connection, serving.key.clone(), n))).collect();
        tokio::time::sleep(Duration::from_secs(5)).await;
        let statements = quiet::statements_per_minute(stage, stage.seconds(120).max(30)).await?;
        let ended = waiting.iter().filter(|agent| agent.is_finished()).count();
        anyhow::ensure!(ended == 0, "{ended} of {agents} agents did not go on waiting");
        waiting.iter().for_each(tokio::task::JoinHandle::abort);
        report.figure(format!("{agents} agents waiting in claims, statements"), statements, "/min");
    }
    Ok(())
}

/// Asks for a job, and again when none came; ends when it is refused.
async fn wait(mut connection: Connection, key: String, n: usize) -> Result<()> {
    loop {
        let request = http::Request::post("/v1/queues/jobs/claim").header("authorization", format!("Bearer {key}"));
        let asked = json!({"agent": format!("bench-{n}"), "wait_seconds": WAIT_SECONDS});
        connection.send(request, asked.to_string()).await?;
    }
}
