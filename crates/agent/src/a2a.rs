//! The queue as an A2A agent: its agent card, and tasks that map to the acts of a queue.
//!
//! Another agent can do two things here. It can **send a task**, which becomes an item of a queue that accepts tasks; the task's
//! state follows the item, and the item's result is the artifact. And it can **be the worker**: a message whose data part names
//! an act (`{"act": "claim", "queue": "jobs"}`) runs that act, with the leases, grants and content marks of [`crate::mcp`].
//!
//! The types are the official SDK's (`a2a-lf`). The dispatch is our own: the SDK's server depends on tonic and a vendored protoc
//! for a binding that is not offered here.
//!
//! - [`card`]: the agent card; [`rpc`]: the JSON-RPC binding of version 1; [`message`]: what a message asks for.
//! - [`task`]: an item as a task; [`stream`]: the stream of a task's changes.

mod card;
mod message;
mod rpc;
mod stream;
mod task;

use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, header};
use axum::routing::{get, post};
use axum::{Json, Router, middleware};

use crate::mcp::guard::{self, Guard};
use crate::mcp::service::Service;

/// The size limit for task payloads and item results. Larger data is fetched, not sent.
const LARGEST_REQUEST: usize = 4 * 1024 * 1024;

/// The routes `/a2a` and `/.well-known/agent-card.json`, to be merged into a listener on loopback. The card can be read without
/// the token: it describes the service, and contains none of its data.
pub fn router(service: &Service, guard: Guard) -> Router {
    let card = Router::new()
        .route("/.well-known/agent-card.json", get(card_of))
        .layer(middleware::from_fn_with_state(guard.clone(), guard::without_token));
    let tasks = Router::new()
        .route("/a2a", post(rpc::answer))
        .layer(DefaultBodyLimit::max(LARGEST_REQUEST))
        .layer(middleware::from_fn_with_state(guard, guard::with_token));
    card.merge(tasks).with_state(service.clone())
}

async fn card_of(State(service): State<Service>, headers: HeaderMap) -> Json<a2a::AgentCard> {
    // The guard has checked it: it is one of our own names.
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or("localhost");
    Json(card::card(service.settings(), &format!("http://{host}/a2a")))
}
