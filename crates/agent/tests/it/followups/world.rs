//! A database, an HTTP endpoint that receives, and agents that send to it.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex};

use anyhow::{Context as _, Result};
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::{Json, Router};
use gleaner_agent::agent::Agent;
use gleaner_agent::config::{Config, Sources};
use gleaner_postgres::testing;
use serde_json::{Value, json};
use tokio_postgres::Client;

pub(super) use crate::agent::world::eventually;

pub(super) struct World {
    pub client: Client,
    url: String,
    home: PathBuf,
    endpoint: String,
    inbox: Arc<Inbox>,
}

#[derive(Debug, Default)]
struct Inbox {
    got: Mutex<Vec<Got>>,
    status: AtomicU16,
    answer: Mutex<Option<Value>>,
}

/// One request that arrived.
#[derive(Debug, Clone)]
pub(super) struct Got {
    pub path: String,
    pub key: String,
    /// JSON, or the fields of a form.
    pub body: Value,
}

impl World {
    pub(super) async fn new() -> Result<Self> {
        let prepare = async |url: String| gleaner::migrate::migrate(&url, &|_| {}).await.map(drop);
        let database = testing::server().database_from("migrated", prepare).await?;
        let home = std::env::temp_dir().join(format!("gleaner-followups-{}", uuid::Uuid::new_v4()));
        std::fs::create_dir(&home)?;
        let inbox = Arc::new(Inbox { status: AtomicU16::new(200), ..Inbox::default() });
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        let endpoint = format!("http://{}/", listener.local_addr()?);
        let router = Router::new().fallback(receive).with_state(inbox.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        Ok(Self { client: gleaner::connect(&database.url).await?, url: database.url, home, endpoint, inbox })
    }

    pub(super) async fn agent(&self, flags: &[(&'static str, &str)]) -> Result<Agent> {
        let mut sources = Sources { variables: Default::default(), ..Sources::of(&self.home) };
        let usual = [
            ("database_url", self.url.as_str()),
            ("status", "127.0.0.1:0"),
            ("queues", "followups"),
            ("followups.http_url", &self.endpoint),
        ];
        sources.flags = usual.iter().chain(flags).map(|(key, value)| (*key, (*value).to_owned())).collect();
        Ok(Agent::start(Config::load(sources)?).await?)
    }

    pub(super) async fn plan(&self, prospect: &str, after: &str, payload: Value) -> Result<String> {
        let sql = "select id::text from create_scheduled_action($1, 'follow_up', clock_timestamp() + $2::text::interval, $3)";
        Ok(self.client.query_one(sql, &[&prospect, &after, &payload]).await?.get(0))
    }

    pub(super) async fn contact(&self, name: &str, email: &str) -> Result<i64> {
        Ok(self.client.query_one("insert into contacts (first_name, email) values ($1, $2) returning id", &[&name, &email]).await?.get(0))
    }

    pub(super) async fn reply(&self, from: &str, text: &str) -> Result<()> {
        self.reply_as("email", from, text, "email").await
    }

    pub(super) async fn reply_as(&self, kind: &str, from: &str, text: &str, activity: &str) -> Result<()> {
        let sql = "insert into activities (type, raw_data, sender_kind, sender_address, created_at) values ($4, jsonb_build_object('content', $3::text), $1, $2, clock_timestamp())";
        self.client.execute(sql, &[&kind, &from, &text, &activity]).await?;
        Ok(())
    }

    /// A reply that no trigger hears.
    pub(super) async fn quietly_reply(&self, from: &str) -> Result<()> {
        self.client.batch_execute("alter table activities disable trigger hear_replies").await?;
        self.reply(from, "hello").await?;
        self.client.batch_execute("alter table activities enable trigger hear_replies").await?;
        Ok(())
    }

    pub(super) async fn claim(&self, id: &str) -> Result<i64> {
        let row = self.client.query_one("select id::text, lease from gleaner.claim_followups('test', p_started => true)", &[]).await?;
        anyhow::ensure!(row.get::<_, String>(0) == id, "another action was due");
        Ok(row.get(1))
    }

    pub(super) async fn begin(&self, id: &str, lease: i64) -> Result<Value> {
        let request = json!({"id": id, "lease": lease, "message": {"sink": "http", "to": "x", "text": "Hello"}});
        Ok(self.client.query_one("select gleaner.begin_sending($1)", &[&request]).await?.get(0))
    }

    pub(super) async fn status(&self, id: &str) -> Result<String> {
        self.text(&format!("select status from scheduled_actions where id = '{id}'")).await
    }

    pub(super) async fn until(&self, id: &str, status: &str) -> Result<()> {
        eventually(&format!("{id} to be {status}"), async || Ok(self.status(id).await? == status)).await
    }

    pub(super) async fn text(&self, sql: &str) -> Result<String> {
        let row = self.client.query_opt(sql, &[]).await.with_context(|| sql.to_owned())?;
        Ok(row.and_then(|row| row.get::<_, Option<String>>(0)).unwrap_or_default())
    }

    pub(super) async fn number(&self, sql: &str) -> Result<f64> {
        Ok(self.client.query_one(sql, &[]).await?.get(0))
    }

    pub(super) async fn json(&self, sql: &str) -> Result<Value> {
        Ok(self.client.query_one(sql, &[]).await?.get(0))
    }

    pub(super) async fn contact_with_phone(&self, name: &str, number: &str) -> Result<i64> {
        let sql = "insert into contacts (first_name, phone_number) values ($1, $2) returning id";
        Ok(self.client.query_one(sql, &[&name, &number]).await?.get(0))
    }

    pub(super) fn endpoint(&self) -> &str {
        &self.endpoint
    }

    pub(super) fn home(&self) -> &Path {
        &self.home
    }

    pub(super) fn answer_body(&self, body: Value) {
        *self.inbox.answer.lock().expect("not poisoned") = Some(body);
    }

    pub(super) fn answer_with(&self, status: u16) {
        self.inbox.status.store(status, Ordering::SeqCst);
    }

    pub(super) fn count(&self) -> usize {
        self.inbox.got.lock().expect("not poisoned").len()
    }

    /// What arrived, once there are this many.
    pub(super) async fn received(&self, count: usize) -> Result<Vec<Got>> {
        eventually("messages to arrive", async || Ok(self.count() >= count)).await?;
        Ok(self.inbox.got.lock().expect("not poisoned").clone())
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.home);
    }
}

async fn receive(State(inbox): State<Arc<Inbox>>, uri: Uri, headers: HeaderMap, body: Bytes) -> (StatusCode, Json<Value>) {
    let key = headers.get("idempotency-key").and_then(|key| key.to_str().ok()).unwrap_or_default().to_owned();
    let form = || form_urlencoded::parse(&body).map(|(name, value)| (name.into_owned(), json!(value))).collect();
    let read = serde_json::from_slice(&body).unwrap_or_else(|_| Value::Object(form()));
    let mut got = inbox.got.lock().expect("not poisoned");
    got.push(Got { path: uri.path().to_owned(), key, body: read });
    let status = StatusCode::from_u16(inbox.status.load(Ordering::SeqCst)).unwrap_or_default();
    let answer = inbox.answer.lock().expect("not poisoned").clone();
    (status, Json(answer.unwrap_or_else(|| json!({"message_id": format!("m-{}", got.len())}))))
}
