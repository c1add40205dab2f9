//! The routes of the webhook endpoint.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Response;
use axum::routing::get;
use utoipa::openapi::{self, Content, RefOr, ResponseBuilder};
use utoipa::{IntoParams, IntoResponses};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::{Webhooks, receive};
use crate::channels::WEBHOOK_PATH;

/// The routes, to be merged into the server's. The configured further path, if there is one, is not described: it is
/// known to one sender only.
pub fn routes(webhooks: Arc<Webhooks>) -> OpenApiRouter {
    let mut router = OpenApiRouter::default().routes(routes!(verify_endpoint, ingest));
    if let Some(further) = &webhooks.settings.further_path {
        let key = further.key.clone();
        let answer =
            async move |State(webhooks): State<Arc<Webhooks>>, request: Request| receive(webhooks, Some(key.clone()), request).await;
        router = router.route(&further.path, get(answer.clone()).post(answer));
    }
    router.with_state(webhooks)
}

/// Only described here: [`super::target`] reads it, because two different keys count as none.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "describes the query, and is not used to read it")]
struct WebhookQuery {
    /// The channel's ingestion key. No other key is needed.
    key: String,
}

/// Answer a sender that verifies the URL first
#[utoipa::path(
    get,
    path = WEBHOOK_PATH,
    operation_id = "verifyEndpoint",
    tag = "webhooks",
    security(()),
    params(WebhookQuery),
    responses(Accepted, Refused)
)]
async fn verify_endpoint(State(webhooks): State<Arc<Webhooks>>, request: Request) -> Response {
    receive(webhooks, None, request).await
}

/// Receive a webhook
///
/// The request is verified, parsed and stored, and only then acknowledged. It has the form that its provider sends.
#[utoipa::path(
    post,
    path = WEBHOOK_PATH,
    tag = "webhooks",
    security(()),
    params(WebhookQuery),
    request_body(content(
        (serde_json::Value = "application/json", example = json!({"type": "note", "content": "Hello", "sender": "ann@example.com"})),
        (serde_json::Value = "application/x-www-form-urlencoded"),
    )),
    responses(Accepted, Refused)
)]
async fn ingest(State(webhooks): State<Arc<Webhooks>>, request: Request) -> Response {
    receive(webhooks, None, request).await
}

/// Responses in the form that the provider expects.
fn responses<const N: usize>(described: [(&str, &str); N]) -> BTreeMap<String, RefOr<openapi::Response>> {
    let response = |(status, description): (&str, &str)| {
        let mut response = ResponseBuilder::new().description(description);
        if status != "204" {
            response = response.content("*/*", Content::new(Some(openapi::schema::empty())));
        }
        (status.to_owned(), RefOr::T(response.build()))
    };
    described.into_iter().map(response).collect()
}

struct Accepted;

impl IntoResponses for Accepted {
    fn responses() -> BTreeMap<String, RefOr<openapi::Response>> {
        responses([
            ("200", "Stored, or the answer to a verification."),
            ("201", "Stored."),
            ("202", "Stored."),
            ("204", "Stored; this provider expects an empty response."),
        ])
    }
}

struct Refused;

impl IntoResponses for Refused {
    fn responses() -> BTreeMap<String, RefOr<openapi::Response>> {
        responses([
            ("400", "There is no key, or the body cannot be read."),
            ("401", "The request is not authentic, or the channel is unknown or paused."),
            ("403", "The request is not authentic; this provider expects this status."),
            ("405", "The method is not allowed."),
            ("408", "The body did not arrive in time."),
            ("411", "The length of the body is missing."),
            ("413", "The body is too large."),
            ("415", "This provider does not send this content type."),
            ("422", "The request is authentic, but cannot be understood."),
            ("429", "Too many requests; `Retry-After` says when to try again."),
            ("503", "Nothing was stored; send it again."),
        ])
    }
}
