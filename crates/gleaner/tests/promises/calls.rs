//! How acts may be called: with omitted, repeated or null arguments, arrays of different lengths, and by drivers that send no types.

use anyhow::Result;
use tokio_postgres::types::Type;

use crate::hands::refused;
use crate::orders::{bare_orders, numbers, words};
use crate::world::{jobs, world};

#[tokio::test]
async fn a_kind_named_twice_returns_its_rows_once() -> Result<()> {
    let world = world().await?;
    world.queue("jobs").await?.enqueue(&jobs("x", 3)).await?;
    assert_eq!(numbers(&world.client, "select id from gleaner.claim_jobs('a', 10, p_kinds => '{x,x}')").await?, [1, 2, 3]);
    world.queue("jobs").await?.enqueue(&jobs("x", 100)).await?;
    assert_eq!(numbers(&world.client, "select id from gleaner.claim_jobs('a', 200, p_kinds => '{x,x}')").await?.len(), 100);
    world.activity(None, "call", 0.0).await?;
    assert_eq!(words(&world.client, "select id::text from gleaner.claim_activities('a', 10, p_kinds => '{call,call}')").await?.len(), 1);
    Ok(())
}

#[tokio::test]
async fn a_claim_whose_limit_is_null_takes_one_row() -> Result<()> {
    let world = bare_orders().await?;
    world.run("insert into orders select from generate_series(1, 3)").await?;
    assert_eq!(numbers(&world.client, "select id from gleaner.claim_orders('a', null)").await?, [1]);
    world.queue("jobs").await?.enqueue(&jobs("x", 100)).await?;
    assert_eq!(numbers(&world.client, "select id from gleaner.claim_jobs('a', null)").await?, [1]);
    Ok(())
}

#[tokio::test]
async fn one_lease_for_many_rows_is_refused() -> Result<()> {
    let world = bare_orders().await?;
    world.run("insert into orders select from generate_series(1, 3); insert into gleaner.jobs select from generate_series(1, 3)").await?;
    for queue in ["orders", "jobs"] {
        world.run(&format!("select gleaner.claim_{queue}('a', 3)")).await?;
        let table = if queue == "jobs" { "gleaner.jobs" } else { queue };
        let leases = format!("(select array[min(lease)] from {table})");
        for act in [format!("complete_{queue}_many"), format!("start_{queue}"), format!("release_{queue}")] {
            let sql = format!("select * from gleaner.{act}('{{1,2,3}}', {leases})");
            assert_eq!(refused(&world.client, &sql).await?, "GL002", "{sql}");
        }
        assert_eq!(world.count(&format!("select count(*) from {table} where lease > 0 and started = 0")).await?, 3, "{queue}");
    }
    Ok(())
}

#[tokio::test]
async fn a_signed_in_caller_does_not_claim_in_anothers_name() -> Result<()> {
    let world = world().await?;
    let (me, other) = (world.person("me", 5, true).await?, world.person("other", 5, true).await?);
    world.activity(None, "call", 0.0).await?;
    let sql = format!("select gleaner.claim_activities('a', p_holder => (select user_id::text from sales where id = {other}))");
    let mine = world.signed_in(me, "laptop").await?;
    assert_eq!(refused(&mine, &sql.replace(&format!("= {other}"), &format!("= {me}"))).await?, "42501", "not even in its own");
    assert_eq!(refused(&mine, &sql).await?, "42501");
    assert_eq!(world.count("select count(*) from activities where processing_status = 'raw'").await?, 1);
    world.run(&sql).await?;
    assert_eq!(
        world.count(&format!("select count(*) from activities where locked_by = (select user_id from sales where id = {other})")).await?,
        1
    );
    Ok(())
}

/// Many drivers send parameters without their types, and a call that matches two functions fails.
#[tokio::test]
async fn a_call_with_untyped_parameters_is_not_ambiguous() -> Result<()> {
    let world = bare_orders().await?;
    for (call, types) in [
        ("complete_jobs($1, $2)", vec![Type::INT8, Type::INT8]),
        ("complete_jobs($1, $2, $3)", vec![Type::INT8, Type::INT8, Type::JSONB]),
        ("complete_jobs_many($1, $2)", vec![Type::INT8_ARRAY, Type::INT8_ARRAY]),
        ("complete_orders($1, $2)", vec![Type::INT8, Type::INT8]),
        ("complete_activities($1, $2)", vec![Type::UUID, Type::INT8]),
        ("enqueue_jobs($1)", vec![Type::JSONB]),
    ] {
        let statement = world.client.prepare(&format!("select * from gleaner.{call}")).await?;
        assert_eq!(statement.params(), types, "{call}");
    }
    let twice = "select proname::text from pg_proc where pronamespace = 'gleaner'::regnamespace group by proname having count(*) > 1";
    assert_eq!(words(&world.client, twice).await?, Vec::<String>::new(), "one function for each name");
    Ok(())
}

/// A server with default settings JIT-compiles plans that it considers expensive. Compiling takes longer than any act.
#[tokio::test]
async fn every_act_is_immune_to_jit() -> Result<()> {
    let world = bare_orders().await?;
    let exposed = "select p.proname::text from pg_proc as p
                   where p.pronamespace = 'gleaner'::regnamespace and p.prosecdef and p.prorettype <> 'trigger'::regtype
                     and exists (select from gleaner.queue as q where p.proname ~ ('_' || q.name || '(_many|_matching)?$'))
                     and not coalesce(p.proconfig, '{}') @> '{jit=off}' order by 1";
    assert_eq!(words(&world.client, exposed).await?, Vec::<String>::new());
    // A trigger inside the act sees the settings that the act runs with.
    world
        .run(
            "set jit = on; set jit_above_cost = 0;
             create table seen (jit text);
             create function look() returns trigger language plpgsql as $$ begin insert into seen values (current_setting('jit')); return null; end $$;
             create trigger look after update on orders for each row execute function look();
             insert into orders default values;
             select gleaner.complete_orders(c.id, c.lease) from gleaner.claim_orders('a') as c",
        )
        .await?;
    assert_eq!(words(&world.client, "select jit from seen").await?, ["off", "off"]);
    Ok(())
}

#[tokio::test]
async fn progress_keeps_the_hold_the_claim_asked_for() -> Result<()> {
    use gleaner::{Claim, Progress};
    use std::time::Duration;
    let world = bare_orders().await?;
    world.run("insert into orders default values").await?;
    let queue = world.queue("orders").await?;
    let hour = Duration::from_secs(3600);
    let mut claim = Claim::by("a");
    claim.hold = Some(Duration::from_secs(1200));
    let held = queue.claim(&claim).await?.items[0].held();
    for hold in [Some(Duration::from_secs(1200)), None] {
        world.run("begin; set local role gleaner_engine; update orders set due_at = now() + interval '10 seconds'; commit").await?;
        queue.progress(&held, &Progress::stage("half").hold(hold)).await?;
        let minutes = world.count("select round(extract(epoch from due_at - now()) / 60)::bigint from orders").await?;
        assert_eq!(minutes, if hold.is_some() { 20 } else { 2 });
    }
    // Never beyond the deadline.
    queue.progress(&held, &Progress::stage("more").hold(Some(hour * 24))).await?;
    assert_eq!(world.count("select (deadline_at >= due_at)::int::bigint from orders").await?, 1);
    Ok(())
}
