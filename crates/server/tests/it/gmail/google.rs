//! A local fake of Google: the documented Gmail API, the token endpoint and the keys, for one mailbox.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Result;
use axum::extract::{Path, RawQuery, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use gleaner_intake::mailboxes::Google;
use gleaner_intake::mailboxes::Patience;
use serde_json::{Value, json};

/// The contents of the mailbox, and the calls that were made.
#[derive(Default)]
pub(super) struct Mailbox {
    pub messages: BTreeMap<String, Value>,
    /// History id and the messages added there.
    pub history: Vec<(u64, Vec<String>)>,
    pub history_id: u64,
    /// Older starting points are no longer known.
    pub oldest: u64,
    pub page_size: usize,
    /// The calls, in order, with their time.
    pub calls: Vec<(String, Instant)>,
    /// Responses to give instead, to calls that begin with the text.
    pub instead: VecDeque<(&'static str, u16, Value)>,
    pub valid_tokens: Vec<String>,
    pub refreshes: usize,
    pub expires_in: u64,
    pub revoked: bool,
    pub token_delay: Duration,
    pub last_form: BTreeMap<String, String>,
    pub jwks: Value,
}

#[derive(Clone)]
pub(super) struct LocalGoogle {
    pub address: SocketAddr,
    mailbox: Arc<Mutex<Mailbox>>,
}

impl LocalGoogle {
    pub(super) async fn start() -> Result<Self> {
        let mailbox = Mailbox { history_id: 1000, oldest: 1, page_size: 100, expires_in: 3600, ..Mailbox::default() };
        let mailbox = Arc::new(Mutex::new(mailbox));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        let google = Self { address: listener.local_addr()?, mailbox };
        let router = Router::new()
            .route("/gmail/v1/users/me/profile", get(profile))
            .route("/gmail/v1/users/me/messages", get(list))
            .route("/gmail/v1/users/me/messages/{id}", get(message))
            .route("/gmail/v1/users/me/messages/{id}/attachments/{attachment}", get(attachment))
            .route("/gmail/v1/users/me/history", get(history))
            .route("/gmail/v1/users/me/watch", post(watch))
            .route("/token", post(token))
            .route("/certs", get(certs))
            .with_state(google.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        Ok(google)
    }

    pub(super) fn settings(&self) -> Google {
        let base = format!("http://{}", self.address);
        Google {
            api_base: base.clone(),
            token_url: format!("{base}/token"),
            auth_url: format!("{base}/auth"),
            jwks_url: format!("{base}/certs"),
            patience: Patience {
                first: Duration::from_millis(40),
                longest: Duration::from_secs(1),
                tries: 5,
                call: Duration::from_secs(10),
            },
            ..Google::default()
        }
    }

    pub(super) fn mailbox(&self) -> MutexGuard<'_, Mailbox> {
        self.mailbox.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A message arrives.
    pub(super) fn deliver(&self, id: &str, text: &str) {
        self.deliver_as(letter(id, text));
    }

    pub(super) fn deliver_as(&self, message: Value) {
        let mut mailbox = self.mailbox();
        let id = message["id"].as_str().unwrap_or_default().to_owned();
        mailbox.history_id += 10;
        let at = mailbox.history_id;
        mailbox.history.push((at, vec![id.clone()]));
        mailbox.messages.insert(id, message);
    }

    /// The number of calls that begin with this.
    pub(super) fn count(&self, start: &str) -> usize {
        self.mailbox().calls.iter().filter(|(call, _)| call.starts_with(start)).count()
    }

    pub(super) fn calls(&self) -> usize {
        self.mailbox().calls.len()
    }
}

/// A message of the inbox in `format=full`.
pub(super) fn letter(id: &str, text: &str) -> Value {
    json!({
        "id": id, "threadId": format!("t-{id}"), "labelIds": ["INBOX", "UNREAD"], "internalDate": "1700000000000",
        "payload": {
            "mimeType": "multipart/alternative", "filename": "",
            "headers": [
                {"name": "From", "value": "=?utf-8?q?J=C3=B6rg?= <Joerg@Example.com>"}, {"name": "To", "value": "sales@acme.example"},
                {"name": "Subject", "value": "=?utf-8?q?Gr=C3=BC=C3=9Fe?="}, {"name": "Message-ID", "value": format!("<{id}@example.com>")},
            ],
            "parts": [
                {"mimeType": "text/html", "filename": "", "body": {"data": URL_SAFE_NO_PAD.encode(format!("<p>{text}</p>"))}},
                {"mimeType": "text/plain", "filename": "", "body": {"data": URL_SAFE_NO_PAD.encode(text)}},
            ]
        }
    })
}

pub(super) fn quota(reason: &str) -> Value {
    json!({"error": {"code": 403, "errors": [{"domain": "usageLimits", "reason": reason}]}})
}

/// Records the call. Returns a prepared response for it, or an error if the token is missing.
fn asked(google: &LocalGoogle, call: String, headers: &HeaderMap) -> Option<Response> {
    let mut mailbox = google.mailbox();
    mailbox.calls.push((call.clone(), Instant::now()));
    let token = headers.get("authorization").and_then(|value| value.to_str().ok()?.strip_prefix("Bearer ")).unwrap_or_default();
    if !mailbox.valid_tokens.iter().any(|valid| valid == token) {
        return Some((StatusCode::UNAUTHORIZED, Json(json!({"error": {"code": 401, "status": "UNAUTHENTICATED"}}))).into_response());
    }
    let at = mailbox.instead.iter().position(|(start, ..)| call.starts_with(start))?;
    let (_, status, body) = mailbox.instead.remove(at)?;
    Some((StatusCode::from_u16(status).unwrap_or(StatusCode::IM_A_TEAPOT), Json(body)).into_response())
}

fn parameter(query: &Option<String>, name: &str) -> Option<String> {
    pairs(query.as_deref()?).remove(name)
}

fn pairs(encoded: &str) -> BTreeMap<String, String> {
    let url = reqwest::Url::parse(&format!("http://x/?{encoded}"));
    url.map(|url| url.query_pairs().into_owned().collect()).unwrap_or_default()
}

fn not_found() -> Response {
    (StatusCode::NOT_FOUND, Json(json!({"error": {"code": 404, "errors": [{"reason": "notFound"}]}}))).into_response()
}

async fn profile(State(google): State<LocalGoogle>, headers: HeaderMap) -> Response {
    if let Some(answer) = asked(&google, "profile".into(), &headers) {
        return answer;
    }
    let history_id = google.mailbox().history_id;
    Json(json!({"emailAddress": "sales@acme.example", "historyId": history_id.to_string()})).into_response()
}

async fn list(State(google): State<LocalGoogle>, RawQuery(query): RawQuery, headers: HeaderMap) -> Response {
    if let Some(answer) = asked(&google, format!("messages?{}", query.as_deref().unwrap_or_default()), &headers) {
        return answer;
    }
    let mailbox = google.mailbox();
    let search = parameter(&query, "q").unwrap_or_default();
    let found = mailbox.messages.values().rev().filter(|message| !search.contains("from:boss") || message["boss"] == true);
    let ids: Vec<Value> = found.map(|message| json!({"id": message["id"], "threadId": message["threadId"]})).collect();
    page(&mailbox, "messages", ids, &query, json!({}))
}

async fn history(State(google): State<LocalGoogle>, RawQuery(query): RawQuery, headers: HeaderMap) -> Response {
    if let Some(answer) = asked(&google, format!("history?{}", query.as_deref().unwrap_or_default()), &headers) {
        return answer;
    }
    let mailbox = google.mailbox();
    let start: u64 = parameter(&query, "startHistoryId").and_then(|id| id.parse().ok()).unwrap_or_default();
    if start < mailbox.oldest {
        return not_found();
    }
    let since = mailbox.history.iter().filter(|(at, _)| *at > start);
    let records: Vec<Value> = since
        .map(|(at, ids)| {
            let added: Vec<Value> = ids.iter().map(|id| json!({"message": {"id": id, "threadId": "t", "labelIds": ["INBOX"]}})).collect();
            // `messages` lists more than was added; a client that reads it fetches too much.
            json!({"id": at.to_string(), "messages": [{"id": "changed-only"}], "messagesAdded": added})
        })
        .collect();
    page(&mailbox, "history", records, &query, json!({"historyId": mailbox.history_id.to_string()}))
}

fn page(mailbox: &Mailbox, name: &str, all: Vec<Value>, query: &Option<String>, rest: Value) -> Response {
    let begin: usize = parameter(query, "pageToken").and_then(|token| token.strip_prefix("p")?.parse().ok()).unwrap_or_default();
    let end = (begin + mailbox.page_size).min(all.len());
    let mut answer = rest;
    if begin < end {
        answer[name] = json!(all[begin..end]);
    }
    if end < all.len() {
        answer["nextPageToken"] = json!(format!("p{end}"));
    }
    Json(answer).into_response()
}

async fn message(State(google): State<LocalGoogle>, Path(id): Path<String>, headers: HeaderMap) -> Response {
    if let Some(answer) = asked(&google, format!("messages/{id}"), &headers) {
        return answer;
    }
    let mailbox = google.mailbox();
    mailbox.messages.get(&id).map_or_else(not_found, |message| Json(message.clone()).into_response())
}

async fn attachment(State(google): State<LocalGoogle>, Path((id, attachment)): Path<(String, String)>, headers: HeaderMap) -> Response {
    if let Some(answer) = asked(&google, format!("attachments/{id}/{attachment}"), &headers) {
        return answer;
    }
    Json(json!({"size": 4, "data": URL_SAFE_NO_PAD.encode("file")})).into_response()
}

async fn watch(State(google): State<LocalGoogle>, headers: HeaderMap, Json(body): Json<Value>) -> Response {
    if let Some(answer) = asked(&google, format!("watch {}", body["topicName"].as_str().unwrap_or_default()), &headers) {
        return answer;
    }
    let week = std::time::SystemTime::now() + Duration::from_secs(7 * 24 * 3600);
    let expires = week.duration_since(std::time::UNIX_EPOCH).map_or(0, |since| since.as_millis());
    Json(json!({"historyId": "1", "expiration": expires.to_string()})).into_response()
}

async fn token(State(google): State<LocalGoogle>, body: String) -> Response {
    let form: BTreeMap<String, String> = pairs(&body);
    let delay = {
        let mut mailbox = google.mailbox();
        mailbox.calls.push((format!("token {}", form.get("grant_type").map_or("", String::as_str)), Instant::now()));
        mailbox.last_form = form.clone();
        mailbox.token_delay
    };
    tokio::time::sleep(delay).await;
    let mut mailbox = google.mailbox();
    if mailbox.revoked {
        let told = json!({"error": "invalid_grant", "error_description": "Token has been expired or revoked."});
        return (StatusCode::BAD_REQUEST, Json(told)).into_response();
    }
    mailbox.refreshes += 1;
    let token = format!("ya29.access-{}", mailbox.refreshes);
    mailbox.valid_tokens = vec![token.clone()];
    let mut answer = json!({"access_token": token, "expires_in": mailbox.expires_in, "token_type": "Bearer", "scope": "x"});
    if form.get("grant_type").is_some_and(|kind| kind == "authorization_code") {
        answer["refresh_token"] = json!("1//from-consent");
    }
    Json(answer).into_response()
}

async fn certs(State(google): State<LocalGoogle>) -> Response {
    google.mailbox().calls.push(("certs".into(), Instant::now()));
    let keys = google.mailbox().jwks.clone();
    Json(keys).into_response()
}
