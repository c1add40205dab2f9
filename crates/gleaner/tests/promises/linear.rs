//! What acts cost in a large table and for many rows, in shared buffers: a small multiple of the rows they are about.

use anyhow::Result;

use crate::orders::{bare_orders, buffers, numbers, words};
use crate::world::{World, jobs, world};

/// Jobs that ended long ago, written as the engine's role, so that no trigger takes them for an act.
async fn finished_jobs(world: &World, count: i64) -> Result<()> {
    world
        .run(&format!(
            "begin; set local synchronous_commit = off; set local role gleaner_engine;
             insert into gleaner.jobs (status, due_at, lease, finished_at) select 'done', null, 5, now() from generate_series(1, {count}); commit"
        ))
        .await
}

#[tokio::test]
async fn an_act_about_one_row_of_a_batch_does_not_read_the_whole_table() -> Result<()> {
    let world = world().await?;
    finished_jobs(&world, 100_000).await?;
    world.queue("jobs").await?.enqueue(&jobs("default", 200)).await?;
    world.run("create table held as select id, lease from gleaner.claim_jobs('a', 200)").await?;
    assert_eq!(world.count("select count(*) from held where lease < 0").await?, 200);
    let mut held = numbers(&world.client, "select id from held order by id").await?.into_iter();
    let lease = world.count("select min(lease) from held").await?;
    for act in [
        "fail_jobs(ID, LEASE, 'no')",
        "progress_jobs(ID, LEASE, 'half')",
        "snooze_jobs(ID, LEASE, now() + interval '1 day')",
        "release_jobs(array[ID], array[LEASE])",
        "cancel_jobs(array[ID])",
        "bury_jobs(array[ID])",
        "requeue_jobs(array[ID])",
        "start_jobs(array[ID], array[LEASE])",
        "complete_jobs(ID, LEASE)",
    ] {
        // The first call of a session reads the catalogue as well.
        for warm in [false, true] {
            let id = held.next().unwrap_or_default();
            let sql = format!("select * from gleaner.{}", act.replace("ID", &id.to_string()).replace("LEASE", &format!("{lease}::bigint")));
            let cost = buffers(&world.client, &sql).await?;
            assert!(!warm || cost < 300, "{cost} buffers: {sql}");
        }
    }
    Ok(())
}

/// The cost of a call whose rows are held one by one, at two sizes.
async fn costs(world: &World, before: &str, call: &str) -> Result<(i64, i64)> {
    let mut costs = Vec::new();
    for rows in [100, 1_000, 10_000] {
        world
            .run(&format!(
                "truncate orders; insert into orders select from generate_series(1, {rows}); drop table if exists held;
                 create temp table held as select id, lease from gleaner.claim_orders('a', {rows}); {before}"
            ))
            .await?;
        let sql = call.replace("HELD", "(select array_agg(id order by id) as ids, array_agg(lease order by id) as leases from held) as h");
        costs.push(buffers(&world.client, &sql).await?);
    }
    Ok((costs[1], costs[2]))
}

const COMPLETE: &str = "select m.outcome from HELD, gleaner.complete_orders_many(h.ids, h.leases) as m";

#[tokio::test]
async fn a_release_of_ten_thousand_rows_costs_ten_times_that_of_a_thousand() -> Result<()> {
    let world = bare_orders().await?;
    let (thousand, ten) = costs(&world, "", "select r.outcome from HELD, gleaner.release_orders(h.ids, h.leases) as r").await?;
    assert!(ten < 15 * thousand, "{thousand} and {ten} buffers");
    assert_eq!(world.count("select count(*) from orders where status = 'new'").await?, 10_000);
    Ok(())
}

#[tokio::test]
async fn a_completion_of_ten_thousand_rows_stays_linear_when_one_was_cancelled() -> Result<()> {
    let world = bare_orders().await?;
    let (_, whole) = costs(&world, "", COMPLETE).await?;
    let (thousand, ten) =
        costs(&world, "select gleaner.cancel_orders(array(select id from held order by id offset 7 limit 1))", COMPLETE).await?;
    assert!(ten < 15 * thousand, "{thousand} and {ten} buffers");
    assert!(ten * 2 < whole * 3, "{ten} buffers with one cancelled row, {whole} without");
    assert_eq!(words(&world.client, "select status || count(*) from orders group by status order by 1").await?, ["done9999", "off1"]);
    Ok(())
}

#[tokio::test]
async fn a_release_and_a_completion_of_a_batch_lease_stay_linear() -> Result<()> {
    let mut costs = Vec::new();
    for rows in [1_000, 10_000] {
        let world = world().await?;
        world.run(&format!("insert into gleaner.jobs select from generate_series(1, 2 * {rows})")).await?;
        for call in ["release_jobs", "complete_jobs_many"] {
            world
                .run(&format!(
                    "drop table if exists held; create temp table held as select id, lease from gleaner.claim_jobs('a', {rows});
                     select gleaner.cancel_jobs(array(select id from held order by id offset 7 limit 1))"
                ))
                .await?;
            let sql = format!(
                "select r.outcome from (select array_agg(id order by id) as ids, array_agg(lease order by id) as leases from held) as h,
                        gleaner.{call}(h.ids, h.leases) as r"
            );
            costs.push(buffers(&world.client, &sql).await?);
        }
        assert_eq!(world.count("select count(*) from gleaner.jobs where status = 'done'").await?, rows - 1);
    }
    assert!(costs[2] < 15 * costs[0] && costs[3] < 15 * costs[1], "{costs:?}");
    Ok(())
}

/// Each record lists its keys one by one: every second row, then every second of the rest.
#[tokio::test]
async fn a_hundred_fragmented_batch_leases_keep_a_claim_of_one_row_cheap() -> Result<()> {
    let world = world().await?;
    world
        .run(
            "insert into gleaner.jobs (kind) select 'k' || n % 2 from generate_series(1, 13000) n;
             select count(*) from generate_series(1, 100) n cross join lateral gleaner.claim_jobs('a' || n, 64, p_kinds => '{k0}')",
        )
        .await?;
    assert_eq!(world.count("select count(*) from gleaner.batch_lease").await?, 100);
    let claim = "select id from gleaner.claim_jobs('b', 1, p_kinds => '{k1}')";
    buffers(&world.client, claim).await?;
    let cost = buffers(&world.client, claim).await?;
    assert!(cost < 1_000, "{cost} buffers for a row of another kind");
    // After them, in the same lane.
    let claim = "select id from gleaner.claim_jobs('b', 1, p_kinds => '{k0}')";
    for _ in 0..3 {
        buffers(&world.client, claim).await?;
    }
    let cost = buffers(&world.client, claim).await?;
    assert!(cost < 1_000, "{cost} buffers for a row behind those that are held");
    Ok(())
}
