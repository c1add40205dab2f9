//! `/realtime/v1`: changes of tables, broadcast and presence over WebSocket.
//!
//! - [`feed`]: what changed, from the database's log or by triggers, once for the whole server.
//! - [`hub`]: who listens to what; [`filter`]: the conditions of a subscription; [`sight`]: who may see a row.
//! - [`bell`]: of which queues a channel wants to hear that there may be work.
//! - [`dispatch`]: from the feed to the sockets.
//! - [`socket`]: one connection; [`outbox`]: the way to it; [`join`]: what a join asks for; [`frame`]: the two serialisations;
//!   [`bans`]: who may not stay.

mod bans;
mod bell;
mod dispatch;
mod feed;
mod filter;
mod frame;
mod hub;
mod join;
mod outbox;
mod sight;
mod socket;

use std::sync::Arc;

use axum::Router;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::{RawQuery, State};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use futures_util::future::BoxFuture;
use gleaner::Pool;
use http::{HeaderMap, StatusCode};
use serde_json::json;
use tokio::sync::{Notify, mpsc};

use crate::access::Caller;
use crate::nodes::{Named, Nodes};
use crate::queues::Queues;
use crate::wire_error::WireError;
use frame::Version;
use hub::Hub;

/// Tells who holds a token or a key; the error is for the client to read.
pub type Verify = Arc<dyn Fn(String) -> BoxFuture<'static, Result<Caller, WireError>> + Send + Sync>;

/// Told of every table that rows were written to: schema and name.
pub type Heard = Arc<dyn Fn(&str, &str) + Send + Sync>;

/// Largest frame a client may send.
const MOST_FRAME: usize = 1024 * 1024;

/// Who came with which token.
#[derive(Clone)]
struct Holder {
    token: String,
    caller: Caller,
}

#[derive(Clone)]
pub struct Realtime {
    hub: Arc<Hub>,
    pool: Pool,
    verify: Verify,
    nodes: Nodes,
    /// None: nobody is told of queues.
    queues: Option<Queues>,
    hint: Arc<Notify>,
    _tasks: Arc<Tasks>,
    _watch: Option<Arc<Tasks>>,
}

/// The feed, its dispatch and the watch for bans end with the last copy of [`Realtime`].
struct Tasks(Vec<tokio::task::AbortHandle>);

impl Drop for Tasks {
    fn drop(&mut self) {
        for task in &self.0 {
            task.abort();
        }
    }
}

impl std::fmt::Debug for Realtime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Realtime").field("joins", &self.hub.count()).finish_non_exhaustive()
    }
}

impl Realtime {
    /// Begins to follow the database. Ends when the last copy is dropped.
    pub fn start(url: &str, pool: Pool, verify: Verify, heard: Heard) -> Self {
        let (hub, hint) = (Arc::new(Hub::default()), Arc::new(Notify::new()));
        // Short: the log waits in the server better than here.
        let (news, feed) = mpsc::channel(64);
        let follow = tokio::spawn(feed::follow(url.to_owned(), pool.clone(), hub.clone(), hint.clone(), news));
        let dispatch = tokio::spawn(dispatch::run(hub.clone(), sight::Sight::new(pool.clone()), heard, feed));
        let tasks = Tasks(vec![follow.abort_handle(), dispatch.abort_handle()]);
        Self { hub, pool, verify, nodes: Nodes::default(), queues: None, hint, _tasks: Arc::new(tasks), _watch: None }
    }

    /// Tells of the devices that are connected.
    #[must_use]
    pub fn with_nodes(self, nodes: Nodes) -> Self {
        Self { nodes, ..self }
    }

    /// Lets channels follow the bells of these queues, and closes the sockets of people who were banned.
    #[must_use]
    pub fn with_queues(mut self, queues: Queues) -> Self {
        let watch = tokio::spawn(bans::watch(self.hub.clone(), self.pool.clone(), queues.clone()));
        self._watch = Some(Arc::new(Tasks(vec![watch.abort_handle()])));
        self.queues = Some(queues);
        self
    }

    /// There may be changes: a bell was heard. A feed that waits between looks does not wait any longer.
    pub fn hint(&self) {
        self.hint.notify_one();
    }

    /// Joins there are, on all sockets.
    pub fn joins(&self) -> usize {
        self.hub.count()
    }
}

pub fn routes(realtime: Realtime) -> Router {
    Router::new().route("/websocket", get(websocket)).with_state(realtime)
}

/// The upgrade. Who comes without a key that is ours does not get that far.
async fn websocket(State(realtime): State<Realtime>, RawQuery(query): RawQuery, upgrade: WebSocketUpgrade) -> Response {
    let (mut key, mut version, mut device, mut app) = (None, Version::One, None, None);
    for (name, value) in form_pairs(query.as_deref().unwrap_or_default()) {
        match name.as_str() {
            "apikey" => key = Some(value),
            "device" => device = Some(value),
            "app" => app = Some(value),
            "vsn" if value.starts_with('2') => version = Version::Two,
            _ => {}
        }
    }
    let refuse = |error: &str| (StatusCode::UNAUTHORIZED, axum::Json(json!({"error": error}))).into_response();
    let Some(key) = key.filter(|key| !key.is_empty()) else {
        return refuse("API key is missing");
    };
    let caller = match (realtime.verify)(key.clone()).await {
        Ok(caller) => caller,
        // Not the client's fault: it comes back.
        Err(away) if away.status == StatusCode::SERVICE_UNAVAILABLE => return away.into_response(),
        Err(_) => return refuse("The token provided is not a valid JWT"),
    };
    let connection = Holder { token: key, caller };
    // Who says nothing of a device is somebody who watches.
    let named = device.map(|device| Named::new(app.as_deref(), Some(&device), &HeaderMap::new()));
    upgrade
        // Thousands of idle sockets: what each holds on to must be small.
        .read_buffer_size(4096)
        .write_buffer_size(0)
        .max_message_size(MOST_FRAME)
        .on_upgrade(move |socket| socket::serve(realtime, socket, version, connection, named))
}

fn form_pairs(query: &str) -> impl Iterator<Item = (String, String)> + '_ {
    form_urlencoded::parse(query.as_bytes()).into_owned()
}
