//! An HTTP endpoint of the user's: the message as JSON, with an idempotency key.

use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;

use super::{Message, NotSent, Sent, Sink, answered, read, refused_for_good, unanswered};

#[derive(Debug, Clone)]
pub struct Http {
    pub client: reqwest::Client,
    pub url: Option<String>,
    pub token: Option<String>,
    /// Beginnings of addresses that a message may name itself.
    pub allow: Vec<String>,
}

impl Http {
    /// An address that a row names is requested only where the operator allows it: a caller who may write rows could otherwise reach
    /// what only this machine can.
    fn url(&self, message: &Message) -> Result<String, NotSent> {
        let Some(named) = message.extra("url") else {
            return self.url.clone().ok_or_else(|| refused_for_good("no HTTP endpoint is configured: set FOLLOWUP_HTTP_URL"));
        };
        let parsed = reqwest::Url::parse(named).map_err(|error| refused_for_good(format!("payload.url is no URL: {error}")))?;
        let fits =
            |allowed: &str| parsed.as_str().starts_with(&if allowed.ends_with('/') { allowed.to_owned() } else { format!("{allowed}/") });
        if self.url.as_deref() == Some(named) || self.allow.iter().any(|allowed| fits(allowed)) {
            Ok(named.to_owned())
        } else {
            Err(refused_for_good("payload.url is none of the addresses in FOLLOWUP_HTTP_ALLOW"))
        }
    }
}

#[async_trait]
impl Sink for Http {
    async fn send(&self, key: &str, message: &Message, within: Duration) -> Result<Sent, NotSent> {
        const WHAT: &str = "the HTTP endpoint";
        // The header is a quoted string: draft-ietf-httpapi-idempotency-key-header.
        let mut request =
            self.client.post(self.url(message)?).timeout(within).header("idempotency-key", format!("\"{key}\"")).json(message);
        if let Some(token) = &self.token {
            request = request.bearer_auth(token);
        }
        let response = request.send().await.map_err(|error| unanswered(WHAT, error))?;
        let (status, headers) = (response.status(), response.headers().clone());
        let body = read(response).await;
        if !status.is_success() {
            return Err(answered(WHAT, status, &headers, &body));
        }
        let answer: Value = serde_json::from_str(&body).unwrap_or(Value::Null);
        let id = ["message_id", "id"].iter().find_map(|name| match &answer[*name] {
            Value::String(id) => Some(id.clone()),
            Value::Number(id) => Some(id.to_string()),
            _ => None,
        });
        Ok(Sent { message_id: id, answer, ..Sent::default() })
    }

    fn knows_keys(&self) -> bool {
        true
    }
}
