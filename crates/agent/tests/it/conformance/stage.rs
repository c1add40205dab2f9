//! A database of the test's own with queues in it, accessed over any transport.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use gleaner::queue::Item;
use gleaner::transport::{Direct, Endpoint, Push, Transport};
use gleaner::{Claim, Outcome};
use gleaner_agent::wire::{Protocol, Settings, Wire};
use gleaner_http::Role;
use gleaner_server::{Config, Server};
use serde_json::{Value, json};
use tokio::sync::Mutex;
use uuid::Uuid;

use super::relay::Relay;
use crate::world::{World, world};

/// The longest that a test waits for an expected event.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Over {
    Direct,
    Native,
    Rpc,
}

pub(crate) struct Stage {
    pub place: Arc<dyn Endpoint>,
    pub served: Option<Served>,
    pub world: World,
}

/// A real server in front of the database.
pub(crate) struct Served {
    server: Mutex<Option<Server>>,
    address: SocketAddr,
    /// Within one process the server's sockets outlive its stop, so the relay is cut as well.
    relay: Relay,
    pub anon: String,
    pub service: String,
    pub home: Home,
    database: String,
}

/// A directory that is removed with the test.
pub(crate) struct Home(pub PathBuf);

impl Home {
    pub(crate) fn new() -> Result<Self> {
        let path = std::env::temp_dir().join(format!("gleaner-agent-{}", Uuid::now_v7()));
        std::fs::create_dir(&path)?;
        Ok(Self(path))
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Served {
    /// How many claims were answered from memory, and how many statements the others needed.
    pub(crate) async fn tally(&self) -> Option<(u64, u64)> {
        self.server.lock().await.as_ref().map(|server| server.state().queues.tally())
    }

    /// How often the waiting items were counted.
    pub(crate) async fn counted(&self) -> Option<u64> {
        self.server.lock().await.as_ref().map(|server| server.state().queues.counted())
    }

    pub(crate) async fn start(database: &str) -> Result<Self> {
        let home = Home::new()?;
        let server = serve(&home, database, SocketAddr::from(([127, 0, 0, 1], 0))).await?;
        let access = gleaner_server::load_access(&home.0)?;
        let (anon, service) = (access.project_key(Role::Anon), access.project_key(Role::Service));
        let address = server.local_addr();
        let relay = Relay::to(address).await?;
        Ok(Self { server: Mutex::new(Some(server)), address, relay, anon, service, home, database: database.to_owned() })
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.relay.address)
    }

    pub(crate) fn settings(&self) -> Settings {
        Settings { url: self.url(), anon_key: self.anon.clone(), service_key: Some(self.service.clone()), session: None }
    }

    pub(crate) async fn stop(&self) {
        self.relay.cut();
        if let Some(server) = self.server.lock().await.take() {
            server.stop().await;
        }
    }

    pub(crate) async fn start_again(&self) -> Result<()> {
        *self.server.lock().await = Some(serve(&self.home, &self.database, self.address).await?);
        self.relay.mend();
        Ok(())
    }
}

async fn serve(home: &Home, database: &str, listen: SocketAddr) -> Result<Server> {
    let mut config = Config::new(&home.0);
    config.listen = listen;
    config.realtime = true;
    Ok(Server::start(config, database, gleaner::pool(database, 16)?).await?)
}

pub(crate) async fn stage(over: Over) -> Result<Stage> {
    let world = world().await?;
    let served = if over == Over::Direct { None } else { Some(Served::start(world.url()).await?) };
    let way = if over == Over::Rpc { Protocol::Rpc } else { Protocol::Native };
    let place: Arc<dyn Endpoint> = match &served {
        None => Arc::new(Direct::new(world.url(), 4)?),
        Some(served) => Arc::new(Wire::connect_by(served.settings(), way)?),
    };
    Ok(Stage { place, served, world })
}

impl Stage {
    pub(crate) async fn open(&self, queue: &str) -> Result<Arc<dyn Transport>> {
        Ok(self.place.open(queue).await?)
    }

    /// Enqueues a job and returns its key.
    pub(crate) async fn job(&self, kind: &str, payload: Value) -> Result<String> {
        let items = json!([{"kind": kind, "payload": payload}]);
        let row = self.world.client.query_one("select id::text from gleaner.enqueue_jobs($1)", &[&items]).await?;
        Ok(row.get(0))
    }

    /// Enqueues a job and claims it.
    pub(crate) async fn held(&self, jobs: &dyn Transport, kind: &str) -> Result<Item> {
        self.job(kind, json!({})).await?;
        take(jobs, kind).await
    }

    /// Sends the notification that writers send after their commit.
    pub(crate) async fn ring(&self, queue: &str) -> Result<()> {
        self.world.client.execute("select pg_notify('gleaner', $1)", &[&queue]).await?;
        Ok(())
    }

    /// Closes every connection: the server's, or the database's if there is no server.
    pub(crate) async fn cut(&self) -> Result<()> {
        match &self.served {
            Some(served) => served.stop().await,
            None => {
                let end =
                    "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()";
                self.world.client.execute(end, &[]).await?;
            }
        }
        Ok(())
    }

    pub(crate) async fn mend(&self) -> Result<()> {
        match &self.served {
            Some(served) => served.start_again().await,
            None => Ok(()),
        }
    }

    pub(crate) async fn text(&self, sql: &str) -> Result<String> {
        self.world.text(sql).await?.with_context(|| format!("nothing: {sql}"))
    }
}

pub(crate) async fn take(queue: &dyn Transport, kind: &str) -> Result<Item> {
    let claimed = queue.claim(&Claim::by("agent").kinds([kind]).started()).await?;
    claimed.items.into_iter().next().context("nothing was claimed")
}

pub(crate) fn outcomes(answers: &[gleaner::queue::Answer]) -> Vec<(&str, Outcome)> {
    answers.iter().map(|answer| (answer.key.as_str(), answer.outcome)).collect()
}

/// Waits until the connection has the wanted state. Fails after the timeout.
pub(crate) async fn connected(push: &mut Box<dyn Push>, wanted: bool) -> Result<()> {
    tokio::time::timeout(PATIENCE, async {
        while push.is_connected() != wanted {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await
    .with_context(|| format!("connected never became {wanted}"))
}

/// Waits until no more notifications arrive.
pub(crate) async fn settled(push: &mut Box<dyn Push>) {
    loop {
        push.mark();
        if tokio::time::timeout(Duration::from_millis(300), push.notified()).await.is_err() {
            return;
        }
    }
}
