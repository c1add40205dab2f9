//! The feed by triggers: what it leaves unchanged, what it waits for, and how it reports that it missed something.

use std::time::Duration;

use anyhow::Result;
use serde_json::{Value, json};

use crate::realtime::client::{Stage, service, stage_as, stage_by_triggers, stage_on};
use crate::realtime::pooler::Bouncer;
use crate::world::{database, private_server};

fn activities() -> Value {
    json!([{"event": "*", "schema": "public", "table": "activities"}])
}

/// Tables that have our triggers.
async fn captured(stage: &Stage) -> Result<i64> {
    Ok(stage.client.query_one("select count(*) from gleaner.list_captures() where present is not null", &[]).await?.get(0))
}

async fn noted(stage: &Stage) -> Result<i64> {
    Ok(stage.client.query_one("select count(*) from gleaner.change", &[]).await?.get(0))
}

#[tokio::test]
async fn nothing_is_stored_before_the_first_subscriber() -> Result<()> {
    let stage = stage_by_triggers().await?;
    stage.run("insert into activities (type) values ('sms')").await?;
    assert_eq!((captured(&stage).await?, noted(&stage).await?), (0, 0));
    let mut socket = stage.connect(&service()).await?;
    socket.follow("feed", activities()).await?;
    stage.run("insert into activities (type) values ('call')").await?;
    assert_eq!(socket.change().await?["record"]["type"], "call");
    assert!(captured(&stage).await? > 0 && noted(&stage).await? == 1);
    // The server has stopped, and its request for changes has expired.
    stage.run("select setval('gleaner.changes_wanted_until', 0)").await?;
    stage.run("insert into activities (type) values ('note')").await?;
    assert_eq!(noted(&stage).await?, 1);
    Ok(())
}

#[tokio::test]
async fn a_transaction_that_commits_late_is_sent_and_delays_no_other() -> Result<()> {
    let stage = stage_by_triggers().await?;
    let mut socket = stage.connect(&service()).await?;
    socket.follow("feed", activities()).await?;
    let mut late = gleaner::connect(&stage.url).await?;
    let transaction = late.transaction().await?;
    transaction.batch_execute("insert into activities (type) values ('note')").await?;
    for _ in 0..3 {
        stage.run("insert into activities (type) values ('sms')").await?;
        assert_eq!(socket.change().await?["record"]["type"], "sms");
    }
    transaction.commit().await?;
    assert_eq!(socket.change().await?["record"]["type"], "note");
    stage.run("insert into activities (type) values ('call')").await?;
    assert_eq!(socket.change().await?["record"]["type"], "call", "and told once");
    Ok(())
}

#[tokio::test]
async fn the_first_subscriber_waits_for_open_writers() -> Result<()> {
    let stage = stage_by_triggers().await?;
    let (mut writer, mut reader) = (gleaner::connect(&stage.url).await?, gleaner::connect(&stage.url).await?);
    // Its snapshot is from before, its write from after.
    let old = reader.build_transaction().isolation_level(tokio_postgres::IsolationLevel::RepeatableRead).start().await?;
    old.batch_execute("select count(*) from sales").await?;
    let mut socket = stage.connect(&service()).await?;
    socket.follow("feed", activities()).await?;
    stage.run("select setval('gleaner.changes_wanted_until', 0)").await?;
    socket.expect("phx_error").await?;
    // There is no subscriber, and it writes.
    stage.run("select setval('gleaner.changes_wanted_until', 0)").await?;
    let writing = writer.transaction().await?;
    writing.batch_execute("insert into activities (type) values ('sms')").await?;
    {
        let mut joining = std::pin::pin!(socket.follow("feed", activities()));
        assert!(tokio::time::timeout(Duration::from_millis(700), joining.as_mut()).await.is_err(), "its change would be missed");
        writing.commit().await?;
        joining.await?;
    }
    old.batch_execute("insert into activities (type) values ('note')").await?;
    old.commit().await?;
    assert_eq!(socket.change().await?["record"]["type"], "note");
    Ok(())
}

#[tokio::test]
async fn changes_pruned_before_they_were_read_are_reported_as_a_gap() -> Result<()> {
    let stage = stage_by_triggers().await?;
    let mut socket = stage.connect(&service()).await?;
    socket.follow("feed", activities()).await?;
    // As on another database server whose transaction ids are ahead: this very id is in progress for every reader.
    stage
        .run(
            "begin;
             insert into activities (type) values ('sms');
             select gleaner.prune_changes(((pg_current_xact_id()::text)::bigint + 1)::text::xid8);
             commit",
        )
        .await?;
    socket.expect("phx_error").await?;
    socket.follow("feed", activities()).await?;
    stage.run("insert into activities (type) values ('call')").await?;
    assert_eq!(socket.change().await?["record"]["type"], "call");
    Ok(())
}

#[tokio::test]
async fn changes_that_were_read_can_be_pruned_without_a_gap() -> Result<()> {
    let stage = stage_by_triggers().await?;
    let mut socket = stage.connect(&service()).await?;
    socket.follow("feed", activities()).await?;
    stage.run("insert into activities (type) values ('sms')").await?;
    socket.change().await?;
    // Transactions of other tests may be older than ours.
    while stage.client.query_one("select bool_or(xid >= pg_snapshot_xmin(pg_current_snapshot())) from gleaner.change", &[]).await?.get(0) {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let before = stage.value("select pg_snapshot_xmin(pg_current_snapshot())::text").await?;
    // A change after that was read, so the reader's snapshot is later, too.
    stage.run("insert into activities (type) values ('email')").await?;
    socket.change().await?;
    let pruned = stage.value(&format!("select gleaner.prune_changes('{before}')::text")).await?;
    assert_eq!((pruned.as_str(), noted(&stage).await?), ("1", 1));
    stage.run("insert into activities (type) values ('call')").await?;
    assert_eq!(socket.change().await?["record"]["type"], "call");
    Ok(())
}

#[tokio::test]
async fn a_table_altered_meanwhile_is_reported_as_a_gap_and_read_correctly_afterwards() -> Result<()> {
    let stage = stage_by_triggers().await?;
    stage.run("create table steps (id int primary key, a text, b text); alter publication supabase_realtime add table steps; grant select on steps to service_role").await?;
    let bindings = json!([{"event": "*", "schema": "public", "table": "steps"}]);
    let mut socket = stage.connect(&service()).await?;
    socket.follow("steps", bindings.clone()).await?;
    stage.run("begin; insert into steps values (1, 'a', 'b'); alter table steps drop column a, add column c text; insert into steps values (2, 'b', 'c'); commit").await?;
    socket.expect("phx_error").await?;
    socket.follow("steps", bindings).await?;
    stage.run("insert into steps values (3, 'b', 'c')").await?;
    assert_eq!(socket.change().await?["record"], json!({"id": 3, "b": "b", "c": "c"}));
    Ok(())
}

#[tokio::test]
async fn a_table_published_later_is_followed_and_its_subscribers_are_informed() -> Result<()> {
    let stage = stage_by_triggers().await?;
    let (mut all, mut others) = (stage.connect(&service()).await?, stage.connect(&service()).await?);
    let everything = json!([{"event": "*", "schema": "public"}]);
    all.follow("all", everything.clone()).await?;
    others.follow("feed", activities()).await?;
    stage.run("create table later (id int primary key); alter publication supabase_realtime add table later; grant select on later to service_role").await?;
    stage.run("insert into later values (1)").await?;
    all.expect("phx_error").await?;
    all.follow("all", everything).await?;
    stage.run("insert into later values (2)").await?;
    assert_eq!(all.change().await?["record"]["id"], 2);
    others.expect_nothing().await?;
    // Changes of a table without a key cannot be sent, and the server reports that.
    stage.run("create table keyless (id int); alter publication supabase_realtime add table keyless").await?;
    others
        .send("realtime:x", "phx_join", json!({"config": {"postgres_changes": [{"event": "*", "schema": "public", "table": "keyless"}]}}))
        .await?;
    others.expect("phx_reply").await?;
    let system = others.expect("system").await?.payload;
    assert!(system["message"].as_str().is_some_and(|message| message.contains("primary key")), "{system}");
    Ok(())
}

#[tokio::test]
async fn a_table_whose_lock_is_not_to_be_had_at_once_is_followed_as_soon_as_it_is() -> Result<()> {
    let stage = stage_by_triggers().await?;
    let mut busy = gleaner::connect(&stage.url).await?;
    let writing = busy.transaction().await?;
    writing.batch_execute("insert into activities (type) values ('sms')").await?;
    let mut socket = stage.connect(&service()).await?;
    {
        let mut joining = std::pin::pin!(socket.follow("feed", activities()));
        // Longer than one attempt lasts.
        assert!(tokio::time::timeout(Duration::from_millis(1200), joining.as_mut()).await.is_err());
        stage.run("insert into activities (type) values ('note')").await?;
        writing.commit().await?;
        joining.await?;
    }
    stage.run("insert into activities (type) values ('call')").await?;
    assert_eq!(socket.change().await?["record"]["type"], "call");
    Ok(())
}

#[tokio::test]
async fn partitions_are_sent_under_the_name_that_is_published() -> Result<()> {
    let stage = stage_by_triggers().await?;
    stage
        .run(
            "create table parted (id int, at date, what text, primary key (id, at)) partition by range (at);
             create table parted_old (what text, at date not null, id int not null);
             alter table parted attach partition parted_old for values from ('2020-01-01') to ('2025-01-01');
             create table parted_new partition of parted for values from ('2025-01-01') to ('2030-01-01');
             alter publication supabase_realtime set (publish_via_partition_root = true);
             alter publication supabase_realtime add table parted;
             grant select on parted to service_role",
        )
        .await?;
    let mut socket = stage.connect(&service()).await?;
    socket.follow("parted", json!([{"event": "*", "schema": "public", "table": "parted"}])).await?;
    stage.run("insert into parted values (1, '2024-05-01', 'old'), (2, '2026-05-01', 'new')").await?;
    // Columns of a partition may be in another order.
    for (id, at, what) in [(1, "2024-05-01", "old"), (2, "2026-05-01", "new")] {
        let change = socket.change().await?;
        assert_eq!((&change["table"], &change["record"]), (&json!("parted"), &json!({"id": id, "at": at, "what": what})));
    }
    Ok(())
}

#[tokio::test]
async fn a_change_made_by_a_trigger_is_sent_after_the_change_that_fired_it() -> Result<()> {
    let stage = stage_by_triggers().await?;
    stage
        .run(
            "create table drafts (id int primary key, title text);
             create function finish() returns trigger language plpgsql as $$ begin update drafts set title = 'done' where id = new.id; return null; end $$;
             create trigger a_finish after insert on drafts for each row execute function finish();
             alter publication supabase_realtime add table drafts; grant select on drafts to service_role",
        )
        .await?;
    let mut socket = stage.connect(&service()).await?;
    socket.follow("drafts", json!([{"event": "*", "schema": "public", "table": "drafts"}])).await?;
    stage.run("insert into drafts values (1, 'draft')").await?;
    for (kind, title) in [("INSERT", "draft"), ("UPDATE", "done")] {
        let change = socket.change().await?;
        assert_eq!((&change["type"], &change["record"]["title"]), (&json!(kind), &json!(title)));
    }
    Ok(())
}

#[tokio::test]
async fn a_lost_connection_costs_time_and_no_change() -> Result<()> {
    let stage = stage_by_triggers().await?;
    let mut socket = stage.connect(&service()).await?;
    socket.follow("feed", activities()).await?;
    let ours = "from pg_stat_activity where usename = 'narrow' and datname = current_database()";
    stage.run(&format!("select pg_terminate_backend(pid, 5000) {ours}")).await?;
    stage.run("insert into activities (type) values ('sms')").await?;
    assert_eq!(socket.change().await?["record"]["type"], "sms");
    Ok(())
}

#[tokio::test]
async fn writers_do_not_wait_for_each_other() -> Result<()> {
    let stage = stage_by_triggers().await?;
    let mut socket = stage.connect(&service()).await?;
    socket.follow("feed", activities()).await?;
    let mut open = Vec::new();
    for _ in 0..16 {
        let client = gleaner::connect(&stage.url).await?;
        client.batch_execute("set lock_timeout = '2s'; begin; insert into activities (type) values ('sms')").await?;
        open.push(client);
    }
    let waiting = stage.value("select count(*)::text from pg_locks where not granted and database = (select oid from pg_database where datname = current_database())").await?;
    assert_eq!((waiting.as_str(), noted(&stage).await?), ("0", 0));
    for client in open.iter().rev() {
        client.batch_execute("commit").await?;
    }
    for _ in 0..16 {
        assert_eq!(socket.change().await?["type"], "INSERT");
    }
    Ok(())
}

/// A pooler supports no replication, and each statement may run in another session.
#[tokio::test]
async fn changes_are_followed_through_pgbouncer_in_transaction_mode() -> Result<()> {
    let (database, bouncer) = (database().await?, Bouncer::start().await?);
    let stage = stage_as(&database.url, &bouncer.url_of(&database.name)).await?;
    let mut socket = stage.connect(&service()).await?;
    socket.follow("feed", activities()).await?;
    for n in 0..20 {
        stage.run(&format!("insert into activities (type, raw_data) values ('sms', '{{\"n\": {n}}}')")).await?;
        assert_eq!(socket.change().await?["record"]["raw_data"]["n"], n);
    }
    assert!(captured(&stage).await? > 0);
    Ok(())
}

/// A database without a readable log crashes: the earlier changes are lost, and subscribers are notified of that.
#[tokio::test]
async fn after_a_crash_subscribers_get_an_error_and_can_join_again() -> Result<()> {
    let mut server = private_server(&[("wal_level", "replica")]).await?;
    let mut stage = stage_on(server.url()).await?;
    let mut socket = stage.connect(&service()).await?;
    socket.follow("feed", activities()).await?;
    stage.run("insert into activities (type) values ('sms')").await?;
    assert_eq!(socket.change().await?["record"]["type"], "sms");
    // The crash of one session ends all others, though PostgreSQL goes on; then PostgreSQL itself crashes.
    for whole in [false, true] {
        if whole {
            server.crash().await?;
            server.restart().await?;
        } else {
            let session = stage.value("select pg_backend_pid()::text").await?;
            assert!(std::process::Command::new("kill").args(["-9", &session]).status()?.success());
        }
        socket.expect("phx_error").await?;
        socket.follow("feed", activities()).await?;
        stage.client = gleaner::connect(server.url()).await?;
        stage.run("insert into activities (type) values ('call')").await?;
        assert_eq!(socket.change().await?["record"]["type"], "call");
    }
    drop(stage);
    server.stop().await?;
    Ok(())
}

#[tokio::test]
async fn where_the_log_can_be_read_no_triggers_are_left() -> Result<()> {
    let database = database().await?;
    let client = gleaner::connect(&database.url).await?;
    let capture = "select gleaner.capture_changes(relation, true) from gleaner.list_captures()";
    client.batch_execute(capture).await?;
    // Another server follows changes by these triggers.
    client
        .batch_execute("select setval('gleaner.changes_wanted_until', (extract(epoch from clock_timestamp()) * 1000)::bigint + 60000)")
        .await?;
    client.batch_execute("insert into activities (type) values ('sms')").await?;
    let stage = stage_on(&database.url).await?;
    let mut socket = stage.connect(&service()).await?;
    socket.follow("feed", activities()).await?;
    assert!(captured(&stage).await? > 0 && noted(&stage).await? == 1, "they are the other's");
    drop(stage);

    client.batch_execute("select setval('gleaner.changes_wanted_until', 0)").await?;
    let stage = stage_on(&database.url).await?;
    let mut socket = stage.connect(&service()).await?;
    socket.follow("feed", activities()).await?;
    while captured(&stage).await? > 0 || noted(&stage).await? > 0 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    stage.run("insert into activities (type) values ('call')").await?;
    assert_eq!(socket.change().await?["record"]["type"], "call");
    Ok(())
}
