//! The host page: local apps in frames, with the user's consent, and the models they share.
//!
//! An app in a frame sends by `postMessage` (`SUPABASE_CONFIG`) where its work is. The page accepts messages only from the
//! frames and origins of apps that the user has added, shows what the app asks for, and requires the user's consent. Then the
//! agent serves that app until the user stops it or revokes the consent. The consent is stored, and the user is asked again when
//! the request changes.
//!
//! - [`app`]: the apps of the page; [`asked`]: what an app asks for; [`store`]: the consents, in a file that only its owner can
//!   read.
//! - [`serving`]: starting and stopping the work for an app; [`agents`]: the agents that do it; [`token`]: an app's key to the
//!   models.
//! - [`requests`]: the handlers for the page's requests; [`guard`]: which requests are answered; [`page`]: the page itself.
//! - [`ai`]: the models, behind an OpenAI-compatible API.
//!
//! ```no_run
//! # use gleaner_agent::{agent::Agent, config::Config};
//! # async fn run(config: Config) -> Result<(), Box<dyn std::error::Error>> {
//! let agent = Agent::start_hosting(config).await?;
//! // …
//! agent.stop().await?;
//! # Ok(())
//! # }
//! ```

mod agents;
pub mod ai;
mod app;
mod asked;
mod guard;
mod page;
mod requests;
mod serving;
mod store;
mod token;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Router;

pub use agents::Agents;
pub use ai::{Kind, Limits, Model};
pub use app::{App, Entry};
pub use asked::Place;
pub use serving::{Condition, Problem, Serve, State, Trouble};

use ai::Usage;
use store::Store;

/// Why the host cannot do something. Each error says what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error("{path}: {source}")]
    File { path: PathBuf, source: std::io::Error },
    #[error("{path} cannot be read: {why}; correct it, or remove it to begin anew")]
    Spoiled { path: PathBuf, why: String },
    #[error("the HTTP client: {0}")]
    Client(#[from] reqwest::Error),
    /// The page or an app sent something invalid.
    #[error("{0}")]
    Invalid(String),
    #[error("there is no app named {0:?} on this page")]
    NoApp(String),
    /// The user would consent to something other than what the page showed.
    #[error("the app's request has changed; reload the page")]
    Outdated,
}

/// The apps of one agent. Cheap to clone.
#[derive(Clone)]
pub struct Host {
    shared: Arc<Shared>,
}

struct Shared {
    store: Store,
    serve: Arc<dyn Serve>,
    /// Known only to our own page. New at each start.
    page_token: String,
    asking: Mutex<HashMap<String, asked::Proposal>>,
    states: Mutex<HashMap<String, State>>,
    usage: Mutex<HashMap<String, Usage>>,
    models: Vec<Model>,
    limits: Limits,
    busy: Mutex<HashMap<String, Arc<tokio::sync::Semaphore>>>,
    http: reqwest::Client,
}

impl std::fmt::Debug for Host {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Host").field("store", &self.shared.store).finish_non_exhaustive()
    }
}

impl Host {
    /// Opens the apps stored in `home`, to be served by `serve`, with these models to share.
    pub fn open(home: &Path, serve: Arc<dyn Serve>, models: Vec<Model>) -> Result<Self, Error> {
        Self::open_with(home, serve, models, Limits::default())
    }

    pub fn open_with(home: &Path, serve: Arc<dyn Serve>, models: Vec<Model>, limits: Limits) -> Result<Self, Error> {
        // The library leaves the choice of the crypto provider to the program. An error means that one is already installed.
        let _ = rustls::crypto::ring::default_provider().install_default();
        // No redirects: whatever a model's endpoint answers, the user's key is sent to no other host.
        let http =
            reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).connect_timeout(Duration::from_secs(10)).build()?;
        let shared = Shared {
            store: Store::open(home)?,
            serve,
            page_token: token::random(),
            asking: Mutex::default(),
            states: Mutex::default(),
            usage: Mutex::default(),
            models,
            limits,
            busy: Mutex::default(),
            http,
        };
        Ok(Self { shared: Arc::new(shared) })
    }
}

/// All routes, at `/host` and `/v1`, to be merged into the router of a listener on loopback.
pub fn routes(host: &Host) -> Router {
    Router::new().nest("/host", router(host.clone())).nest("/v1", ai_router(host.clone()))
}

/// The page and its requests, to be nested at `/host` of a listener on loopback.
pub fn router(host: Host) -> Router {
    requests::routes(host)
}

/// The shared models, to be nested at `/v1` of the same listener.
pub fn ai_router(host: Host) -> Router {
    ai::routes(host)
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
