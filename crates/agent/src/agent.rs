//! One agent process: its workers, one per queue, and what they share.
//!
//! - [`endpoint`]: opens the database or server, however long that takes; [`home`]: reconnects to the database of `gleaner up`;
//!   [`supervise`]: the workers.
//! - [`meter`]: counts the calls between a worker and its queue; [`shared`]: state shared by the parts.
//! - [`work`]: what is done with an item; [`piped`]: the pipelines as work; [`systems`]: those and the systems' own; [`fetch`]: how pipelines fetch what belongs to an
//!   item.

mod endpoint;
mod fetch;
mod home;
pub(crate) mod meter;
mod piped;
pub(crate) mod shared;
mod supervise;
mod systems;
mod work;

use std::path::PathBuf;
use std::sync::Arc;

use axum::Router;
use gleaner::worker::{Control, Tally};
use tokio::sync::watch;
use tokio::task::JoinHandle;

pub use self::meter::Trouble;
use self::shared::Shared;
pub use self::work::{Apart, Work};
use crate::config::Config;
use crate::host::{self, Host};
use crate::pipeline::Pipelines;
use crate::status::{self, note::Note};

/// Failures of an agent as a whole, sorted by what the caller can do about them.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The status page could not listen on its address.
    #[error("listen on {address}: {source}\n  Choose another with --status ADDRESS:PORT; port 0 is any free one, off is none")]
    Listen { address: std::net::SocketAddr, source: std::io::Error },

    /// The note for other processes could not be written.
    #[error("write {}: {source}", path.display())]
    Note { path: PathBuf, source: std::io::Error },

    /// Another agent of this home has that name.
    #[error("an agent named {name:?} runs already, pid {pid}: {url}\n  Choose another name with --name")]
    NameTaken { name: String, pid: u32, url: String },

    /// The endpoint has no queue that this agent can work.
    #[error("{endpoint} has none of the queues {}; there are: {}", wanted.join(", "), if there.is_empty() { "none (run `gleaner migrate`)".to_owned() } else { there.join(", ") })]
    NoQueues { endpoint: String, wanted: Vec<String>, there: Vec<String> },

    /// The configuration names a queue that has no pipeline.
    #[error("no pipeline works the queue {queue:?}; there are pipelines for: {}", known.join(", "))]
    NoPipeline { queue: String, known: Vec<String> },

    /// The configuration names kinds that no pipeline can process.
    #[error("no pipeline can process the kinds {}", .0.join(", "))]
    NoKinds(Vec<String>),

    #[error(transparent)]
    Pipelines(#[from] crate::pipeline::Error),

    #[error(transparent)]
    Host(#[from] crate::host::Error),

    #[error(transparent)]
    Gleaner(#[from] gleaner::Error),

    #[error(transparent)]
    Postgres(#[from] gleaner_postgres::Error),

    /// The settings of follow-ups can never work.
    #[error("follow-ups: {0}")]
    Followups(String),

    /// The configuration asks for runs, and this machine cannot replay any.
    #[error("runs need {0}, which is not on this machine; on Debian: apt-get install chromium chromium-driver")]
    Runs(String),

    /// An error that a user cannot cause. The message says what it is.
    #[error("{0}")]
    Other(String),
}

pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A running agent.
#[derive(Debug)]
pub struct Agent {
    shared: Arc<Shared>,
    stop: watch::Sender<bool>,
    workers: Option<JoinHandle<Result<Tally>>>,
    note: Option<Note>,
    page: Option<JoinHandle<()>>,
    /// Runs the agents of the hosted apps.
    apps: Option<Apps>,
}

struct Apps(Arc<dyn host::Serve>);

impl std::fmt::Debug for Apps {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Apps")
    }
}

impl Agent {
    /// Starts with the pipelines of the configuration.
    ///
    /// Returns at once. If the endpoint cannot be reached, the agent waits for it, and the status page says so.
    pub async fn start(config: Config) -> Result<Self> {
        Self::start_with(config, Router::new()).await
    }

    /// Like [`Self::start`], and also hosts apps: their page at `/host` beside the status page, the models they share at `/v1`.
    pub async fn start_hosting(config: Config) -> Result<Self> {
        if config.status.is_none() {
            return Self::start(config).await;
        }
        let pipelines = Pipelines::load(config.pipelines.as_deref())?;
        let apps = Arc::new(host::Agents::like(&config));
        let host = Host::open(&config.home, apps.clone(), host::Model::of(pipelines.models()))?;
        let mut agent = Self::start_with(config, host::routes(&host)).await?;
        // No other code sets it.
        let _ = agent.shared.apps.set(host.clone());
        agent.apps = Some(Apps(apps));
        // Their places may be unreachable; the page shows the state of each.
        tokio::spawn(async move { host.resume().await });
        Ok(agent)
    }

    /// Like [`Self::start`], with `more` routes beside the status page. They too answer only requests addressed to this machine.
    pub async fn start_with(config: Config, more: Router) -> Result<Self> {
        let work = Arc::new(systems::Systems::load(&config)?);
        Self::with(config, work, more).await
    }

    /// Starts with this work instead of pipelines.
    pub async fn with(config: Config, work: Arc<dyn Work>, more: Router) -> Result<Self> {
        let queues = supervise::queues_of(&config, &*work)?;
        let endpoint = endpoint::Opening::new(&config, queues.len())?;
        let shared = Arc::new(Shared::new(config, work, queues));
        let (note, page) = match shared.config.status {
            Some(listen) => {
                let listener = status::bind(listen).await?;
                let note = Note::write(&shared.config, listener.local_addr().ok()).await?;
                shared.set_name(&note.name);
                let router = status::router(shared.clone(), &note.token).merge(more);
                (Some(note), Some(tokio::spawn(status::serve(listener, router))))
            }
            None => (None, None),
        };
        let (stop, stopping) = watch::channel(false);
        let workers = tokio::spawn(supervised(shared.clone(), endpoint, stopping));
        Ok(Self { shared, stop, workers: Some(workers), note, page, apps: None })
    }

    /// Pause, concurrency and figures.
    pub fn control(&self) -> &Control {
        &self.shared.control
    }

    /// What is wrong with its endpoint, or why the agent has ended by itself. None while all is well.
    pub fn trouble(&self) -> Option<Trouble> {
        self.shared.trouble()
    }

    /// Its name in this home.
    pub fn name(&self) -> String {
        self.shared.name()
    }

    /// The address of the status page.
    pub fn url(&self) -> Option<&str> {
        self.note.as_ref().map(|note| note.url.as_str())
    }

    /// The queues it works, in the order of the pipelines.
    pub fn queues(&self) -> &[String] {
        &self.shared.queues
    }

    /// How many items it holds.
    pub fn running(&self) -> usize {
        self.shared.control.stats().running.len()
    }

    /// Stops claiming. Running items may finish within the grace period, and are released after it. [`Self::wait`] resolves when
    /// all is done.
    pub fn begin_to_stop(&self) {
        self.shared.set_stopping();
        self.stop.send_replace(true);
    }

    /// Resolves when the agent has ended: it was stopped, it is done, or it failed for a reason that waiting does not fix.
    pub async fn wait(&mut self) -> Result<Tally> {
        let Some(workers) = &mut self.workers else { return Ok(Tally::default()) };
        let ended = workers.await.map_err(|error| Error::Other(format!("the agent's workers stopped: {error}")))?;
        self.workers = None;
        if let Some(Apps(apps)) = self.apps.take() {
            apps.end().await;
        }
        ended
    }

    /// Stops gracefully.
    pub async fn stop(mut self) -> Result<Tally> {
        self.begin_to_stop();
        self.wait().await
    }

    /// Releases everything that is held at once, without waiting for running work. No attempt is used up.
    pub async fn release_now(mut self) -> u64 {
        self.begin_to_stop();
        let mut released = 0;
        for meter in self.shared.meters() {
            released += meter.release_all().await;
        }
        if let Some(workers) = self.workers.take() {
            workers.abort();
        }
        // Items held by the agents of the apps return to their queues by themselves.
        drop(self.apps.take());
        released
    }
}

/// Records why the agent ended, so that it can be seen later even if no caller was waiting.
async fn supervised(shared: Arc<Shared>, endpoint: endpoint::Opening, stop: watch::Receiver<bool>) -> Result<Tally> {
    let ended = supervise::run(shared.clone(), endpoint, stop).await;
    if let Err(error) = &ended {
        let trouble = Trouble { ended: true, ..Trouble::saying(error.to_string(), true) };
        shared.change(|now| now.trouble = Some(trouble));
    }
    ended
}

impl Drop for Agent {
    fn drop(&mut self) {
        if let Some(workers) = &self.workers {
            workers.abort();
        }
        if let Some(page) = &self.page {
            page.abort();
        }
        if let Some(note) = &self.note {
            note.remove();
        }
    }
}
