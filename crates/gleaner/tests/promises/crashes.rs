//! No sweep is needed: rows that a dead agent held become due when their lease expires.

use anyhow::{Context as _, Result};
use gleaner::Claim;

use crate::hands::{claim_anew, claimable_by, held_job, row};
use crate::world::{jobs, keys, world};

/// Inserts one row into each queue; the activity has no owner.
const ONE_OF_EACH: &str = "
    insert into activities (type, raw_data) values ('sms', '{}');
    insert into gleaner.jobs default values;
    insert into execution_jobs (config) values ('{}');
    insert into scheduled_actions (prospect_id, scheduled_for) values ('p', now());
    with w as (insert into workspaces (name) values ('w') returning id),
         b as (insert into baskets (workspace_id) select id from w returning id)
    insert into raw_dumps (basket_id, body_md) select id, 'text' from b;";

#[tokio::test]
async fn a_crashed_holders_row_comes_back_by_itself_in_every_queue() -> Result<()> {
    let world = world().await?;
    world.run(ONE_OF_EACH).await?;
    for (name, hold) in [("activities", 5), ("jobs", 5), ("dumps", 5), ("followups", 5), ("runs", 30)] {
        let queue = world.queue(name).await?;
        let first = queue.claim(&Claim::by("dies").started()).await?.items.pop().with_context(|| format!("nothing in {name}"))?;
        world.age(name, &format!("{} seconds", hold * 60 - 20)).await?;
        assert!(claim_anew(&world, &queue, "heir", None, 1).await?.is_empty(), "{name}: the lease still stands");
        world.age(name, "21 seconds").await?;
        let again =
            claim_anew(&world, &queue, "heir", None, 1).await?.pop().with_context(|| format!("{name}: the row did not come back"))?;
        assert_eq!(again.key, first.key, "{name}");
        assert!(again.lease > first.lease, "{name}");
    }
    Ok(())
}

/// The connection is lost in the middle of a claim's transaction: it is as if the claim had never been made.
#[tokio::test]
async fn a_claim_whose_transaction_dies_holds_nothing() -> Result<()> {
    let world = world().await?;
    let queue = world.queue("jobs").await?;
    queue.enqueue(&jobs("default", 3)).await?;
    let mut client = world.connect().await?;
    let pid: i32 = client.query_one("select pg_backend_pid()", &[]).await?.get(0);
    let tx = client.transaction().await?;
    assert_eq!(queue.acts().claim(&tx, &Claim::by("dies").limit(3)).await?.items.len(), 3);
    assert!(claim_anew(&world, &queue, "b", None, 3).await?.is_empty(), "locked while that transaction lives");
    world.run(&format!("select pg_terminate_backend({pid}, 5000)")).await?;
    assert_eq!(claim_anew(&world, &queue, "b", None, 3).await?.len(), 3);
    Ok(())
}

/// A row that was claimed but never started only waited: nothing is counted against it. A row that comes back repeatedly is
/// claimed alone in the end, and from then on counts as started.
#[tokio::test]
async fn a_parked_row_that_comes_back_has_lost_nothing() -> Result<()> {
    let world = world().await?;
    let (queue, item) = held_job(&world, "dies").await?;
    for lost in [0, 0, 1] {
        world.age("jobs", "10 minutes").await?;
        assert_eq!(keys(&claim_anew(&world, &queue, "dies too", None, 1).await?), [item.key.as_str()]);
        let row = row(&world, "gleaner.jobs", &item.key).await?;
        assert_eq!((&row["lost"], &row["attempts"]), (&lost.into(), &0.into()));
    }
    Ok(())
}

/// What a sweep does happens without it. Calling it changes only the status that people see.
#[tokio::test]
async fn recover_only_shows_what_a_claim_would_take() -> Result<()> {
    let world = world().await?;
    let (queue, item) = held_job(&world, "dies").await?;
    assert_eq!(queue.recover().await?, 0, "the lease still stands");
    world.age("jobs", "6 minutes").await?;
    assert_eq!(claimable_by(&world, &queue, None).await?, [item.key.as_str()]);
    assert_eq!(queue.recover().await?, 1);
    assert_eq!(row(&world, "gleaner.jobs", &item.key).await?["status"], "ready");
    assert_eq!(keys(&claim_anew(&world, &queue, "heir", None, 1).await?), [item.key]);
    Ok(())
}
