//! What one caller may take from the others.

use std::time::Duration;

use anyhow::{Context as _, Result};
use serde_json::json;

use crate::rest::world::{World, world, world_with};

/// A function that waits for a lock of the test. Returns how many calls wait for it.
const WAITING: &str = "select count(*)::text from pg_locks where locktype = 'advisory' and not granted and objid = 11
    and database = (select oid from pg_database where datname = current_database())";

async fn with_slow_function() -> Result<World> {
    let world = world().await?;
    world
        .run(
            "create function burn() returns int language plpgsql as $$ begin perform pg_advisory_xact_lock(11); return 1; end $$;
        grant execute on function burn() to anon, authenticated; select pg_advisory_lock(11)",
        )
        .await?;
    Ok(world)
}

async fn until_waiting(world: &World, count: &str) -> Result<()> {
    let reached = async {
        while world.text(WAITING).await?.as_deref() != Some(count) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        anyhow::Ok(())
    };
    tokio::time::timeout(Duration::from_secs(20), reached).await.with_context(|| format!("{count} calls wait"))?
}

/// Eight connections: anonymous callers have two of them together, one person has four.
#[tokio::test]
async fn callers_who_burn_time_leave_connections_to_others() -> Result<()> {
    let world = with_slow_function().await?;
    let token = world.token("00000000-0000-0000-0000-000000000001");
    let other = world.token("00000000-0000-0000-0000-000000000002");
    let anonymous = futures_util::future::join_all((0..10).map(|_| world.post("/rpc/burn", json!({})).anon().send()));
    let person = futures_util::future::join_all((0..10).map(|_| world.post("/rpc/burn", json!({})).signed_in(&token).send()));
    let checks = async {
        until_waiting(&world, "6").await?;
        // Whoever comes now is answered, although fourteen calls wait.
        world.get("/sales?select=id").expect(200).await?;
        world.get("/sales?select=id").signed_in(&other).expect(200).await?;
        assert_eq!(world.text(WAITING).await?.as_deref(), Some("6"), "no more than their shares");
        world.run("select pg_advisory_unlock(11)").await
    };
    let (anonymous, person, checks) = tokio::join!(anonymous, person, checks);
    checks?;
    for answer in anonymous.into_iter().chain(person) {
        assert_eq!(answer?.status, 200);
    }
    Ok(())
}

#[tokio::test]
async fn a_large_body_is_not_read_from_callers_who_may_not_write() -> Result<()> {
    let world = world().await?.with_things().await?;
    world.run("revoke all on things from anon, authenticated; create function take(a int) returns int language sql as 'select 1'; revoke all on function take from public").await?;
    let token = world.token("00000000-0000-0000-0000-000000000001");
    let begun = std::time::Instant::now();
    // The body never ends. Read, it would be waited for.
    for path in ["/things", "/rpc/take"] {
        let call = || world.call(http::Method::POST, path).header("content-type", "application/json").endless();
        assert_eq!(call().anon().refused(401).await?.0, "42501", "{path}");
        assert_eq!(call().signed_in(&token).refused(403).await?.0, "42501", "{path}");
    }
    let call = world.call(http::Method::PATCH, "/things?id=eq.1").header("content-type", "application/json").endless();
    assert_eq!(call.anon().refused(401).await?.0, "42501");
    let call = world.call(http::Method::POST, "/no_such_table").header("content-type", "application/json").endless();
    assert_eq!(call.refused(404).await?.0, "PGRST205");
    assert!(begun.elapsed() < Duration::from_secs(25), "the bodies were waited for");
    Ok(())
}

#[tokio::test]
async fn bodies_keep_within_a_budget_for_all_requests() -> Result<()> {
    let settings = gleaner_supabase::rest::Settings { body_memory: 1 << 20, ..Default::default() };
    let world = world_with(settings).await?.with_things().await?;
    let body = |bytes: usize| json!({"name": "x".repeat(bytes)});
    world.post("/things", body(500_000)).expect(201).await?;
    let (code, message) = world.post("/things", body(900_000)).refused(503).await?;
    assert!(code == "PGRST003" && message.contains("memory"), "{code} {message}");
    // A quarter is for anonymous callers, and theirs alone.
    world.post("/things", body(200_000)).anon().expect(201).await?;
    world.post("/things", body(300_000)).anon().refused(503).await?;
    world.post("/things", body(500_000)).expect(201).await?;
    Ok(())
}
