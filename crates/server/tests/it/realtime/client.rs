//! A server with realtime only, and a client that uses its frames.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use futures_util::future::{BoxFuture, ready};
use futures_util::{FutureExt as _, SinkExt as _, StreamExt as _};
use gleaner_http::{Caller, Role, WireError};
use gleaner_postgres::testing::TestDatabase;
use gleaner_server::change_feed;
use gleaner_server::nodes::Nodes;
use gleaner_server::queues::Queues;
use gleaner_supabase::access::Access;
use gleaner_supabase::realtime::{self, Realtime};
use serde_json::{Map, Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::OnceCell;
use tokio_postgres::Client;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};

use crate::world::database;

/// The longest wait for a frame that must arrive.
const PATIENCE: Duration = Duration::from_secs(20);

pub(super) struct Stage {
    pub url: String,
    pub client: Client,
    pub address: String,
    pub realtime: Realtime,
    pub nodes: Nodes,
    // Last, so that it outlives everything connected to it.
    _database: Option<TestDatabase>,
}

/// The tokens of these tests are the claims themselves; real tokens are tested where they are made.
fn verify(token: String) -> BoxFuture<'static, Result<Caller, WireError>> {
    // An opaque key, valid as long as its file exists.
    if let Some(path) = token.strip_prefix("sb_") {
        let claims = Map::from_iter([("role".to_owned(), json!("service_role"))]);
        let is_good = std::path::Path::new(path).exists();
        let held = if is_good { Ok(Caller::Token { role: Role::Service, claims }) } else { Err(WireError::token("revoked")) };
        return ready(held).boxed();
    }
    let read = || {
        let claims: Map<String, Value> = serde_json::from_str(&token).map_err(|_| WireError::token("malformed"))?;
        let role = claims.get("role").and_then(Value::as_str).and_then(Role::named).ok_or_else(|| WireError::claims("no role"))?;
        Ok(Caller::Token { role, claims })
    };
    ready(read()).boxed()
}

/// With a feed that reads the log.
pub(super) async fn stage() -> Result<Stage> {
    let database = database().await?;
    let mut stage = stage_on(&database.url).await?;
    stage._database = Some(database);
    Ok(stage)
}

/// With a feed by triggers: the server's login may do everything except read the log.
pub(super) async fn stage_by_triggers() -> Result<Stage> {
    let database = database().await?;
    let mut stage = stage_as(&database.url, &narrow(&database.url).await?).await?;
    stage._database = Some(database);
    Ok(stage)
}

/// The same URL for a login with all rights to its objects but without the right to replicate.
async fn narrow(url: &str) -> Result<String> {
    // Roles belong to the whole database server.
    static MADE: OnceCell<()> = OnceCell::const_new();
    MADE.get_or_try_init(|| async {
        let client = gleaner::connect(url).await?;
        let owner: String = client.query_one("select current_user::text", &[]).await?.get(0);
        client.batch_execute(&format!("create role narrow login in role {owner}, anon, authenticated, service_role")).await?;
        anyhow::Ok(())
    })
    .await?;
    let (scheme, rest) = url.split_once("://").context("a URL")?;
    let (_, place) = rest.split_once('@').context("a URL with a login")?;
    Ok(format!("{scheme}://narrow@{place}"))
}

/// On a database that is already migrated.
pub(super) async fn stage_on(url: &str) -> Result<Stage> {
    stage_as(url, url).await
}

/// The test connects to `url`, the server to `serving`.
pub(super) async fn stage_as(url: &str, serving: &str) -> Result<Stage> {
    let client = gleaner::connect(url).await?;
    let pool = gleaner::pool(serving, 8)?;
    let queues = Queues::new(url, pool.clone(), Access::new("a secret of the tests, long enough to be one", "test")?);
    let nodes = Nodes::default();
    let realtime = Realtime::start(change_feed::source(serving, pool), Arc::new(verify), Arc::new(|_, _, _| {}))
        .with_signals(Arc::new(queues))
        .with_devices(Arc::new(nodes.clone()));
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?.to_string();
    let app = axum::Router::new().nest("/realtime/v1", realtime::routes(realtime.clone()));
    tokio::spawn(async move { axum::serve(listener, app).await });
    Ok(Stage { url: url.to_owned(), client, address, realtime, nodes, _database: None })
}

impl Stage {
    pub(super) async fn run(&self, sql: &str) -> Result<()> {
        self.client.batch_execute(sql).await.with_context(|| sql.to_owned())
    }

    pub(super) async fn value(&self, sql: &str) -> Result<String> {
        Ok(self.client.query_one(sql, &[]).await.with_context(|| sql.to_owned())?.get(0))
    }

    /// Creates a salesperson with a signed-in user. Returns the user's id.
    pub(super) async fn person(&self, name: &str, shared: bool) -> Result<String> {
        self.value(&format!(
            "insert into sales (first_name, email, user_id, allow_remote_processing)
             values ('{name}', '{name}@example.com', gen_random_uuid(), {shared}) returning user_id::text"
        ))
        .await
    }

    pub(super) async fn connect(&self, token: &str) -> Result<Socket> {
        self.connect_as(token, "2.0.0").await
    }

    pub(super) async fn connect_as(&self, token: &str, version: &str) -> Result<Socket> {
        let key: String = form_urlencoded::byte_serialize(token.as_bytes()).collect();
        let url = format!("ws://{}/realtime/v1/websocket?apikey={key}&vsn={version}", self.address);
        let (stream, _) = tokio_tungstenite::connect_async(url).await?;
        Ok(Socket { stream, two: version.starts_with('2'), next: 0 })
    }
}

pub(super) fn service() -> String {
    json!({"role": "service_role"}).to_string()
}

pub(super) fn anon() -> String {
    json!({"role": "anon"}).to_string()
}

pub(super) fn user(id: &str) -> String {
    json!({"role": "authenticated", "sub": id}).to_string()
}

pub(super) struct Socket {
    stream: WebSocketStream<MaybeTlsStream<TcpStream>>,
    two: bool,
    next: u64,
}

/// A frame as the client reads it.
#[derive(Debug, Clone)]
pub(super) struct Frame {
    pub join_ref: Value,
    pub reference: Value,
    pub topic: String,
    pub event: String,
    pub payload: Value,
}

impl Socket {
    pub(super) async fn send(&mut self, topic: &str, event: &str, payload: Value) -> Result<String> {
        self.next += 1;
        let reference = self.next.to_string();
        let text = if self.two {
            json!(["1", reference, topic, event, payload]).to_string()
        } else {
            json!({"topic": topic, "event": event, "payload": payload, "ref": reference, "join_ref": "1"}).to_string()
        };
        self.stream.send(Message::text(text)).await?;
        Ok(reference)
    }

    pub(super) async fn send_binary(&mut self, bytes: Vec<u8>) -> Result<()> {
        Ok(self.stream.send(Message::binary(bytes)).await?)
    }

    pub(super) async fn next(&mut self) -> Result<Frame> {
        loop {
            let message = tokio::time::timeout(PATIENCE, self.stream.next()).await.context("no frame came")?.context("closed")??;
            let Message::Text(text) = message else { continue };
            let value: Value = serde_json::from_str(&text)?;
            let get = |at: usize, name: &str| if self.two { value[at].clone() } else { value[name].clone() };
            return Ok(Frame {
                join_ref: get(0, "join_ref"),
                reference: get(1, "ref"),
                topic: get(2, "topic").as_str().unwrap_or_default().to_owned(),
                event: get(3, "event").as_str().unwrap_or_default().to_owned(),
                payload: get(4, "payload"),
            });
        }
    }

    /// The next frame, which must be of this event. Another frame is an error, or a test would not notice an extra frame.
    pub(super) async fn expect(&mut self, event: &str) -> Result<Frame> {
        let frame = self.next().await?;
        if frame.event != event {
            bail!("wanted {event}, got {frame:?}");
        }
        Ok(frame)
    }

    /// Joins with these bindings and waits until the server follows the changes. Returns the ids of the bindings.
    pub(super) async fn follow(&mut self, name: &str, bindings: Value) -> Result<Vec<u64>> {
        self.send(&format!("realtime:{name}"), "phx_join", json!({"config": {"postgres_changes": bindings}})).await?;
        let reply = self.expect("phx_reply").await?;
        anyhow::ensure!(reply.payload["status"] == "ok", "{reply:?}");
        let system = self.expect("system").await?;
        anyhow::ensure!(system.payload["status"] == "ok", "{system:?}");
        let given = reply.payload["response"]["postgres_changes"].as_array().cloned().unwrap_or_default();
        Ok(given.iter().filter_map(|binding| binding["id"].as_u64()).collect())
    }

    /// The next change: `data` of its payload.
    pub(super) async fn change(&mut self) -> Result<Value> {
        Ok(self.expect("postgres_changes").await?.payload["data"].clone())
    }

    /// Checks that no frame has arrived, by a heartbeat: its reply comes after everything that was sent before it.
    pub(super) async fn expect_nothing(&mut self) -> Result<()> {
        self.send("phoenix", "heartbeat", json!({})).await?;
        let frame = self.next().await?;
        anyhow::ensure!(frame.topic == "phoenix", "{frame:?}");
        Ok(())
    }

    /// Whether the server closes the socket without another frame.
    pub(super) async fn closes_silently(&mut self) -> Result<bool> {
        match tokio::time::timeout(PATIENCE, self.stream.next()).await.context("it stays open")? {
            None | Some(Err(_) | Ok(Message::Close(_))) => Ok(true),
            Some(Ok(message)) => bail!("{message:?}"),
        }
    }

    pub(super) async fn is_closed(&mut self) -> bool {
        loop {
            match tokio::time::timeout(PATIENCE, self.stream.next()).await {
                Ok(None | Some(Err(_) | Ok(Message::Close(_)))) => return true,
                Ok(Some(Ok(_))) => {}
                Err(_) => return false,
            }
        }
    }
}
