//! What these tests stand on: a migrated database, channels, contacts, and events as the door hands them over.

use anyhow::{Context as _, Result};
use gleaner::Pool;
use gleaner_postgres::testing::{self, TestDatabase};
use serde_json::{Value, json};
use tokio_postgres::Client;
use uuid::Uuid;

pub struct World {
    pub database: TestDatabase,
    pub client: Client,
    pub pool: Pool,
}

/// One row of what `gleaner.ingest_activities` returns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    pub request: i32,
    pub position: i32,
    pub outcome: String,
    pub id: Option<Uuid>,
}

pub async fn world() -> Result<World> {
    let database =
        testing::server().database_from("migrated", async |url: String| gleaner::migrate::migrate(&url, &|_| {}).await.map(drop)).await?;
    World::on(database).await
}

impl World {
    pub async fn on(database: TestDatabase) -> Result<Self> {
        let client = gleaner::connect(&database.url).await?;
        let pool = gleaner::pool(&database.url, 60)?;
        Ok(Self { database, client, pool })
    }

    pub async fn run(&self, sql: &str) -> Result<()> {
        self.client.batch_execute(sql).await.with_context(|| sql.to_owned())
    }

    /// The single value of a query, as text.
    pub async fn text(&self, sql: &str) -> Result<Option<String>> {
        text(&self.client, sql).await
    }

    pub async fn count(&self, sql: &str) -> Result<i64> {
        Ok(self.client.query_one(sql, &[]).await.with_context(|| sql.to_owned())?.get(0))
    }

    /// A channel; `set` is more of the insert's columns and values.
    pub async fn channel(&self, name: &str) -> Result<Uuid> {
        self.channel_with(name, "{}", false, None).await
    }

    pub async fn channel_with(&self, name: &str, config: &str, auto_create: bool, owner: Option<i64>) -> Result<Uuid> {
        let config: Value = serde_json::from_str(config)?;
        let row = self
            .client
            .query_one(
                "insert into ingestion_providers (provider_code, name, config, auto_create_contacts, sales_id)
                 values ('generic', $1, $2, $3, $4) returning id",
                &[&name, &config, &auto_create, &owner],
            )
            .await?;
        Ok(row.get(0))
    }

    pub async fn person(&self, name: &str) -> Result<i64> {
        let row = self
            .client
            .query_one(
                "insert into sales (first_name, email, user_id) values ($1, $1 || '@example.com', gen_random_uuid()) returning id",
                &[&name],
            )
            .await?;
        Ok(row.get(0))
    }

    /// As PostgREST would connect for a signed-in user: role and claims.
    pub async fn signed_in(&self, person: i64) -> Result<Client> {
        let client = gleaner::connect(&self.database.url).await?;
        let user = self.text(&format!("select user_id::text from sales where id = {person}")).await?.unwrap_or_default();
        client
            .batch_execute(&format!(
                "set role authenticated; select set_config('request.jwt.claims', '{{\"role\":\"authenticated\",\"sub\":\"{user}\"}}', false)"
            ))
            .await?;
        Ok(client)
    }

    /// Stores what these requests bring, as one group.
    pub async fn ingest(&self, requests: &[Value]) -> Result<Vec<Answer>> {
        ingest(&self.client, requests).await
    }
}

pub async fn text(client: &Client, sql: &str) -> Result<Option<String>> {
    let row = client.query_opt(sql, &[]).await.with_context(|| sql.to_owned())?;
    Ok(row.and_then(|r| r.get(0)))
}

pub async fn ingest(client: &Client, requests: &[Value]) -> Result<Vec<Answer>> {
    let bodies: Vec<Option<Vec<u8>>> = requests.iter().map(|r| r["body"].as_str().map(|b| b.as_bytes().to_vec())).collect();
    let rows = client.query("select * from gleaner.ingest_activities($1, $2)", &[&Value::from(requests), &bodies]).await?;
    Ok(rows.iter().map(|r| Answer { request: r.get(0), position: r.get(1), outcome: r.get(2), id: r.get(3) }).collect())
}

/// A request of one event.
pub fn request(channel: Uuid, external_id: &str) -> Value {
    json!({"channel": channel, "events": [event(external_id)]})
}

pub fn event(external_id: &str) -> Value {
    json!({
        "type": "sms", "direction": "inbound", "external_id": external_id, "sender": null,
        "raw_data": {"source_type": "text", "content": "hello"}, "metadata": {"from": "+15550100199"}
    })
}
