//! `/realtime/v1`: changes of tables, broadcast and presence over WebSocket.
//!
//! - [`feed`]: what changed, from the database's log or by triggers, once for the whole server.
//! - [`hub`]: which clients listen to what; [`filter`]: the conditions of a subscription; [`sight`]: which subscribers may see a
//!   row.
//! - [`tables`]: what a join must know of a table; [`rates`]: how much a client may broadcast.
//! - [`signal`]: what else a channel may follow; [`devices`]: which devices are connected; [`source`]: the connections to the
//!   database.
//! - [`dispatch`]: sends changes from the feed to the sockets.
//! - [`socket`]: one connection; [`outbox`]: its queue of frames; [`join`]: what a join asks for; [`frame`]: the two
//!   serialisations; [`bans`]: closes the sockets of banned users.

mod announce;
mod bans;
mod devices;
mod dispatch;
mod feed;
mod filter;
mod frame;
mod hub;
mod join;
mod outbox;
mod rates;
mod sight;
mod signal;
mod socket;
mod source;
mod tables;

use std::sync::Arc;

use axum::Router;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::{DefaultBodyLimit, RawQuery, State};
use axum::http::request::Parts;
use axum::response::Response;
use axum::routing::{get, post};
use futures_util::future::BoxFuture;
use gleaner_http::database::Pool;
use gleaner_http::{Caller, WireError};
use tokio::sync::{Notify, mpsc};

pub use devices::{Device, Devices};
use frame::Version;
use hub::Hub;
use rates::Rates;
pub use signal::{Signal, Signals};
pub use source::Source;
use tables::Tables;

use crate::auth::ClientAddress;

/// Returns the caller that a token or key belongs to. The error is meant for the client to read.
pub type Verify = Arc<dyn Fn(String) -> BoxFuture<'static, Result<Caller, WireError>> + Send + Sync>;

/// Called for every table that rows were written to: schema, name, and whether some of the rows are new.
pub type Heard = Arc<dyn Fn(&str, &str, bool) + Send + Sync>;

/// Largest frame a client may send.
const MOST_FRAME: usize = 1024 * 1024;

/// A caller and the token it sent.
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
    tables: Arc<Tables>,
    rates: Arc<Rates>,
    client: ClientAddress,
    devices: Option<Arc<dyn Devices>>,
    signals: Option<Arc<dyn Signals>>,
    hint: Arc<Notify>,
    _tasks: Arc<Tasks>,
    _watch: Option<Arc<Tasks>>,
}

/// The feed, its dispatch and the check for bans end with the last copy of [`Realtime`].
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
    /// Starts following the database. Stops when the last copy is dropped.
    pub fn start(source: Source, verify: Verify, heard: Heard) -> Self {
        let pool = source.pool.clone();
        let tables = Arc::new(Tables::new(source.joins.clone()));
        let (hub, hint) = (Arc::new(Hub::default()), Arc::new(Notify::new()));
        // Kept short: the log is better buffered in the database server than here.
        let (news, feed) = mpsc::channel(64);
        let follow = tokio::spawn(feed::follow(source, hub.clone(), hint.clone(), news));
        let dispatch = tokio::spawn(dispatch::run(hub.clone(), sight::Sight::new(pool.clone()), heard, feed));
        let tasks = Tasks(vec![follow.abort_handle(), dispatch.abort_handle()]);
        let (rates, client) = (Arc::default(), ClientAddress::default());
        Self { hub, pool, verify, tables, rates, client, devices: None, signals: None, hint, _tasks: Arc::new(tasks), _watch: None }
    }

    /// Finds the address of a client this way, for limits by address.
    #[must_use]
    pub fn with_client_address(self, client: ClientAddress) -> Self {
        Self { client, ..self }
    }

    /// Reports connected devices to `devices`.
    #[must_use]
    pub fn with_devices(self, devices: Arc<dyn Devices>) -> Self {
        Self { devices: Some(devices), ..self }
    }

    /// Lets channels follow these signals, and closes the sockets of banned users.
    #[must_use]
    pub fn with_signals(mut self, signals: Arc<dyn Signals>) -> Self {
        let watch = tokio::spawn(bans::watch(self.hub.clone(), self.pool.clone(), signals.clone()));
        self._watch = Some(Arc::new(Tasks(vec![watch.abort_handle()])));
        self.signals = Some(signals);
        self
    }

    /// A notification said that there may be changes. A feed that is waiting for its next poll polls at once.
    pub fn hint(&self) {
        self.hint.notify_one();
    }

    /// The number of joins on all sockets.
    pub fn joins(&self) -> usize {
        self.hub.count()
    }
}

pub fn routes(realtime: Realtime) -> Router {
    Router::new()
        .route("/websocket", get(websocket))
        .route("/api/broadcast", post(announce::many))
        .route("/api/broadcast/{topic}/events/{event}", post(announce::one))
        .layer(DefaultBodyLimit::max(MOST_FRAME))
        .with_state(realtime)
}

/// The WebSocket upgrade. A request without a valid key is refused before it.
async fn websocket(
    State(realtime): State<Realtime>,
    parts: Parts,
    RawQuery(query): RawQuery,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, WireError> {
    let upgrade = upgrade.map_err(|error| WireError::new(error.status(), "08P01", error.body_text()))?;
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
    let key = key.filter(|key| !key.is_empty()).ok_or_else(WireError::anonymous)?;
    let caller = (realtime.verify)(key.clone()).await?;
    let connection = Holder { token: key, caller };
    // A client that names no device only watches.
    let device = device.map(|name| Device { name, app });
    let pace = realtime.rates.of(realtime.client.of(&parts));
    let upgraded = upgrade
        // There can be thousands of idle sockets, so each must use little memory.
        .read_buffer_size(4096)
        .write_buffer_size(0)
        .max_message_size(MOST_FRAME)
        .on_upgrade(move |socket| socket::serve(realtime, socket, version, connection, device, pace));
    Ok(upgraded)
}

fn form_pairs(query: &str) -> impl Iterator<Item = (String, String)> + '_ {
    form_urlencoded::parse(query.as_bytes()).into_owned()
}
