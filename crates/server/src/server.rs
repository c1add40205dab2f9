//! A running server: everything started, and stopped again without losing an answer.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt as _;
use gleaner::Pool;
use gleaner::bell::Bell;
use gleaner_ingest::sealing::MasterKeys;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

use crate::access::Access;
use crate::auth::Keyring;
use crate::channels::Channels;
use crate::door::body::Memory;
use crate::door::committer::{Committer, How};
use crate::door::contacts::Newcomers;
use crate::door::limits::Limits;
use crate::door::prune;
use crate::door::refusals::{self, Refusals};
use crate::files::Files;
use crate::gmail::{Gmail, Parts};
use crate::media::{self, Media};
use crate::queues::Queues;
use crate::realtime::Realtime;
use crate::rest::Rest;
use crate::{Config, State, contacts, nodes, router, serve};

/// Hints that something waits at a provider, until somebody fetches it.
const FETCHES: usize = 1024;

/// How often we look for secrets written in clear at doors where nobody knocks.
const SEALING: Duration = Duration::from_secs(60);

/// How often we look for contacts nobody has read and senders nobody has looked at.
const SWEEPING: Duration = Duration::from_secs(60);

/// Why a server did not start; each says what to do.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("cannot listen on {address}: {source}")]
    Listen { address: SocketAddr, source: std::io::Error },
    #[error("{0}")]
    Keys(String),
    #[error("the HTTP client: {0}")]
    Client(#[from] reqwest::Error),
    #[error("the file store: {0}")]
    Files(#[from] crate::files::Error),
}

#[derive(Debug)]
pub struct Server {
    state: Arc<State>,
    stop: watch::Sender<bool>,
    serving: JoinHandle<()>,
    /// End by themselves once nothing can reach them any more.
    finishing: Vec<JoinHandle<()>>,
    /// Never end by themselves.
    background: Vec<JoinHandle<()>>,
}

impl Server {
    /// Starts to listen. `pool` leads to `url`, which is needed beside it for what keeps a connection of its own: the bell and
    /// the change feed. The database need not answer yet: until it does, senders are told to come back.
    pub async fn start(config: Config, url: &str, pool: Pool) -> Result<Self, StartError> {
        // The HTTP client leaves the choice of cryptography to the program; a second server in one process finds it made.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let keys = MasterKeys::load(&config.home).map_err(|error| StartError::Keys(error.to_string()))?;
        let access = Access::load(&config.home).map_err(|error| StartError::Keys(error.to_string()))?.with_programs(pool.clone());
        let files = Files::open(&config.home, config.files_url.as_deref())?;
        let listen = |source| StartError::Listen { address: config.listen, source };
        let listener = TcpListener::bind(config.listen).await.map_err(listen)?;
        let address = listener.local_addr().map_err(listen)?;

        let how = How { tasks: config.committers, group: config.group, within: config.commit_within };
        let (committer, mut finishing) = Committer::start(&pool, &Bell::new(pool.clone()), how);
        let (newcomers, creating) = Newcomers::start(pool.clone());
        finishing.push(creating);
        let (fetches, to_fetch) = mpsc::channel(FETCHES);
        let channels = Channels::with_providers(pool.clone(), keys, config.providers);
        let parts = Parts {
            pool: pool.clone(),
            channels: channels.clone(),
            files: files.clone(),
            committer: committer.clone(),
            newcomers: newcomers.clone(),
        };
        let gmail = Arc::new(Gmail::new(config.google.clone(), parts)?);
        let options = media::Options { allow_private: config.allow_private_media.clone(), ..config.media.clone() };
        let media = Arc::new(Media::new(options, pool.clone(), channels.clone(), files.clone(), Arc::clone(&gmail))?);
        let queues = Queues::new(url, pool.clone(), access.clone());
        let (tokens, heard) = (access.clone(), queues.clone());
        let realtime = config.realtime.then(|| {
            let verify = move |token: String| {
                let tokens = tokens.clone();
                async move { tokens.holder(&token).await }.boxed()
            };
            let heard = move |schema: &str, table: &str| heard.hear_table(schema, table);
            Realtime::start(url, pool.clone(), Arc::new(verify), Arc::new(heard))
                .with_queues(queues.clone())
                .with_nodes(queues.nodes().clone())
        });
        let rest = Rest::new(pool.clone(), Arc::new(Keyring::new(access.clone(), pool.clone())), config.rest.clone())
            .with_nodes(queues.nodes().clone());
        let state = Arc::new(State {
            address,
            channels,
            files,
            access,
            gmail,
            media,
            queues,
            rest,
            realtime,
            committer,
            newcomers,
            refusals: Refusals::default(),
            limits: Limits::new(&config.limits),
            memory: Memory::new(config.limits.body_memory),
            fetches,
            to_fetch: Mutex::new(Some(to_fetch)),
            pool,
            config,
        });
        let (stop, stopped) = watch::channel(false);
        if let Some(hints) = state.take_fetches() {
            // Before those whose work it gives them to finish.
            finishing.insert(0, tokio::spawn(Arc::clone(&state.gmail).run(hints, stopped.clone())));
        }
        let serving = tokio::spawn(serve::serve(listener, router::router(Arc::clone(&state)), state.config.limits.clone(), stopped));
        let background = vec![
            tokio::spawn(refusals::keep_writing(Arc::clone(&state))),
            tokio::spawn(prune::keep_pruning(Arc::clone(&state))),
            tokio::spawn(state.channels.clone().keep_sealed(SEALING)),
            tokio::spawn(nodes::keep_telling(state.queues.nodes().clone(), state.pool.clone(), state.config.nodes_every)),
            tokio::spawn(contacts::keep_swept(state.pool.clone(), SWEEPING)),
            tokio::spawn(pass_bells_on(Arc::clone(&state))),
        ];
        Ok(Self { state, stop, serving, finishing, background })
    }

    /// Where it listens.
    pub fn local_addr(&self) -> SocketAddr {
        self.state.address
    }

    pub fn state(&self) -> &Arc<State> {
        &self.state
    }

    /// Accepts nothing more, finishes what is in flight, and writes down what was counted.
    pub async fn stop(self) {
        self.stop.send_replace(true);
        let _ = self.serving.await;
        for task in self.background {
            task.abort();
            let _ = task.await;
        }
        self.state.refusals.flush(&self.state.pool).await;
        if let Err(error) = self.state.queues.nodes().tell(&self.state.pool).await {
            tracing::debug!(%error, "which devices worked is forgotten");
        }
        // With the state go the last senders; the tasks finish what they were given, and end.
        drop(self.state);
        for task in self.finishing {
            let _ = tokio::time::timeout(Duration::from_secs(15), task).await;
        }
    }
}

/// A bell says that rows were written: whoever follows changes need not wait for the next look.
async fn pass_bells_on(state: Arc<State>) {
    let Some(realtime) = &state.realtime else { return };
    loop {
        state.queues.any_rung().await;
        realtime.hint();
    }
}
