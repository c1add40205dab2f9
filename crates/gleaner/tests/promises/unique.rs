//! Unique keys: at most one waiting row per key; a running row does not block a new one.

use anyhow::{Context as _, Result};
use futures_util::future::try_join_all;
use gleaner::queue::OnDuplicate;
use gleaner::{Completion, Failure, Outcome, Queue};
use serde_json::{Value, json};

use crate::hands::{claim_anew, row};
use crate::world::{World, world};

fn job(n: i32) -> Vec<Value> {
    vec![json!({"unique_key": "sync/42", "payload": {"n": n}})]
}

async fn replace(world: &World, queue: &Queue, n: i32) -> Result<gleaner::queue::Enqueued> {
    Ok(queue.acts().enqueue(&world.client, &job(n), OnDuplicate::Replace).await?.remove(0))
}

#[tokio::test]
async fn skip_returns_the_row_that_stands() -> Result<()> {
    let world = world().await?;
    let queue = world.queue("jobs").await?;
    let first = queue.enqueue(&job(1)).await?.remove(0);
    let second = queue.enqueue(&job(2)).await?.remove(0);
    assert_eq!((second.key.as_str(), second.outcome.as_str()), (first.key.as_str(), "standing"));
    assert_eq!(row(&world, "gleaner.jobs", &first.key).await?["payload"], json!({"n": 1}));
    assert_eq!(world.count("select count(*) from gleaner.jobs").await?, 1);
    Ok(())
}

#[tokio::test]
async fn replace_gives_the_waiting_row_the_new_values() -> Result<()> {
    let world = world().await?;
    let queue = world.queue("jobs").await?;
    let first = queue.enqueue(&job(1)).await?.remove(0);
    let second = replace(&world, &queue, 2).await?;
    assert_eq!((second.key.as_str(), second.outcome.as_str()), (first.key.as_str(), "replaced"));
    assert_eq!(row(&world, "gleaner.jobs", &first.key).await?["payload"], json!({"n": 2}));
    Ok(())
}

#[tokio::test]
async fn racing_writers_of_one_key_leave_one_row() -> Result<()> {
    let world = world().await?;
    let queue = world.queue("jobs").await?;
    let items = job(1);
    let put = try_join_all((0..40).map(|_| queue.enqueue(&items))).await?;
    assert_eq!(world.count("select count(*) from gleaner.jobs").await?, 1);
    assert_eq!(put.iter().filter(|p| p[0].outcome == "enqueued").count(), 1);
    assert!(put.iter().all(|p| p[0].key == put[0][0].key), "every writer learns which row stands");
    Ok(())
}

#[tokio::test]
async fn a_running_row_neither_blocks_a_newer_one_nor_is_replaced() -> Result<()> {
    let world = world().await?;
    let queue = world.queue("jobs").await?;
    queue.enqueue(&job(1)).await?;
    let running = claim_anew(&world, &queue, "a", None, 1).await?.pop().context("due")?;
    let newer = queue.enqueue(&job(2)).await?.remove(0);
    assert_eq!(newer.outcome, "enqueued");
    assert_ne!(newer.key, running.key);
    assert_eq!(replace(&world, &queue, 3).await?.key, newer.key);
    assert_eq!(row(&world, "gleaner.jobs", &running.key).await?["payload"], json!({"n": 1}));
    assert_eq!(queue.complete(&[Completion::new(running.held(), None)]).await?[0].outcome, Outcome::Done);
    Ok(())
}

/// The old row goes back to waiting and finds the new one: it ends as superseded, and its holder gets no error.
#[tokio::test]
async fn a_returning_twin_is_superseded() -> Result<()> {
    for act in ["fail", "release", "snooze", "recover", "requeue"] {
        let world = world().await?;
        let queue = world.queue("jobs").await?;
        queue.enqueue(&job(1)).await?;
        let old = claim_anew(&world, &queue, "a", None, 1).await?.pop().context("due")?;
        let newer = queue.enqueue(&job(2)).await?.remove(0);
        match act {
            "fail" => {
                let answer = queue.fail(&old.held(), &Failure::new("no")).await?;
                assert_eq!((answer.outcome, answer.status.as_deref()), (Outcome::Done, Some("cancelled")));
                assert_eq!(queue.fail(&old.held(), &Failure::new("no")).await?.outcome, Outcome::Already);
            }
            "release" => assert_eq!(queue.release(&[old.held()]).await?[0].outcome, Outcome::Done),
            "snooze" => {
                assert_eq!(queue.snooze(&old.held(), std::time::Duration::from_secs(1)).await?.outcome, Outcome::Done);
            }
            "requeue" => assert_eq!(queue.requeue(&[&old.key]).await?[0].status.as_deref(), Some("cancelled")),
            _ => {
                world.age("jobs", "10 minutes").await?;
                assert_eq!(queue.recover().await?, 1);
            }
        }
        let row = row(&world, "gleaner.jobs", &old.key).await?;
        assert_eq!(row["status"], "cancelled", "{act}");
        assert_eq!(row["error"]["type"], "Superseded", "{act}");
        let left = claim_anew(&world, &queue, "b", None, 5).await?;
        assert_eq!(crate::world::keys(&left), [newer.key], "{act}");
    }
    Ok(())
}

#[tokio::test]
async fn requeue_of_a_finished_row_obeys_the_key() -> Result<()> {
    let world = world().await?;
    let queue = world.queue("jobs").await?;
    queue.enqueue(&job(1)).await?;
    let old = claim_anew(&world, &queue, "a", None, 1).await?.pop().context("due")?;
    queue.complete(&[Completion::new(old.held(), None)]).await?;
    queue.enqueue(&job(2)).await?;
    let answer = &queue.requeue(&[&old.key]).await?[0];
    assert_eq!((answer.outcome, answer.status.as_deref()), (Outcome::Done, Some("cancelled")));
    assert_eq!(world.count("select count(*) from gleaner.jobs where status = 'ready'").await?, 1);
    Ok(())
}

/// A dead row is not waiting: it does not block a new one.
#[tokio::test]
async fn a_dead_row_does_not_block_its_key() -> Result<()> {
    let world = world().await?;
    let queue = world.queue("jobs").await?;
    queue.enqueue(&job(1)).await?;
    let dead = claim_anew(&world, &queue, "a", None, 1).await?.pop().context("due")?;
    queue.fail(&dead.held(), &Failure::new("no").for_good()).await?;
    assert_eq!(queue.enqueue(&job(2)).await?[0].outcome, "enqueued");
    Ok(())
}
