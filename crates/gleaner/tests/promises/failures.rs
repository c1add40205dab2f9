//! Failures are counted when they are reported, separately from everything else, and end in dead letters.

use std::time::Duration;

use anyhow::{Context as _, Result};
use gleaner::{Claim, Completion, Failure, Outcome};
use serde_json::json;

use crate::hands::{activity, claim_anew, held_activity, held_job, row, seconds_until};
use crate::world::world;

#[tokio::test]
async fn release_burns_no_attempt() -> Result<()> {
    let world = world().await?;
    let (queue, mut item) = held_job(&world, "a").await?;
    for _ in 0..10 {
        queue.start(&[item.held()]).await?;
        assert_eq!(queue.release(&[item.held()]).await?[0].outcome, Outcome::Done);
        item = claim_anew(&world, &queue, "a", None, 1).await?.pop().context("due at once again")?;
    }
    let row = row(&world, "gleaner.jobs", &item.key).await?;
    assert_eq!((&row["attempts"], &row["lost"]), (&0.into(), &0.into()));
    Ok(())
}

#[tokio::test]
async fn snooze_burns_no_attempt_and_holds_to_its_time() -> Result<()> {
    let world = world().await?;
    let (queue, mut item) = held_job(&world, "a").await?;
    for _ in 0..10 {
        assert_eq!(queue.snooze(&item.held(), Duration::from_secs(600)).await?.outcome, Outcome::Done);
        world.age("jobs", "9 minutes").await?;
        assert!(claim_anew(&world, &queue, "a", None, 1).await?.is_empty(), "it was put off for ten minutes");
        world.age("jobs", "61 seconds").await?;
        item = claim_anew(&world, &queue, "a", None, 1).await?.pop().context("its time has come")?;
    }
    let row = row(&world, "gleaner.jobs", &item.key).await?;
    assert_eq!((&row["attempts"], &row["lost"]), (&0.into(), &0.into()));
    Ok(())
}

/// Thirty seconds, doubled each time, plus up to a fifth: so that a batch that failed together is not retried together.
#[tokio::test]
async fn failing_counts_backs_off_and_is_dead_after_three() -> Result<()> {
    let world = world().await?;
    let (queue, mut item) = held_activity(&world, "a", "sms").await?;
    world.run("update activities set metadata = '{\"from\": \"+14158675309\"}'").await?;
    for attempt in 1..=3 {
        let failure = Failure::new(format!("no audio, try {attempt}")).category("TranscriptionError");
        let answer = queue.fail(&item.held(), &failure).await?;
        assert_eq!((answer.outcome, answer.status.as_deref()), (Outcome::Done, Some("failed")));

        let row = activity(&world, &item.key).await?;
        assert_eq!(row["attempts"], attempt);
        assert_eq!(row["lost"], 0);
        assert_eq!(row["locked_by"], json!(null));
        assert_eq!(row["metadata"]["from"], "+14158675309", "other metadata is kept");
        let error = &row["metadata"]["error"];
        assert_eq!(error["type"], "TranscriptionError");
        assert_eq!(error["message"], format!("no audio, try {attempt}"));
        assert_eq!(error["agent_id"], "a");
        assert_eq!(error["retry_count"], attempt);
        let told: f64 = world
            .client
            .query_one("select extract(epoch from clock_timestamp() - ($1::text)::timestamptz)::float8", &[&error["timestamp"].as_str()])
            .await?
            .get(0);
        assert!((0.0..60.0).contains(&told), "the error says when: {error}");

        if attempt == 3 {
            assert_eq!(row["due_at"], json!(null), "dead: no next try");
            break;
        }
        let wait = seconds_until(&world, "activities", &item.key, "due_at").await?;
        let first = 30.0 * f64::from(1 << (attempt - 1));
        assert!(wait > first - 10.0 && wait <= first * 1.2, "try {} comes in {wait} s", attempt + 1);
        assert!(claim_anew(&world, &queue, "a", None, 1).await?.is_empty(), "backing off");
        world.age("activities", "5 minutes").await?;
        item = queue.claim(&Claim::by("a")).await?.items.pop().context("its next try has come")?;
        assert_eq!(item.attempts, attempt);
    }
    world.age("activities", "1 day").await?;
    assert!(claim_anew(&world, &queue, "a", None, 1).await?.is_empty(), "dead is dead");

    let letter = world.client.query_one("select original_activity_id::text, failure_reason, raw_data from activity_failures", &[]).await?;
    assert_eq!(letter.get::<_, String>(0), item.key);
    assert_eq!(letter.get::<_, String>(1), "no audio, try 3");
    assert_eq!(letter.get::<_, serde_json::Value>(2), activity(&world, &item.key).await?["raw_data"]);
    Ok(())
}

#[tokio::test]
async fn jitter_spreads_a_batch_within_its_bounds() -> Result<()> {
    let world = world().await?;
    let bounds = world
        .client
        .query_one(
            "select extract(epoch from min(w))::float8, extract(epoch from max(w))::float8, count(distinct w)
             from generate_series(1, 1000) as n, gleaner.backoff('30 seconds', '1 hour', 1, n::text) as w",
            &[],
        )
        .await?;
    let (least, most, different): (f64, f64, i64) = (bounds.get(0), bounds.get(1), bounds.get(2));
    assert!(least >= 30.0 && most <= 36.0, "{least} to {most}");
    assert!(least < 31.0 && most > 35.0 && different > 300, "{least} to {most}, {different} different: no jitter");
    assert_eq!(
        world
            .count("select count(*) from generate_series(1, 60) as n where gleaner.backoff('30 seconds', '1 hour', n, 'k') > '72 minutes'")
            .await?,
        0
    );
    Ok(())
}

#[tokio::test]
async fn what_may_not_be_retried_is_dead_at_once() -> Result<()> {
    let world = world().await?;
    let (queue, item) = held_activity(&world, "a", "sms").await?;
    queue.fail(&item.held(), &Failure::new("not a recording").category("BadInput").for_good()).await?;
    let row = activity(&world, &item.key).await?;
    assert_eq!((&row["processing_status"], &row["due_at"], &row["attempts"]), (&"failed".into(), &json!(null), &1.into()));
    assert_eq!(world.text("select failure_reason from activity_failures").await?.as_deref(), Some("not a recording"));
    Ok(())
}

#[tokio::test]
async fn automatic_retry_ends_a_day_after_creation() -> Result<()> {
    let world = world().await?;
    let queue = world.queue("activities").await?;
    for (age, status) in [(23.0 * 60.0, "backing off"), (24.0 * 60.0 + 1.0, "dead")] {
        let key = world.activity(None, "sms", age).await?;
        let item = claim_anew(&world, &queue, "a", None, 1).await?.pop().context("nothing to claim")?;
        assert_eq!(item.key, key);
        queue.fail(&item.held(), &Failure::new("no")).await?;
        let explained = queue.explain(&key, None).await?.context("explained")?;
        assert_eq!(explained["state"], status, "{age} minutes after creation: {explained}");
    }
    assert_eq!(world.count("select count(*) from activity_failures").await?, 1);
    Ok(())
}

/// The caller may know better than the declaration, for example when a provider sends `Retry-After`.
#[tokio::test]
async fn a_failure_may_name_its_own_next_try() -> Result<()> {
    let world = world().await?;
    let (queue, item) = held_job(&world, "a").await?;
    let mut failure = Failure::new("429").category("RateLimited");
    failure.retry_in = Some(Duration::from_secs(7200));
    queue.fail(&item.held(), &failure).await?;
    let wait = seconds_until(&world, "gleaner.jobs", &item.key, "due_at").await?;
    assert!((7100.0..=7200.0).contains(&wait), "{wait}");
    Ok(())
}

#[tokio::test]
async fn an_operators_retry_starts_from_zero() -> Result<()> {
    let world = world().await?;
    let (queue, item) = held_activity(&world, "a", "sms").await?;
    queue.fail(&item.held(), &Failure::new("no").for_good()).await?;
    assert_eq!(queue.requeue(&[&item.key]).await?[0].outcome, Outcome::Done);
    assert_eq!(queue.requeue(&[&item.key]).await?[0].outcome, Outcome::Already);
    let again = claim_anew(&world, &queue, "a", None, 1).await?.pop().context("due at once")?;
    assert_eq!((again.key.as_str(), again.attempts), (item.key.as_str(), 0));
    assert_eq!(world.count("select count(*) from gleaner.audit where act = 'requeue'").await?, 1);

    assert_eq!(queue.bury(&[&again.key], Some("spam")).await?[0].outcome, Outcome::Done);
    assert_eq!(queue.complete(&[Completion::new(again.held(), None)]).await?[0].outcome, Outcome::Lost);
    assert_eq!(world.count("select count(*) from activity_failures where failure_reason = 'spam'").await?, 1);
    Ok(())
}
