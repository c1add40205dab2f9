//! Authenticates the apps: each needs its token, and must come from its own origin. A request without an origin does not come
//! from a page, but needs the token all the same.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS,
    ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS, AUTHORIZATION, ORIGIN, VARY,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::super::guard::{own_authority, text};
use super::super::{Host, locked};
use super::error::Refusal;

/// Chrome requires this header before a page from another site may reach this machine.
const ALLOW_PRIVATE_NETWORK: HeaderName = HeaderName::from_static("access-control-allow-private-network");

/// An authenticated app.
#[derive(Debug, Clone)]
pub(super) struct Client {
    pub name: String,
    /// Its slot in the limit of concurrent requests, held until the response is complete.
    _place: Arc<OwnedSemaphorePermit>,
}

pub(super) async fn admit(State(host): State<Host>, mut request: Request, next: Next) -> Response {
    if own_authority(request.headers()).is_none() {
        let message = "the models are only for this machine: address it as 127.0.0.1 or localhost";
        return Refusal::new(StatusCode::MISDIRECTED_REQUEST, "invalid_request_error", None, message).into_response();
    }
    // Only the origins of apps that the user consented to get any information here.
    let origin = text(request.headers(), &ORIGIN).map(str::to_owned);
    let agreed = origin.clone().filter(|origin| host.agreed_origin(origin));
    if request.method() == Method::OPTIONS {
        return preflight(request.headers(), agreed.as_deref());
    }
    let mut response = match host.client(request.headers(), origin.as_deref()) {
        Ok(client) => {
            request.extensions_mut().insert(client);
            next.run(request).await
        }
        Err(refusal) => refusal.into_response(),
    };
    if let Some(origin) = agreed.and_then(|origin| HeaderValue::from_str(&origin).ok()) {
        response.headers_mut().insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        response.headers_mut().insert(ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static("retry-after"));
    }
    response.headers_mut().insert(VARY, HeaderValue::from_static("origin"));
    response
}

fn preflight(asked: &HeaderMap, origin: Option<&str>) -> Response {
    let mut response = Response::new(Body::empty());
    let Some(origin) = origin.and_then(|origin| HeaderValue::from_str(origin).ok()) else {
        *response.status_mut() = StatusCode::FORBIDDEN;
        return response;
    };
    *response.status_mut() = StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET, POST"));
    // Echoed, because OpenAI's clients send a dozen headers of their own, and the next version may send others.
    if let Some(names) = asked.get(ACCESS_CONTROL_REQUEST_HEADERS) {
        headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, names.clone());
    }
    headers.insert(ALLOW_PRIVATE_NETWORK, HeaderValue::from_static("true"));
    // Short, so that browsers do not remember a consent after it was revoked.
    headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("60"));
    headers.insert(VARY, HeaderValue::from_static("origin, access-control-request-headers"));
    response
}

impl Host {
    fn agreed_origin(&self, origin: &str) -> bool {
        self.shared.store.all().iter().any(|kept| kept.consent.is_some() && kept.entry.origin() == origin)
    }

    fn client(&self, headers: &HeaderMap, origin: Option<&str>) -> Result<Client, Refusal> {
        let refuse = |message: &str| Refusal::new(StatusCode::UNAUTHORIZED, "invalid_request_error", Some("invalid_api_key"), message);
        let token = text(headers, &AUTHORIZATION).and_then(|value| {
            let (scheme, token) = value.split_once(' ')?;
            scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
        });
        let token = token.ok_or_else(|| refuse("the models need the app's token: Authorization: Bearer …"))?;
        let app = self.shared.store.holder(token);
        let app = app.ok_or_else(|| refuse("the token is unknown or was revoked; the host page gives out another"))?;
        if origin.is_some_and(|origin| origin != app.entry.origin()) {
            let message = "this token belongs to an app of another origin";
            return Err(Refusal::new(StatusCode::FORBIDDEN, "invalid_request_error", Some("wrong_origin"), message));
        }
        let name = app.entry.name;
        let at_once = self.shared.limits.at_once;
        let places = Arc::clone(locked(&self.shared.busy).entry(name.clone()).or_insert_with(|| Arc::new(Semaphore::new(at_once))));
        let place = places.try_acquire_owned().map_err(|_| {
            let message = format!("{at_once} requests of this app are under way; try again when one has ended");
            Refusal::new(StatusCode::TOO_MANY_REQUESTS, "rate_limit_error", Some("rate_limit_exceeded"), message)
        })?;
        Ok(Client { name, _place: Arc::new(place) })
    }
}
