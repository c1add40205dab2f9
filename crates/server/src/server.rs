//! A running server: it starts every task, and stops them again without losing a response.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use gleaner::Pool;
use gleaner::notify::Notifier;
use gleaner_http::Authenticate as _;
use gleaner_ingest::sealing::MasterKeys;
use gleaner_intake::channels::Channels;
use gleaner_intake::contacts;
use gleaner_intake::dumps::{self, Dumps};
use gleaner_intake::files::Files;
use gleaner_intake::mailboxes::Gmail;
use gleaner_intake::media::{self, Media};
use gleaner_intake::runs::{self, Artefacts};
use gleaner_intake::webhooks::{self, Committer, How, Newcomers, Parts, Webhooks};
use gleaner_supabase::access::Keyring;
use gleaner_supabase::auth::ClientAddress;
use gleaner_supabase::realtime::Realtime;
use gleaner_supabase::rest::{Login, Rest};
use ipnet::IpNet;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

use crate::health::Probe;
use crate::queues::Queues;
use crate::{ApiLogin, Config, State, change_feed, load_access, nodes, router, serve};

/// The most pending hints that a provider has something to fetch.
const FETCHES: usize = 1024;

/// The connections of sign-in.
const SIGN_IN: usize = 4;

/// How often we look for secrets written in clear on channels that get no requests.
const SEALING: Duration = Duration::from_secs(60);

/// How often we look for contacts that have not been parsed and senders that have not been matched.
const SWEEPING: Duration = Duration::from_secs(60);

/// Why a server did not start. Each message says what to do.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("cannot listen on {address}: {source}")]
    Listen { address: SocketAddr, source: std::io::Error },
    #[error("{0}")]
    Keys(String),
    #[error("the HTTP client: {0}")]
    Client(#[from] reqwest::Error),
    #[error("the file store: {0}")]
    Files(#[from] gleaner_intake::files::Error),
}

#[derive(Debug)]
pub struct Server {
    state: Arc<State>,
    stop: watch::Sender<bool>,
    serving: JoinHandle<()>,
    /// Tasks that end by themselves once nothing can reach them any more.
    finishing: Vec<JoinHandle<()>>,
    /// Tasks that never end by themselves.
    background: Vec<JoinHandle<()>>,
}

impl Server {
    /// Starts to listen. `pool` connects to `url`. The URL is needed as well for the parts that keep a connection of their
    /// own: the notification listener and the change feed. The database need not be reachable yet. Until it is, senders are
    /// asked to retry.
    pub async fn start(config: Config, url: &str, pool: Pool) -> Result<Self, StartError> {
        // The HTTP client leaves the choice of the cryptography provider to the program. A second server in one process
        // finds it installed.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let keys = MasterKeys::load(&config.home).map_err(|error| StartError::Keys(error.to_string()))?;
        // Webhooks have `pool` to themselves. Clients have as many connections again, half of them for /rest/v1; sign-in has a few of
        // its own. So none of the three waits behind the others.
        let separate = |size: usize| gleaner::pool(url, size).unwrap_or_else(|_| pool.clone());
        let half = (pool.status().max_size / 2).max(1);
        let (clients, sign_in) = (separate(half), separate(SIGN_IN));
        let access = load_access(&config.home).map_err(|error| StartError::Keys(error.to_string()))?.with_programs(clients.clone());
        let files = Files::open(&config.home, config.files_url.as_deref())?;
        let listen = |source| StartError::Listen { address: config.listen, source };
        let listener = TcpListener::bind(config.listen).await.map_err(listen)?;
        let address = listener.local_addr().map_err(listen)?;

        let how = How { tasks: config.committers, group: config.group, within: config.commit_within };
        let (committer, mut finishing) = Committer::start(&pool, &Notifier::new(pool.clone()), how);
        let (newcomers, creating) = Newcomers::start(pool.clone());
        finishing.push(creating);
        let (fetches, to_fetch) = mpsc::channel(FETCHES);
        let channels = Channels::with_providers(pool.clone(), keys, config.providers);
        let parts = Parts { pool: pool.clone(), channels: channels.clone(), files: files.clone(), committer, newcomers };
        let gmail = Arc::new(Gmail::new(config.google.clone(), parts.clone())?);
        let options = media::Options { allow_private: config.allow_private_media.clone(), ..config.media.clone() };
        let media = Arc::new(Media::new(options, clients.clone(), channels.clone(), files.clone(), Arc::clone(&gmail))?);
        let dumps = Dumps::new(clients.clone(), files.clone(), config.document_limit);
        let artefacts = Artefacts::new(clients.clone(), files.clone());
        let queues = Queues::new(url, clients.clone(), access.clone());
        if let Err(error) = queues.learn().await {
            tracing::debug!(%error, "the queues could not be listed; each is known from its first use on");
        }
        let (tokens, heard) = (access.clone(), queues.clone());
        let realtime = config.realtime.then(|| {
            let verify = move |token: String| {
                let tokens = tokens.clone();
                async move { tokens.holder(&token).await }.boxed()
            };
            let heard = move |schema: &str, table: &str, inserted: bool| heard.record_table(schema, table, inserted);
            Realtime::start(change_feed::source(url, pool.clone()), Arc::new(verify), Arc::new(heard))
                .with_signals(Arc::new(queues.clone()))
                .with_devices(Arc::new(queues.nodes().clone()))
                .with_client_address(client_address(&config.trusted_proxies))
        });
        let login = ApiLogin::new(url, config.rest_url.as_deref(), clients.clone(), &access, half);
        let rest = Rest::new(clients.clone(), Arc::new(Keyring::new(access.clone(), clients.clone())), config.rest.clone())
            .with_login(Arc::clone(&login) as Arc<dyn Login>, half)
            .with_observer(Arc::new(queues.nodes().clone()));
        let webhooks = Arc::new(Webhooks::new(settings(&config, address), parts, gmail.clone(), fetches));
        let probe = Probe::new(url);
        let state = Arc::new(State {
            address,
            channels,
            dumps,
            artefacts,
            files,
            access,
            gmail,
            media,
            queues,
            rest,
            realtime,
            webhooks,
            pool,
            clients,
            sign_in,
            probe,
            config,
        });
        let (stop, stopped) = watch::channel(false);
        // First, because the tasks after it must finish the work it gives them.
        finishing.insert(0, tokio::spawn(Arc::clone(&state.gmail).run(to_fetch, stopped.clone())));
        let limits = serve::Limits::new(&state.config);
        let serving = tokio::spawn(serve::serve(listener, router::router(Arc::clone(&state)), limits, stopped));
        let background = vec![
            tokio::spawn(webhooks::keep_writing(Arc::clone(&state.webhooks))),
            tokio::spawn(webhooks::keep_pruning(Arc::clone(&state.webhooks))),
            tokio::spawn(dumps::keep_forgetting(state.dumps.clone())),
            tokio::spawn(runs::keep_forgetting(state.artefacts.clone())),
            tokio::spawn(state.channels.clone().keep_sealed(SEALING)),
            tokio::spawn(nodes::keep_writing(state.queues.nodes().clone(), state.pool.clone(), state.config.nodes_every)),
            tokio::spawn(contacts::keep_swept(state.pool.clone(), SWEEPING)),
            tokio::spawn(pass_notifications_on(Arc::clone(&state))),
            // Made now, so that an operator reads at the start what it lacks. The first request tries again.
            tokio::spawn(async move { drop(login.pool().await) }),
        ];
        Ok(Self { state, stop, serving, finishing, background })
    }

    /// The address it listens on.
    pub fn local_addr(&self) -> SocketAddr {
        self.state.address
    }

    pub fn state(&self) -> &Arc<State> {
        &self.state
    }

    /// Accepts no more connections, finishes the requests in flight, and writes the counted refusals.
    pub async fn stop(self) {
        self.stop.send_replace(true);
        let _ = self.serving.await;
        for task in self.background {
            task.abort();
            let _ = task.await;
        }
        self.state.webhooks.flush_refusals().await;
        if let Err(error) = self.state.queues.nodes().write(&self.state.pool).await {
            tracing::debug!(%error, "which devices worked is forgotten");
        }
        // Dropping the state drops the last channel senders. The tasks then finish the work they have, and end.
        drop(self.state);
        for task in self.finishing {
            let _ = tokio::time::timeout(Duration::from_secs(15), task).await;
        }
    }
}

/// The address of a client, for limits: what a trusted proxy says, else the peer.
pub(crate) fn client_address(trusted: &[IpNet]) -> ClientAddress {
    let trusted = trusted.to_vec();
    ClientAddress::by(move |peer, headers| webhooks::client_address(peer, headers, &trusted))
}

/// The part of the configuration that webhooks need.
fn settings(config: &Config, address: SocketAddr) -> webhooks::Settings {
    webhooks::Settings {
        public_base: config.public_base.clone().unwrap_or_else(|| format!("http://{address}")),
        trusted_proxies: config.trusted_proxies.clone(),
        clock: config.clock,
        limits: config.limits.clone(),
        raw: config.raw.clone(),
        within: config.commit_within,
        further_path: config.further_path.clone(),
    }
}

/// A notification says that rows were written, so that subscribers to changes need not wait for the next poll.
async fn pass_notifications_on(state: Arc<State>) {
    let Some(realtime) = &state.realtime else { return };
    loop {
        state.queues.any_notified().await;
        realtime.hint();
    }
}
