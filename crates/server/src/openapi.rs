//! `/openapi.json`: the native routes, generated from their handlers and the types that handlers read and return;
//! `/docs`: the same as a page.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::HeaderName;
use axum::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use axum::response::IntoResponse;
use utoipa::openapi::security::{ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::{Modify, OpenApi};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

const PAGE: &str = include_str!("openapi/page.html");
const FRESH: (HeaderName, &str) = (CACHE_CONTROL, "no-cache");
/// The page contains everything it needs and connects to no server but this one.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; base-uri 'none'";

/// What the description says before its routes.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "Gleaner",
        description = "The native API of `gleaner serve`: the acts on queues with leases, batches and claims that wait; channels, \
            contacts and media; the webhook endpoint. Tables, functions, sign-in and realtime have Supabase's own form (`/rest/v1`, \
            `/auth/v1`, `/realtime/v1`) and are not described here.\n\nEvery call runs on behalf of its caller: row-level security in \
            the database decides what it sees and may change.",
        license(name = "MIT OR Apache-2.0", identifier = "MIT OR Apache-2.0"),
        contact(),
    ),
    servers((url = "/")),
    security(("bearer" = []), ("apikey" = [])),
    tags(
        (name = "queues", description = "Enqueue and claim work, and report its result."),
        (name = "team", description = "People and the keys of programs, for administrators."),
        (name = "dumps", description = "Documents, and what agents make of them."),
        (name = "runs", description = "Screenshots of recordings that agents replay."),
        (name = "channels", description = "The senders of webhooks, with their secrets."),
        (name = "contacts", description = "The contacts that activities came from."),
        (name = "media", description = "Recordings and attachments."),
        (name = "webhooks", description = "Where webhooks arrive. Each request has the form of its provider."),
        (name = "operations", description = "The state of the server, and this description."),
    ),
    modifiers(&Shared),
)]
struct Description;

/// The parts that routes refer to: keys and error responses.
struct Shared;

impl Modify for Shared {
    fn modify(&self, api: &mut utoipa::openapi::OpenApi) {
        let mut components = gleaner_http::describe::components();
        let token = "The token of a signed-in person, a project key, or a program's key (`sb_…`).";
        let bearer = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).description(Some(token)).build();
        components.add_security_scheme("bearer", SecurityScheme::Http(bearer));
        let key = ApiKeyValue::with_description("apikey", "A project key or a program's key.");
        components.add_security_scheme("apikey", SecurityScheme::ApiKey(ApiKey::Header(key)));
        api.components = Some(components);
    }
}

/// A router for native routes, to which the parts of the server add theirs. [`served`] adds the description of all of them.
pub fn router() -> OpenApiRouter {
    OpenApiRouter::with_openapi(Description::openapi())
}

/// The router with `/openapi.json` and `/docs`, which describe all its routes and themselves.
pub fn served(native: OpenApiRouter) -> Router {
    let own = OpenApiRouter::<Arc<str>>::default().routes(routes!(describe)).routes(routes!(page));
    let (own, described) = own.split_for_parts();
    let (native, mut api) = native.split_for_parts();
    api.merge(described);
    let text = api.to_json().expect("a description has only text keys");
    native.merge(own.with_state(Arc::from(text)))
}

/// This description
#[utoipa::path(
    get,
    path = "/openapi.json",
    tag = "operations",
    security(()),
    responses((status = 200, description = "OpenAPI 3.1.", body = serde_json::Value, content_type = "application/json"))
)]
async fn describe(State(text): State<Arc<str>>) -> impl IntoResponse {
    ([(CONTENT_TYPE, "application/json"), FRESH], String::from(&*text))
}

/// This description as a page
#[utoipa::path(
    get,
    path = "/docs",
    tag = "operations",
    security(()),
    responses((status = 200, description = "HTML.", body = String, content_type = "text/html"))
)]
async fn page() -> impl IntoResponse {
    ([(CONTENT_TYPE, "text/html; charset=utf-8"), FRESH, (CONTENT_SECURITY_POLICY, POLICY)], PAGE)
}
