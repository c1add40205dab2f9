//! Many owners and many kinds: a claim reads a bounded part of them, and all are served eventually.

use std::collections::HashSet;

use anyhow::Result;

use crate::orders::{buffers, words};
use crate::world::{World, world};

/// Owners that share after an hour, each with one activity of each kind, half an hour old.
async fn owners(world: &World, count: i32, kinds: &str) -> Result<()> {
    world
        .run(&format!(
            "insert into sales (first_name, last_name, email, user_id, stale_threshold_minutes, allow_remote_processing)
             select 'p' || n, '', 'p' || n || '@example.com', gen_random_uuid(), 60, true from generate_series(1, {count}) n;
             insert into activities (sales_id, type, raw_data, created_at)
             select s.id, k, '{{}}', now() - interval '30 minutes' from sales s, unnest('{{{kinds}}}'::text[]) k"
        ))
        .await
}

#[tokio::test]
async fn a_lowered_threshold_is_found_among_more_than_two_thousand_owners_and_kinds() -> Result<()> {
    let world = world().await?;
    owners(&world, 1_100, "call,email").await?;
    let claim = "select s.first_name from gleaner.claim_activities('a', 10) as c join sales as s on s.id = c.sales_id order by 1";
    assert!(words(&world.connect().await?, claim).await?.is_empty());
    world.run("update sales set stale_threshold_minutes = 5 where first_name in ('p1', 'p550', 'p1100')").await?;
    let found = words(&world.connect().await?, claim).await?;
    assert_eq!(found, ["p1", "p1", "p1100", "p1100", "p550", "p550"]);
    Ok(())
}

/// The exact search needs one index descent for each owner.
#[tokio::test]
async fn an_empty_claim_among_many_owners_does_not_repeat_the_exact_search_at_once() -> Result<()> {
    let world = world().await?;
    owners(&world, 1_000, "call").await?;
    let session = world.connect().await?;
    let claim = "select id from gleaner.claim_activities('a', 10)";
    let exact = buffers(&session, claim).await?;
    // However slow the machine is: make the answer of the first search last.
    session
        .execute("select set_config('gleaner.cursor_activities_overdue', jsonb_set(current_setting('gleaner.cursor_activities_overdue')::jsonb, '{until}', '4e9')::text, false)", &[])
        .await?;
    let again = buffers(&session, claim).await?;
    assert!(exact > 1_000 && again * 5 < exact, "{exact}, then {again} buffers");
    Ok(())
}

#[tokio::test]
async fn five_thousand_kinds_cost_a_claim_a_bounded_search_and_all_are_served() -> Result<()> {
    let world = world().await?;
    world.run("insert into gleaner.jobs (kind) select 'kind' || n from generate_series(1, 5000) n; analyze gleaner.jobs").await?;
    for limit in [1, 100] {
        let claim = format!("select id from gleaner.claim_jobs('a', {limit})");
        let session = world.connect().await?;
        session.batch_execute("begin").await?;
        let cost = buffers(&session, &claim).await?;
        session.batch_execute("rollback").await?;
        assert!(cost < 12_000, "{cost} buffers for {limit}");
    }
    let mut kinds = HashSet::new();
    loop {
        let claimed = words(&world.client, "select kind from gleaner.claim_jobs('a', 500)").await?;
        if claimed.is_empty() {
            break;
        }
        kinds.extend(claimed);
    }
    assert_eq!(kinds.len(), 5_000);
    Ok(())
}
