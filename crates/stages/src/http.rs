//! A call to an external HTTP service.

use std::collections::BTreeMap;

use gleaner::Failure;
use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::failure::{is_retryable, of_request, of_status, retry_after};
use super::template::Template;
use super::{Output, Seen, Stage};

#[derive(Debug, Clone)]
pub struct Http {
    pub method: Method,
    pub url: Template,
    pub headers: BTreeMap<String, Template>,
    pub body: Option<Template>,
    pub expect: Vec<u16>,
    pub retry: Vec<u16>,
    pub give_up: Vec<u16>,
}

impl Http {
    pub fn describe(&self) -> String {
        // Neither the path nor the query, because they may contain a key.
        let host = self.url.source.split('/').take(3).collect::<Vec<_>>().join("/");
        format!("{} {host}", self.method)
    }

    pub fn configuration(&self) -> Value {
        let headers: Vec<(&String, &str)> = self.headers.iter().map(|(name, value)| (name, value.source.as_str())).collect();
        json!([self.method.as_str(), headers, self.expect])
    }

    /// The request that is sent, because it decides the response.
    pub fn input(&self, seen: &Seen<'_>) -> Result<Value, Failure> {
        let body = self.body.as_ref().map(|body| body.render(seen, None)).transpose()?;
        Ok(json!([self.url.render(seen, None)?, body]))
    }

    pub async fn run(&self, stage: &Stage, seen: &Seen<'_>) -> Result<Output, Failure> {
        let (category, what) = (stage.default_category(), self.describe());
        let client = seen.models.client().map_err(|error| of_request(category, &what, error))?;
        let mut request = client.request(self.method.clone(), self.url.render(seen, None)?.trim()).timeout(stage.timeout);
        // A repeated stage sends the same key, so that the service can distinguish a retry from a second request.
        request = request.header("idempotency-key", seen.key());
        for (name, value) in &self.headers {
            request = request.header(name, value.render(seen, None)?.trim());
        }
        if let Some(body) = &self.body {
            let body = body.render(seen, None)?;
            if !self.headers.keys().any(|name| name.eq_ignore_ascii_case("content-type")) {
                let is_json = serde_json::from_str::<Value>(&body).is_ok();
                request = request.header("content-type", if is_json { "application/json" } else { "text/plain; charset=utf-8" });
            }
            request = request.body(body);
        }
        let answer = request.send().await.map_err(|error| of_request(category, &what, error))?;
        let (status, headers) = (answer.status(), answer.headers().clone());
        let body = super::openai::read(answer, category, &what).await?;
        if !self.is_expected(status) {
            let mut failure = of_status(category, &what, status, &headers, &body);
            failure.retryable = self.is_retried(status);
            failure.retry_in = retry_after(&headers).filter(|_| failure.retryable);
            return Err(failure);
        }
        let text = body.trim();
        Ok(Output::new(serde_json::from_str(text).unwrap_or_else(|_| if text.is_empty() { Value::Null } else { json!({"text": text}) })))
    }

    fn is_expected(&self, status: StatusCode) -> bool {
        if self.expect.is_empty() { status.is_success() } else { self.expect.contains(&status.as_u16()) }
    }

    fn is_retried(&self, status: StatusCode) -> bool {
        let code = status.as_u16();
        !self.give_up.contains(&code) && (self.retry.contains(&code) || is_retryable(status))
    }
}
