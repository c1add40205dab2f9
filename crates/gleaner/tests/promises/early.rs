//! An early claim applies to rows that wait. Held rows stay held, and an owner's threshold does not change.

use anyhow::Result;

use crate::orders::{bare_orders, numbers, words};
use crate::world::{jobs, world};

#[tokio::test]
async fn an_early_claim_does_not_take_a_row_that_is_held() -> Result<()> {
    let world = bare_orders().await?;
    world.run("insert into orders default values").await?;
    assert_eq!(numbers(&world.client, "select id from gleaner.claim_orders('A')").await?, [1]);
    assert!(numbers(&world.client, "select id from gleaner.claim_orders('B', p_early => '3 minutes')").await?.is_empty());
    assert!(numbers(&world.client, "select id from gleaner.claim_orders('B', 10, p_early => '1 year')").await?.is_empty());
    // It is meant for rows that become due within the given time.
    world.run("insert into orders (due_at) values (now() + interval '1 minute')").await?;
    assert!(numbers(&world.client, "select id from gleaner.claim_orders('B', 10)").await?.is_empty());
    assert_eq!(numbers(&world.client, "select id from gleaner.claim_orders('B', 10, p_early => '3 minutes')").await?, [2]);
    Ok(())
}

#[tokio::test]
async fn an_early_claim_does_not_take_jobs_that_are_held_alone_or_together() -> Result<()> {
    let world = world().await?;
    let queue = world.queue("jobs").await?;
    queue.enqueue(&jobs("default", 101)).await?;
    assert_eq!(numbers(&world.client, "select id from gleaner.claim_jobs('A', 1)").await?.len(), 1);
    assert_eq!(numbers(&world.client, "select id from gleaner.claim_jobs('A', 100)").await?.len(), 100);
    for limit in [1, 200] {
        let sql = format!("select id from gleaner.claim_jobs('B', {limit}, p_early => '1 day')");
        assert!(numbers(&world.client, &sql).await?.is_empty(), "{limit}");
    }
    Ok(())
}

/// Otherwise the second daemon would send it too.
#[tokio::test]
async fn claim_due_actions_leaves_a_live_action_alone_in_the_last_seconds_of_its_lease() -> Result<()> {
    let world = world().await?;
    world.run("insert into scheduled_actions (prospect_id, scheduled_for) values ('p', now())").await?;
    assert_eq!(words(&world.client, "select prospect_id::text from claim_due_actions()").await?, ["p"]);
    world
        .run("begin; set local role gleaner_engine; update scheduled_actions set due_at = clock_timestamp() + interval '4 seconds'; commit")
        .await?;
    assert!(words(&world.client, "select prospect_id::text from claim_due_actions()").await?.is_empty());
    Ok(())
}

#[tokio::test]
async fn an_early_claim_neither_takes_anothers_fresh_row_nor_shortens_a_threshold() -> Result<()> {
    let world = world().await?;
    let (me, other) = (world.person("me", 5, true).await?, world.person("other", 60, true).await?);
    world.activity(Some(other), "call", 30.0).await?;
    let signed_in = world.signed_in(me, "laptop").await?;
    let claim = "select id::text from gleaner.claim_activities('a', 10, p_early => '1 day')";
    assert!(words(&signed_in, claim).await?.is_empty(), "of a signed-in user");
    assert!(words(&world.client, claim).await?.is_empty(), "of the service");
    Ok(())
}

/// A signed-in user gets no row before it is due, not even its own.
#[tokio::test]
async fn p_early_of_a_signed_in_user_is_ignored() -> Result<()> {
    let world = world().await?;
    let me = world.person("me", 5, true).await?;
    world.activity(Some(me), "call", 0.0).await?;
    world.run("begin; set local role gleaner_engine; update activities set due_at = now() + interval '1 hour'; commit").await?;
    let signed_in = world.signed_in(me, "laptop").await?;
    let claim = "select id::text from gleaner.claim_activities('a', p_early => '1 day')";
    assert!(words(&signed_in, claim).await?.is_empty());
    assert_eq!(words(&world.client, &claim.replace("'a'", &format!("'a', p_owner => {me}"))).await?.len(), 1, "of the service");
    Ok(())
}
