//! Concurrent calls of `enqueue` share statements. Each caller gets the same result as if it were alone.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context as _, Result};
use futures_util::future::{join_all, try_join_all};
use gleaner::Queue;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use crate::world::{World, world};

const SOON: Duration = Duration::from_secs(20);

fn job(n: usize) -> Value {
    json!({"kind": "mail", "payload": n})
}

/// The payloads of these rows, in the order of their keys.
async fn payloads(world: &World, keys: &[String]) -> Result<Vec<usize>> {
    let sql =
        format!("select coalesce(string_agg(payload::text, ' ' order by id), '') from gleaner.jobs where id in ({})", keys.join(", "));
    let text = world.text(&sql).await?.context("a row")?;
    Ok(text.split_whitespace().map(str::parse).collect::<Result<_, _>>()?)
}

fn call(queue: &Queue, items: Vec<Value>) -> JoinHandle<gleaner::Result<Vec<String>>> {
    let queue = queue.clone();
    tokio::spawn(async move { Ok(queue.enqueue(&items).await?.into_iter().map(|one| one.key).collect()) })
}

async fn count(world: &World) -> Result<i64> {
    world.count("select count(*) from gleaner.jobs").await
}

/// Waits until this many sessions wait for a lock.
async fn blocked(world: &World, sessions: i64) -> Result<()> {
    let sql = "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'";
    for _ in 0..1000 {
        if world.count(sql).await? >= sessions {
            return Ok(());
        }
        sleep(Duration::from_millis(10)).await;
    }
    anyhow::bail!("{sessions} sessions never waited for a lock")
}

#[tokio::test]
async fn every_caller_gets_its_own_keys_and_nothing_goes_in_twice() -> Result<()> {
    let world = world().await?;
    let queue = world.queue("jobs").await?;
    let calls: Vec<Vec<Value>> = (0..200).map(|c| (0..=c % 3).map(|n| job(c * 10 + n)).collect()).collect();
    let answers = try_join_all(calls.iter().map(|items| queue.enqueue(items))).await?;
    for (c, answer) in answers.iter().enumerate() {
        let keys: Vec<String> = answer.iter().map(|one| one.key.clone()).collect();
        let own: Vec<usize> = (0..=c % 3).map(|n| c * 10 + n).collect();
        assert_eq!(payloads(&world, &keys).await?, own, "call {c} was given the keys of others");
        assert!(answer.iter().all(|one| one.outcome == "enqueued"));
    }
    let items: usize = calls.iter().map(Vec::len).sum();
    assert_eq!(usize::try_from(count(&world).await?)?, items);
    let commits = world.count("select count(distinct xmin::text) from gleaner.jobs").await?;
    assert!(commits < 50, "200 calls were {commits} commits");
    Ok(())
}

#[tokio::test]
async fn a_bad_item_fails_its_caller_alone() -> Result<()> {
    let world = world().await?;
    let queue = world.queue("jobs").await?;
    let bad = [json!({"kind": "mail", "payload": 1, "colour": "red"})];
    let good: Vec<[Value; 1]> = (0..40).map(|n| [job(n)]).collect();
    let calls = good.iter().map(|items| &items[..]).take(20).chain([&bad[..]]).chain(good.iter().map(|items| &items[..]).skip(20));
    let answers = join_all(calls.map(|items| queue.enqueue(items))).await;
    for (n, answer) in answers.into_iter().enumerate() {
        match answer {
            Err(error) if n == 20 => assert_eq!(error.code().map(|code| code.code().to_owned()).as_deref(), Some("42703")),
            answer => assert_eq!(answer.map_err(anyhow::Error::from).with_context(|| format!("call {n}"))?.len(), 1),
        }
    }
    assert_eq!(count(&world).await?, 40);
    Ok(())
}

#[tokio::test]
async fn a_dropped_caller_takes_nothing_from_the_others() -> Result<()> {
    let world = world().await?;
    let queue = world.queue("jobs").await?;
    world
        .run(
            "create function wait_for_lock() returns trigger language plpgsql as
             $$ begin perform pg_advisory_xact_lock_shared(case when new.payload::text::int < 10 then 1 else 2 end); return null; end $$;
             create trigger wait_for_lock after insert on gleaner.jobs for each row execute function wait_for_lock()",
        )
        .await?;
    let locks = world.connect().await?;
    locks.batch_execute("select pg_advisory_lock(1), pg_advisory_lock(2)").await?;
    // As many calls as may be sent at once, each alone. The rest waits for one of them to end, and the first of the rest sends for all.
    let alone: Vec<_> = (0..3).map(|n| call(&queue, vec![job(n)])).collect();
    blocked(&world, 3).await?;
    let (sender, second, third, unsent) =
        (call(&queue, vec![job(10)]), call(&queue, vec![job(11)]), call(&queue, vec![job(12)]), call(&queue, vec![job(13)]));
    // This runtime has one thread: the four have come as far as they can when it is our turn again.
    tokio::task::yield_now().await;
    unsent.abort();
    locks.batch_execute("select pg_advisory_unlock(1)").await?;
    for one in alone {
        timeout(SOON, one).await???;
    }
    blocked(&world, 1).await?;
    sender.abort();
    locks.batch_execute("select pg_advisory_unlock(2)").await?;
    let second = timeout(SOON, second).await??.context("the second call")?;
    let third = timeout(SOON, third).await??.context("the third call")?;
    assert_eq!((payloads(&world, &second).await?, payloads(&world, &third).await?), (vec![11], vec![12]));
    assert_eq!(world.count("select count(*) from gleaner.jobs where payload = '13'").await?, 0, "it was dropped before it was sent");
    assert_eq!(world.count("select count(*) from gleaner.jobs where payload in ('11', '12')").await?, 2);
    Ok(())
}

#[tokio::test]
async fn unique_keys_hold_across_concurrent_callers() -> Result<()> {
    let world = world().await?;
    let queue = world.queue("jobs").await?;
    let calls: Vec<[Value; 1]> = (0..60)
        .map(|n| if n % 2 == 0 { [job(n)] } else { [json!({"kind": "mail", "payload": n, "unique_key": format!("k{}", n % 5)})] })
        .collect();
    let answers = try_join_all(calls.iter().map(|items| queue.enqueue(items))).await?;
    assert_eq!(answers.iter().flatten().filter(|one| one.outcome == "enqueued").count(), 35);
    let keys: BTreeSet<&str> = answers.iter().flatten().map(|one| one.key.as_str()).collect();
    assert_eq!((keys.len(), count(&world).await?), (35, 35));
    Ok(())
}

#[tokio::test]
async fn a_unique_key_that_another_transaction_holds_keeps_no_other_call_waiting() -> Result<()> {
    let world = world().await?;
    let queue = world.queue("jobs").await?;
    let other = world.connect().await?;
    other.batch_execute("begin; insert into gleaner.jobs (kind, payload, unique_key) values ('mail', '1', 'k')").await?;
    let waiting: Vec<_> = (0..5).map(|n| call(&queue, vec![json!({"payload": n, "unique_key": "k"})])).collect();
    blocked(&world, 5).await?;
    timeout(SOON, queue.enqueue(&[job(7)])).await.context("it waited for the others")??;
    other.batch_execute("commit").await?;
    let standing: BTreeSet<String> = try_join_all(waiting).await?.into_iter().flatten().flatten().collect();
    assert_eq!((standing.len(), count(&world).await?), (1, 2));
    Ok(())
}

#[tokio::test]
async fn where_a_trigger_leaves_rows_out_every_caller_still_gets_its_own_keys() -> Result<()> {
    let world = world().await?;
    let queue = world.queue("jobs").await?;
    world
        .run(
            "create function leave_out() returns trigger language plpgsql as $$ begin
                 if new.payload::text::int % 3 = 0 then return null; end if; return new; end $$;
             create trigger leave_out before insert on gleaner.jobs for each row execute function leave_out()",
        )
        .await?;
    let calls: Vec<[Value; 1]> = (0..40).map(|n| [job(n)]).collect();
    for (n, answer) in try_join_all(calls.iter().map(|items| queue.enqueue(items))).await?.into_iter().enumerate() {
        let keys: Vec<String> = answer.into_iter().map(|one| one.key).collect();
        if n % 3 == 0 {
            assert!(keys.is_empty(), "call {n} was given {keys:?}");
        } else {
            assert_eq!(payloads(&world, &keys).await?, [n]);
        }
    }
    assert_eq!(count(&world).await?, 26);
    Ok(())
}
