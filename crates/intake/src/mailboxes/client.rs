//! The Gmail API: one mailbox, its grant, its budget. Calls are retried where that helps.

use std::sync::Arc;
use std::time::Duration;

use gleaner_ingest::Channel;
use rand::Rng as _;
use reqwest::{Client, Method, RequestBuilder, StatusCode};
use serde_json::Value;

use super::budget::{Budget, Budgets};
use super::error::{Error, Result};
use super::google::Google;
use super::token::Tokens;

/// The limit for a response with a message in it. Larger messages do not exist.
const ANSWER_LIMIT: usize = 96 * 1024 * 1024;

/// A mailbox to call.
#[derive(Debug, Clone)]
pub(super) struct Mailbox {
    pub channel: Arc<Channel>,
    google: Arc<Google>,
    http: Client,
    tokens: Arc<Tokens>,
    budget: Arc<Budget>,
}

/// One page of ids, and the token of the next page.
#[derive(Debug, Default)]
pub(super) struct Page {
    pub ids: Vec<String>,
    pub history_id: Option<String>,
    pub next: Option<String>,
}

impl Mailbox {
    pub(super) fn new(channel: Arc<Channel>, google: Arc<Google>, http: Client, tokens: Arc<Tokens>, budgets: &Budgets) -> Self {
        let budget = budgets.of(&channel);
        Self { channel, google, http, tokens, budget }
    }

    /// The address of the mailbox, and its current history id.
    pub(super) async fn profile(&self) -> Result<(String, String)> {
        let answer = self.get("profile", &[], self.google.costs.get_profile).await?;
        let history_id = history_id(&answer).ok_or_else(|| odd("a profile without historyId"))?;
        Ok((answer["emailAddress"].as_str().unwrap_or_default().to_owned(), history_id))
    }

    /// Ids of the messages that `query` finds, newest first.
    pub(super) async fn list(&self, query: &str, labels: &[String], page: Option<&str>) -> Result<Page> {
        let mut parameters = vec![("q", query), ("maxResults", "500")];
        parameters.extend(labels.iter().map(|label| ("labelIds", label.as_str())));
        parameters.extend(page.map(|token| ("pageToken", token)));
        let answer = self.get("messages", &parameters, self.google.costs.list_messages).await?;
        let ids = answer["messages"].as_array().into_iter().flatten().filter_map(|message| message["id"].as_str());
        Ok(Page { ids: ids.map(str::to_owned).collect(), history_id: None, next: next(&answer) })
    }

    /// The messages added since `start`. [`Error::Gone`] when Google no longer has a history that old.
    pub(super) async fn history(&self, start: &str, page: Option<&str>) -> Result<Page> {
        let mut parameters = vec![("startHistoryId", start), ("historyTypes", "messageAdded"), ("labelId", "INBOX"), ("maxResults", "500")];
        parameters.extend(page.map(|token| ("pageToken", token)));
        let answer = self.get("history", &parameters, self.google.costs.list_history).await?;
        let records = answer["history"].as_array().into_iter().flatten();
        // `messages` also lists messages that merely changed; only `messagesAdded` are new.
        let added = records.flat_map(|record| record["messagesAdded"].as_array().into_iter().flatten());
        let ids = added.filter_map(|added| added["message"]["id"].as_str());
        Ok(Page { ids: ids.map(str::to_owned).collect(), history_id: history_id(&answer), next: next(&answer) })
    }

    /// A message. None when it was deleted in the meantime.
    pub(super) async fn message(&self, id: &str) -> Result<Option<Value>> {
        match self.get(&format!("messages/{}", segment(id)?), &[("format", "full")], self.google.costs.get_message).await {
            Ok(message) => Ok(Some(message)),
            Err(Error::Gone) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The bytes of an attachment, as the API encodes them.
    pub(super) async fn attachment(&self, message: &str, attachment: &str) -> Result<Value> {
        let path = format!("messages/{}/attachments/{}", segment(message)?, segment(attachment)?);
        self.get(&path, &[], self.google.costs.get_attachment).await
    }

    /// Subscribes to push notifications. Returns when they expire, in milliseconds since 1970.
    pub(super) async fn watch(&self, topic: &str) -> Result<i64> {
        let body = serde_json::json!({"topicName": topic, "labelIds": ["INBOX"], "labelFilterBehavior": "INCLUDE"});
        let answer = self.call(self.google.costs.watch, || self.request(Method::POST, "watch").json(&body)).await?;
        let expires = answer["expiration"].as_str().and_then(|text| text.parse().ok()).or_else(|| answer["expiration"].as_i64());
        expires.ok_or_else(|| odd("a watch without expiration"))
    }

    async fn get(&self, path: &str, parameters: &[(&str, &str)], cost: u32) -> Result<Value> {
        self.call(cost, || self.request(Method::GET, path).query(parameters)).await
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.http.request(method, format!("{}/gmail/v1/users/me/{path}", self.google.api_base)).timeout(self.google.patience.call)
    }

    /// Makes one call. Retries it after a while when the quota is used up or Google fails, and once with a new token when
    /// ours is refused.
    async fn call(&self, cost: u32, request: impl Fn() -> RequestBuilder) -> Result<Value> {
        let mut renewed = false;
        let mut wait = self.google.patience.first;
        let mut tries = 0;
        loop {
            self.budget.spend(cost).await;
            let token = self.tokens.access(&self.channel, &self.google, &self.http).await?;
            tries += 1;
            let (error, asked) = match request().bearer_auth(token.as_str()).send().await {
                Ok(response) if response.status() == StatusCode::UNAUTHORIZED && !renewed => {
                    renewed = true;
                    self.tokens.forget(&self.channel, &token).await;
                    continue;
                }
                Ok(response) => {
                    let asked = retry_after(&response);
                    match read(response).await {
                        Err(error) if is_passing(&error) => (error, asked),
                        other => return other,
                    }
                }
                Err(error) => (Error::Unreachable(describe(error)), None),
            };
            if tries >= self.google.patience.tries {
                return Err(error);
            }
            let pause = asked.unwrap_or_else(|| jittered(wait)).min(self.google.patience.longest);
            tracing::debug!(channel = %self.channel.name, %error, pause_ms = pause.as_millis(), "Google said later");
            tokio::time::sleep(pause).await;
            wait = (wait * 2).min(self.google.patience.longest);
        }
    }
}

/// Between half of the wait and all of it, so that many mailboxes that were refused together do not retry together.
pub(super) fn jittered(wait: Duration) -> Duration {
    wait.mul_f64(rand::rng().random_range(0.5..=1.0))
}

fn is_passing(error: &Error) -> bool {
    matches!(error, Error::Quota(_) | Error::Unreachable(_))
}

fn retry_after(response: &reqwest::Response) -> Option<Duration> {
    response.headers().get("retry-after")?.to_str().ok()?.trim().parse().ok().map(Duration::from_secs)
}

async fn read(response: reqwest::Response) -> Result<Value> {
    let status = response.status();
    let mut response = response;
    let mut body = Vec::new();
    while let Some(piece) = response.chunk().await.map_err(|error| Error::Unreachable(describe(error)))? {
        if body.len() + piece.len() > ANSWER_LIMIT {
            return Err(Error::Refused { status: status.as_u16(), reason: "an answer too large to be a message".into() });
        }
        body.extend_from_slice(&piece);
    }
    let answer: Option<Value> = serde_json::from_slice(&body).ok();
    if status.is_success() {
        return answer.ok_or_else(|| odd("something else than JSON"));
    }
    let error = answer.as_ref().map_or(&Value::Null, |answer| &answer["error"]);
    let reason = error["errors"][0]["reason"].as_str().or_else(|| error["status"].as_str()).unwrap_or("no reason given").to_owned();
    Err(match status.as_u16() {
        404 => Error::Gone,
        429 => Error::Quota(reason),
        403 if matches!(reason.as_str(), "rateLimitExceeded" | "userRateLimitExceeded" | "RESOURCE_EXHAUSTED") => Error::Quota(reason),
        500..=599 => Error::Unreachable(format!("it answers {status}")),
        status => Error::Refused { status, reason: reason.chars().take(200).collect() },
    })
}

/// A transport error without its URL and its nested causes.
pub(super) fn describe(error: reqwest::Error) -> String {
    if error.is_timeout() {
        "it did not answer in time".into()
    } else if error.is_connect() {
        "no connection".into()
    } else {
        error.without_url().to_string()
    }
}

/// An id as part of a path. Google's ids are letters, digits, `-` and `_`; anything else would make another path.
fn segment(id: &str) -> Result<&str> {
    let plain = !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
    if plain { Ok(id) } else { Err(odd("an id that is none")) }
}

fn history_id(answer: &Value) -> Option<String> {
    let id = &answer["historyId"];
    id.as_str().map(str::to_owned).or_else(|| id.as_u64().map(|id| id.to_string()))
}

fn next(answer: &Value) -> Option<String> {
    answer["nextPageToken"].as_str().filter(|token| !token.is_empty()).map(str::to_owned)
}

fn odd(what: &str) -> Error {
    Error::Refused { status: 200, reason: format!("it sent {what}") }
}
