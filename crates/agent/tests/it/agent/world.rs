//! A database, a home, and agents whose items the test completes itself.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use async_trait::async_trait;
use axum::Router;
use gleaner::worker::{Context, Replied, Reply, Tally};
use gleaner::{Failure, Item};
use gleaner_agent::agent::{Agent, Work};
use gleaner_agent::config::{Config, Sources, Until};
use gleaner_postgres::testing::{self, TestDatabase};
use serde_json::{Value, json};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio_postgres::Client;

pub(crate) struct World {
    pub url: String,
    pub home: PathBuf,
    pub client: Client,
}

impl World {
    pub(crate) async fn new() -> Result<Self> {
        let prepare = async |url: String| gleaner::migrate::migrate(&url, &|_| {}).await.map(drop);
        Self::on(testing::server().database_from("migrated", prepare).await?).await
    }

    /// On an empty database.
    pub(crate) async fn empty() -> Result<Self> {
        Self::on(testing::server().empty_database().await?).await
    }

    async fn on(database: TestDatabase) -> Result<Self> {
        let home = std::env::temp_dir().join(format!("gleaner-agent-{}", uuid::Uuid::new_v4()));
        std::fs::create_dir(&home)?;
        Ok(Self { client: gleaner::connect(&database.url).await?, url: database.url, home })
    }

    /// The URL of the same database for another role.
    pub(crate) fn url_of(&self, role: &str) -> Result<String> {
        let config: tokio_postgres::Config = self.url.parse()?;
        let Some(tokio_postgres::config::Host::Unix(folder)) = config.get_hosts().first() else { bail!("no socket in {}", self.url) };
        let (port, database) = (config.get_ports().first().copied().unwrap_or(5432), config.get_dbname().unwrap_or("postgres"));
        Ok(format!("postgresql://{role}@/{database}?host={}&port={port}", folder.display()))
    }

    pub(crate) async fn text(&self, query: &str) -> Result<String> {
        let row = self.client.query_one(query, &[]).await.with_context(|| query.to_owned())?;
        Ok(row.get::<_, Option<String>>(0).unwrap_or_default())
    }

    pub(crate) async fn activity(&self, owner: Option<i64>) -> Result<String> {
        let insert = "insert into activities (sales_id, type, raw_data) values ($1, 'note', '{\"content\": \"hello\"}') returning id::text";
        Ok(self.client.query_one(insert, &[&owner]).await?.get(0))
    }

    pub(crate) async fn job(&self, kind: &str) -> Result<String> {
        Ok(self.client.query_one("insert into gleaner.jobs (kind) values ($1) returning id::text", &[&kind]).await?.get(0))
    }

    fn config(&self, url: &str, flags: &[(&'static str, &str)]) -> Result<Config> {
        let mut sources = Sources { variables: Default::default(), ..Sources::of(&self.home) };
        let quick = [
            ("database_url", url),
            ("poll.base", "100ms"),
            ("poll.max", "500ms"),
            ("poll.pushed_base", "200ms"),
            ("poll.pushed_max", "500ms"),
        ];
        sources.flags =
            quick.iter().chain([("status", "127.0.0.1:0")].iter()).chain(flags).map(|(key, value)| (*key, (*value).to_owned())).collect();
        Ok(Config::load(sources)?)
    }

    pub(crate) async fn agent(&self, flags: &[(&'static str, &str)]) -> Result<(Agent, Arrivals)> {
        self.agent_at(&self.url, flags).await
    }

    pub(crate) async fn agent_at(&self, url: &str, flags: &[(&'static str, &str)]) -> Result<(Agent, Arrivals)> {
        self.agent_with(url, &["activities", "jobs", "nowhere"], flags).await
    }

    /// An agent that works these queues.
    pub(crate) async fn agent_for(&self, queues: &[&str], flags: &[(&'static str, &str)]) -> Result<(Agent, Arrivals)> {
        self.agent_with(&self.url, queues, flags).await
    }

    async fn agent_with(&self, url: &str, queues: &[&str], flags: &[(&'static str, &str)]) -> Result<(Agent, Arrivals)> {
        let (arrived, arrivals) = mpsc::unbounded_channel();
        let work = ByHand { arrived, queues: queues.iter().map(|queue| (*queue).to_owned()).collect() };
        let agent = Agent::with(self.config(url, flags)?, Arc::new(work), Router::new()).await?;
        Ok((agent, Arrivals(arrivals)))
    }

    /// Completes every item at once, until the agent ends by itself.
    pub(crate) async fn run_until(&self, until: Until) -> Result<Tally> {
        let mut config = self.config(&self.url, &[])?;
        config.until = until;
        Ok(Agent::with(config, Arc::new(AtOnce), Router::new()).await?.wait().await?)
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.home);
    }
}

/// Work that is done when the test says so.
#[derive(Debug)]
struct ByHand {
    arrived: mpsc::UnboundedSender<Arrival>,
    queues: Vec<String>,
}

#[async_trait]
impl Work for ByHand {
    fn queues(&self) -> Vec<String> {
        self.queues.clone()
    }

    fn kinds(&self, queue: &str) -> Option<Vec<String>> {
        (queue == "activities").then(|| vec!["note".into()])
    }

    fn capabilities(&self) -> Vec<String> {
        vec!["by hand".into()]
    }

    async fn run(&self, queue: &str, item: Item, context: Context) -> Replied {
        let (end, ended) = oneshot::channel();
        let _ = self.arrived.send(Arrival { name: format!("{queue} {}", item.key), context, end });
        ended.await.unwrap_or_else(|_| Err(Failure::new("the test let go of it"))).map(Reply::Complete)
    }
}

#[derive(Debug)]
struct AtOnce;

#[async_trait]
impl Work for AtOnce {
    fn queues(&self) -> Vec<String> {
        ["activities", "jobs"].map(str::to_owned).into()
    }

    fn kinds(&self, _: &str) -> Option<Vec<String>> {
        None
    }

    async fn run(&self, _: &str, _: Item, _: Context) -> Replied {
        Ok(Reply::Complete(Some(json!({}))))
    }
}

/// An item that the test holds.
#[derive(Debug)]
pub(crate) struct Arrival {
    pub name: String,
    pub context: Context,
    end: oneshot::Sender<Result<Option<Value>, Failure>>,
}

impl Arrival {
    pub(crate) fn finish(self, result: Value) -> String {
        let _ = self.end.send(Ok(Some(result)));
        self.name
    }

    pub(crate) fn fail(self, failure: Failure) {
        let _ = self.end.send(Err(failure));
    }
}

pub(crate) struct Arrivals(mpsc::UnboundedReceiver<Arrival>);

impl Arrivals {
    pub(crate) async fn next(&mut self) -> Result<Arrival> {
        let next = tokio::time::timeout(Duration::from_secs(20), self.0.recv()).await.context("nothing arrives")?;
        next.context("the agent is gone")
    }

    pub(crate) async fn none_for(&mut self, time: Duration) -> bool {
        tokio::time::timeout(time, self.0.recv()).await.is_err()
    }
}

/// A connection to the database that the test can cut.
pub(crate) struct Line {
    pub url: String,
    folder: PathBuf,
    real: PathBuf,
    ends: std::sync::Mutex<Vec<JoinHandle<()>>>,
}

impl Line {
    /// A proxy that does not accept connections yet.
    pub(crate) fn to(url: &str) -> Result<Self> {
        let (before, host) = url.split_once("host=").context("a unix socket")?;
        let (host, rest) = host.split_once('&').map_or((host, String::new()), |(host, rest)| (host, format!("&{rest}")));
        let host = host.replace("%2F", "/").replace("%2f", "/");
        let folder = std::env::temp_dir().join(format!("line-{}", &uuid::Uuid::new_v4().simple().to_string()[..8]));
        std::fs::create_dir(&folder)?;
        let real = std::fs::read_dir(&host)?.filter_map(|file| Some(file.ok()?.path())).find(|path| {
            path.file_name()
                .is_some_and(|name| name.to_string_lossy().starts_with(".s.PGSQL.") && !name.to_string_lossy().ends_with(".lock"))
        });
        Ok(Self {
            url: format!("{before}host={}{rest}", folder.display()),
            folder,
            real: real.context("a socket")?,
            ends: std::sync::Mutex::default(),
        })
    }

    pub(crate) async fn open(&self) -> Result<()> {
        let listener = UnixListener::bind(self.folder.join(self.real.file_name().context("a name")?))?;
        let real = self.real.clone();
        let accepting = tokio::spawn(async move {
            // Dropped with the task, which closes every connection.
            let mut connections = tokio::task::JoinSet::new();
            while let Ok((mut near, _)) = listener.accept().await {
                let real = real.clone();
                connections.spawn(async move {
                    let Ok(mut far) = UnixStream::connect(real).await else { return };
                    let _ = tokio::io::copy_bidirectional(&mut near, &mut far).await;
                });
            }
        });
        self.ends.lock().expect("not poisoned").push(accepting);
        Ok(())
    }

    pub(crate) fn cut(&self) {
        self.ends.lock().expect("not poisoned").drain(..).for_each(|end| end.abort());
        let _ = self.real.file_name().map(|name| std::fs::remove_file(self.folder.join(name)));
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.cut();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Waits until the condition is true.
pub(crate) async fn eventually(what: &str, is_so: impl AsyncFn() -> Result<bool>) -> Result<()> {
    for _ in 0..600 {
        if is_so().await? {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    bail!("waited in vain for {what}")
}

/// Status and body of a GET request to the agent's page.
pub(crate) async fn get(agent: &Agent, path: &str) -> Result<(u16, Value)> {
    let answer = client().get(format!("{}{path}", agent.url().context("a page")?)).send().await?;
    Ok((answer.status().as_u16(), answer.json().await?))
}

pub(crate) fn client() -> reqwest::Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder().no_proxy().build().expect("a client")
}
