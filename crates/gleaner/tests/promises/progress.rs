//! Slow work reports progress and keeps its row, up to a hard deadline.

use anyhow::{Context as _, Result};
use gleaner::{Claim, Completion, Outcome, Progress};
use serde_json::json;

use crate::hands::{claim_anew, held_activity, held_job, row, seconds_until};
use crate::world::{World, world};

/// The version that PostgreSQL changes with every update of a row, even to the same values.
async fn version(world: &World, table: &str, key: &str) -> Result<Option<String>> {
    world.text(&format!("select xmin::text || ' ' || ctid::text from {table} where id::text = '{key}'")).await
}

#[tokio::test]
async fn progress_keeps_slow_work_from_being_stolen() -> Result<()> {
    let world = world().await?;
    let (queue, item) = held_activity(&world, "slow", "call").await?;
    // A call may take two hours; each step is just short of the five minutes that a claim lasts without progress.
    for step in 0..24 {
        world.age("activities", "280 seconds").await?;
        let (answer, left) = queue.progress(&item.held(), &Progress::stage("listening").percent(f64::from(step))).await?;
        assert_eq!(answer.outcome, Outcome::Done, "step {step}");
        assert!(left.as_secs() >= 290, "step {step}: only {left:?} left");
        assert!(claim_anew(&world, &queue, "thief", None, 1).await?.is_empty(), "stolen in step {step}");
    }
    let done = queue.complete(&[Completion::new(item.held(), None)]).await?;
    assert_eq!(done[0].outcome, Outcome::Done);
    Ok(())
}

async fn deadline_ends(kind: &str, minutes: i32) -> Result<()> {
    let world = world().await?;
    let (queue, item) = held_activity(&world, "endless", kind).await?;
    assert!(item.deadline_in.as_secs().abs_diff(minutes as u64 * 60) <= 5, "{kind}: {:?}", item.deadline_in);
    for _ in 0..(minutes / 4 - 1) {
        world.age("activities", "4 minutes").await?;
        queue.progress(&item.held(), &Progress::default()).await?;
        assert!(claim_anew(&world, &queue, "thief", None, 1).await?.is_empty(), "{kind}: stolen before its deadline");
    }
    // Less than eight minutes are left, and progress does not extend that.
    let left = seconds_until(&world, "activities", &item.key, "deadline_at").await?;
    world.age("activities", &format!("{} seconds", left - 30.0)).await?;
    let (answer, lease) = queue.progress(&item.held(), &Progress::stage("still busy")).await?;
    assert_eq!(answer.outcome, Outcome::Done);
    assert!(lease.as_secs() <= 30, "{kind}: extended to {lease:?} with 30 seconds to the deadline");
    world.age("activities", "31 seconds").await?;
    assert!(queue.progress(&item.held(), &Progress::stage("even now")).await?.1.is_zero());
    let heir = claim_anew(&world, &queue, "heir", None, 1).await?.pop().with_context(|| format!("{kind}: the deadline ended nothing"))?;
    assert_eq!(heir.key, item.key);
    assert_eq!(queue.progress(&item.held(), &Progress::default()).await?.0.outcome, Outcome::Lost);
    Ok(())
}

#[tokio::test]
async fn the_hard_deadline_ends_a_call_after_two_hours() -> Result<()> {
    deadline_ends("call", 120).await
}

#[tokio::test]
async fn the_hard_deadline_ends_other_kinds_after_thirty_minutes() -> Result<()> {
    deadline_ends("sms", 30).await
}

#[tokio::test]
async fn progress_that_changes_nothing_writes_nothing() -> Result<()> {
    let world = world().await?;
    for (table, (queue, item)) in
        [("activities", held_activity(&world, "a", "call").await?), ("gleaner.jobs", held_job(&world, "a").await?)]
    {
        let partial = json!({"transcript": "hello"});
        queue.progress(&item.held(), &Progress::stage("transcribe").percent(40.0).partial(partial.clone())).await?;
        let before = version(&world, table, &item.key).await?;
        for same in [Progress::default(), Progress::stage("transcribe"), Progress::stage("transcribe").percent(40.0).partial(partial)] {
            assert_eq!(queue.progress(&item.held(), &same).await?.0.outcome, Outcome::Done);
            assert_eq!(version(&world, table, &item.key).await?, before, "{table}: {same:?}");
        }
        queue.progress(&item.held(), &Progress::stage("transcribe").percent(41.0)).await?;
        assert_ne!(version(&world, table, &item.key).await?, before, "{table}");
    }
    Ok(())
}

/// Finished stages are checkpoints: the next agent finds them and resumes after them.
#[tokio::test]
async fn partial_results_survive_their_author() -> Result<()> {
    let world = world().await?;
    let (queue, first) = held_activity(&world, "first", "call").await?;
    queue.progress(&first.held(), &Progress::stage("transcribe").percent(50.0).partial(json!({"transcript": "hello"}))).await?;
    world.age("activities", "10 minutes").await?;
    let second = claim_anew(&world, &queue, "second", None, 1).await?.pop().context("the row did not come back")?;
    assert_eq!(second.partial, Some(json!({"transcript": "hello"})));
    queue.complete(&[Completion::new(second.held(), Some(json!({"summary": "a greeting"})))]).await?;
    let row = row(&world, "activities", &first.key).await?;
    assert_eq!(row["processed_data"], json!({"transcript": "hello", "summary": "a greeting"}));
    assert_eq!(row["progress"]["stage"], "transcribe");
    Ok(())
}

/// A holder that asked for a longer hold than usual does not lose part of it by reporting progress.
#[tokio::test]
async fn progress_never_shortens_a_lease() -> Result<()> {
    let world = world().await?;
    let queue = world.queue("jobs").await?;
    queue.enqueue(&crate::world::jobs("default", 1)).await?;
    let mut claim = Claim::by("a");
    claim.hold = Some(std::time::Duration::from_secs(1800));
    let item = queue.claim(&claim).await?.items.pop().context("nothing to claim")?;
    let (_, left) = queue.progress(&item.held(), &Progress::stage("x")).await?;
    assert!(left.as_secs() >= 1790, "{left:?}");
    Ok(())
}
