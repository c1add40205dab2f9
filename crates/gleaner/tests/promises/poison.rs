//! Rows that crash their agents: counted separately from failures, and buried by the claim itself.

use anyhow::{Context as _, Result};
use gleaner::{Claim, Completion, Outcome, Progress};
use serde_json::json;

use crate::hands::{activity, claim_anew, row};
use crate::world::{jobs, keys, world};

#[tokio::test]
async fn lost_leases_are_counted_apart_from_failures_and_a_poison_pill_ends_in_dead_letters() -> Result<()> {
    let world = world().await?;
    let key = world.activity(None, "call", 0.0).await?;
    world.run("update activities set metadata = '{\"from\": \"+14158675309\"}'").await?;
    let queue = world.queue("activities").await?;
    for crash in 0..3 {
        let item = queue.claim(&Claim::by(format!("victim {crash}")).started()).await?.items.pop().context("handed out")?;
        let row = activity(&world, &item.key).await?;
        assert_eq!((&row["lost"], &row["attempts"]), (&crash.into(), &0.into()));
        if crash > 0 {
            assert_eq!(row["metadata"]["recovery_count"], crash);
        }
        world.age("activities", "6 minutes").await?;
    }
    // No sweep has run. The fourth claim buries it instead, and goes on to the next rows.
    let next = world.activity(None, "sms", 0.0).await?;
    assert_eq!(keys(&claim_anew(&world, &queue, "survivor", None, 1).await?), [next]);
    let row = activity(&world, &key).await?;
    assert_eq!((&row["processing_status"], &row["due_at"]), (&"failed".into(), &json!(null)));
    assert_eq!((&row["lost"], &row["attempts"]), (&3.into(), &0.into()), "no failure was ever told");
    assert_eq!(row["metadata"]["recovery_count"], 3);
    assert_eq!(row["metadata"]["error"]["type"], "Poison");
    assert_eq!(row["metadata"]["from"], "+14158675309");
    let letter = world.text("select failure_reason from activity_failures").await?;
    assert_eq!(letter.as_deref(), Some("lost 3 leases"));
    Ok(())
}

/// An agent prefetches five rows and one of them crashes it, repeatedly: the other four are worked on, and nothing is counted
/// against them.
#[tokio::test]
async fn a_crash_loop_with_prefetch_buries_only_the_guilty_row() -> Result<()> {
    for guilty_position in [0, 2, 4] {
        let world = world().await?;
        let queue = world.queue("jobs").await?;
        let all: Vec<String> = queue.enqueue(&jobs("default", 5)).await?.into_iter().map(|e| e.key).collect();
        let guilty = &all[guilty_position];
        for life in 0.. {
            assert!(life < 40, "the loop does not end");
            let batch = claim_anew(&world, &queue, &format!("life {life}"), None, 5).await?;
            if batch.is_empty() {
                if world.count("select count(*) from gleaner.jobs where status = 'running'").await? == 0 {
                    break;
                }
                world.age("jobs", "6 minutes").await?;
                continue;
            }
            for item in &batch {
                queue.start(&[item.held()]).await?;
                if item.key == *guilty {
                    // The agent has crashed while it also held the other rows.
                    world.age("jobs", "6 minutes").await?;
                    break;
                }
                assert_eq!(queue.complete(&[Completion::new(item.held(), None)]).await?[0].outcome, Outcome::Done);
            }
        }
        for key in &all {
            let row = row(&world, "gleaner.jobs", key).await?;
            if key == guilty {
                assert_eq!((&row["status"], &row["lost"]), (&"failed".into(), &3.into()));
            } else {
                assert_eq!((&row["status"], &row["lost"]), (&"done".into(), &0.into()), "an innocent row was punished");
            }
        }
    }
    Ok(())
}

#[tokio::test]
async fn a_row_that_lost_a_lease_travels_alone() -> Result<()> {
    let world = world().await?;
    let queue = world.queue("jobs").await?;
    let keys_in: Vec<String> = queue.enqueue(&jobs("default", 1)).await?.into_iter().map(|e| e.key).collect();
    queue.claim(&Claim::by("dies").started()).await?;
    world.age("jobs", "10 minutes").await?;
    queue.enqueue(&jobs("default", 4)).await?;
    assert_eq!(keys(&claim_anew(&world, &queue, "next", None, 5).await?), keys_in);
    assert_eq!(claim_anew(&world, &queue, "next", None, 5).await?.len(), 4, "and the rest together");
    Ok(())
}

/// Follow-ups are sent once or not at all. Before the sending step a lost holder costs nothing.
#[tokio::test]
async fn a_follow_up_lost_before_its_sending_step_is_tried_again() -> Result<()> {
    let world = world().await?;
    world.run("insert into scheduled_actions (prospect_id, scheduled_for) values ('p', now())").await?;
    let queue = world.queue("followups").await?;
    let first = queue.claim(&Claim::by("dies").started()).await?.items.pop().context("due")?;
    world.age("followups", "10 minutes").await?;
    let again = claim_anew(&world, &queue, "heir", None, 1).await?.pop().context("it was not sent: try again")?;
    assert_eq!(again.key, first.key);
    Ok(())
}

/// A lease renewal says nothing about the work: a handler that merely runs long has not started to send.
#[tokio::test]
async fn a_bare_sign_of_life_does_not_begin_the_sending() -> Result<()> {
    let world = world().await?;
    world.run("insert into scheduled_actions (prospect_id, scheduled_for) values ('p', now())").await?;
    let queue = world.queue("followups").await?;
    let first = queue.claim(&Claim::by("dies").started()).await?.items.pop().context("due")?;
    world.age("followups", "4 minutes").await?;
    assert_eq!(queue.progress(&first.held(), &Progress::default()).await?.0.outcome, Outcome::Done);
    world.age("followups", "10 minutes").await?;
    let again = claim_anew(&world, &queue, "heir", None, 1).await?.pop().context("it was not sent: try again")?;
    assert_eq!(again.key, first.key);
    Ok(())
}

/// After the sending step it is unknown whether the message was sent: a person must check, and no agent ever runs it again.
#[tokio::test]
async fn a_follow_up_lost_after_its_sending_step_is_never_run_again() -> Result<()> {
    for sweep in [false, true] {
        let world = world().await?;
        world.run("insert into scheduled_actions (prospect_id, scheduled_for) values ('p', now())").await?;
        let queue = world.queue("followups").await?;
        let item = queue.claim(&Claim::by("dies").started()).await?.items.pop().context("due")?;
        assert_eq!(queue.progress(&item.held(), &Progress::stage("sending")).await?.0.outcome, Outcome::Done);
        world.age("followups", "20 minutes").await?;
        if sweep {
            world.run("select reset_stale_processing(0)").await?;
        }
        assert!(claim_anew(&world, &queue, "heir", None, 10).await?.is_empty());
        world.age("followups", "1 day").await?;
        assert!(claim_anew(&world, &queue, "heir", None, 10).await?.is_empty());
        let row = row(&world, "scheduled_actions", &item.key).await?;
        assert_eq!((&row["status"], &row["due_at"]), (&"failed".into(), &json!(null)));
        assert!(row["error_message"].as_str().is_some_and(|m| m.starts_with("outcome unknown")), "{}", row["error_message"]);
        // The agent that did the sending wakes up: it lost the row, and its completion is refused.
        assert_eq!(queue.complete(&[Completion::new(item.held(), None)]).await?[0].outcome, Outcome::Lost);
    }
    Ok(())
}
