//! Webhooks over HTTP: signed, verified, durable before they are answered.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use futures_util::future::try_join_all;
use futures_util::{SinkExt as _, pin_mut};
use gleaner_ingest::crypt;
use gleaner_server::channels::NewChannel;
use serde_json::json;
use tokio_postgres::CopyInSink;

use crate::asking::{self, Ask, Connection};
use crate::raw;
use crate::report::Report;
use crate::serving::Serving;
use crate::stage::Stage;

const CONNECTIONS: usize = 64;
const SECRET: &str = "the secret of the benchmark";

/// The same message inserted by hand, each in a transaction of its own.
const BY_HAND: &str = "insert into activities (type, raw_data, metadata) values ('sms', jsonb_build_object('source_type', 'text', 'content', repeat('x', 300)), '{}')";

pub async fn measure(stage: &Stage, report: &mut Report) -> Result<()> {
    let seconds = stage.seconds(10);
    let lasting = Duration::from_secs(seconds);
    let serving = Serving::start(stage, false).await?;
    let settings = json!({"scheme": "hub-sha256", "secret": SECRET});
    let new = NewChannel {
        name: "bench".into(),
        provider_code: "generic".into(),
        settings: settings.as_object().cloned().unwrap_or_default().into(),
        ..NewChannel::default()
    };
    let key = serving.state().channels.add(new).await?.key()?.to_string();
    let sender = Arc::new(Sender { address: serving.address.clone(), key, sent: AtomicU64::new(0) });

    // By turns, so that a machine that drifts drifts under both alike.
    let (mut single, mut through, mut acknowledged) = (0.0, 0.0, 0);
    for _ in 0..2 {
        clear(stage).await?;
        single += raw::insert(stage, BY_HAND, CONNECTIONS, seconds).await? / 2.0;
        clear(stage).await?;
        acknowledged = sender.sent.load(Ordering::Relaxed);
        through += asking::flood(sender.askers().await?, lasting).await? / 2.0;
        acknowledged = sender.sent.load(Ordering::Relaxed) - acknowledged;
    }
    let stored: i64 = stage.connect().await?.query_one("select count(*) from activities", &[]).await?.get(0);
    ensure!(u64::try_from(stored)? == acknowledged, "{acknowledged} were acknowledged, {stored} are there");
    let copy = copy_activities(stage).await?;
    report.figure(format!("single-row commits into activities, {CONNECTIONS} connections"), single, "/s");
    report.figure("COPY into activities", copy, "/s");
    report.ratio(format!("webhook to durable row, {CONNECTIONS} connections"), through, "/s", single, "single-row commits", Some(3.0));
    report.ratio(format!("webhook to durable row, {CONNECTIONS} connections"), through, "/s", copy, "COPY into activities", None);
    clear(stage).await?;
    let latency = asking::steady(sender.askers().await?, through / 2.0, lasting).await?;
    report.figure("webhook at half load, p50", latency.value_at_quantile(0.5) as f64 / 1000.0, "ms");
    report.figure("webhook at half load, p99 (aim 50 ms)", latency.value_at_quantile(0.99) as f64 / 1000.0, "ms");
    serving.stop().await
}

async fn clear(stage: &Stage) -> Result<()> {
    stage.connect().await?.batch_execute("truncate gleaner.raw_request").await?;
    stage.clear().await
}

/// One authentic sender with many connections.
#[derive(Debug)]
struct Sender {
    address: String,
    key: String,
    sent: AtomicU64,
}

#[derive(Debug)]
struct Sending {
    sender: Arc<Sender>,
    connection: Connection,
}

impl Sender {
    async fn askers(self: &Arc<Self>) -> Result<Vec<Sending>> {
        try_join_all(
            (0..CONNECTIONS)
                .map(|_| async { anyhow::Ok(Sending { sender: self.clone(), connection: Connection::open(&self.address).await? }) }),
        )
        .await
    }
}

impl Ask for Sending {
    /// A message nobody has sent before, signed; returns when it is durable.
    async fn ask(&mut self) -> Result<bool> {
        let n = self.sender.sent.fetch_add(1, Ordering::Relaxed);
        let body = json!({"type": "sms", "content": "x".repeat(300), "external_id": format!("bench-{n}")}).to_string();
        let signature = format!("sha256={}", hex::encode(crypt::hmac_sha256(SECRET.as_bytes(), &[body.as_bytes()])));
        let request =
            http::Request::post(format!("/functions/v1/ingest-activity?key={}", self.sender.key)).header("x-hub-signature-256", signature);
        self.connection.send(request, body).await?;
        Ok(true)
    }
}

/// The same rows by COPY: what the table can take.
async fn copy_activities(stage: &Stage) -> Result<f64> {
    let n = stage.rows(100_000);
    clear(stage).await?;
    let client = stage.connect().await?;
    let line = format!("sms\t{{\"source_type\": \"text\", \"content\": \"{}\"}}\t{{}}\n", "x".repeat(300));
    let begun = Instant::now();
    let sink: CopyInSink<std::io::Cursor<Vec<u8>>> = client.copy_in("copy activities (type, raw_data, metadata) from stdin").await?;
    pin_mut!(sink);
    let mut left = n;
    while left > 0 {
        let lines = left.min(500);
        sink.send(std::io::Cursor::new(line.repeat(lines).into_bytes())).await?;
        left -= lines;
    }
    sink.finish().await?;
    Ok(n as f64 / begun.elapsed().as_secs_f64())
}
