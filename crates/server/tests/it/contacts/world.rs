//! The setup of these tests: a migrated database, channels, contacts, and events as the webhook endpoint stores them.

use anyhow::{Context as _, Result};
use gleaner_postgres::testing::TestDatabase;
use serde_json::{Value, json};
use tokio_postgres::Client;
use uuid::Uuid;

use crate::world::database;

pub(super) struct World {
    pub database: TestDatabase,
    pub client: Client,
}

/// An activity, and the contact it was linked to.
#[derive(Debug, Clone)]
pub(super) struct Arrived {
    pub id: Uuid,
    pub contact: Option<i64>,
    /// `metadata.match`
    pub matched: Option<Value>,
}

/// One row of the result of `gleaner.ingest_activities`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Answer {
    pub request: i32,
    pub position: i32,
    pub outcome: String,
    pub id: Option<Uuid>,
}

pub(super) async fn world() -> Result<World> {
    let database = database().await?;
    World::on(database).await
}

impl World {
    pub(super) async fn on(database: TestDatabase) -> Result<Self> {
        let client = gleaner::connect(&database.url).await?;
        Ok(Self { database, client })
    }

    pub(super) async fn run(&self, sql: &str) -> Result<()> {
        self.client.batch_execute(sql).await.with_context(|| sql.to_owned())
    }

    /// The single value of a query, as text.
    pub(super) async fn text(&self, sql: &str) -> Result<Option<String>> {
        text(&self.client, sql).await
    }

    pub(super) async fn count(&self, sql: &str) -> Result<i64> {
        Ok(self.client.query_one(sql, &[]).await.with_context(|| sql.to_owned())?.get(0))
    }

    pub(super) async fn channel(&self, name: &str) -> Result<Uuid> {
        self.channel_with(name, "{}", false, None).await
    }

    pub(super) async fn channel_with(&self, name: &str, config: &str, auto_create: bool, owner: Option<i64>) -> Result<Uuid> {
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

    pub(super) async fn person(&self, name: &str) -> Result<i64> {
        let row = self
            .client
            .query_one(
                "insert into sales (first_name, email, user_id) values ($1, $1 || '@example.com', gen_random_uuid()) returning id",
                &[&name],
            )
            .await?;
        Ok(row.get(0))
    }

    /// Connects as PostgREST would for a signed-in user: with role and claims.
    pub(super) async fn signed_in(&self, person: i64) -> Result<Client> {
        let client = gleaner::connect(&self.database.url).await?;
        let user = self.text(&format!("select user_id::text from sales where id = {person}")).await?.unwrap_or_default();
        client
            .batch_execute(&format!(
                "set role authenticated; select set_config('request.jwt.claims', '{{\"role\":\"authenticated\",\"sub\":\"{user}\"}}', false)"
            ))
            .await?;
        Ok(client)
    }

    /// Creates a contact in our own schema. Returns its id.
    pub(super) async fn contact(&self, email: Option<&str>, phone: Option<&str>) -> Result<i64> {
        let sql = "insert into contacts (first_name, email, phone_number) values ('Ann', $1, $2) returning id";
        Ok(self.client.query_one(sql, &[&email, &phone]).await?.get(0))
    }

    /// Stores an event of this sender as the webhook endpoint does. Returns the result.
    pub(super) async fn arrive(&self, channel: Uuid, kind: &str, address: &str) -> Result<Arrived> {
        let mut brought = request(channel, &Uuid::new_v4().to_string());
        brought["events"][0]["sender"] = json!({"kind": kind, "address": address});
        let answers = self.ingest(&[brought]).await?;
        self.arrived(answers[0].id.context("stored")?).await
    }

    /// A plain insert that names its sender, as a program that does not know us would write it.
    pub(super) async fn insert(&self, from: &str) -> Result<Arrived> {
        let sql = "insert into activities (type, metadata) values ('sms', jsonb_build_object('from', $1::text)) returning id";
        self.arrived(self.client.query_one(sql, &[&from]).await?.get(0)).await
    }

    pub(super) async fn arrived(&self, id: Uuid) -> Result<Arrived> {
        let row = self.client.query_one("select contact_id, metadata -> 'match' from activities where id = $1", &[&id]).await?;
        Ok(Arrived { id, contact: row.get(0), matched: row.get(1) })
    }

    /// Stores these requests as one group.
    pub(super) async fn ingest(&self, requests: &[Value]) -> Result<Vec<Answer>> {
        ingest(&self.client, requests).await
    }
}

pub(super) async fn text(client: &Client, sql: &str) -> Result<Option<String>> {
    let row = client.query_opt(sql, &[]).await.with_context(|| sql.to_owned())?;
    Ok(row.and_then(|r| r.get(0)))
}

/// Stores these requests as one group. Returns the result of each event, and at position 0 that of a request without
/// events.
pub(super) async fn ingest(client: &Client, requests: &[Value]) -> Result<Vec<Answer>> {
    let sql = "with request as (select item, n from jsonb_array_elements($1) with ordinality as r (item, n)),
             event as (select r.n as request, e.n as position, e.item, row_number() over (order by r.n, e.n) as n
                       from request as r cross join lateral jsonb_array_elements(r.item -> 'events') with ordinality as e (item, n)),
             given as (select array_agg(coalesce((item ->> 'id')::uuid, gen_random_uuid()) order by n) as ids from event),
             answer as materialized (
                 select a.* from given, gleaner.ingest_activities(
                     '10s', array(select (item ->> 'channel')::uuid from request order by n), array(select (item #>> '{raw,id}')::uuid from request order by n),
                     array(select item #>> '{raw,method}' from request order by n), array(select item #>> '{raw,target}' from request order by n),
                     array(select item #> '{raw,headers}' from request order by n), array(select convert_to(item ->> 'body', 'UTF8') from request order by n),
                     array(select item #>> '{raw,body_file}' from request order by n),
                     array(select request::int from event order by n), coalesce(given.ids, '{}'), array(select item ->> 'type' from event order by n),
                     array(select item ->> 'direction' from event order by n), array(select item -> 'raw_data' from event order by n),
                     array(select jsonb_strip_nulls(jsonb_build_object('sender_name', item -> 'sender_name')) || coalesce(item -> 'metadata', '{}') from event order by n),
                     array(select item ->> 'external_id' from event order by n), array(select item #>> '{sender,kind}' from event order by n),
                     array(select item #>> '{sender,address}' from event order by n), array(select item ->> 'recall' from event order by n),
                     (select jsonb_agg(t.item || jsonb_build_object('request', r.n)) from request as r, jsonb_array_elements(r.item -> 'once') as t (item)),
                     (select jsonb_agg(t.item || jsonb_build_object('request', r.n) order by r.n, t.n)
                      from request as r, jsonb_array_elements(r.item -> 'remember') with ordinality as t (item, n))) as a)
         select e.request::int, e.position::int, coalesce(a.outcome, 'stored'), coalesce(a.id, given.ids[e.n])
         from given, event as e left join answer as a on a.event = e.n
         where not exists (select from answer as shut where shut.request = e.request and shut.event is null)
         union all
         select r.n::int, 0, coalesce(a.outcome, 'nothing'), null
         from request as r left join answer as a on a.request = r.n and a.event is null
         where a.outcome is not null or not exists (select from event as e where e.request = r.n)
         order by 1, 2";
    let rows = client.query(sql, &[&Value::from(requests)]).await?;
    Ok(rows.iter().map(|r| Answer { request: r.get(0), position: r.get(1), outcome: r.get(2), id: r.get(3) }).collect())
}

/// A request with one event.
pub(super) fn request(channel: Uuid, external_id: &str) -> Value {
    json!({"channel": channel, "events": [event(external_id)]})
}

pub(super) fn event(external_id: &str) -> Value {
    json!({
        "type": "sms", "direction": "inbound", "external_id": external_id, "sender": null,
        "raw_data": {"source_type": "text", "content": "hello"}, "metadata": {"from": "+15550100199"}
    })
}
