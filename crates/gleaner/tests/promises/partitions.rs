//! A partitioned table whose ids repeat across partitions: every act of a holder treats them as separate rows.

use anyhow::Result;

use crate::orders::{ORDERS, numbers, words};
use crate::world::{World, world};

async fn filled(rows: i64) -> Result<World> {
    let world = world().await?;
    world
        .run(
            "create table orders (id bigint, region text, status text not null default 'new', note text, ended timestamptz, primary key (id, region))
             partition by list (region);
             create table orders_n partition of orders for values in ('n');
             create table orders_s partition of orders for values in ('s')",
        )
        .await?;
    world.attach("orders", &format!("{ORDERS}\nfinished = 'ended'\nhold = '2 minutes'\nprogress = 'note'")).await?;
    world
        .run(&format!("insert into orders (id, region) select n, r from generate_series(1, {rows}) n, unnest('{{n,s}}'::text[]) r"))
        .await?;
    Ok(world)
}

/// The state of each row, by region and id.
async fn state(world: &World) -> Result<Vec<String>> {
    words(&world.client, "select region || id || status from orders order by 1").await
}

#[tokio::test]
async fn a_claim_returns_each_row_once_and_one_completion_ends_one() -> Result<()> {
    for limit in [1, 10] {
        let world = filled(2).await?;
        let mut claimed = Vec::new();
        for _ in 0..5 {
            claimed.extend(
                words(&world.client, &format!("select region || id || ' ' || lease from gleaner.claim_orders('a', {limit})")).await?,
            );
        }
        claimed.sort();
        let rows = words(&world.client, "select region || id || ' ' || lease from orders where status = 'busy' order by 1").await?;
        assert_eq!((claimed.len(), claimed), (4, rows), "{limit}");
        let done =
            words(&world.client, "select (gleaner.complete_orders(id, lease)).outcome from orders where region = 's' and id = 1").await?;
        assert_eq!(done, ["done"]);
        assert_eq!(state(&world).await?, ["n1busy", "n2busy", "s1done", "s2busy"], "{limit}");
    }
    Ok(())
}

#[tokio::test]
async fn prune_deletes_the_old_row_and_not_its_namesake_in_another_partition() -> Result<()> {
    let world = filled(2).await?;
    world
        .run(
            "begin; set local role gleaner_engine;
             update orders set status = 'done', due_at = null, ended = now() - interval '2 days' where region = 'n'; commit",
        )
        .await?;
    assert_eq!(numbers(&world.client, "select gleaner.prune_orders(1000, '1 day')::bigint").await?, [2]);
    assert_eq!(state(&world).await?, ["s1new", "s2new"]);
    Ok(())
}

#[tokio::test]
async fn a_row_that_rejects_its_claim_does_not_hide_its_namesake() -> Result<()> {
    let world = filled(1).await?;
    world
        .run("update orders set note = 'odd' where region = 'n'; alter table orders add constraint even check (note <> 'odd') not valid")
        .await?;
    assert_eq!(words(&world.client, "select region from gleaner.claim_orders('a', 10)").await?, ["s"]);
    assert_eq!(words(&world.client, "select key from gleaner.rejected_row").await?, ["(1,n)"]);
    Ok(())
}

/// The lease decides which of them is meant, and only that one changes.
#[tokio::test]
async fn every_act_of_a_holder_changes_the_row_whose_lease_it_shows() -> Result<()> {
    for region in ["n", "s"] {
        for (act, outcome, status) in [
            ("fail_orders(id, lease, 'no')", "done", "bad"),
            ("snooze_orders(id, lease, now() + interval '1 day')", "done", "new"),
            ("progress_orders(id, lease, 'half', p_hold => '20 minutes')", "done", "busy"),
            ("release_orders(array[id], array[lease])", "done", "new"),
            ("start_orders(array[id], array[lease])", "done", "busy"),
            ("complete_orders(id, lease)", "done", "done"),
            ("complete_orders(id, lease - 50)", "lost", "busy"),
        ] {
            let world = filled(1).await?;
            world.run("select gleaner.claim_orders('a', 10)").await?;
            let other = format!("select (o.*)::text from orders o where region <> '{region}'");
            let before = words(&world.client, &other).await?;
            let answered = words(&world.client, &format!("select (gleaner.{act}).outcome from orders where region = '{region}'")).await?;
            assert_eq!(answered, [outcome], "{region} {act}");
            assert_eq!(
                words(&world.client, &format!("select status from orders where region = '{region}'")).await?,
                [status],
                "{region} {act}"
            );
            assert_eq!(words(&world.client, &other).await?, before, "{region} {act}");
        }
    }
    Ok(())
}

/// The new lease of a released row must not equal that of the other row, which is still held.
#[tokio::test]
async fn a_lease_given_back_is_not_the_lease_of_its_namesake() -> Result<()> {
    let world = filled(1).await?;
    world.run("select gleaner.claim_orders('a', 10)").await?;
    for region in ["n", "s"] {
        world.run(&format!("select gleaner.fail_orders(id, lease, 'no') from orders where region = '{region}'")).await?;
        assert_eq!(numbers(&world.client, "select count(distinct lease) from orders").await?, [2]);
    }
    Ok(())
}
