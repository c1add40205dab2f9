//! The native API over HTTP: JSON in, JSON out, on behalf of whoever calls.
//!
//! Nothing here decides what somebody may do. The acts run as the caller, and row security decides.

mod body;
mod channels;
mod failure;
mod providers;

use axum::Router;
use axum::extract::FromRef;
use axum::routing::{get, post};

use crate::access::Access;
use crate::channels::{Addresses, Channels};

/// What the handlers need. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Api {
    pub channels: Channels,
    pub access: Access,
    /// Bases under which senders and operators reach us; `local` is always known.
    pub addresses: Addresses,
}

impl Api {
    /// The base that senders are given, unless a channel has its own.
    fn base(&self) -> &str {
        self.addresses.public.as_deref().or(self.addresses.local.as_deref()).unwrap_or_default()
    }
}

impl FromRef<Api> for Access {
    fn from_ref(api: &Api) -> Self {
        api.access.clone()
    }
}

/// The routes, to be merged into the server's.
pub fn router(api: Api) -> Router {
    Router::new()
        .route("/v1/providers", get(providers::list))
        .route("/v1/channels", get(channels::list).post(channels::add))
        .route("/v1/channels/{channel}", get(channels::show).patch(channels::set).delete(channels::delete))
        .route("/v1/channels/{channel}/key", get(channels::key))
        .route("/v1/channels/{channel}/rotate", post(channels::rotate))
        .route("/v1/channels/{channel}/test", post(channels::test))
        .route("/v1/channels/{channel}/refusals", get(channels::refusals))
        .with_state(api)
}
