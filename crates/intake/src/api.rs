//! The native HTTP API: JSON in, JSON out, on behalf of the caller.
//!
//! Nothing here decides what a caller may do. The acts run as the caller, and row security decides.

mod channels;
mod failure;
mod providers;

use axum::Router;
use axum::extract::FromRef;
use axum::routing::{get, post};
use gleaner_http::Authenticator;

use crate::channels::{Addresses, Channels};

/// What the handlers need. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Api {
    pub channels: Channels,
    pub authenticator: Authenticator,
    /// Base URLs under which senders and operators reach us; `local` is always known.
    pub addresses: Addresses,
}

impl Api {
    /// The base URL for senders, unless a channel has its own.
    fn base(&self) -> &str {
        self.addresses.public.as_deref().or(self.addresses.local.as_deref()).unwrap_or_default()
    }
}

impl FromRef<Api> for Authenticator {
    fn from_ref(api: &Api) -> Self {
        api.authenticator.clone()
    }
}

/// The routes, to be merged into the server's.
pub fn router<S: Clone + Send + Sync + 'static>(api: Api) -> Router<S> {
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
