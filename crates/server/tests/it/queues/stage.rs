//! A server with queues only, and a client for it.

use std::time::Duration;

use anyhow::{Context as _, Result};
use gleaner_http::Role;
use gleaner_postgres::testing::TestDatabase;
use gleaner_server::queues::{self, Queues};
use gleaner_supabase::access::Access;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_postgres::Client;
use tower::ServiceExt as _;

use crate::world::database;

pub(super) struct Stage {
    pub client: Client,
    pub queues: Queues,
    pub access: Access,
    pub http: reqwest::Client,
    pub base: String,
    // Last, so that it outlives everything connected to it.
    pub database: TestDatabase,
}

pub(super) async fn stage() -> Result<Stage> {
    let database = database().await?;
    let access = Access::new("a secret of the tests, long enough to be one", "test")?;
    let client = gleaner::connect(&database.url).await?;
    let queues = Queues::new(&database.url, gleaner::pool(&database.url, 16)?, access.clone());
    let base = serve(&queues).await?;
    Ok(Stage { client, queues, access, http: reqwest::Client::new(), base, database })
}

async fn serve(queues: &Queues) -> Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let base = format!("http://{}", listener.local_addr()?);
    let app = axum::Router::from(queues::routes(queues.clone()));
    tokio::spawn(async move { axum::serve(listener, app).await });
    Ok(base)
}

impl Stage {
    pub(super) fn service(&self) -> String {
        self.access.project_key(Role::Service)
    }

    /// A token of the signed-in user.
    pub(super) fn user(&self, id: &str) -> String {
        let claims = json!({"role": "authenticated", "sub": id, "session_id": id});
        self.access.sign(claims.as_object().expect("an object"))
    }

    pub(super) async fn post(&self, token: &str, path: &str, body: Value) -> Result<(u16, Value)> {
        let request = self.http.post(format!("{}/v1/queues/{path}", self.base)).bearer_auth(token).json(&body);
        let response = request.send().await?;
        let status = response.status().as_u16();
        let text = response.text().await?;
        Ok((status, serde_json::from_str(&text).with_context(|| text.clone())?))
    }

    /// The same without a socket, for thousands of requests at once.
    pub(super) async fn call(&self, path: &str, body: Value) -> Result<(u16, Value)> {
        let request = http::Request::post(format!("/v1/queues/{path}")).header("authorization", format!("Bearer {}", self.service()));
        let request = request.header("content-type", "application/json").body(axum::body::Body::from(body.to_string()))?;
        let response = axum::Router::from(queues::routes(self.queues.clone())).oneshot(request).await?;
        let status = response.status().as_u16();
        let bytes = axum::body::to_bytes(response.into_body(), usize::MAX).await?;
        Ok((status, serde_json::from_slice(&bytes)?))
    }

    /// Returns when claims of jobs are answered from memory, after the first notifications have arrived.
    pub(super) async fn settle(&self) -> Result<()> {
        let spared = self.queues.tally().0;
        while self.queues.tally().0 == spared {
            anyhow::ensure!(self.ask("jobs/claim", json!({"agent": "first"})).await?["items"] == json!([]), "there is work");
            tokio::time::sleep(Duration::from_millis(30)).await;
        }
        Ok(())
    }

    /// A POST request with the service key that must succeed.
    pub(super) async fn ask(&self, path: &str, body: Value) -> Result<Value> {
        let (status, answer) = self.post(&self.service(), path, body).await?;
        anyhow::ensure!((200..300).contains(&status), "{path}: {status} {answer}");
        Ok(answer)
    }
}
