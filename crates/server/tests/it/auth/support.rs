//! A server with a database of its own, and a client that sends what supabase-js sends.

use std::net::{IpAddr, SocketAddr};

use anyhow::{Context as _, Result};
use gleaner_postgres::testing::TestDatabase;
use gleaner_supabase::access::Access;
use gleaner_supabase::auth::{self, Auth, ClientAddress, Password, Settings, people};
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::world::database;

pub(super) const SECRET: &str = "a secret of at least thirty-two characters";
pub(super) const PASSWORD: &str = "correct horse battery";
pub(super) const ADA: &str = "ada@example.com";

pub(super) struct World {
    pub database: TestDatabase,
    pub client: tokio_postgres::Client,
    pub auth: Auth,
    pub base: String,
    http: reqwest::Client,
    pub anon: String,
    pub service: String,
}

/// A response.
#[derive(Debug)]
pub(super) struct Answer {
    pub status: u16,
    pub headers: reqwest::header::HeaderMap,
    pub text: String,
    pub body: Value,
}

impl Answer {
    /// The code of an error, in the form for current clients.
    pub(super) fn code(&self) -> &str {
        self.body["code"].as_str().unwrap_or_default()
    }

    pub(super) fn refused(&self) -> (u16, &str) {
        (self.status, self.code())
    }

    pub(super) fn access(&self) -> &str {
        self.body["access_token"].as_str().unwrap_or_else(|| panic!("no session: {self:?}"))
    }

    pub(super) fn refresh(&self) -> &str {
        self.body["refresh_token"].as_str().unwrap_or_else(|| panic!("no session: {self:?}"))
    }

    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }
}

/// A token with these claims, signed with the project secret.
pub(super) fn signed(claims: &Value) -> String {
    signed_with(SECRET, claims)
}

pub(super) fn signed_with(secret: &str, claims: &Value) -> String {
    jsonwebtoken::encode(&Header::new(Algorithm::HS256), claims, &EncodingKey::from_secret(secret.as_bytes())).expect("a token")
}

/// The claims of a token.
pub(super) fn claims(token: &str) -> Value {
    jsonwebtoken::dangerous::insecure_decode::<Value>(token).expect("a token").claims
}

pub(super) async fn world() -> Result<World> {
    world_with(|_| {}).await
}

pub(super) async fn world_with(change: impl FnOnce(&mut Settings)) -> Result<World> {
    let database = database().await?;
    let client = gleaner::connect(&database.url).await?;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let base = format!("http://{}", listener.local_addr()?);
    let mut settings = Settings::new(base.clone());
    // Tests choose their client address.
    settings.client = ClientAddress::by(|peer, headers| {
        let said = headers.get("x-test-client").and_then(|value| value.to_str().ok()).and_then(|text| text.parse::<IpAddr>().ok());
        Some(said.unwrap_or(peer.ip()))
    });
    change(&mut settings);
    let auth = Auth::open(gleaner::pool(&database.url, 20)?, Access::new(SECRET, "test")?, settings).await?.context("ours")?;
    let router = axum::Router::new().nest("/auth/v1", auth::routes(auth.clone()));
    tokio::spawn(axum::serve(listener, router.into_make_service_with_connect_info::<SocketAddr>()).into_future());
    // The HTTP client leaves the choice of the cryptography provider to the program, and there is no server here that has
    // installed one.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let http = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).build()?;
    let key = |role: &str| signed(&json!({"iss": "gleaner", "role": role, "iat": 1_767_225_600_u64, "exp": 4_000_000_000_u64}));
    Ok(World { database, client, auth, base, http, anon: key("anon"), service: key("service_role") })
}

/// A request to be sent.
pub(super) struct Sending<'a> {
    world: &'a World,
    request: reqwest::RequestBuilder,
}

impl Sending<'_> {
    pub(super) fn header(mut self, name: &str, value: &str) -> Self {
        self.request = self.request.header(name, value);
        self
    }

    pub(super) fn bearer(self, token: &str) -> Self {
        self.header("authorization", &format!("Bearer {token}"))
    }

    pub(super) fn service(self) -> Self {
        let key = self.world.service.clone();
        self.bearer(&key)
    }

    pub(super) fn json(mut self, body: &Value) -> Self {
        self.request = self.request.header("content-type", "application/json;charset=UTF-8").body(body.to_string());
        self
    }

    pub(super) fn body(mut self, body: impl Into<reqwest::Body>) -> Self {
        self.request = self.request.body(body);
        self
    }

    pub(super) async fn answer(self) -> Answer {
        let response = self.request.send().await.expect("the server answers");
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let text = response.text().await.expect("text");
        let body = serde_json::from_str(&text).unwrap_or(Value::Null);
        Answer { status, headers, text, body }
    }
}

impl World {
    /// A request without key or token.
    pub(super) fn bare(&self, method: Method, path: &str) -> Sending<'_> {
        Sending { world: self, request: self.http.request(method, format!("{}/auth/v1{path}", self.base)) }
    }

    /// With the headers that the client sends with every request.
    pub(super) fn send(&self, method: Method, path: &str) -> Sending<'_> {
        self.bare(method, path).header("apikey", &self.anon).header("x-supabase-api-version", "2024-01-01")
    }

    pub(super) fn post(&self, path: &str, body: &Value) -> Sending<'_> {
        self.send(Method::POST, path).json(body)
    }

    pub(super) fn get(&self, path: &str) -> Sending<'_> {
        self.send(Method::GET, path)
    }

    pub(super) async fn sign_in(&self, email: &str, password: &str) -> Answer {
        self.post("/token?grant_type=password", &json!({"email": email, "password": password, "gotrue_meta_security": {}})).answer().await
    }

    pub(super) async fn refresh(&self, token: &str) -> Answer {
        self.post("/token?grant_type=refresh_token", &json!({"refresh_token": token})).answer().await
    }

    /// Ada, a member of the team who can sign in.
    pub(super) async fn ada(&self) -> Result<people::Added> {
        Ok(people::add(&self.client, ADA, Some(Password::new(PASSWORD)), false).await?)
    }

    /// Ada, signed in.
    pub(super) async fn ada_signed_in(&self) -> Result<Answer> {
        self.ada().await?;
        let session = self.sign_in(ADA, PASSWORD).await;
        anyhow::ensure!(session.status == StatusCode::OK.as_u16(), "{session:?}");
        Ok(session)
    }

    pub(super) async fn run(&self, sql: &str) -> Result<()> {
        self.client.batch_execute(sql).await.with_context(|| sql.to_owned())
    }

    pub(super) async fn text(&self, sql: &str) -> Result<Option<String>> {
        let row = self.client.query_opt(sql, &[]).await.with_context(|| sql.to_owned())?;
        Ok(row.and_then(|row| row.get(0)))
    }

    pub(super) async fn count(&self, sql: &str) -> Result<i64> {
        Ok(self.client.query_one(sql, &[]).await.with_context(|| sql.to_owned())?.get(0))
    }

    /// Makes every refresh token older.
    pub(super) async fn age_tokens(&self, interval: &str) -> Result<()> {
        self.run(&format!(
            "update auth.refresh_tokens set updated_at = updated_at - interval '{interval}', reused_at = reused_at - interval '{interval}'"
        ))
        .await
    }
}
