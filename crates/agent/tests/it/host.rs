//! The agent's side of the host page, over real sockets. Its behaviour in a browser is tested in tests/host.

mod consenting;
mod guarding;
mod models;
mod serving;

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Context as _, Result};
use async_trait::async_trait;
use axum::Router;
use gleaner_agent::host::{self, App, Host, Kind, Limits, Model, Serve, Trouble};
use reqwest::{Client, RequestBuilder};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use uuid::Uuid;

/// Records its calls. Starting an app takes a permit, so that a test can make it wait.
#[derive(Debug)]
struct Noted {
    said: Mutex<Vec<String>>,
    starts: Semaphore,
}

#[async_trait]
impl Serve for Noted {
    async fn serve(&self, app: App) -> Result<(), Trouble> {
        self.note(format!("begin {}", app.name));
        self.starts.acquire().await?.forget();
        self.note(format!("serve {} {}", app.name, app.place.url));
        Ok(())
    }

    async fn stop(&self, name: &str) {
        self.note(format!("stop {name}"));
    }
}

impl Noted {
    fn note(&self, what: String) {
        self.said.lock().expect("no panic holds it").push(what);
    }

    fn said(&self) -> Vec<String> {
        self.said.lock().expect("no panic holds it").clone()
    }
}

struct Stage {
    host: Host,
    noted: Arc<Noted>,
    base: String,
    token: String,
    http: Client,
    home: PathBuf,
}

impl Drop for Stage {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.home);
    }
}

async fn stage() -> Result<Stage> {
    stage_with(Vec::new(), Limits::default()).await
}

async fn stage_with(models: Vec<Model>, limits: Limits) -> Result<Stage> {
    let home = std::env::temp_dir().join(format!("gleaner-host-{}", Uuid::now_v7()));
    std::fs::create_dir(&home)?;
    let noted = Arc::new(Noted { said: Mutex::default(), starts: Semaphore::new(100) });
    let host = Host::open_with(&home, noted.clone(), models, limits)?;
    let router = Router::new().nest("/host", host::router(host.clone())).nest("/v1", host::ai_router(host.clone()));
    let base = listen(router).await?;
    let http = Client::builder().no_proxy().build()?;
    let page = http.get(format!("{base}/host")).send().await?.text().await?;
    let token = page.split_once("gleaner-token\" content=\"").and_then(|(_, rest)| rest.split_once('"')).context("a token")?.0.to_owned();
    Ok(Stage { host, noted, base, token, http, home })
}

async fn listen(router: Router) -> Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let base = format!("http://{}", listener.local_addr()?);
    tokio::spawn(async move { axum::serve(listener, router).await });
    Ok(base)
}

impl Stage {
    /// A request as the page sends it.
    fn asks(&self, act: &str, body: &Value) -> RequestBuilder {
        let request = self.http.post(format!("{}/host/api/{act}", self.base)).json(body);
        request.header("origin", &self.base).header("sec-fetch-site", "same-origin").header("x-gleaner-token", &self.token)
    }

    async fn page(&self, act: &str, body: Value) -> Result<(u16, Value)> {
        answered(self.asks(act, &body)).await
    }

    /// Adds an app that the user consented to. Returns its token.
    async fn agreed(&self, name: &str, url: &str) -> Result<String> {
        self.host.add(name, url, None)?;
        let (_, asked) = self.page("ask", json!({"name": name, "message": message("https://project.supabase.co")})).await?;
        let (status, granted) = self.page("agree", json!({"name": name, "proposal": asked["proposal"]})).await?;
        anyhow::ensure!(status == 200, "{granted}");
        Ok(granted["token"].as_str().context("a token")?.to_owned())
    }
}

async fn answered(request: RequestBuilder) -> Result<(u16, Value)> {
    let answer = request.send().await?;
    let status = answer.status().as_u16();
    let text = answer.text().await?;
    Ok((status, serde_json::from_str(&text).unwrap_or(Value::String(text))))
}

fn message(url: &str) -> Value {
    json!({"type": "SUPABASE_CONFIG", "payload": {"appName": "atomic-crm", "url": url, "anonKey": "sb_publishable_0123456789abcdef", "tables": ["activities"]}})
}

fn model(kind: Kind, base: &str) -> Model {
    let name = serde_json::to_value(kind).ok().and_then(|kind| kind.as_str().map(str::to_owned)).unwrap_or_default();
    let timeout = Duration::from_millis(500);
    Model { name, kind, base_url: format!("{base}/v1/"), key: Some("ours".into()), model: "real".into(), timeout }
}

async fn until(what: &str, test: impl Fn() -> bool) -> Result<()> {
    for _ in 0..500 {
        if test() {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    anyhow::bail!("waited in vain: {what}")
}
