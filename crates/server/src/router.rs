//! All HTTP routes.

use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::response::IntoResponse as _;
use gleaner_http::{Role, WireError};
use gleaner_intake::api::{self, Api};
use gleaner_intake::channels::Addresses;
use gleaner_intake::{contacts, dumps, mailboxes, media, runs, webhooks};
use gleaner_supabase::{auth, realtime, rest};
use tower_http::catch_panic::CatchPanicLayer;

use crate::server::client_address;
use crate::web::Web;
use crate::{State, health, layers, openapi, queues, team};

pub fn router(state: Arc<State>) -> Router {
    let access = || state.access.clone();
    let addresses = Addresses { public: state.config.public_base.clone(), local: Some(format!("http://{}", state.address)) };
    let web = Web::new(&state.access.project_key(Role::Anon), &state.config.frames);
    let native = openapi::router()
        // /v1/queues/{queue}/{act}, /v1/me, /v1/figures, /metrics
        .merge(queues::routes(state.queues.clone()))
        // /v1/providers, /v1/channels/…
        .merge(api::router(Api { channels: state.channels.clone(), authenticator: access().into(), addresses }))
        // /v1/people/…, /v1/keys/…
        .merge(team::router(state.clients.clone(), access(), base(&state)))
        // /v1/contacts/…
        .merge(contacts::router(state.clients.clone(), access()))
        // /v1/dumps, /v1/dumps/{dump}/file
        .merge(dumps::router(state.dumps.clone(), access()))
        // /v1/runs/{run}/artefacts
        .merge(runs::router(state.artefacts.clone(), access()))
        // /v1/media/{activity}/{n}
        .merge(media::router(Arc::clone(&state.media), access()))
        // /functions/v1/ingest-activity
        .merge(webhooks::routes(Arc::clone(&state.webhooks)))
        // /functions/v1/fetch-gmail-updates, /oauth/google/callback
        .merge(mailboxes::router(Arc::clone(&state.gmail), access()))
        // /health, /ready
        .merge(health::routes(Arc::clone(&state)));
    // /openapi.json, /docs
    let routes = openapi::served(native)
        .nest("/rest/v1", rest::routes(state.rest.clone()))
        .nest("/auth/v1", auth::routes_when_ready(state.sign_in.clone(), access(), sign_in(&state)))
        .merge(state.realtime.clone().map_or_else(Router::new, |realtime| Router::new().nest("/realtime/v1", realtime::routes(realtime))))
        // The pages
        .fallback(move |request: Request| std::future::ready(web.answer(&request).unwrap_or_else(|| WireError::no_route().into_response())))
        .method_not_allowed_fallback(async || WireError::wrong_method())
        .layer(CatchPanicLayer::custom(|_| WireError::internal().into_response()));
    layers::surround(routes)
}

/// The address of this server as people have it.
fn base(state: &State) -> String {
    state.config.public_base.clone().unwrap_or_else(|| format!("http://{}", state.address))
}

/// Sign-in links point back to this server, and rate limits use the client address we trust.
fn sign_in(state: &Arc<State>) -> auth::Settings {
    let mut settings = state.config.auth.clone();
    settings.base = base(state);
    settings.client = client_address(&state.config.trusted_proxies);
    settings
}
