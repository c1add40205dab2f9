//! One request, one transaction, whatever happens to the client.

use std::time::Duration;

use anyhow::{Context as _, Result};
use serde_json::json;

use crate::rest::world::world;

/// A client that hangs up half-way must not leave an open transaction for the next one.
#[tokio::test]
async fn a_client_that_hangs_up_leaves_nothing_open() -> Result<()> {
    let world = world().await?.with_things().await?;
    world
        .run(
            "create function dawdle() returns setof things language plpgsql as
        $$ begin perform pg_advisory_xact_lock(7); return query update things set size = 1 returning *; end $$",
        )
        .await?;
    // It waits for a lock of ours, so that we know where it is when the client hangs up.
    world.run("select pg_advisory_lock(7)").await?;
    for single in [true, false] {
        let call = world.post("/rpc/dawdle", json!({}));
        let call = if single { call.single() } else { call };
        let waiting = async {
            loop {
                let waits = "select count(*)::text from pg_locks where locktype = 'advisory' and not granted and database = (select oid from pg_database where datname = current_database())";
                if world.text(waits).await?.as_deref() == Some("1") {
                    return anyhow::Ok(());
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::select! {
            answer = call.send() => panic!("it cannot have ended: {answer:?}"),
            found = waiting => found?,
        }
        world.run("select pg_advisory_unlock(7)").await?;
        // The server's sessions are idle or closed; none is in a transaction.
        let open = "select count(*)::text from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid() and state <> 'idle'";
        let ended = async {
            while world.text(open).await?.as_deref() != Some("0") {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            anyhow::Ok(())
        };
        tokio::time::timeout(Duration::from_secs(20), ended).await.context("a transaction was left open")??;
        for _ in 0..8 {
            world.get("/things?select=id").expect(200).await?;
        }
        world.run("select pg_advisory_lock(7)").await?;
    }
    Ok(())
}

#[tokio::test]
async fn deferred_constraints_are_reported() -> Result<()> {
    let world = world().await?;
    world.run("create table later (id int primary key, of int references later (id) deferrable initially deferred); grant all on later to service_role").await?;
    assert_eq!(world.post("/later", json!({"id": 1, "of": 2})).refused(409).await?.0, "23503");
    assert_eq!(world.post("/later", json!({"id": 1, "of": 2})).returning().single().refused(409).await?.0, "23503");
    world.post("/later", json!([{"id": 1, "of": 2}, {"id": 2, "of": 1}])).expect(201).await?;
    Ok(())
}

#[tokio::test]
async fn reading_cannot_write() -> Result<()> {
    let world = world().await?;
    world
        .run(
            "create table seen (at timestamptz default now()); grant all on seen to service_role;
        create function note_it() returns boolean language sql as 'insert into seen default values returning true';
        create view sly as select note_it() as noted; grant select on sly to service_role",
        )
        .await?;
    assert_eq!(world.get("/sly").refused(405).await?.0, "25006");
    assert_eq!(world.text("select count(*)::text from seen").await?.as_deref(), Some("0"));
    Ok(())
}

/// A pooler in transaction mode gives each transaction another session, so nothing may stay behind in one.
#[tokio::test]
async fn nothing_is_left_in_a_session() -> Result<()> {
    let world = world().await?.with_things().await?;
    for path in ["/things?id=in.(1,2)&select=*,a:name,boxes!box_id(name)", "/things?data->>word=eq.x", "/nope"] {
        world.get(path).prefer("count=exact").send().await?;
    }
    world.patch("/things?id=eq.1", json!({"size": 3})).returning().single().expect(200).await?;
    world.post("/rpc/claim_stale_activity", json!({})).expect(200).await?;
    let mut sessions = Vec::new();
    for _ in 0..world.pool.status().size {
        sessions.push(world.pool.get().await?);
    }
    for session in &sessions {
        let left = "select (select count(*) from pg_prepared_statements) + (select count(*) from pg_locks where pid = pg_backend_pid() and
            locktype = 'advisory') || current_setting('role') || coalesce(current_setting('request.headers', true), '')";
        let answers = session.simple_query(left).await?;
        let left = answers.iter().find_map(|answer| match answer {
            tokio_postgres::SimpleQueryMessage::Row(row) => row.get(0),
            _ => None,
        });
        assert_eq!(left, Some("0none"));
    }
    Ok(())
}

/// Role and statement are one call, and the call runs nothing where the messages before it had no effect.
#[tokio::test]
async fn a_statement_runs_as_its_caller_and_only_in_the_transaction_of_its_request() -> Result<()> {
    let world = world().await?;
    let run = async |role: &str, sql: &str, read_only: Option<&str>| {
        let sql = format!("select {sql}, 1::bigint, null::bigint, null::bigint");
        let call = "select rows from gleaner.run_request(null, array['public', $1, '{}', 'GET', '/', '{}', 'UTC', $3], $2, '{}', 3000)";
        world.client.query_one(call, &[&role, &sql, &read_only]).await.map(|row| row.get::<_, String>(0))
    };
    let code = |refused: tokio_postgres::Error| refused.code().map(|code| code.code().to_owned());
    // No transaction began, so there is no time limit.
    assert_eq!(code(run("service_role", "current_user::text", None).await.expect_err("not begun")).as_deref(), Some("25P01"));
    world.run("set statement_timeout = 3000").await?;
    for role in ["anon", "authenticated", "service_role"] {
        assert_eq!(run(role, "current_user::text", None).await?, role);
    }
    let refused = run("anon", "(select count(*)::text from sales)", None).await.expect_err("no right to it");
    assert_eq!(code(refused).as_deref(), Some("42501"));
    world.run("create function note_it() returns text language sql as 'create table noted (); select $$x$$'; grant all on schema public to service_role").await?;
    let wrote = run("service_role", "note_it()", Some("on")).await.expect_err("it is read only, whatever began");
    assert_eq!(code(wrote).as_deref(), Some("25006"));
    assert_eq!(world.text("select (current_user = session_user)::text").await?.as_deref(), Some("true"), "the role ended with the call");
    let called = world.post("/rpc/run_request", serde_json::json!({})).header("content-profile", "gleaner").send().await?;
    assert!(called.status.is_client_error(), "not for callers: {}", called.text);
    Ok(())
}
