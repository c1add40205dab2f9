//! Queues accessed through a server: Gleaner's own, or a Supabase project. This takes a URL and a key, and no database password.
//!
//! # Layout
//!
//! - [`settings`]: what is needed to connect; [`session`]: the signed-in user, kept in a file; [`sessions`]: the sessions of a
//!   home, one per project; `credentials`: which token a call carries, and when it is renewed.
//! - `http`: one call, its timeouts and its errors; [`classify`]: which errors are worth a retry.
//! - `queue`: the acts, over `native` routes where the server is ours and over `rpc` elsewhere. For `rpc`, `shape` knows the
//!   columns of the table and `clock` the database's time.
//! - `socket`: receives notifications of new work, for all queues on one connection; `frame`: the messages on that connection.

pub mod classify;
mod clock;
mod credentials;
mod fetch;
mod frame;
mod http;
mod native;
mod queue;
mod rpc;
pub mod session;
pub mod sessions;
pub mod settings;
mod shape;
mod socket;

use std::sync::Arc;

use ::http::Method;
use async_trait::async_trait;
use gleaner::transport::{Endpoint, Transport};
use gleaner::{Error, Result};
use serde_json::Value;
use tokio::sync::OnceCell;

pub use self::fetch::Fetched;
pub use self::queue::WireQueue;
pub use self::settings::{Settings, worker_id};

use self::http::{Call, Http};
use self::queue::Acts;
use self::shape::Shape;
use self::socket::Socket;

/// Which routes the acts use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// `/v1/queues`, which only our own server has. It answers requests that must find nothing without querying the database.
    Native,
    /// `/rest/v1/rpc`, which every Supabase project has.
    Rpc,
}

/// A server and our credentials there. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Wire {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    http: Arc<Http>,
    /// Detected once, unless the caller chose it.
    protocol: OnceCell<Protocol>,
    socket: Socket,
}

/// The signed-in person, as owner of work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    /// Their row in `sales`.
    pub sales_id: String,
    pub user_id: String,
    pub email: String,
}

impl Wire {
    /// Prepares to talk to the server. Sends no request yet: an agent may start before its network does.
    pub fn connect(settings: Settings) -> Result<Self> {
        Self::start(settings, None)
    }

    /// Like [`Self::connect`], but always uses the given routes, whatever the server offers.
    pub fn connect_by(settings: Settings, protocol: Protocol) -> Result<Self> {
        Self::start(settings, Some(protocol))
    }

    fn start(settings: Settings, protocol: Option<Protocol>) -> Result<Self> {
        let http = Arc::new(Http::new(settings)?);
        Ok(Self { shared: Arc::new(Shared { socket: Socket::new(http.clone()), http, protocol: OnceCell::new_with(protocol) }) })
    }

    /// Which routes the acts use on this server.
    pub async fn protocol(&self) -> Result<Protocol> {
        self.shared.protocol.get_or_try_init(|| native::probe(&self.shared.http)).await.copied()
    }

    /// Calls the REST interface: `rest(Method::GET, "/rest/v1/sales?select=id", None)`. Returns the body of the response.
    pub async fn rest(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Value> {
        let call = Call { body, representation: true, ..Call::new(method.clone(), path, format!("{method} {path}")) };
        Ok(self.shared.http.call(&call).await?.body)
    }

    /// Reads rows of a table in that schema: `read("gleaner", "/rest/v1/queue?select=name")`.
    pub async fn read(&self, schema: &str, path: &str) -> Result<Value> {
        let call = Call { profile: Some(schema), ..Call::new(Method::GET, path, format!("read {path}")) };
        Ok(self.shared.http.call(&call).await?.body)
    }

    /// Calls a database function and returns its result.
    pub async fn rpc(&self, schema: &str, function: &str, arguments: Value) -> Result<Value> {
        let path = format!("/rest/v1/rpc/{function}");
        let call = Call { profile: Some(schema), body: Some(&arguments), ..Call::new(Method::POST, &path, function) };
        Ok(self.shared.http.call(&call).await?.body)
    }

    /// Fetches a file through the server, with our rights: `fetch("/v1/media/{activity}/0")`.
    pub async fn fetch(&self, path_or_url: &str) -> Result<Fetched> {
        fetch::fetch(&self.shared.http, path_or_url).await
    }

    /// The signed-in user as an owner of work. None with a key, which has no owner.
    pub async fn who(&self) -> Result<Option<Owner>> {
        let Some(session) = self.shared.http.credentials.session().await? else { return Ok(None) };
        let path = format!("/rest/v1/sales?select=id&user_id=eq.{}", session.user_id);
        let rows = self.rest(Method::GET, &path, None).await?;
        let Some(id) = rows.get(0).and_then(|row| row.get("id")).filter(|id| !id.is_null()) else {
            return Err(Error::Remote {
                act: "find the signed-in person in sales".into(),
                message: format!("{} has no row there; an administrator has to add them to the team (`gleaner users add`)", session.email),
                status: None,
                code: None,
                transient: false,
            });
        };
        Ok(Some(Owner { sales_id: shape::text(id), user_id: session.user_id, email: session.email }))
    }
}

#[async_trait]
impl Endpoint for Wire {
    fn describe(&self) -> String {
        self.shared.http.base.clone()
    }

    async fn queues(&self) -> Result<Vec<String>> {
        match self.protocol().await? {
            Protocol::Native => Ok(native::list(&self.shared.http).await?.into_iter().map(|known| known.name).collect()),
            Protocol::Rpc => shape::list(&self.shared.http).await,
        }
    }

    async fn open(&self, queue: &str) -> Result<Arc<dyn Transport>> {
        let http = &self.shared.http;
        let acts = match self.protocol().await? {
            Protocol::Native => {
                let known = native::list(http).await?;
                match known.iter().find(|known| known.name == queue) {
                    Some(found) => Acts::Native(found.clone()),
                    None => {
                        return Err(Error::UnknownQueue { name: queue.into(), known: known.into_iter().map(|known| known.name).collect() });
                    }
                }
            }
            Protocol::Rpc => Acts::Rpc(Box::new(Shape::of(http, queue).await?)),
        };
        Ok(Arc::new(WireQueue::new(http.clone(), self.shared.socket.clone(), queue, acts)))
    }
}
