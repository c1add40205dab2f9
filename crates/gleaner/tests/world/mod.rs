//! What tests use: a migrated database for each, users, rows and agents.

#![allow(dead_code)] // Each test program uses its own part of it.

use anyhow::{Context as _, Result};
use gleaner::queue::{Answer, Item};
use gleaner::{Claim, Outcome, Pool, Queue};
use gleaner_postgres::testing::{self, TestDatabase};
use serde_json::Value;
use tokio_postgres::Client;

/// A migrated database and a connection to it.
pub(crate) struct World {
    pub database: TestDatabase,
    pub client: Client,
    pub pool: Pool,
}

/// A database with everything that ships with the library.
pub(crate) async fn world() -> Result<World> {
    let database =
        testing::server().database_from("migrated", async |url: String| gleaner::migrate::migrate(&url, &|_| {}).await.map(drop)).await?;
    World::on(database).await
}

/// A database with nothing in it.
pub(crate) async fn empty_world() -> Result<World> {
    World::on(testing::server().empty_database().await?).await
}

impl World {
    pub(crate) async fn on(database: TestDatabase) -> Result<Self> {
        let client = gleaner::connect(&database.url).await?;
        let pool = gleaner::pool(&database.url, 20)?;
        Ok(Self { database, client, pool })
    }

    pub(crate) fn url(&self) -> &str {
        &self.database.url
    }

    pub(crate) async fn connect(&self) -> Result<Client> {
        Ok(gleaner::connect(self.url()).await?)
    }

    pub(crate) async fn queue(&self, name: &str) -> Result<Queue> {
        Ok(Queue::open(&self.pool, name).await?)
    }

    pub(crate) async fn run(&self, sql: &str) -> Result<()> {
        self.client.batch_execute(sql).await.with_context(|| sql.to_owned())
    }

    /// The single value of a query, as text.
    pub(crate) async fn text(&self, sql: &str) -> Result<Option<String>> {
        text(&self.client, sql).await
    }

    pub(crate) async fn count(&self, sql: &str) -> Result<i64> {
        let row = self.client.query_one(sql, &[]).await.with_context(|| sql.to_owned())?;
        Ok(row.get(0))
    }

    /// Attaches the declaration in `toml` as queue `name`.
    pub(crate) async fn attach(&self, name: &str, toml: &str) -> Result<gleaner::attach::Report> {
        let declaration = gleaner::Declaration::parse(toml, name)?;
        let mut client = self.connect().await?;
        Ok(gleaner::attach::attach(&mut client, &declaration, toml, gleaner::attach::Options { add_words: false }, &|_| {}).await?)
    }

    /// The built-in queue, with batch leases for claims of at least `from` rows.
    pub(crate) async fn bind_jobs_from(&self, from: u32) -> Result<()> {
        let smaller = format!("bulk = {from}\n{}", self.jobs_without_batches().await?);
        self.attach("jobs", &smaller).await.map(drop)
    }

    /// Makes every claim of jobs write its lease on the rows, and lets plain writers write theirs.
    pub(crate) async fn never_bind_jobs(&self) -> Result<()> {
        self.attach("jobs", &self.jobs_without_batches().await?).await.map(drop)
    }

    async fn jobs_without_batches(&self) -> Result<String> {
        let source = self.text("select source from gleaner.queue where name = 'jobs'").await?.context("jobs are attached")?;
        Ok(source.lines().filter(|line| !line.starts_with("bulk")).collect::<Vec<_>>().join("\n"))
    }

    /// Adds a salesperson and returns the id. `threshold` in minutes.
    pub(crate) async fn person(&self, name: &str, threshold: i32, shared: bool) -> Result<i64> {
        let row = self
            .client
            .query_one(
                "insert into sales (first_name, last_name, email, user_id, stale_threshold_minutes, allow_remote_processing)
                 values ($1, '', $1 || '@example.com', gen_random_uuid(), $2, $3) returning id",
                &[&name, &threshold, &shared],
            )
            .await?;
        Ok(row.get(0))
    }

    /// An activity inserted by a plain statement, `age_minutes` old, in status raw; returns the id.
    pub(crate) async fn activity(&self, owner: Option<i64>, kind: &str, age_minutes: f64) -> Result<String> {
        let row = self
            .client
            .query_one(
                "insert into activities (sales_id, type, raw_data, created_at)
                 values ($1, $2, '{\"source_type\": \"text\", \"content\": \"hello\"}', clock_timestamp() - $3 * interval '1 minute') returning id::text",
                &[&owner, &kind, &age_minutes],
            )
            .await?;
        Ok(row.get(0))
    }

    /// Simulates that time passes for every row of a queue: all its times move back by `interval`. Written as the engine's role,
    /// so that triggers do not take it for an act.
    pub(crate) async fn age(&self, queue: &str, interval: &str) -> Result<()> {
        let (table, own) = match queue {
            "activities" => ("activities", ", open_at = open_at - $i, locked_at = locked_at - $i"),
            "jobs" => ("gleaner.jobs", ""),
            "dumps" => ("agent_processing_queue", ", claimed_at = claimed_at - $i"),
            "runs" => ("execution_jobs", ", started_at = started_at - $i"),
            "followups" => ("scheduled_actions", ", scheduled_for = scheduled_for - $i"),
            "schedules" => ("followup_schedules", ", next_at = next_at - $i, seen_until = seen_until - $i"),
            other => (other, ""),
        };
        // The lease keeps its value: holders still use it.
        let set = format!("created_at = created_at - $i, due_at = due_at - $i, deadline_at = deadline_at - $i{own}")
            .replace("$i", &format!("interval '{interval}'"));
        let batches = if queue == "jobs" {
            format!(
                "update gleaner.batch_lease set due_at = due_at - interval '{interval}', deadline_at = deadline_at - interval '{interval}';
                 update gleaner.bulk_range set due_at = due_at - interval '{interval}' where queue = 'jobs';"
            )
        } else {
            String::new()
        };
        self.run(&format!("begin; set local role gleaner_engine; update {table} set {set}; {batches} commit")).await
    }

    /// Connects as PostgREST would for a signed-in user: role and claims.
    pub(crate) async fn signed_in(&self, owner: i64, session: &str) -> Result<Client> {
        let client = self.connect().await?;
        let uid = self.text(&format!("select user_id::text from sales where id = {owner}")).await?.unwrap_or_default();
        client
            .batch_execute(&format!(
                "set role authenticated; select set_config('request.jwt.claims', '{{\"role\":\"authenticated\",\"sub\":\"{uid}\",\"session_id\":\"{session}\"}}', false)"
            ))
            .await?;
        Ok(client)
    }

    /// Connects with the service key.
    pub(crate) async fn service(&self) -> Result<Client> {
        let client = self.connect().await?;
        client
            .batch_execute("set role service_role; select set_config('request.jwt.claims', '{\"role\":\"service_role\"}', false)")
            .await?;
        Ok(client)
    }

    /// Claims for `agent` of `owner`; returns the items in order.
    pub(crate) async fn claim(&self, queue: &Queue, agent: &str, owner: Option<i64>, limit: i32) -> Result<Vec<Item>> {
        let mut claim = Claim::by(agent).limit(limit);
        claim.owner = owner.map(|o| o.to_string());
        Ok(queue.claim(&claim).await?.items)
    }
}

pub(crate) async fn text(client: &Client, sql: &str) -> Result<Option<String>> {
    let row = client.query_opt(sql, &[]).await.with_context(|| sql.to_owned())?;
    Ok(row.and_then(|r| r.get(0)))
}

pub(crate) fn keys(items: &[Item]) -> Vec<String> {
    items.iter().map(|i| i.key.clone()).collect()
}

pub(crate) fn outcomes(answers: &[Answer]) -> Vec<Outcome> {
    answers.iter().map(|a| a.outcome).collect()
}

/// Jobs of one kind, as items to enqueue.
pub(crate) fn jobs(kind: &str, n: usize) -> Vec<Value> {
    (0..n).map(|i| serde_json::json!({"kind": kind, "payload": {"n": i}})).collect()
}
