//! A fake Twilio: it serves a recording, and announces it with a signed webhook.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, Result, ensure};
use axum::Router;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use hmac::{Hmac, Mac as _};
use serde_json::{Value, json};
use sha1::Sha1;
use tokio_postgres::Client;
use uuid::Uuid;

const AUTH_TOKEN: &str = "12345678901234567890123456789012";
const WEBHOOK_PATH: &str = gleaner_intake::channels::WEBHOOK_PATH;

#[derive(Clone)]
pub(super) struct Telephone {
    address: SocketAddr,
    recording: Arc<Mutex<Option<Vec<u8>>>>,
    asked: Arc<Mutex<Vec<Recorded>>>,
}

/// The requested recording, and the credentials of the request.
type Recorded = (String, Option<String>);

fn account() -> String {
    format!("AC{}", "1".repeat(32))
}

/// The credentials of the account, as they are sent.
pub(super) fn credentials() -> String {
    format!("Basic {}", BASE64_STANDARD.encode(format!("{}:{AUTH_TOKEN}", account())))
}

impl Telephone {
    pub(super) async fn start(recording: Vec<u8>) -> Result<Self> {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let telephone = Self { address, recording: Arc::new(Mutex::new(Some(recording))), asked: Arc::default() };
        let router = Router::new().fallback(answer).with_state(telephone.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        Ok(telephone)
    }

    pub(super) fn base(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(super) fn asked(&self) -> Vec<Recorded> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Deletes the recording, as accounts can be set up to do after a while.
    pub(super) fn forget(&self) {
        *self.recording.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Announces a new recording as Twilio does, through a channel of its own. Returns the activity.
    pub(super) async fn tell(&self, client: &Client, server: &str) -> Result<Uuid> {
        let key = format!("key-{}", Uuid::now_v7().simple());
        let settings = json!({"auth_token": AUTH_TOKEN, "account_sid": account()});
        client
            .execute(
                "insert into ingestion_providers (provider_code, name, config, ingestion_key) values ('twilio', gen_random_uuid(), $1, $2)",
                &[&settings, &key],
            )
            .await?;
        let recording = format!("RE{}", Uuid::now_v7().simple());
        let url = format!("https://api.twilio.com/2010-04-01/Accounts/{}/Recordings/{recording}", account());
        // In the order in which they are signed.
        let fields = [
            ("AccountSid", account()),
            ("CallSid", format!("CA{}", Uuid::now_v7().simple())),
            ("RecordingDuration", "6".into()),
            ("RecordingSid", recording),
            ("RecordingStatus", "completed".into()),
            ("RecordingUrl", url),
        ];
        let target = format!("{WEBHOOK_PATH}?key={key}");
        let signed = fields.iter().fold(format!("https://hooks.acme.example{target}"), |all, (name, value)| all + name + value);
        let mut mac = Hmac::<Sha1>::new_from_slice(AUTH_TOKEN.as_bytes())?;
        mac.update(signed.as_bytes());
        let signature = BASE64_STANDARD.encode(mac.finalize().into_bytes());
        let request = reqwest::Client::new().post(format!("{server}{target}")).header("x-twilio-signature", signature);
        let answer = request.form(&fields).send().await?;
        let (status, text) = (answer.status(), answer.text().await?);
        ensure!(status.is_success(), "{status}: {text}");
        let rows = client.query("select id from activities where raw_data ->> 'content' = $1", &[&fields[5].1]).await?;
        Ok(rows.first().with_context(|| format!("no activity: {text}"))?.get(0))
    }
}

async fn answer(State(telephone): State<Telephone>, request: Request) -> Response {
    let authorization = request.headers().get("authorization").and_then(|value| value.to_str().ok()).map(str::to_owned);
    let asked = (request.uri().path().to_owned(), authorization);
    telephone.asked.lock().unwrap_or_else(PoisonError::into_inner).push(asked);
    match telephone.recording.lock().unwrap_or_else(PoisonError::into_inner).clone() {
        Some(recording) => ([("content-type", "audio/x-wav")], recording).into_response(),
        None => (StatusCode::NOT_FOUND, axum::Json::<Value>(json!({"code": 20404}))).into_response(),
    }
}
