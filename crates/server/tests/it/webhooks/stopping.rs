//! A stopping server finishes the requests it has begun.

use std::time::Duration;

use anyhow::Result;
use serde_json::json;

use crate::webhooks::support::{Connection, world};
use crate::world::eventually;

#[tokio::test]
async fn requests_in_flight_are_answered_before_the_server_stops() -> Result<()> {
    let w = world().await?;
    let channel = w.channel().await?;
    w.post(&channel, &json!({"ids": ["first"]})).await?;
    let mut other = gleaner::connect(&w.url).await?;
    let lock = other.transaction().await?;
    lock.batch_execute("lock table activities in share mode").await?;
    let (address, target) = (w.address(), channel.target());
    let mut connection = Connection::open(address).await?;
    let sending = tokio::spawn(async move {
        connection.send("POST", &target, &[("x-test-signature", crate::webhooks::sender::SECRET)], br#"{"ids": ["last"]}"#).await
    });
    let waits = "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock' and query like '%ingest_activities%'";
    eventually("the commit to wait", async || Ok(w.count(waits).await? == 1)).await?;
    let (client, server) = (w.client, w.server);
    let stopping = tokio::spawn(server.stop());
    // No new connection is accepted.
    let refused = async || Ok(Connection::open(address).await.is_err());
    eventually("the port to close", refused).await?;
    assert!(!stopping.is_finished());
    lock.rollback().await?;
    assert_eq!(sending.await??.status, 202);
    tokio::time::timeout(Duration::from_secs(20), stopping).await??;
    let count: i64 = client.query_one("select count(*) from activities", &[]).await?.get(0);
    assert_eq!(count, 2);
    Ok(())
}
