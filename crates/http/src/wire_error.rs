//! Errors in the one shape that supabase-js programs know: `code`, `message`, `details` and `hint`, all four always
//! present. Every part of the API returns errors of this type, with two exceptions: `/auth/v1` has a form of its own, and
//! the webhook endpoint answers in the form of the sender's provider.

mod postgres;

use std::borrow::Cow;

use axum::response::{IntoResponse, Response};
use http::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use serde::Serialize;
use utoipa::ToSchema;

/// An error to be sent to the client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema, thiserror::Error)]
#[schema(as = Error)]
#[error("{code}: {message}")]
pub struct WireError {
    #[serde(skip)]
    pub status: StatusCode,
    /// A SQLSTATE, one of PostgREST's codes, or a word of ours.
    #[schema(value_type = String)]
    pub code: Cow<'static, str>,
    pub message: String,
    #[schema(required)]
    pub details: Option<String>,
    /// What to do about it.
    #[schema(required, value_type = Option<String>)]
    pub hint: Option<Box<str>>,
    /// Every mistake in the request, where there was more than one.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    #[schema(required = false, value_type = Vec<String>)]
    pub mistakes: Box<[String]>,
    /// Headers of the response.
    #[serde(skip)]
    #[schema(ignore)]
    pub headers: Option<Box<HeaderMap>>,
}

impl WireError {
    pub fn new(status: StatusCode, code: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Self {
        Self { status, code: code.into(), message: message.into(), details: None, hint: None, mistakes: Box::default(), headers: None }
    }

    #[must_use]
    pub fn code(mut self, code: &'static str) -> Self {
        self.code = code.into();
        self
    }

    #[must_use]
    pub fn details(mut self, details: impl Into<String>) -> Self {
        self.details = Some(details.into());
        self
    }

    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into().into_boxed_str());
        self
    }

    #[must_use]
    pub fn mistakes(mut self, mistakes: Vec<String>) -> Self {
        self.mistakes = mistakes.into();
        self
    }

    #[must_use]
    pub fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.get_or_insert_default().insert(name, value);
        self
    }

    /// The request is invalid.
    pub fn bad(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "22023", message)
    }

    /// The token is malformed or was not issued by us.
    pub fn token(message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "PGRST301", message)
    }

    /// The token was issued by us, but its claims do not hold, or no longer.
    pub fn claims(message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "PGRST303", message)
    }

    /// There is no token.
    pub fn anonymous() -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "PGRST302", "No API key found in request")
            .hint("Send a project key as `apikey` or a token as `Authorization: Bearer …`; `gleaner status -o env` prints the keys.")
    }

    /// The database cannot be reached. Nothing was stored that was confirmed to the sender, so it may retry.
    pub fn database_away() -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "PGRST001", "Could not reach the database").hint("Try again in a moment.")
    }

    /// No connection became free in time.
    pub fn no_connection_in_time() -> Self {
        Self::new(StatusCode::GATEWAY_TIMEOUT, "PGRST003", "Timed out acquiring connection from connection pool.")
    }

    /// No route has this path.
    pub fn no_route() -> Self {
        Self::new(StatusCode::NOT_FOUND, "PGRST125", "Invalid path specified in request URL").hint("`/docs` lists the routes.")
    }

    /// The route does not have this method.
    pub fn wrong_method() -> Self {
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "PGRST117", "Unsupported HTTP method").hint("`/docs` lists the routes.")
    }

    /// An error that the caller can do nothing about. The cause is in the log.
    pub fn internal() -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "XX000", "internal error")
            .hint("The server's log has the cause, under the id in the response's x-request-id header.")
    }

    /// The value of `WWW-Authenticate` for a 401. Other clients read the reason there.
    fn challenge(&self) -> HeaderValue {
        if matches!(&*self.code, "PGRST301" | "PGRST303") {
            let said: String = self.message.chars().filter(|c| !c.is_control() && !matches!(c, '"' | '\\')).collect();
            if let Ok(value) = HeaderValue::try_from(format!("Bearer error=\"invalid_token\", error_description=\"{said}\"")) {
                return value;
            }
        }
        HeaderValue::from_static("Bearer")
    }
}

impl IntoResponse for WireError {
    fn into_response(self) -> Response {
        // Four strings always serialise.
        let body = serde_json::to_vec(&self).unwrap_or_default();
        let mut response = (self.status, body).into_response();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json; charset=utf-8"));
        match self.status {
            StatusCode::UNAUTHORIZED => drop(headers.insert(WWW_AUTHENTICATE, self.challenge())),
            StatusCode::SERVICE_UNAVAILABLE => drop(headers.insert(RETRY_AFTER, HeaderValue::from_static("1"))),
            _ => {}
        }
        if let Some(own) = self.headers {
            headers.extend(*own);
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The status, the relevant headers, and the body as text.
    async fn sent(error: WireError) -> (u16, Vec<(&'static str, String)>, String) {
        let response = error.into_response();
        let header = |name: &'static str| Some((name, response.headers().get(name)?.to_str().ok()?.to_owned()));
        let headers = ["content-type", "www-authenticate", "retry-after"].into_iter().filter_map(header).collect();
        let status = response.status().as_u16();
        let body = axum::body::to_bytes(response.into_body(), 10_000).await.unwrap();
        (status, headers, String::from_utf8(body.to_vec()).unwrap())
    }

    #[tokio::test]
    async fn an_error_has_four_keys_and_the_headers_of_its_status() {
        let json = ("content-type", "application/json; charset=utf-8".to_owned());
        let bare = r#"{"code":"22023","message":"no","details":null,"hint":null}"#;
        assert_eq!(sent(WireError::bad("no")).await, (400, vec![json.clone()], bare.to_owned()));

        let challenge = r#"Bearer error="invalid_token", error_description="JWT expired""#.to_owned();
        let (status, headers, _) = sent(WireError::claims("JWT expired")).await;
        assert_eq!((status, headers), (401, vec![json.clone(), ("www-authenticate", challenge)]));
        let (status, headers, _) = sent(WireError::anonymous()).await;
        assert_eq!((status, headers), (401, vec![json.clone(), ("www-authenticate", "Bearer".to_owned())]));

        let (status, headers, _) = sent(WireError::database_away()).await;
        assert_eq!((status, headers), (503, vec![json, ("retry-after", "1".to_owned())]));
    }

    #[tokio::test]
    async fn mistakes_are_listed_only_where_there_are_some() {
        let (_, _, body) = sent(WireError::bad("2 mistakes").hint("mend them").mistakes(vec!["a".into(), "b".into()])).await;
        assert_eq!(body, r#"{"code":"22023","message":"2 mistakes","details":null,"hint":"mend them","mistakes":["a","b"]}"#);
    }

    #[tokio::test]
    async fn a_message_cannot_write_headers() {
        let (_, headers, _) = sent(WireError::token("a \"quote\"\r\nset-cookie: b")).await;
        assert_eq!(headers[1].1, r#"Bearer error="invalid_token", error_description="a quoteset-cookie: b""#);
    }
}
