//! A server for one test, and a client that sends requests as supabase-js does.

use std::net::SocketAddr;
use std::sync::{Arc, Once};

use anyhow::{Context as _, Result};
use axum::Router;
use gleaner::Pool;
use gleaner_http::Role;
use gleaner_postgres::testing::TestDatabase;
use gleaner_server::{ApiLogin, layers};
use gleaner_supabase::access::Access;
use gleaner_supabase::rest::{self, Rest, Settings};
use http::{HeaderMap, Method, StatusCode};
use serde_json::{Map, Value, json};
use tokio_postgres::Client;

use crate::world::database;

const SECRET: &str = "a secret for tests, which is long enough";

pub(super) struct World {
    pub database: TestDatabase,
    pub client: Client,
    pub pool: Pool,
    pub access: Access,
    address: SocketAddr,
    http: reqwest::Client,
}

/// A response.
#[derive(Debug)]
pub(super) struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub text: String,
}

/// A request to be sent.
pub(super) struct Call<'a> {
    world: &'a World,
    method: Method,
    path: String,
    key: String,
    bearer: Option<String>,
    headers: Vec<(&'static str, String)>,
    body: Option<reqwest::Body>,
}

pub(super) async fn world() -> Result<World> {
    world_with(Settings::default()).await
}

pub(super) async fn world_with(settings: Settings) -> Result<World> {
    let database = database().await?;
    let client = gleaner::connect(&database.url).await?;
    let pool = gleaner::pool(&database.url, 8)?;
    let access = Access::new(SECRET, "test")?;
    let login = ApiLogin::new(&database.url, None, pool.clone(), &access, 8);
    let rest = Rest::new(pool.clone(), Arc::new(access.clone()), settings).with_login(login, 8);
    let router = layers::surround(Router::new().nest("/rest/v1", rest::routes(rest)));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move { axum::serve(listener, router).await });
    static PROVIDER: Once = Once::new();
    PROVIDER.call_once(|| drop(rustls::crypto::ring::default_provider().install_default()));
    Ok(World { database, client, pool, access, address, http: reqwest::Client::new() })
}

impl World {
    pub(super) async fn run(&self, sql: &str) -> Result<()> {
        self.client.batch_execute(sql).await.with_context(|| sql.chars().take(200).collect::<String>())
    }

    /// The single value of a query, as text.
    pub(super) async fn text(&self, sql: &str) -> Result<Option<String>> {
        let row = self.client.query_opt(sql, &[]).await.with_context(|| sql.to_owned())?;
        Ok(row.and_then(|row| row.get(0)))
    }

    /// Tables for tests, open to every role: `things`, the `boxes` they are in, and three rows.
    pub(super) async fn with_things(self) -> Result<Self> {
        self.run(include_str!("things.sql")).await?;
        Ok(self)
    }

    /// With the service key.
    pub(super) fn get(&self, path: &str) -> Call<'_> {
        self.call(Method::GET, path)
    }

    pub(super) fn post(&self, path: &str, body: Value) -> Call<'_> {
        self.call(Method::POST, path).json(&body)
    }

    pub(super) fn patch(&self, path: &str, body: Value) -> Call<'_> {
        self.call(Method::PATCH, path).json(&body)
    }

    pub(super) fn delete(&self, path: &str) -> Call<'_> {
        self.call(Method::DELETE, path)
    }

    pub(super) fn call(&self, method: Method, path: &str) -> Call<'_> {
        let key = self.access.project_key(Role::Service);
        Call { world: self, method, path: path.to_owned(), key, bearer: None, headers: Vec::new(), body: None }
    }

    /// A token of a signed-in person.
    pub(super) fn token(&self, user: &str) -> String {
        let claims = json!({"role": "authenticated", "sub": user, "session_id": "s1", "exp": 4_102_444_800_u64});
        self.signed(claims)
    }

    pub(super) fn signed(&self, claims: Value) -> String {
        self.access.sign(claims.as_object().unwrap_or(&Map::new()))
    }

    /// Creates a salesperson. Returns the ids of the row and of the user.
    pub(super) async fn person(&self, name: &str, shared: bool) -> Result<(i64, String)> {
        let row = self
            .client
            .query_one(
                "insert into sales (first_name, last_name, email, user_id, allow_remote_processing)
                 values ($1, '', $1 || '@example.com', gen_random_uuid(), $2) returning id, user_id::text",
                &[&name, &shared],
            )
            .await?;
        Ok((row.get(0), row.get(1)))
    }
}

impl Call<'_> {
    pub(super) fn json(self, body: &Value) -> Self {
        self.header("content-type", "application/json").raw(body.to_string())
    }

    pub(super) fn raw(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = Some(body.into().into());
        self
    }

    /// A body that begins and is never finished.
    pub(super) fn endless(mut self) -> Self {
        let begun = futures_util::stream::once(std::future::ready(std::io::Result::Ok("{")));
        self.body = Some(reqwest::Body::wrap_stream(futures_util::StreamExt::chain(begun, futures_util::stream::pending())));
        self
    }

    pub(super) fn header(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }

    pub(super) fn prefer(self, value: &str) -> Self {
        self.header("prefer", value)
    }

    /// `.single()`.
    pub(super) fn single(self) -> Self {
        self.header("accept", "application/vnd.pgrst.object+json")
    }

    /// `.select()` after a write.
    pub(super) fn returning(self) -> Self {
        self.prefer("return=representation")
    }

    pub(super) fn key(mut self, key: &str) -> Self {
        self.key = key.to_owned();
        self
    }

    pub(super) fn anon(self) -> Self {
        let key = self.world.access.project_key(Role::Anon);
        self.key(&key)
    }

    /// Signed in: the anon key and the user's token.
    pub(super) fn signed_in(mut self, token: &str) -> Self {
        self.bearer = Some(token.to_owned());
        self.anon()
    }

    /// No bearer token except that of a header.
    pub(super) fn bare_bearer(mut self) -> Self {
        self.bearer = Some(String::new());
        self
    }

    pub(super) async fn send(self) -> Result<Answer> {
        let url = format!("http://{}/rest/v1{}", self.world.address, self.path);
        let mut request = self.world.http.request(self.method, url);
        if !self.key.is_empty() {
            request = request.header("apikey", &self.key);
        }
        let bearer = self.bearer.unwrap_or(self.key);
        if !bearer.is_empty() {
            request = request.header("authorization", format!("Bearer {bearer}"));
        }
        for (name, value) in self.headers {
            request = request.header(name, value);
        }
        if let Some(body) = self.body {
            request = request.body(body);
        }
        let response = request.send().await?;
        let (status, headers) = (response.status(), response.headers().clone());
        Ok(Answer { status, headers, text: response.text().await? })
    }

    /// The JSON of a response, which must have this status.
    pub(super) async fn expect(self, status: u16) -> Result<Value> {
        let answer = self.send().await?;
        anyhow::ensure!(answer.status == status, "{}, not {status}: {}", answer.status, answer.text);
        if answer.text.is_empty() { Ok(Value::Null) } else { Ok(serde_json::from_str(&answer.text)?) }
    }

    /// The code and message of an error, which must have this status and the right shape.
    pub(super) async fn refused(self, status: u16) -> Result<(String, String)> {
        let answer = self.send().await?;
        anyhow::ensure!(answer.status == status, "{}, not {status}: {}", answer.status, answer.text);
        Ok((
            answer.error()["code"].as_str().unwrap_or_default().to_owned(),
            answer.error()["message"].as_str().unwrap_or_default().to_owned(),
        ))
    }
}

impl Answer {
    pub(super) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {}", self.text))
    }

    pub(super) fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    /// An error's body: an object with exactly its four keys.
    pub(super) fn error(&self) -> Value {
        let body = self.json();
        let mut keys: Vec<_> = body.as_object().expect("an object").keys().map(String::as_str).collect();
        keys.sort_unstable();
        assert_eq!(keys, ["code", "details", "hint", "message"], "{body}");
        assert!(body["code"].is_string() && body["message"].is_string(), "{body}");
        for key in ["details", "hint"] {
            assert!(body[key].is_string() || body[key].is_null(), "{body}");
        }
        assert_eq!(self.header("content-type"), "application/json; charset=utf-8");
        body
    }
}
