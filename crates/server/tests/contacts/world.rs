//! What these tests stand on: a migrated database, channels, contacts, and events as the door hands them over.

use anyhow::{Context as _, Result};
use gleaner_postgres::testing::{self, TestDatabase};
use serde_json::{Value, json};
use tokio_postgres::Client;
use uuid::Uuid;

pub struct World {
    pub database: TestDatabase,
    pub client: Client,
}

/// An activity, and whom it was linked to.
#[derive(Debug, Clone)]
pub struct Arrived {
    pub id: Uuid,
    pub contact: Option<i64>,
    /// `metadata.match`
    pub matched: Option<Value>,
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
        Ok(Self { database, client })
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

    /// A contact of our own shape; returns the id.
    pub async fn contact(&self, email: Option<&str>, phone: Option<&str>) -> Result<i64> {
        let sql = "insert into contacts (first_name, email, phone_number) values ('Ann', $1, $2) returning id";
        Ok(self.client.query_one(sql, &[&email, &phone]).await?.get(0))
    }

    /// An event of this sender through the door; what became of it.
    pub async fn arrive(&self, channel: Uuid, kind: &str, address: &str) -> Result<Arrived> {
        let mut brought = request(channel, &Uuid::new_v4().to_string());
        brought["events"][0]["sender"] = json!({"kind": kind, "address": address});
        let answers = self.ingest(&[brought]).await?;
        self.arrived(answers[0].id.context("stored")?).await
    }

    /// A plain insert that says who it is from, as a program that knows nothing of us would write it.
    pub async fn insert(&self, from: &str) -> Result<Arrived> {
        let sql = "insert into activities (type, metadata) values ('sms', jsonb_build_object('from', $1::text)) returning id";
        self.arrived(self.client.query_one(sql, &[&from]).await?.get(0)).await
    }

    pub async fn arrived(&self, id: Uuid) -> Result<Arrived> {
        let row = self.client.query_one("select contact_id, metadata -> 'match' from activities where id = $1", &[&id]).await?;
        Ok(Arrived { id, contact: row.get(0), matched: row.get(1) })
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
