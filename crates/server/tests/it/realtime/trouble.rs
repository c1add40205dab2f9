//! Feeds that break, subscribers that do not keep up, frames that are invalid.

use anyhow::Result;
use serde_json::json;

use crate::realtime::client::{service, stage, stage_on};
use crate::world::{eventually, private_server};

#[tokio::test]
async fn after_a_gap_in_the_feed_subscribers_get_an_error_and_can_join_again() -> Result<()> {
    let stage = stage().await?;
    let bindings = json!([{"event": "INSERT", "schema": "public", "table": "activities"}]);
    let mut socket = stage.connect(&service()).await?;
    socket.follow("feed", bindings.clone()).await?;
    stage.run("select pg_terminate_backend(pid) from pg_stat_replication where application_name = 'gleaner change feed' and pid in (select active_pid from pg_replication_slots where database = current_database())").await?;
    socket.expect("phx_error").await?;
    socket.follow("feed", bindings).await?;
    stage.run("insert into activities (type) values ('sms')").await?;
    assert_eq!(socket.change().await?["type"], "INSERT");
    Ok(())
}

#[tokio::test]
async fn a_subscriber_that_does_not_read_is_disconnected_and_delays_no_other() -> Result<()> {
    let stage = stage().await?;
    let bindings = json!([{"event": "INSERT", "schema": "public", "table": "activities"}]);
    let mut slow = stage.connect(&service()).await?;
    slow.follow("feed", bindings.clone()).await?;
    let mut quick = stage.connect(&service()).await?;
    quick.follow("feed", bindings).await?;
    // Until it is more than the network and the queue of a socket can hold together.
    for _ in 0..40 {
        stage.run("insert into activities (type, raw_data) select 'sms', jsonb_build_object('content', repeat('x', 20000)) from generate_series(1, 100)").await?;
        for _ in 0..100 {
            quick.change().await?;
        }
        quick.expect_nothing().await?;
        if stage.realtime.joins() == 1 {
            break;
        }
    }
    eventually("the slow one to be cut off", async || Ok(stage.realtime.joins() == 1)).await?;
    assert!(slow.is_closed().await);
    Ok(())
}

#[tokio::test]
async fn frames_that_make_no_sense_are_ignored() -> Result<()> {
    let stage = stage().await?;
    let mut socket = stage.connect(&service()).await?;
    for garbage in [vec![], vec![3], vec![255; 40], b"[1,2]".to_vec()] {
        socket.send_binary(garbage).await?;
    }
    socket.send("realtime:", "phx_join", json!({})).await?;
    assert_eq!(socket.expect("phx_reply").await?.payload["status"], "error");
    socket.send("realtime:x", "phx_join", json!({"config": {"postgres_changes": ["what", 7, null]}})).await?;
    assert_eq!(socket.expect("phx_reply").await?.payload["status"], "ok");
    socket.expect("system").await?;
    socket.expect_nothing().await
}

/// The log shows a commit before snapshots do. Waiting for a standby that never connects keeps the commit in that state for
/// as long as the test needs.
#[tokio::test]
async fn a_change_in_the_log_before_it_is_visible_waits_and_is_not_lost() -> Result<()> {
    let server = private_server(&[]).await?;
    let stage = stage_on(server.url()).await?;
    let mut socket = stage.connect(&service()).await?;
    socket.follow("feed", json!([{"event": "INSERT", "schema": "public", "table": "activities"}])).await?;
    stage.run("alter system set synchronous_standby_names = 'nobody'").await?;
    stage.run("select pg_reload_conf()").await?;
    let writer = gleaner::connect(server.url()).await?;
    let write = tokio::spawn(async move {
        writer.batch_execute("set synchronous_commit = on").await?;
        writer.batch_execute("insert into activities (type) values ('sms')").await
    });
    let waits = "select count(*) from pg_stat_activity where wait_event = 'SyncRep'";
    while stage.client.query_one(waits, &[]).await?.get::<_, i64>(0) == 0 {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    // The feed has it: its own position is at the end of the log.
    let behind =
        "select count(*) from pg_stat_replication where application_name = 'gleaner change feed' and sent_lsn < pg_current_wal_flush_lsn()";
    while stage.client.query_one(behind, &[]).await?.get::<_, i64>(0) > 0 {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    socket.expect_nothing().await?;
    stage.run("alter system reset synchronous_standby_names").await?;
    stage.run("select pg_reload_conf()").await?;
    write.await??;
    assert_eq!(socket.change().await?["record"]["type"], "sms");
    drop(stage);
    server.stop().await?;
    Ok(())
}
