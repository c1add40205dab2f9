//! Clients: each sends its requests on its own connection, one after the other.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use futures_util::future::try_join_all;
use hdrhistogram::Histogram;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Bytes;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::MissedTickBehavior;

/// A client that sends the same request again and again.
pub(crate) trait Ask: Send + 'static {
    /// Sends one request and waits for the response. Returns false when there is nothing left to request.
    fn ask(&mut self) -> impl Future<Output = Result<bool>> + Send;
}

/// Sends as many requests as possible; responses per second.
pub(crate) async fn flood<A: Ask>(askers: Vec<A>, lasting: Duration) -> Result<f64> {
    let begun = Instant::now();
    let asking = askers.into_iter().map(|mut asker| {
        tokio::spawn(async move {
            let mut answers = 0u64;
            while begun.elapsed() < lasting && asker.ask().await? {
                answers += 1;
            }
            anyhow::Ok(answers)
        })
    });
    let mut all = 0;
    for answers in try_join_all(asking).await? {
        all += answers?;
    }
    Ok(all as f64 / begun.elapsed().as_secs_f64())
}

/// Sends at a steady rate, however long the responses take. Returns microseconds from when a request was due, so that waiting
/// behind a slow one counts.
pub(crate) async fn steady<A: Ask>(askers: Vec<A>, rate: f64, lasting: Duration) -> Result<Histogram<u64>> {
    let many = askers.len() as f64;
    let every = Duration::from_secs_f64(many / rate);
    let begun = tokio::time::Instant::now();
    let asking = askers.into_iter().enumerate().map(|(place, mut asker)| {
        tokio::spawn(async move {
            let mut latency = Histogram::<u64>::new(3)?;
            let mut ticks = tokio::time::interval_at(begun + every.mul_f64(place as f64 / many), every);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
            while begun.elapsed() < lasting {
                let due = ticks.tick().await;
                asker.ask().await?;
                latency.record(u64::try_from(due.elapsed().as_micros())?)?;
            }
            anyhow::Ok(latency)
        })
    });
    let mut all = Histogram::new(3)?;
    for latency in try_join_all(asking).await? {
        all.add(latency?)?;
    }
    Ok(all)
}

/// One HTTP connection.
#[derive(Debug)]
pub(crate) struct Connection {
    requests: SendRequest<Full<Bytes>>,
    address: String,
}

impl Connection {
    pub(crate) async fn open(address: &str) -> Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let (requests, connection) = http1::handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        Ok(Self { requests, address: address.to_owned() })
    }

    /// The body of the response. Anything but success is an error.
    pub(crate) async fn send(&mut self, request: http::request::Builder, body: impl Into<Bytes>) -> Result<Bytes> {
        let request = request.header("host", &self.address).header("content-type", "application/json").body(Full::new(body.into()))?;
        self.requests.ready().await?;
        let response = self.requests.send_request(request).await?;
        let status = response.status();
        let answer = response.into_body().collect().await?.to_bytes();
        ensure!(status.is_success(), "{status}: {}", String::from_utf8_lossy(&answer));
        Ok(answer)
    }
}

/// One HTTP connection that sends prepared requests: the client's own cost is taken from the server's cores, so it must be small.
#[derive(Debug)]
pub(crate) struct Wire {
    stream: TcpStream,
    read: Vec<u8>,
}

impl Wire {
    pub(crate) async fn open(address: &str) -> Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, read: Vec::with_capacity(4096) })
    }

    /// Sends one request, head and body, and waits for the whole response. Anything but success is an error.
    pub(crate) async fn send(&mut self, request: &[u8]) -> Result<()> {
        self.stream.write_all(request).await?;
        self.read.clear();
        loop {
            ensure!(self.stream.read_buf(&mut self.read).await? > 0, "the server hung up");
            let Some(head) = self.read.windows(4).position(|end| end == b"\r\n\r\n") else { continue };
            let text = std::str::from_utf8(&self.read[..head])?;
            let length = text.lines().filter_map(|line| line.split_once(':')).find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
            let length: usize = length.map_or(Ok(0), |(_, length)| length.trim().parse())?;
            if self.read.len() >= head + 4 + length {
                ensure!(text.starts_with("HTTP/1.1 2"), "{}", String::from_utf8_lossy(&self.read));
                return Ok(());
            }
        }
    }
}
