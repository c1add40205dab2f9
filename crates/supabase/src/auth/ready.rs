//! Sign-in for a server that may start before its database answers.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::response::{IntoResponse as _, Response};
use gleaner_http::WireError;
use gleaner_http::database::Pool;
use http::StatusCode;
use tokio::sync::OnceCell;
use tower::ServiceExt as _;

use super::{Auth, Settings, routes};
use crate::access::Access;

#[derive(Clone)]
struct Later {
    pool: Pool,
    access: Access,
    settings: Settings,
    /// `None` inside: users are managed elsewhere.
    ready: Arc<OnceCell<Option<Router>>>,
}

/// The routes below `/auth/v1`. Whether users are managed here is checked at the first request that reaches the database.
pub fn routes_when_ready(pool: Pool, access: Access, settings: Settings) -> Router {
    Router::new().fallback(answer).with_state(Later { pool, access, settings, ready: Arc::default() })
}

async fn answer(State(later): State<Later>, request: Request) -> Response {
    let open = async || Auth::open(later.pool.clone(), later.access.clone(), later.settings.clone()).await.map(|auth| auth.map(routes));
    match later.ready.get_or_try_init(open).await {
        Ok(Some(router)) => router.clone().oneshot(request).await.unwrap_or_else(|never| match never {}),
        Ok(None) => WireError::new(StatusCode::NOT_FOUND, "PGRST125", "people sign in at the Supabase project this database belongs to")
            .into_response(),
        Err(error) => {
            tracing::warn!(%error, "sign-in waits for the database");
            WireError::new(StatusCode::SERVICE_UNAVAILABLE, "PGRST001", "the database cannot be reached; try again").into_response()
        }
    }
}
