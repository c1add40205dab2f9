//! `/rest/v1`: tables, views and functions over HTTP, as PostgREST and Supabase offer them.
//!
//! # Layout
//!
//! - `catalogue` is what the database has, `query` what the client asks for; `sql` compiles one statement from the two.
//! - `session` runs it in a transaction in which the database knows the caller; `respond` turns the result into a response.
//! - `table` and `rpc` are the two kinds of requests; `prefer`, `media` and `body` parse their headers and bodies.
//! - `login` says on which database login; `fairness` how much of it one caller may use at once.
//! - `observe` notifies the server of requests that succeeded.
//!
//! Rights are not checked here: the database checks them all.

mod body;
mod catalogue;
mod context;
mod fairness;
mod login;
mod media;
mod observe;
mod prefer;
mod query;
mod range;
mod request;
mod respond;
mod rights;
mod rpc;
mod session;
mod settings;
mod sql;
mod table;

use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request as HttpRequest, State};
use axum::response::{IntoResponse, Response};
use gleaner_http::WireError;
use gleaner_http::database::Pool;
use http::Method;

pub use login::Login;
pub use observe::{Call, Observe};
pub use settings::{Limits, Settings};

use crate::access::Identify;
use body::Bodies;
use catalogue::{Cache, Catalogue};
use fairness::Shares;
use request::{Request, Resource};
use session::Outcome;
use sql::Statement;

/// The state that requests share.
#[derive(Clone)]
pub struct Rest {
    pool: Pool,
    login: Option<Arc<dyn Login>>,
    shares: Arc<Shares>,
    bodies: Bodies,
    settings: Arc<Settings>,
    identify: Arc<dyn Identify>,
    catalogue: Arc<Cache>,
    observer: Arc<dyn Observe>,
}

impl std::fmt::Debug for Rest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Rest").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl Rest {
    pub fn new(pool: Pool, identify: Arc<dyn Identify>, settings: Settings) -> Self {
        let cache = Cache::new(pool.clone(), settings.schemas.clone(), settings.acquire_within, settings.catalogue_live);
        Self {
            shares: Arc::new(Shares::of(pool.status().max_size)),
            bodies: Bodies::within(settings.body_memory),
            pool,
            login: None,
            settings: Arc::new(settings),
            identify,
            catalogue: Arc::new(cache),
            observer: Arc::new(observe::NoObserver),
        }
    }

    /// Runs statements of callers on this login instead of the one that reads the catalogue. `connections` is how many it may have.
    #[must_use]
    pub fn with_login(self, login: Arc<dyn Login>, connections: usize) -> Self {
        Self { login: Some(login), shares: Arc::new(Shares::of(connections)), ..self }
    }

    /// Where statements of callers run.
    async fn callers(&self) -> Result<Pool, WireError> {
        match &self.login {
            Some(login) => login.pool().await,
            None => Ok(self.pool.clone()),
        }
    }

    /// Notifies `observer` of each request that succeeds.
    #[must_use]
    pub fn with_observer(self, observer: Arc<dyn Observe>) -> Self {
        Self { observer, ..self }
    }

    /// Answers with the current catalogue, and retries once with a fresh one if a name was missing.
    async fn answer(&self, request: HttpRequest) -> Result<Response, WireError> {
        let arrived = Instant::now();
        let request = Request::read(self, request).await?;
        let catalogue = self.catalogue.current().await?;
        match self.answer_from(&catalogue, &request).await {
            // The transaction was rolled back, so a retry does nothing twice.
            Err(error) if may_be_outdated(&error) && catalogue.read_at < arrived => {
                let catalogue = self.catalogue.read_after(arrived).await?;
                self.answer_from(&catalogue, &request).await
            }
            answer => answer,
        }
    }

    async fn answer_from(&self, catalogue: &Catalogue, request: &Request) -> Result<Response, WireError> {
        match &request.resource {
            Resource::Relation(name) => table::answer(self, catalogue, request, name).await,
            Resource::Function(name) => rpc::answer(self, catalogue, request, name).await,
        }
    }

    async fn run(
        &self,
        request: &Request,
        statement: &Statement,
        accept: Option<impl FnOnce(&Outcome) -> Result<(), WireError>>,
    ) -> Result<Outcome, WireError> {
        let within = self.settings.acquire_within;
        let pool = self.callers().await?;
        // Before a connection: one caller's statements wait for each other, not everybody for them.
        let _share = self.shares.enter(&request.context, within).await?;
        let client = session::connect(&pool, within).await?;
        session::run(client, &request.context, statement, accept).await
    }
}

/// Whether the error is about a name: the schema may have changed since it was read.
fn may_be_outdated(error: &WireError) -> bool {
    const CODES: [&str; 9] = ["PGRST200", "PGRST202", "PGRST204", "PGRST205", "42703", "42704", "42883", "42P01", "42P10"];
    CODES.contains(&&*error.code)
}

/// Everything below `/rest/v1`, to be nested there.
pub fn routes(rest: Rest) -> Router {
    Router::new().fallback(answer).with_state(rest)
}

async fn answer(State(rest): State<Rest>, request: HttpRequest) -> Response {
    let head_only = request.method() == Method::HEAD;
    let mut response = rest.answer(request).await.unwrap_or_else(WireError::into_response);
    if head_only {
        // With a body, its length would be sent.
        *response.body_mut() = Body::empty();
    }
    response
}
