//! Each tenant numbers its own rows: acts for one tenant change nothing on the other's row of the same number.

use anyhow::Result;

use crate::orders::{ORDERS, numbers, orders, words};
use crate::world::{World, world};

async fn shops() -> Result<World> {
    orders(
        "shop text, id bigint, note text, ended timestamptz, primary key (shop, id)",
        "tenant = 'shop'\nfinished = 'ended'\nhold = '2 minutes'\nretry = { attempts = 3 }",
    )
    .await
}

#[tokio::test]
async fn prune_deletes_what_is_old_of_one_tenant_and_not_the_others_rows_of_the_same_number() -> Result<()> {
    let world = shops().await?;
    world.run("insert into orders (shop, id) values ('A', 1), ('A', 2), ('B', 1), ('B', 2)").await?;
    assert_eq!(numbers(&world.client, "select id from gleaner.claim_orders('A', 'a', 2)").await?, [1, 2]);
    world
        .run(
            "select gleaner.complete_orders_many('A', array_agg(id), array_agg(lease)) from orders where shop = 'A';
             begin; set local role gleaner_engine; update orders set ended = now() - interval '2 days' where shop = 'A'; commit",
        )
        .await?;
    assert_eq!(numbers(&world.client, "select id from gleaner.claim_orders('B', 'b', 1)").await?, [1]);
    assert_eq!(numbers(&world.client, "select gleaner.prune_orders(1000, '1 day')::bigint").await?, [2]);
    assert_eq!(words(&world.client, "select shop || id || status from orders order by 1").await?, ["B1busy", "B2new"]);
    Ok(())
}

#[tokio::test]
async fn a_row_that_rejects_its_claim_is_noted_for_its_tenant_alone() -> Result<()> {
    let world = shops().await?;
    world
        .run(
            "insert into orders (shop, id, note) values ('A', 1, 'odd'), ('B', 1, null);
             alter table orders add constraint even check (note <> 'odd') not valid",
        )
        .await?;
    assert!(numbers(&world.client, "select id from gleaner.claim_orders('A', 'a', 2)").await?.is_empty());
    assert_eq!(words(&world.client, "select tenant || key from gleaner.rejected_row").await?, ["A1"]);
    assert_eq!(numbers(&world.client, "select id from gleaner.claim_orders('B', 'b', 2)").await?, [1]);
    Ok(())
}

/// Also when the table is attached, and existing rows get their times.
#[tokio::test]
async fn a_row_that_rejects_its_times_is_noted_for_its_tenant_alone() -> Result<()> {
    let world = world().await?;
    world
        .run(
            "create table orders (shop text, id bigint, status text not null default 'new', note text, primary key (shop, id));
             insert into orders (shop, id, note) values ('A', 1, 'odd'), ('B', 1, null), ('B', 2, null);
             alter table orders add constraint even check (note <> 'odd') not valid",
        )
        .await?;
    world.attach("orders", &format!("{ORDERS}\ntenant = 'shop'")).await?;
    assert_eq!(words(&world.client, "select tenant || key from gleaner.rejected_row").await?, ["A1"]);
    assert_eq!(numbers(&world.client, "select id from gleaner.claim_orders('B', 'b', 5)").await?, [1, 2]);
    Ok(())
}

#[tokio::test]
async fn acts_of_a_holder_change_the_row_of_its_tenant_alone() -> Result<()> {
    let world = shops().await?;
    world.run("insert into orders (shop, id) select s, n from unnest('{A,B}'::text[]) s, generate_series(1, 5) n").await?;
    for shop in ["A", "B"] {
        world.run(&format!("select gleaner.claim_orders('{shop}', 'a', 5)")).await?;
    }
    let before = words(&world.client, "select (o.*)::text from orders o where shop = 'B' order by id").await?;
    world
        .run(
            "select gleaner.complete_orders(shop, id, lease) from orders where shop = 'A' and id = 1;
             select gleaner.fail_orders(shop, id, lease, 'no') from orders where shop = 'A' and id = 2;
             select gleaner.snooze_orders(shop, id, lease, now() + interval '1 day') from orders where shop = 'A' and id = 3;
             select gleaner.release_orders(shop, array[id], array[lease]) from orders where shop = 'A' and id = 4;
             select gleaner.progress_orders(shop, id, lease, 'half', p_hold => '10 minutes') from orders where shop = 'A' and id = 5;
             select gleaner.cancel_orders('A', '{5}'); select gleaner.bury_orders('A', '{4}'); select gleaner.requeue_orders('A', '{1}')",
        )
        .await?;
    assert_eq!(words(&world.client, "select (o.*)::text from orders o where shop = 'B' order by id").await?, before);
    assert_eq!(words(&world.client, "select status from orders where shop = 'A' order by id").await?, ["new", "bad", "new", "bad", "off"]);
    Ok(())
}
