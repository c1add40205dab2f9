//! The functions and views in `docs/reference/systems`, by name, end to end.

use anyhow::{Context as _, Result};
use serde_json::json;
use tokio_postgres::Client;

use crate::hands::{activity, claim_by_function, complete_plainly, row};
use crate::world::{World, world};

async fn number(client: &Client, sql: &str) -> Result<i32> {
    Ok(client.query_one(sql, &[]).await.with_context(|| sql.to_owned())?.get(0))
}

/// A basket with `n` dumps, captured by a member; returns the basket's id.
async fn dumps(world: &World, n: i32) -> Result<String> {
    let basket = world
        .text(
            "with w as (insert into workspaces (name) values ('team') returning id)
             insert into baskets (workspace_id) select id from w returning id::text",
        )
        .await?
        .context("a basket")?;
    world
        .run(&format!("insert into raw_dumps (basket_id, body_md) select '{basket}', 'text ' || n from generate_series(1, {n}) as n"))
        .await?;
    Ok(basket)
}

async fn ids(client: &Client, sql: &str) -> Result<Vec<String>> {
    Ok(client.query(sql, &[]).await.with_context(|| sql.to_owned())?.iter().map(|r| r.get("id")).collect())
}

/// The order of the claim, and that other agents never claim private work.
#[tokio::test]
async fn claim_next_pending_activity_gives_own_then_global_then_stale_and_nothing_private() -> Result<()> {
    let world = world().await?;
    let (me, other, private) =
        (world.person("me", 5, true).await?, world.person("other", 5, true).await?, world.person("private", 5, false).await?);
    world.activity(Some(private), "call", 600.0).await?;
    world.activity(Some(other), "call", 1.0).await?;
    let stale = world.activity(Some(other), "call", 60.0).await?;
    let global = world.activity(None, "sms", 30.0).await?;
    let mine = world.activity(Some(me), "email", 0.0).await?;
    let uid = world.text(&format!("select user_id::text from sales where id = {me}")).await?;

    let agent = world.signed_in(me, "laptop").await?;
    for (key, is_global) in [(&mine, false), (&global, true), (&stale, false)] {
        let got = agent
            .query_one(
                &format!(
                    "select id::text, raw_data, type, is_global, processing_status, locked_by::text from claim_next_pending_activity({me})"
                ),
                &[],
            )
            .await?;
        assert_eq!(got.get::<_, String>(0), *key);
        assert_eq!(got.get::<_, serde_json::Value>(1)["content"], "hello");
        assert_eq!(got.get::<_, bool>(3), is_global);
        assert_eq!(got.get::<_, String>(4), "processing");
        assert_eq!(got.get::<_, Option<String>>(5), uid, "locked_by is the signed-in user");
        assert_eq!(complete_plainly(&agent, key, "done").await?, 1);
    }
    assert!(agent.query(&format!("select * from claim_next_pending_activity({me})"), &[]).await?.is_empty(), "no row, and not a null one");
    Ok(())
}

#[tokio::test]
async fn claim_stale_activity_obeys_threshold_and_privacy() -> Result<()> {
    let world = world().await?;
    let (me, patient, private) =
        (world.person("me", 5, true).await?, world.person("patient", 60, true).await?, world.person("private", 5, false).await?);
    world.activity(Some(private), "call", 600.0).await?;
    let patients = world.activity(Some(patient), "call", 50.0).await?;
    world.activity(None, "call", 4.5).await?;
    let global = world.activity(None, "call", 5.5).await?;
    let agent = world.signed_in(me, "laptop").await?;
    let claim = "select id::text from claim_stale_activity()";
    assert_eq!(ids(&agent, claim).await?, [global], "nobody's, after the usual five minutes");
    assert!(ids(&agent, claim).await?.is_empty());
    world.run(&format!("update sales set stale_threshold_minutes = 45 where id = {patient}")).await?;
    assert_eq!(ids(&agent, claim).await?, [patients]);
    Ok(())
}

#[tokio::test]
async fn unlock_stale_locks_and_reset_stale_locks_give_back_what_has_no_living_holder() -> Result<()> {
    for sweep in ["unlock_stale_locks", "reset_stale_locks"] {
        let world = world().await?;
        let me = world.person("me", 5, true).await?;
        let key = world.activity(Some(me), "call", 0.0).await?;
        let agent = world.signed_in(me, "laptop").await?;
        let sweep = format!("select {sweep}()");
        claim_by_function(&agent, me).await?;
        assert_eq!(number(&agent, &sweep).await?, 0, "its holder is alive");
        world.age("activities", "6 minutes").await?;
        assert_eq!(number(&agent, &sweep).await?, 1);
        assert_eq!(number(&agent, &sweep).await?, 0);
        let row = activity(&world, &key).await?;
        assert_eq!((&row["processing_status"], &row["locked_by"], &row["locked_at"]), (&"raw".into(), &json!(null), &json!(null)));
        assert_eq!(row["metadata"]["recovery_count"], 1);
        // It fails repeatedly: in the end it is dead, with a dead letter.
        for _ in 0..2 {
            claim_by_function(&agent, me).await?;
            world.age("activities", "6 minutes").await?;
            assert_eq!(number(&agent, &sweep).await?, 1);
        }
        assert_eq!(activity(&world, &key).await?["processing_status"], "failed");
        assert_eq!(world.count("select count(*) from activity_failures").await?, 1);
    }
    Ok(())
}

/// Work that takes longer than the five-minute hold keeps its lease while its agent reports progress.
#[tokio::test]
async fn slow_work_that_shows_life_is_not_unlocked() -> Result<()> {
    let world = world().await?;
    let me = world.person("me", 5, true).await?;
    let key = world.activity(Some(me), "call", 0.0).await?;
    let agent = world.signed_in(me, "laptop").await?;
    claim_by_function(&agent, me).await?;
    for n in 0..12 {
        world.age("activities", "4 minutes").await?;
        agent.execute(&format!("update activities set processed_data = '{{\"stage\": {n}}}' where id = '{key}'"), &[]).await?;
        assert_eq!(number(&agent, "select unlock_stale_locks() + reset_stale_locks()").await?, 0, "after {} minutes", 4 * (n + 1));
    }
    assert_eq!(complete_plainly(&agent, &key, "done").await?, 1);
    Ok(())
}

/// The lease check: the old holder's completion changes no row.
#[tokio::test]
async fn a_late_completion_does_not_overwrite_the_new_holders() -> Result<()> {
    let world = world().await?;
    let (me, other) = (world.person("me", 5, true).await?, world.person("other", 5, true).await?);
    let key = world.activity(Some(me), "call", 0.0).await?;
    let (slow, quick) = (world.signed_in(me, "laptop").await?, world.signed_in(other, "laptop").await?);
    claim_by_function(&slow, me).await?;
    world.age("activities", "6 minutes").await?;
    assert_eq!(ids(&quick, "select id::text from claim_stale_activity()").await?, [key.as_str()]);
    assert_eq!(complete_plainly(&quick, &key, "quick").await?, 1);
    assert_eq!(complete_plainly(&slow, &key, "slow").await?, 0);
    assert_eq!(activity(&world, &key).await?["processed_data"]["summary"], "quick");
    Ok(())
}

#[tokio::test]
async fn a_dump_is_queued_claimed_processed_and_completed_by_name() -> Result<()> {
    let world = world().await?;
    let basket = dumps(&world, 12).await?;
    let worker = world.service().await?;
    let got = worker.query("select id::text, processing_state::text, claimed_by from fn_claim_next_dumps('worker-1')", &[]).await?;
    assert_eq!(got.len(), 10, "ten unless asked otherwise");
    assert!(got.iter().all(|r| r.get::<_, String>(1) == "claimed" && r.get::<_, String>(2) == "worker-1"));
    let first: String = got[0].get(0);
    let set = |state: &str| format!("update agent_processing_queue set processing_state = '{state}' where id = '{first}'");
    assert_eq!(worker.execute(&set("processing"), &[]).await?, 1);

    // The same insight twice, as after a crash, creates one block.
    let block = format!("select fn_block_create('{basket}', 'Title', 'Content', 'insight', 0.8)::text");
    let id: String = worker.query_one(&block, &[]).await?.get(0);
    assert_eq!(worker.query_one(&block, &[]).await?.get::<_, String>(0), id);
    assert_eq!(world.count("select count(*) from blocks where confidence_score = 0.8").await?, 1);
    let upsert = |metadata: &str| {
        format!(
            "select fn_context_item_upsert_bulk('{basket}', '[{{\"kind\": \"person\", \"label\": \"Ann\", \"metadata\": {metadata}}},
             {{\"kind\": \"place\", \"label\": \"Oslo\"}}, {{\"kind\": \"place\", \"label\": \"Oslo\"}}]')"
        )
    };
    assert_eq!(number(&worker, &upsert("{\"a\": 1}")).await?, 2);
    assert_eq!(number(&worker, &upsert("{\"b\": 2}")).await?, 2);
    let metadata = world.text("select metadata::text from context_items where label = 'Ann'").await?;
    assert_eq!(metadata.as_deref(), Some("{\"a\": 1, \"b\": 2}"));

    assert_eq!(worker.execute(&set("completed"), &[]).await?, 1);
    let done = row(&world, "agent_processing_queue", &first).await?;
    assert_eq!((&done["processing_state"], &done["claimed_by"]), (&"completed".into(), &"worker-1".into()));
    assert!(done["completed_at"].is_string());
    assert_eq!(worker.query("select * from fn_claim_next_dumps('worker-2', 5, 1)", &[]).await?.len(), 2);
    Ok(())
}

/// A crash is detected in state `processing` too, not only in state `claimed`.
#[tokio::test]
async fn a_dump_whose_worker_crashed_in_mid_work_is_recovered() -> Result<()> {
    let world = world().await?;
    dumps(&world, 1).await?;
    let worker = world.service().await?;
    let claim = "select id::text from fn_claim_next_dumps('worker')";
    for state in ["claimed", "processing"] {
        let id = ids(&worker, claim).await?.pop().with_context(|| format!("before a crash in {state}"))?;
        worker.execute(&format!("update agent_processing_queue set processing_state = '{state}' where id = '{id}'"), &[]).await?;
        assert!(ids(&worker, claim).await?.is_empty());
        world.age("dumps", "6 minutes").await?;
    }
    let id = ids(&worker, claim).await?.pop().context("recovered")?;
    let row = row(&world, "agent_processing_queue", &id).await?;
    assert_eq!((&row["lost"], &row["attempts"]), (&1.into(), &0.into()), "parked once, lost once");
    Ok(())
}

#[tokio::test]
async fn a_dump_that_failed_is_tried_again_and_listed_in_the_end() -> Result<()> {
    let world = world().await?;
    dumps(&world, 1).await?;
    let worker = world.service().await?;
    for attempt in 1..=3 {
        let id =
            ids(&worker, "select id::text from fn_claim_next_dumps('worker')").await?.pop().with_context(|| format!("try {attempt}"))?;
        // A plain worker counts attempts itself, and may count wrong: the engine's count is used.
        let fail = format!(
            "update agent_processing_queue set processing_state = 'failed', error_message = 'no model', attempts = 40 where id = '{id}'"
        );
        assert_eq!(worker.execute(&fail, &[]).await?, 1);
        let row = row(&world, "agent_processing_queue", &id).await?;
        assert_eq!((&row["attempts"], &row["error_message"]), (&attempt.into(), &"no model".into()));
        assert_eq!(world.count("select count(*) from failed_dumps").await?, i64::from(attempt == 3));
        world.age("dumps", "5 minutes").await?;
    }
    assert!(ids(&worker, "select id::text from fn_claim_next_dumps('worker')").await?.is_empty());
    Ok(())
}

#[tokio::test]
async fn queue_health_and_processing_performance_count_what_is_there() -> Result<()> {
    let world = world().await?;
    dumps(&world, 5).await?;
    world.age("dumps", "10 minutes").await?;
    let worker = world.service().await?;
    let got = ids(&worker, "select id::text from fn_claim_next_dumps('worker', 2)").await?;
    worker.execute(&format!("update agent_processing_queue set processing_state = 'completed' where id = '{}'", got[0]), &[]).await?;

    let health = worker
        .query("select processing_state::text, count, max_age_seconds::float8 from queue_health as h order by h.processing_state", &[])
        .await?;
    let states: Vec<(String, i64)> = health.iter().map(|r| (r.get(0), r.get(1))).collect();
    assert_eq!(states, [("pending".into(), 3), ("claimed".into(), 1), ("completed".into(), 1)]);
    assert!(health[0].get::<_, f64>(2) >= 600.0);
    let hours = worker.query("select completed, avg_duration_seconds::float8, max_attempts from processing_performance", &[]).await?;
    assert_eq!(hours.len(), 1);
    assert_eq!((hours[0].get::<_, i64>(0), hours[0].get::<_, i32>(2)), (1, 0));
    assert!(hours[0].get::<_, f64>(1) >= 600.0);
    let depth = worker.query_one("select workspace, pending_dumps from queue_depth_by_workspace", &[]).await?;
    assert_eq!((depth.get::<_, String>(0), depth.get::<_, i64>(1)), ("team".into(), 3));
    assert_eq!(worker.query("select * from stuck_dumps", &[]).await?.len(), 0);
    world.age("dumps", "11 minutes").await?;
    assert_eq!(worker.query("select * from stuck_dumps", &[]).await?.len(), 1);
    Ok(())
}

#[tokio::test]
async fn follow_ups_are_claimed_within_the_window_and_not_before() -> Result<()> {
    let world = world().await?;
    let daemon = world.service().await?;
    let create = |seconds: i32| {
        format!(
            "select id::text from create_scheduled_action('ann', 'follow_up', now() + interval '{seconds} seconds', '{{\"n\": {seconds}}}')"
        )
    };
    let later = ids(&daemon, &create(3600)).await?;
    let soon = ids(&daemon, &create(45)).await?;
    let due = ids(&daemon, &create(-10)).await?;
    let pending = ids(&daemon, "select id::text from get_pending_actions('ann')").await?;
    assert_eq!(pending, [due.clone(), soon.clone(), later.clone()].concat(), "earliest first");
    assert!(ids(&daemon, "select id::text from get_pending_actions('bob')").await?.is_empty());
    assert_eq!(ids(&daemon, "select id::text from get_pending_actions()").await?.len(), 3);

    assert_eq!(ids(&daemon, "select id::text from claim_due_actions()").await?, due, "five seconds ahead unless asked otherwise");
    assert!(ids(&daemon, "select id::text from claim_due_actions(10, 30)").await?.is_empty());
    assert_eq!(ids(&daemon, "select id::text from claim_due_actions(10, 60)").await?, soon);
    assert_eq!(daemon.execute(&format!("update scheduled_actions set status = 'executed' where id = '{}'", due[0]), &[]).await?, 1);
    let done = row(&world, "scheduled_actions", &due[0]).await?;
    assert!(done["executed_at"].is_string() && done["finished_at"].is_string(), "{done}");
    assert_eq!(ids(&daemon, "select id::text from get_pending_actions()").await?, later);
    Ok(())
}

/// Claimed a minute early, the row is held: a second daemon does not get it when it becomes due.
#[tokio::test]
async fn a_follow_up_taken_early_is_not_taken_again_at_its_time() -> Result<()> {
    let world = world().await?;
    let daemon = world.service().await?;
    daemon.batch_execute("select create_scheduled_action('ann', 'follow_up', now() + interval '50 seconds')").await?;
    assert_eq!(ids(&daemon, "select id::text from claim_due_actions(10, 60)").await?.len(), 1);
    world.age("followups", "55 seconds").await?;
    assert!(ids(&daemon, "select id::text from claim_due_actions(10, 60)").await?.is_empty());
    Ok(())
}

/// Rescheduling a waiting action is a plain update of its own column.
#[tokio::test]
async fn a_rescheduled_follow_up_is_due_at_its_new_time() -> Result<()> {
    let world = world().await?;
    let daemon = world.service().await?;
    let id = ids(&daemon, "select id::text from create_scheduled_action('ann', 'follow_up', now())").await?;
    daemon.execute("update scheduled_actions set scheduled_for = now() + interval '1 hour'", &[]).await?;
    assert!(ids(&daemon, "select id::text from claim_due_actions()").await?.is_empty());
    daemon.execute("update scheduled_actions set scheduled_for = now()", &[]).await?;
    assert_eq!(ids(&daemon, "select id::text from claim_due_actions()").await?, id);
    Ok(())
}

#[tokio::test]
async fn mark_processing_takes_an_action_once_and_reset_stale_processing_gives_it_back() -> Result<()> {
    let world = world().await?;
    let daemon = world.service().await?;
    let id = ids(&daemon, "select id::text from create_scheduled_action('ann', 'follow_up', now())").await?.remove(0);
    let take = format!("select mark_processing('{id}')");
    assert!(daemon.query_one(&take, &[]).await?.get::<_, bool>(0));
    assert!(!daemon.query_one(&take, &[]).await?.get::<_, bool>(0));
    assert!(ids(&daemon, "select id::text from claim_due_actions()").await?.is_empty());
    world.age("followups", "6 minutes").await?;
    assert_eq!(number(&daemon, "select reset_stale_processing()").await?, 0, "ten minutes unless asked otherwise");
    assert_eq!(number(&daemon, "select reset_stale_processing(330)").await?, 1);
    assert_eq!(row(&world, "scheduled_actions", &id).await?["status"], "pending");
    assert_eq!(ids(&daemon, "select id::text from claim_due_actions()").await?, [id]);
    assert_eq!(number(&daemon, "select cancel_pending_for_prospect('ann')").await?, 1);
    Ok(())
}

/// The sender of a mail is found wherever the provider stores it.
#[tokio::test]
async fn an_activity_is_linked_to_the_contact_its_sender_is() -> Result<()> {
    let world = world().await?;
    let contact: i64 = world
        .client
        .query_one(
            "insert into contacts (first_name, email, phone_number) values ('Ann', 'Ann@Example.com', '(415) 867-5309') returning id",
            &[],
        )
        .await?
        .get(0);
    for (raw_data, metadata) in [
        (json!({"sender": "Ann <ann@example.com>"}), json!({})),
        (json!({}), json!({"from": "ann@example.com"})),
        (json!({}), json!({"from": "+1 415 867 5309"})),
    ] {
        let sql = "insert into activities (type, raw_data, metadata) values ('email', $1, $2) returning contact_id";
        let linked: Option<i64> = world.client.query_one(sql, &[&raw_data, &metadata]).await?.get(0);
        assert_eq!(linked, Some(contact), "{raw_data} {metadata}");
    }
    Ok(())
}
