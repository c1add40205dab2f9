//! Webhooks over HTTP: signed, verified, and durable before the response.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use futures_util::future::try_join_all;
use futures_util::{SinkExt as _, pin_mut};
use gleaner_ingest::crypt;
use gleaner_intake::channels::NewChannel;
use serde_json::json;
use tokio_postgres::CopyInSink;

use crate::asking::{self, Ask, Wire};
use crate::raw;
use crate::report::Report;
use crate::serving::Serving;
use crate::stage::Stage;

const CONNECTIONS: usize = 64;
/// Requests are prepared in advance. A sender that has sent all of its share ends its turn.
const MOST_PER_SECOND: u64 = 30_000;
const SECRET: &str = "the secret of the benchmark";

/// The same message inserted by hand-written SQL, each in its own transaction.
const BY_HAND: &str = "insert into activities (type, raw_data, metadata) values ('sms', jsonb_build_object('source_type', 'text', 'content', repeat('x', 300)), '{}')";

pub(crate) async fn measure(stage: &Stage, report: &mut Report) -> Result<()> {
    let seconds = stage.seconds(10);
    let lasting = Duration::from_secs(seconds);
    // One webhook endpoint that groups commits, and the same endpoint with a commit for each request.
    let serving = Serving::start(stage, false).await?;
    let grouped = Sender::new(&serving).await?;
    let ungrouped = Serving::start_with(stage, CONNECTIONS + 8, |config| {
        (config.realtime, config.committers, config.group) = (false, CONNECTIONS, 1);
    })
    .await?;
    let one_by_one = Sender::new(&ungrouped).await?;

    // Alternating, so that a drift of the machine's speed affects all alike.
    let (mut by_hand, mut alone, mut each, mut together) = (0.0, 0.0, 0.0, 0.0);
    for _ in 0..2 {
        clear(stage).await?;
        by_hand += raw::insert(stage, BY_HAND, CONNECTIONS, seconds).await? / 2.0;
        clear(stage).await?;
        alone += raw::insert(stage, BY_HAND, 1, seconds).await? / 2.0;
        each += one_by_one.flood(stage, lasting).await? / 2.0;
        together += grouped.flood(stage, lasting).await? / 2.0;
    }
    ungrouped.stop().await?;
    let copy = copy_activities(stage).await?;
    let what = format!("webhook to durable row, {CONNECTIONS} connections");
    report.figure("single-row commits into activities, 1 connection", alone, "/s");
    report.figure(format!("single-row commits into activities, {CONNECTIONS} connections"), by_hand, "/s");
    report.figure("COPY into activities", copy, "/s");
    report.figure(format!("webhooks with a commit each, {CONNECTIONS} connections"), each, "/s");
    report.ratio(&what, together, "/s", each, "webhooks with a commit each", Some(3.0));
    report.ratio(&what, together, "/s", alone, "single-row commits, 1 connection", Some(3.0));
    report.ratio(&what, together, "/s", by_hand, format!("single-row commits, {CONNECTIONS} connections"), Some(3.0));
    report.ratio(&what, together, "/s", copy, "COPY into activities", None);
    clear(stage).await?;
    let latency = asking::steady(grouped.askers(lasting).await?, together / 2.0, lasting).await?;
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
    written: AtomicU64,
    sent: AtomicU64,
}

#[derive(Debug)]
struct Sending {
    sender: Arc<Sender>,
    connection: Wire,
    /// Signed in advance, because a real sender signs on another machine.
    requests: Vec<Vec<u8>>,
}

impl Sender {
    /// With its own channel at that endpoint.
    async fn new(serving: &Serving) -> Result<Arc<Self>> {
        let settings = json!({"scheme": "hub-sha256", "secret": SECRET});
        let new = NewChannel {
            name: format!("bench {}", serving.address),
            provider_code: "generic".into(),
            settings: settings.as_object().cloned().unwrap_or_default().into(),
            ..NewChannel::default()
        };
        let key = serving.state().channels.add(new).await?.key()?.to_string();
        Ok(Arc::new(Self { address: serving.address.clone(), key, written: AtomicU64::new(0), sent: AtomicU64::new(0) }))
    }

    /// Sends as many requests as possible; requests per second. What was acknowledged must be stored.
    async fn flood(self: &Arc<Self>, stage: &Stage, lasting: Duration) -> Result<f64> {
        clear(stage).await?;
        let before = self.sent.load(Ordering::Relaxed);
        let rate = asking::flood(self.askers(lasting).await?, lasting).await?;
        let acknowledged = self.sent.load(Ordering::Relaxed) - before;
        let stored: i64 = stage.connect().await?.query_one("select count(*) from activities", &[]).await?.get(0);
        ensure!(u64::try_from(stored)? == acknowledged, "{acknowledged} were acknowledged, {stored} are there");
        Ok(rate)
    }

    /// As many senders as connections, each with enough requests for `lasting`, at a far higher rate than such a machine can take.
    async fn askers(self: &Arc<Self>, lasting: Duration) -> Result<Vec<Sending>> {
        let each = lasting.as_secs() * MOST_PER_SECOND / CONNECTIONS as u64;
        try_join_all((0..CONNECTIONS).map(|_| async {
            let requests = (0..each).map(|_| self.write()).collect();
            anyhow::Ok(Sending { sender: self.clone(), connection: Wire::open(&self.address).await?, requests })
        }))
        .await
    }

    /// A new, signed message.
    fn write(&self) -> Vec<u8> {
        let n = self.written.fetch_add(1, Ordering::Relaxed);
        let body = json!({"type": "sms", "content": "x".repeat(300), "external_id": format!("bench-{n}")}).to_string();
        let signature = hex::encode(crypt::hmac_sha256(SECRET.as_bytes(), &[body.as_bytes()]));
        let (key, host) = (&self.key, &self.address);
        format!(
            "POST /functions/v1/ingest-activity?key={key} HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\nx-hub-signature-256: sha256={signature}\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        )
        .into_bytes()
    }
}

impl Ask for Sending {
    /// Returns when it is durable.
    async fn ask(&mut self) -> Result<bool> {
        let Some(request) = self.requests.pop() else { return Ok(false) };
        self.connection.send(&request).await?;
        self.sender.sent.fetch_add(1, Ordering::Relaxed);
        Ok(true)
    }
}

/// The same rows by COPY: the most that the table can take.
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
