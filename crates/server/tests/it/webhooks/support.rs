//! A running server with a database and a home directory of its own, and a client that sends exactly the given bytes.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context as _, Result};
use gleaner::Pool;
use gleaner_server::{Config, Server};
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_postgres::Client;
use uuid::Uuid;

use crate::webhooks::sender::{self, SECRET};
use crate::world::{Home, database};

pub(crate) const WEBHOOK_PATH: &str = gleaner_intake::channels::WEBHOOK_PATH;

/// A server, and the database behind it.
pub(crate) struct World {
    pub server: Server,
    pub client: Client,
    pub pool: Pool,
    pub url: String,
    pub home: Home,
}

/// A channel of the test provider, and its address.
#[derive(Debug, Clone)]
pub(crate) struct Channel {
    pub id: Uuid,
    pub key: String,
}

impl Channel {
    pub(crate) fn target(&self) -> String {
        format!("{WEBHOOK_PATH}?key={}", self.key)
    }
}

/// A response.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or(Value::Null)
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(given, _)| given.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// The id of the activity in the response.
    pub(crate) fn id(&self) -> Result<Uuid> {
        serde_json::from_value(self.json()["id"].clone()).with_context(|| format!("no id in {self:?}"))
    }
}

pub(crate) async fn world() -> Result<World> {
    world_with(|_| {}).await
}

/// A server with a changed configuration.
pub(crate) async fn world_with(change: impl FnOnce(&mut Config)) -> Result<World> {
    world_on(&database().await?.url, change).await
}

pub(crate) async fn world_on(url: &str, change: impl FnOnce(&mut Config)) -> Result<World> {
    let home = Home::new()?;
    let pool = gleaner::pool(url, 16)?;
    let mut config = Config::new(&home.0);
    config.listen = SocketAddr::from(([127, 0, 0, 1], 0));
    config.providers = sender::providers();
    config.realtime = false;
    change(&mut config);
    let server = Server::start(config, url, pool.clone()).await?;
    Ok(World { server, client: gleaner::connect(url).await?, pool, url: url.to_owned(), home })
}

impl World {
    pub(crate) fn address(&self) -> SocketAddr {
        self.server.local_addr()
    }

    /// A channel of the test provider, written as an existing CRM writes it: in clear.
    pub(crate) async fn channel(&self) -> Result<Channel> {
        self.channel_of("tester", json!({"secret": SECRET})).await
    }

    pub(crate) async fn channel_of(&self, provider: &str, settings: Value) -> Result<Channel> {
        let key = format!("key-{}", Uuid::now_v7().simple());
        let row = self
            .client
            .query_one(
                "insert into ingestion_providers (provider_code, name, config, ingestion_key) values ($1, gen_random_uuid(), $2, $3) returning id",
                &[&provider, &settings, &key],
            )
            .await?;
        Ok(Channel { id: row.get(0), key })
    }

    /// Sends a signed event of the test provider.
    pub(crate) async fn post(&self, channel: &Channel, body: &Value) -> Result<Answer> {
        self.send("POST", &channel.target(), &[("x-test-signature", SECRET)], body.to_string().as_bytes()).await
    }

    pub(crate) async fn send(&self, method: &str, target: &str, headers: &[(&str, &str)], body: &[u8]) -> Result<Answer> {
        Connection::open(self.address()).await?.send(method, target, headers, body).await
    }

    pub(crate) async fn count(&self, sql: &str) -> Result<i64> {
        Ok(self.client.query_one(sql, &[]).await.with_context(|| sql.to_owned())?.get(0))
    }

    pub(crate) async fn text(&self, sql: &str) -> Result<Option<String>> {
        Ok(self.client.query_opt(sql, &[]).await.with_context(|| sql.to_owned())?.and_then(|row| row.get(0)))
    }

    /// The stored refusals of a channel: reason and count, in alphabetical order.
    pub(crate) async fn refusals(&self, channel: Option<Uuid>) -> Result<Vec<(String, i64)>> {
        self.server.state().webhooks.flush_refusals().await;
        let sql =
            "select reason, sum(count)::bigint from gleaner.ingest_refusal where provider_id is not distinct from $1 group by 1 order by 1";
        Ok(self.client.query(sql, &[&channel]).await?.iter().map(|row| (row.get(0), row.get(1))).collect())
    }
}

/// One connection, kept open.
pub(crate) struct Connection {
    sender: http1::SendRequest<Full<bytes::Bytes>>,
}

impl Connection {
    pub(crate) async fn open(address: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        Ok(Self { sender })
    }

    pub(crate) async fn send(&mut self, method: &str, target: &str, headers: &[(&str, &str)], body: &[u8]) -> Result<Answer> {
        let mut request = hyper::Request::builder().method(method).uri(target).header("host", "localhost");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response = self.sender.send_request(request.body(Full::from(body.to_vec()))?).await?;
        let (parts, body) = response.into_parts();
        let headers = parts.headers.iter().map(|(name, value)| (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned()));
        Ok(Answer { status: parts.status.as_u16(), headers: headers.collect(), body: body.collect().await?.to_bytes().to_vec() })
    }
}

/// Sends the bytes as they are, and returns the response until the server closes the connection. For input that no HTTP
/// library would send.
pub(crate) async fn raw(address: SocketAddr, bytes: &[u8]) -> Result<Vec<u8>> {
    let mut stream = TcpStream::connect(address).await?;
    // The server may hang up before it has read everything.
    let _ = stream.write_all(bytes).await;
    read_to_end(stream).await
}

/// Like [`raw`], but closes the sending side: otherwise the server waits for the rest of an incomplete request.
pub(crate) async fn raw_and_over(address: SocketAddr, bytes: &[u8]) -> Result<Vec<u8>> {
    let mut stream = TcpStream::connect(address).await?;
    let _ = stream.write_all(bytes).await;
    let _ = stream.shutdown().await;
    read_to_end(stream).await
}

async fn read_to_end(mut stream: TcpStream) -> Result<Vec<u8>> {
    let mut answer = Vec::new();
    let _ = tokio::time::timeout(Duration::from_secs(30), stream.read_to_end(&mut answer)).await.context("no end")?;
    Ok(answer)
}

/// The status in a raw response. None when there is no response at all.
pub(crate) fn status(answer: &[u8]) -> Option<u16> {
    let line = std::str::from_utf8(answer.split(|byte| *byte == b'\r').next()?).ok()?;
    line.strip_prefix("HTTP/1.")?.get(2..5)?.parse().ok()
}
