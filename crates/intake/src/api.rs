//! The native HTTP API: JSON in, JSON out, on behalf of the caller.
//!
//! Nothing here decides what a caller may do. The acts run as the caller, and row security decides.

mod channels;
mod failure;
mod providers;

use axum::extract::FromRef;
use gleaner_http::Authenticator;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

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
pub fn router(api: Api) -> OpenApiRouter {
    OpenApiRouter::default()
        .routes(routes!(providers::list))
        .routes(routes!(channels::list, channels::add))
        .routes(routes!(channels::show, channels::set, channels::delete))
        .routes(routes!(channels::key))
        .routes(routes!(channels::rotate))
        .routes(routes!(channels::test))
        .routes(routes!(channels::refusals))
        .with_state(api)
}
