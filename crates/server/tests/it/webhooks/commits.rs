//! Group commit: shared, durable before the response, and a faulty request does not fail the others.

use std::time::Duration;

use anyhow::{Context as _, Result};
use futures_util::future::{join_all, try_join_all};
use serde_json::{Value, json};

use crate::webhooks::support::{world, world_with};
use crate::world::eventually;

/// Commits that wait for a lock.
const WAITS: &str = "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock' and query like '%ingest_activities%'";

#[tokio::test]
async fn the_answer_comes_after_the_commit() -> Result<()> {
    let w = world().await?;
    let channel = w.channel().await?;
    // A first request, so that the following ones wait for nothing but the commit.
    w.post(&channel, &json!({"ids": ["first"]})).await?;
    let mut other = gleaner::connect(&w.url).await?;
    let lock = other.transaction().await?;
    lock.batch_execute("lock table activities in share mode").await?;
    let event = json!({"ids": ["second"]});
    let mut answer = std::pin::pin!(w.post(&channel, &event));
    tokio::select! {
        early = &mut answer => anyhow::bail!("answered before the commit: {early:?}"),
        waiting = eventually("the commit to wait", async || Ok(w.count(WAITS).await? == 1)) => waiting?,
    }
    assert!(futures_util::poll!(&mut answer).is_pending(), "no answer without a commit");
    lock.rollback().await?;
    assert_eq!(answer.await?.status, 202);
    Ok(())
}

#[tokio::test]
async fn requests_that_arrive_together_share_a_commit() -> Result<()> {
    let w = world_with(|config| config.committers = 1).await?;
    let channel = w.channel().await?;
    w.post(&channel, &json!({"ids": ["first"]})).await?;
    let mut other = gleaner::connect(&w.url).await?;
    let lock = other.transaction().await?;
    lock.batch_execute("lock table activities in share mode").await?;
    let events: Vec<Value> = (0..40).map(|n| json!({"ids": [format!("event {n}")]})).collect();
    let first = w.post(&channel, &events[0]);
    let others = async {
        eventually("the first to wait for the lock", async || Ok(w.count(WAITS).await? == 1)).await?;
        try_join_all(events[1..].iter().map(|event| w.post(&channel, event))).await
    };
    let release = async {
        eventually("the others to wait for the first", async || Ok(w.server.state().webhooks.waiting() == 39)).await?;
        lock.rollback().await.context("release")
    };
    let (first, others, ()) = tokio::try_join!(first, others, release)?;
    assert!(others.iter().chain([&first]).all(|answer| answer.status == 202));
    // One transaction for the request that waited for the lock, one for all that arrived in the meantime.
    let transactions = w.count("select count(distinct xmin::text) from activities where external_id like 'event%'").await?;
    assert_eq!(transactions, 2, "for 40 requests");
    Ok(())
}

#[tokio::test]
async fn one_bad_row_does_not_fail_the_others_of_its_batch() -> Result<()> {
    let w = world_with(|config| config.committers = 1).await?;
    let channel = w.channel().await?;
    w.client.batch_execute("alter table activities add constraint no_thirteen check (external_id is distinct from 'event 13')").await?;
    // jsonb cannot store U+0000; a provider should have removed it.
    let bad = |n: usize| if n % 10 == 7 { json!({"nul": "a\0b"}) } else { json!({}) };
    let events: Vec<Value> = (0..40).map(|n| json!({"ids": [format!("event {n}")], "metadata": bad(n)})).collect();
    let answers = join_all(events.iter().map(|event| w.post(&channel, event))).await;
    for (n, answer) in answers.into_iter().enumerate() {
        let expected = if n == 13 {
            403
        } else if n % 10 == 7 {
            400
        } else {
            202
        };
        let answer = answer?;
        assert_eq!(answer.status, expected, "event {n}: {answer:?}");
    }
    assert_eq!(w.count("select count(*) from activities").await?, 35);
    assert_eq!(w.refusals(Some(channel.id)).await?, [("malformed".to_owned(), 4), ("unusable".to_owned(), 1)]);
    Ok(())
}

#[tokio::test]
async fn a_trigger_that_fails_refuses_its_own_row_only_and_asks_for_a_repetition() -> Result<()> {
    let w = world_with(|config| config.committers = 1).await?;
    let channel = w.channel().await?;
    w.client
        .batch_execute(
            "create function moody() returns trigger language plpgsql as
                 $$ begin if new.external_id = 'event 3' then raise exception 'not today: %', new.raw_data; end if; return new; end $$;
             create trigger moody before insert on activities for each row execute function moody()",
        )
        .await?;
    let events: Vec<Value> = (0..10).map(|n| json!({"ids": [format!("event {n}")]})).collect();
    let answers = try_join_all(events.iter().map(|event| w.post(&channel, event))).await?;
    for (n, answer) in answers.iter().enumerate() {
        assert_eq!(answer.status, if n == 3 { 503 } else { 202 }, "event {n}");
    }
    assert_eq!(answers[3].header("retry-after"), Some("5"));
    w.client.batch_execute("drop trigger moody on activities").await?;
    assert_eq!(w.post(&channel, &events[3]).await?.status, 202);
    Ok(())
}

#[tokio::test]
async fn a_sender_that_waits_too_long_gets_retry_after_and_nothing_is_stored_twice() -> Result<()> {
    let w = world_with(|config| config.commit_within = Duration::from_millis(700)).await?;
    let channel = w.channel().await?;
    w.post(&channel, &json!({"ids": ["first"]})).await?;
    let mut other = gleaner::connect(&w.url).await?;
    let lock = other.transaction().await?;
    lock.batch_execute("lock table activities in share mode").await?;
    let answer = w.post(&channel, &json!({"ids": ["second"]})).await?;
    assert_eq!((answer.status, answer.header("retry-after")), (503, Some("5")));
    // No session of ours still waits for the lock.
    eventually("sessions to give up", async || Ok(w.count(WAITS).await? == 0)).await?;
    lock.rollback().await?;
    assert_eq!(w.post(&channel, &json!({"ids": ["second"]})).await?.status, 202);
    assert_eq!(w.count("select count(*) from activities").await?, 2);
    Ok(())
}
