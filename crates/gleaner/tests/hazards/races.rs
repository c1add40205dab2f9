//! Many sessions on the same rows: in opposite orders, in open transactions, with a cursor, with one unique key.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use futures_util::future::try_join_all;
use gleaner::queue::OnDuplicate;
use gleaner::{Claim, Completion, Failure, Held, Queue};
use rand::RngExt as _;
use rand::seq::SliceRandom as _;
use serde_json::json;
use tokio_postgres::Client;

use crate::scale;
use crate::world::{World, jobs, keys, world};

/// Batches of every act, over the same sixty rows, each in its own order, for several seconds: no session gets a deadlock.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn batches_in_opposite_orders_do_not_deadlock() -> Result<()> {
    let w = world().await?;
    let queue = w.queue("jobs").await?;
    // Rows share unique keys in pairs, so that going back to waiting reads other rows too.
    let items: Vec<_> = (0..60).map(|n| json!({"kind": "k", "unique_key": format!("u{}", n / 2)})).collect();
    queue.enqueue(&items).await?;
    queue.claim(&Claim::by("first").limit(100)).await?;
    queue.enqueue(&items).await?;
    let all: Arc<Vec<String>> =
        Arc::new(w.client.query("select id::text from gleaner.jobs order by id", &[]).await?.iter().map(|r| r.get(0)).collect());
    let held: Arc<Mutex<HashMap<String, i64>>> = Arc::default();
    let ends = Instant::now() + Duration::from_secs(4 * scale(5) as u64);
    let acts = Arc::new(AtomicI64::new(0));
    let batches = (0..8).map(|n| {
        let (queue, all, held, acts) = (queue.clone(), all.clone(), held.clone(), acts.clone());
        tokio::spawn(async move {
            while Instant::now() < ends {
                let mut keys: Vec<String> = all.to_vec();
                match n % 3 {
                    0 => keys.reverse(),
                    1 => keys.shuffle(&mut rand::rng()),
                    _ => {}
                }
                let known: Vec<(String, i64)> = {
                    let held = held.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                    keys.iter().filter_map(|k| held.get(k).map(|l| (k.clone(), *l))).collect()
                };
                let ids: Vec<&str> = keys.iter().map(String::as_str).collect();
                let leases: Vec<Held> = known.iter().map(|(k, l)| Held::new(k, *l)).collect();
                let act = rand::rng().random_range(0..8);
                let done = match act {
                    0 => queue.cancel(&ids, None).await.map(drop),
                    1 | 2 => queue.requeue(&ids).await.map(drop),
                    3 => queue.bury(&ids, None).await.map(drop),
                    4 => queue.release(&leases).await.map(drop),
                    5 => queue.complete(&leases.iter().map(|held| Completion::new(held.clone(), None)).collect::<Vec<_>>()).await.map(drop),
                    6 => queue.start(&leases).await.map(drop),
                    _ => queue.claim(&Claim::by(format!("agent {n}")).limit(40)).await.map(|claimed| {
                        let mut held = held.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                        held.extend(claimed.items.into_iter().map(|i| (i.key, i.lease)));
                    }),
                };
                done.with_context(|| format!("act {act}"))?;
                acts.fetch_add(1, Ordering::Relaxed);
            }
            anyhow::Ok(())
        })
    });
    for batch in try_join_all(batches).await? {
        batch?;
    }
    ensure!(acts.load(Ordering::Relaxed) > 100, "only {acts:?} batches in all that time");
    Ok(())
}

/// A user's table, partitioned or not, with child rows that refer to it.
async fn attached(w: &World, partitioned: bool) -> Result<Queue> {
    let parts = if partitioned {
        "partition by hash (id); create table public.parcel_0 partition of public.parcel for values with (modulus 2, remainder 0);
         create table public.parcel_1 partition of public.parcel for values with (modulus 2, remainder 1)"
    } else {
        ""
    };
    w.run(&format!(
        "create table public.parcel (id bigint primary key, status text not null default 'ready', note text) {parts};
         create table public.label (id bigint generated always as identity primary key, parcel bigint references public.parcel (id))"
    ))
    .await?;
    w.attach(
        "parcel",
        "table = \"public.parcel\"\nstatus = { column = \"status\", ready = \"ready\", running = \"running\", done = \"done\", failed = \"failed\", cancelled = \"cancelled\" }\n",
    )
    .await?;
    w.run("insert into parcel (id) select generate_series(1, 20)").await?;
    w.queue("parcel").await
}

/// Rows that are being edited, or get a child row, during a claim: the rows returned are exactly the rows changed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_hands_out_exactly_what_it_changed_while_rows_are_edited() -> Result<()> {
    for partitioned in [false, true] {
        let w = world().await?;
        let queue = attached(&w, partitioned).await?;

        // An open insert of a child hides no row. An open edit hides only its own row, until it ends.
        let (parent, editor) = (w.connect().await?, w.connect().await?);
        parent.batch_execute("begin; insert into label (parcel) values (1)").await?;
        editor.batch_execute("begin; update parcel set note = 'edited' where id = 2").await?;
        let found = keys(&queue.claim(&Claim::by("a").limit(3)).await?.items);
        assert_eq!(found, ["1", "3", "4"], "partitioned: {partitioned}");
        editor.batch_execute("commit").await?;
        // In a new session: one whose first look was slow may begin its second where the first ended.
        let found = keys(&queue.acts().claim(&w.connect().await?, &Claim::by("a")).await?.items);
        assert_eq!(found, ["2"], "partitioned: {partitioned}");
        parent.batch_execute("commit").await?;

        // The same without pauses: edits that commit between the claim's snapshot and its lock.
        w.run("update parcel set status = 'ready' where status = 'running'").await?;
        let over = Arc::new(AtomicBool::new(false));
        let mut editors = Vec::new();
        for n in 0..3 {
            let (client, over) = (w.connect().await?, over.clone());
            editors.push(tokio::spawn(async move {
                while !over.load(Ordering::Relaxed) {
                    let id: i64 = rand::rng().random_range(1..=20);
                    match n {
                        0 => client.execute("update parcel set note = clock_timestamp()::text where id = $1", &[&id]).await?,
                        1 => client.execute("insert into label (parcel) values ($1)", &[&id]).await?,
                        _ => client.execute("update parcel set status = 'ready', note = 'again' where id = $1", &[&id]).await?,
                    };
                }
                anyhow::Ok(())
            }));
        }
        let ends = Instant::now() + Duration::from_millis(1500 * scale(5) as u64);
        let mut claimed = 0;
        let mut claimer = w.connect().await?;
        while Instant::now() < ends {
            let agent = format!("claim {claimed}");
            let tx = claimer.transaction().await?;
            let given = queue.acts().claim(&tx, &Claim::by(&agent).limit(7)).await?.items;
            let changed = tx
                .query("select id::text, lease from parcel where agent = $1 and status = 'running' order by parcel.id", &[&agent])
                .await?;
            let mut given: Vec<(String, i64)> = given.into_iter().map(|i| (i.key, i.lease)).collect();
            given.sort_by_key(|(key, _)| key.parse::<i64>().unwrap_or(0));
            let changed: Vec<(String, i64)> = changed.iter().map(|r| (r.get(0), r.get(1))).collect();
            assert_eq!(given, changed, "partitioned: {partitioned}");
            claimed += given.len();
            tx.commit().await?;
        }
        over.store(true, Ordering::Relaxed);
        for editor in editors {
            editor.await??;
        }
        ensure!(claimed > 50, "partitioned: {partitioned}: only {claimed} were claimed");
    }
    Ok(())
}

/// Rows that become visible late although they are old: without a cursor, which is the normal case, they are found at once.
#[tokio::test]
async fn latecomers_are_found_at_once() -> Result<()> {
    let w = world().await?;
    let queue = w.queue("jobs").await?;
    let long = w.connect().await?;
    long.batch_execute("begin; insert into gleaner.jobs (id, kind) values (-1, 'k')").await?;
    let rolled_back = w.connect().await?;
    queue.enqueue(&jobs("k", 3)).await?;
    rolled_back.batch_execute("begin; select from gleaner.claim_jobs('gone', 2)").await?;
    assert_eq!(w.claim(&queue, "a", None, 1).await?.len(), 1, "the third");
    assert_eq!(w.claim(&queue, "a", None, 1).await?.len(), 0, "two are in somebody's hands, one is not there yet");
    rolled_back.batch_execute("rollback").await?;
    long.batch_execute("commit").await?;
    w.run("insert into gleaner.jobs (id, kind, due_at) values (-2, 'k', now() - interval '1 day')").await?;
    let found = keys(&w.claim(&queue, "a", None, 10).await?);
    assert_eq!(found.len(), 4);
    assert_eq!(found[..2], ["-2", "-1"], "the oldest first");
    Ok(())
}

/// Makes the session remember where its last claim ended, for `seconds`, in the lane of ordinary jobs of kind `k`.
async fn floor(client: &Client, seconds: f64) -> Result<()> {
    let sql = "select set_config('gleaner.cursor_jobs', jsonb_build_object(
                   'asked', '', 'until', extract(epoch from clock_timestamp()) + $1::float8, 'kinds', array['k'],
                   'lanes', jsonb_build_object('k 2', jsonb_build_array(clock_timestamp() - interval '1 minute', 0)))::text, false)";
    client.query(sql, &[&seconds]).await?;
    Ok(())
}

#[tokio::test]
async fn a_claim_cursor_never_reports_empty() -> Result<()> {
    let w = world().await?;
    w.run("insert into gleaner.jobs (kind, due_at) select 'k', now() - interval '1 hour' from generate_series(1, 3)").await?;
    floor(&w.client, 3600.0).await?;
    assert_eq!(w.count("select count(*) from gleaner.claim_jobs('a', 10)").await?, 3);
    Ok(())
}

#[tokio::test]
async fn a_row_before_the_claim_cursor_is_found_when_the_cursor_expires() -> Result<()> {
    let w = world().await?;
    w.run("insert into gleaner.jobs (id, kind, due_at) values (-1, 'k', now() - interval '1 hour')").await?;
    w.run("insert into gleaner.jobs (kind) select 'k' from generate_series(1, 500)").await?;
    floor(&w.client, 0.5).await?;
    let begun = Instant::now();
    loop {
        let id: i64 = w.client.query_one("select id from gleaner.claim_jobs('a', 1)", &[]).await?.get(0);
        if id == -1 {
            break;
        }
        ensure!(begun.elapsed() < Duration::from_millis(1500), "still not found after {:?}", begun.elapsed());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok(())
}

/// A forgotten transaction keeps tens of thousands of dead entries at the start of the index. Claims begin after them, and rows
/// that become visible late are still found soon.
#[tokio::test]
async fn latecomers_are_found_soon_under_a_pinned_horizon() -> Result<()> {
    let w = world().await?;
    let forgotten = w.connect().await?;
    forgotten.batch_execute("begin isolation level repeatable read; select from gleaner.jobs").await?;
    w.run("insert into gleaner.jobs (kind) select 'k' from generate_series(1, 40000)").await?;
    // In another session: this one has no cursor yet.
    let worked = w.connect().await?;
    worked
        .batch_execute(
            "do $$ begin for i in 1 .. 8 loop
               perform gleaner.complete_jobs_many(array_agg(c.id), array_agg(c.lease)) from gleaner.claim_jobs('a', 5000) as c;
           end loop; end $$",
        )
        .await?;
    w.run("insert into gleaner.jobs (kind) select 'k' from generate_series(1, 3000)").await?;
    let mut slowest = Duration::ZERO;
    for _ in 0..20 {
        let begun = Instant::now();
        w.count("select count(*) from gleaner.claim_jobs('a', 1)").await?;
        slowest = slowest.max(begun.elapsed());
    }
    w.run("insert into gleaner.jobs (id, kind, due_at) values (-1, 'k', now() - interval '1 hour')").await?;
    let begun = Instant::now();
    let mut claims = 0;
    while w.count("select count(*) from gleaner.claim_jobs('a', 1) where id = -1").await? == 0 {
        claims += 1;
        let bound = Duration::from_millis(500) + 25 * slowest;
        ensure!(begun.elapsed() < bound, "not found in {:?} and {claims} claims; the slowest look took {slowest:?}", begun.elapsed());
    }
    forgotten.batch_execute("rollback").await?;
    Ok(())
}

/// Another transaction has locked the first rows of one lane: a batch claim takes rows of the other lane.
#[tokio::test]
async fn a_locked_lane_does_not_hide_the_others() -> Result<()> {
    let w = world().await?;
    let queue = w.queue("jobs").await?;
    w.run("insert into gleaner.jobs (kind, due_at) select 'locked', now() - interval '1 hour' from generate_series(1, 5)").await?;
    queue.enqueue(&jobs("free", 5)).await?;
    let other = w.connect().await?;
    other.batch_execute("begin; select from gleaner.jobs where kind = 'locked' for update").await?;
    let found = w.claim(&queue, "a", None, 4).await?;
    assert_eq!(found.len(), 4);
    assert!(found.iter().all(|i| i.kind.as_deref() == Some("free")), "{found:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_who_enqueue_with_one_unique_key_leave_one_waiting_row() -> Result<()> {
    let w = world().await?;
    let pool = gleaner::pool(w.url(), 52)?;
    let queue = Queue::open(&pool, "jobs").await?;
    let item = json!({"kind": "k", "unique_key": "one"});
    let start = Arc::new(tokio::sync::Barrier::new(50));
    let all = (0..50).map(|n| {
        let (queue, pool, item, start) = (queue.clone(), pool.clone(), item.clone(), start.clone());
        tokio::spawn(async move {
            let client = pool.get().await?;
            start.wait().await;
            let on_duplicate = if n % 10 == 0 { OnDuplicate::Replace } else { OnDuplicate::Skip };
            anyhow::Ok(queue.acts().enqueue(&**client, &[item], on_duplicate).await?.remove(0))
        })
    });
    let told = try_join_all(all).await?.into_iter().collect::<Result<Vec<_>>>()?;
    let ids: HashSet<&String> = told.iter().map(|t| &t.key).collect();
    assert_eq!(ids.len(), 1, "{told:?}");
    assert_eq!(told.iter().filter(|t| t.outcome == "enqueued").count(), 1, "{told:?}");
    assert_eq!(w.count("select count(*) from gleaner.jobs").await?, 1);

    // The same while other sessions claim as fast as they can: every session gets an answer, and at most one waits at any time.
    let over = Arc::new(AtomicBool::new(false));
    let takers: Vec<_> = (0..3)
        .map(|n| {
            let (queue, over) = (queue.clone(), over.clone());
            tokio::spawn(async move {
                while !over.load(Ordering::Relaxed) {
                    for item in queue.claim(&Claim::by(format!("taker {n}"))).await?.items {
                        queue.complete(&[Completion::new(item.held(), None)]).await?;
                    }
                }
                anyhow::Ok(())
            })
        })
        .collect();
    let givers = (0..20).map(|_| {
        let (queue, item) = (queue.clone(), item.clone());
        tokio::spawn(async move {
            for _ in 0..20 {
                queue.enqueue(std::slice::from_ref(&item)).await?;
            }
            anyhow::Ok(())
        })
    });
    for giver in try_join_all(givers).await? {
        giver?;
    }
    over.store(true, Ordering::Relaxed);
    for taker in takers {
        taker.await??;
    }
    assert!(w.count("select count(*) from gleaner.jobs where status in ('ready', 'failed')").await? <= 1);
    Ok(())
}

/// While rows are added, fail and are cancelled, two hundred agents claim them: no row is ever held twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_claimers_never_hold_a_row_together() -> Result<()> {
    let w = world().await?;
    let pool = gleaner::pool(w.url(), 205)?;
    let queue = Queue::open(&pool, "jobs").await?;
    queue.enqueue_copy(&jobs("k", 1000)).await?;
    let start = Arc::new(tokio::sync::Barrier::new(202));
    // Every claim, and every failure that released a row.
    let log: Arc<Mutex<Vec<(String, i64)>>> = Arc::default();
    let given_back: Arc<Mutex<HashMap<String, usize>>> = Arc::default();
    let inserted = 1000 * scale(5);
    let mut tasks = Vec::new();
    for n in 0..200 {
        let (queue, pool, start, log, given_back) = (queue.clone(), pool.clone(), start.clone(), log.clone(), given_back.clone());
        tasks.push(tokio::spawn(async move {
            let client = pool.get().await?;
            start.wait().await;
            let mut empty = 0;
            while empty < 3 {
                let items = queue.acts().claim(&**client, &Claim::by(format!("agent {n}")).limit(1 + n % 4)).await?.items;
                if items.is_empty() {
                    empty += 1;
                    tokio::time::sleep(Duration::from_millis(30)).await;
                    continue;
                }
                for item in items {
                    log.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push((item.key.clone(), item.lease));
                    if item.lease % 4 == 0 {
                        let mut failure = Failure::new("again");
                        failure.retry_in = Some(Duration::ZERO);
                        let told = queue.acts().fail(&**client, &item.held(), &failure).await?;
                        if told.outcome == gleaner::Outcome::Done {
                            *given_back.lock().unwrap_or_else(std::sync::PoisonError::into_inner).entry(item.key).or_default() += 1;
                        }
                    }
                }
            }
            anyhow::Ok(())
        }));
    }
    let (adder, begin) = (queue.clone(), start.clone());
    tasks.push(tokio::spawn(async move {
        begin.wait().await;
        for _ in 0..inserted / 100 {
            adder.enqueue(&jobs("k", 100)).await?;
        }
        Ok(())
    }));
    let (canceller, client) = (queue.clone(), w.connect().await?);
    tasks.push(tokio::spawn(async move {
        start.wait().await;
        for _ in 0..20 {
            let ids: Vec<String> =
                client.query("select id::text from gleaner.jobs where id % 17 = 0", &[]).await?.iter().map(|r| r.get(0)).collect();
            canceller.cancel(&ids.iter().map(String::as_str).collect::<Vec<_>>(), None).await?;
        }
        Ok(())
    }));
    for task in try_join_all(tasks).await? {
        task?;
    }
    let log = log.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone();
    let leases: HashSet<&(String, i64)> = log.iter().collect();
    assert_eq!(leases.len(), log.len(), "a lease was handed out twice");
    let mut claims: HashMap<&String, usize> = HashMap::new();
    for (key, _) in &log {
        *claims.entry(key).or_default() += 1;
    }
    let given_back = given_back.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone();
    for (key, n) in claims {
        let back = given_back.get(key).copied().unwrap_or(0);
        assert!(n <= 1 + back, "row {key} was handed out {n} times and given back {back} times");
    }
    assert_eq!(w.count("select count(*) from gleaner.jobs where status = 'ready'").await?, 0, "all were reached");
    Ok(())
}
