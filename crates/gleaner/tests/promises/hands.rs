//! Helpers that change rows in tests and read the result.

use anyhow::{Context as _, Result};
use gleaner::queue::Item;
use gleaner::{Claim, Queue};
use serde_json::Value;
use tokio_postgres::Client;

use crate::world::{World, jobs, keys};

/// The current row, with every column.
pub(crate) async fn row(world: &World, table: &str, key: &str) -> Result<Value> {
    let sql = format!("select to_jsonb(t) from {table} as t where t.id::text = $1");
    Ok(world.client.query_opt(&sql, &[&key]).await?.with_context(|| format!("no row {key} in {table}"))?.get(0))
}

pub(crate) async fn activity(world: &World, key: &str) -> Result<Value> {
    row(world, "activities", key).await
}

/// How many seconds there are between the database's clock and a time in the row; negative when it has passed.
pub(crate) async fn seconds_until(world: &World, table: &str, key: &str, column: &str) -> Result<f64> {
    let sql = format!("select extract(epoch from t.{column} - clock_timestamp())::float8 from {table} as t where t.id::text = $1");
    Ok(world.client.query_one(&sql, &[&key]).await?.get(0))
}

/// Claims on a new connection: it has no cursor, and reads the index from its start.
pub(crate) async fn claim_anew(world: &World, queue: &Queue, agent: &str, owner: Option<i64>, limit: i32) -> Result<Vec<Item>> {
    let mut claim = Claim::by(agent).limit(limit);
    claim.owner = owner.map(|o| o.to_string());
    Ok(queue.acts().claim(&world.connect().await?, &claim).await?.items)
}

/// The keys that an agent of `owner` would get now; the claim is rolled back.
pub(crate) async fn claimable_by(world: &World, queue: &Queue, owner: Option<i64>) -> Result<Vec<String>> {
    let mut client = world.connect().await?;
    let tx = client.transaction().await?;
    let mut claim = Claim::by("a look").limit(1000);
    claim.owner = owner.map(|o| o.to_string());
    let mut all = Vec::new();
    loop {
        // A short answer does not prove that the queue is empty: claim until nothing is left.
        let items = queue.acts().claim(&tx, &claim).await?.items;
        if items.is_empty() {
            break;
        }
        all.extend(keys(&items));
    }
    tx.rollback().await?;
    Ok(all)
}

/// One job, enqueued and held by `agent`.
pub(crate) async fn held_job(world: &World, agent: &str) -> Result<(Queue, Item)> {
    let queue = world.queue("jobs").await?;
    queue.enqueue(&jobs("default", 1)).await?;
    let item = world.claim(&queue, agent, None, 1).await?.pop().context("the job was not handed out")?;
    Ok((queue, item))
}

/// One activity without an owner, inserted, held by `agent` and started.
pub(crate) async fn held_activity(world: &World, agent: &str, kind: &str) -> Result<(Queue, Item)> {
    let queue = world.queue("activities").await?;
    world.activity(None, kind, 0.0).await?;
    let item = queue.claim(&Claim::by(agent).started()).await?.items.pop().context("the activity was not handed out")?;
    Ok((queue, item))
}

/// Claims one activity by `claim_next_pending_activity`; returns its id, if there was one.
pub(crate) async fn claim_by_function(client: &Client, owner: i64) -> Result<Option<String>> {
    let row = client.query_opt(&format!("select id::text from claim_next_pending_activity({owner})"), &[]).await?;
    Ok(row.map(|r| r.get(0)))
}

/// Completes an activity by a plain update; returns how many rows changed.
pub(crate) async fn complete_plainly(client: &Client, key: &str, summary: &str) -> Result<u64> {
    Ok(client
        .execute(
            &format!(
                "update activities set processing_status = 'completed', processed_data = '{{\"summary\": \"{summary}\"}}',
                 locked_by = null, locked_at = null where id = '{key}'"
            ),
            &[],
        )
        .await?)
}

/// Fails an activity by a plain update; returns how many rows changed.
pub(crate) async fn fail_plainly(client: &Client, key: &str) -> Result<u64> {
    Ok(client
        .execute(&format!("update activities set processing_status = 'failed', locked_by = null, locked_at = null where id = '{key}'"), &[])
        .await?)
}

/// The SQLSTATE of a statement that must fail.
pub(crate) async fn refused(client: &Client, sql: &str) -> Result<String> {
    match client.batch_execute(sql).await {
        Ok(()) => anyhow::bail!("this should have been refused: {sql}"),
        Err(error) => Ok(error.code().with_context(|| format!("no code for {sql}: {error}"))?.code().to_owned()),
    }
}
