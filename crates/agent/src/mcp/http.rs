//! The server over streamable HTTP.

use std::sync::Arc;
use std::time::Duration;

use axum::{Router, middleware};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};

use super::guard::{self, Guard};
use super::service::Service;
use super::tools::Tools;

/// Results may be long, but they are the output of work and not file uploads.
const LARGEST_REQUEST: usize = 4 * 1024 * 1024;
/// A session that is idle for this long is dropped. This is longer than any `patience`, so the leases of its items have expired
/// before.
const LONGEST_SILENCE: Duration = Duration::from_secs(3600);

/// The route `/mcp`, to be merged into a listener on loopback.
///
/// Assistants that do the initialize handshake (every protocol version before 2026-07-28) have a session, which is one agent.
/// From that version on there are no sessions: each claim is then made by an agent of its own, and only the lease identifies it.
pub fn router(service: &Service, guard: Guard) -> Router {
    let config = StreamableHttpServerConfig::default()
        .with_allowed_hosts(guard.known_hosts().iter().map(|host| host.trim_matches(['[', ']']).to_owned()))
        .with_allowed_origins(guard.known_origins().to_vec())
        .enforce_origin_validation()
        .with_max_request_body_bytes(LARGEST_REQUEST);
    let mut sessions = LocalSessionManager::default();
    sessions.session_config.keep_alive = Some(LONGEST_SILENCE.max(service.settings().patience * 2));
    let service = service.clone();
    let mcp = StreamableHttpService::new(move || Ok(Tools::new(&service)), Arc::new(sessions), config);
    Router::new().route_service("/mcp", mcp).layer(middleware::from_fn_with_state(guard, guard::with_token))
}
