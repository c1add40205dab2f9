//! Rows that were enqueued together wait as one record: they are found, ordered, ended and repaired as single rows are.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, ensure};
use futures_util::future::try_join_all;
use gleaner::queue::Item;
use gleaner::view::{Filter, State, View};
use gleaner::{Acts, Claim, Completion, Held, Outcome, Queue};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::hands::{claim_anew, claimable_by};
use crate::world::{World, jobs, keys, outcomes, world};

/// A database whose jobs get bulk ranges and batch leases from `from` rows on, with `n` of them enqueued by COPY.
async fn meadow(from: u32, n: usize) -> Result<(World, Queue)> {
    let world = world().await?;
    world.bind_jobs_from(from).await?;
    let queue = world.queue("jobs").await?;
    queue.enqueue_copy(&jobs("default", n)).await?;
    Ok((world, queue))
}

async fn ranges(world: &World) -> Result<String> {
    let all = "select string_agg(format('%s-%s', first, last), ' ' order by first) from gleaner.bulk_range";
    Ok(world.text(all).await?.unwrap_or_default())
}

async fn complete(queue: &Queue, items: &[Item]) -> Result<()> {
    let held: Vec<_> = items.iter().map(|i| Completion::new(i.held(), Some(json!({"by": i.key})))).collect();
    let answers = queue.complete(&held).await?;
    ensure!(answers.iter().all(|a| a.outcome == Outcome::Done), "{answers:?}");
    Ok(())
}

fn numbers(range: std::ops::RangeInclusive<i64>) -> Vec<String> {
    range.map(|n| n.to_string()).collect()
}

#[tokio::test]
async fn what_is_put_in_together_waits_by_one_record_and_comes_in_order() -> Result<()> {
    let (world, queue) = meadow(64, 2500).await?;
    assert_eq!(ranges(&world).await?, "1-1000 1001-2000 2001-2500");
    assert_eq!(world.count("select count(*) from gleaner.jobs where lease = -1 and status = 'ready'").await?, 2500);
    let mut done = Vec::new();
    while done.len() < 2500 {
        let items = queue.claim(&Claim::by("a").limit(300).started()).await?.items;
        ensure!(!items.is_empty(), "{} of 2500", done.len());
        assert!(items.iter().all(|i| i.lease < 0 && i.lease == items[0].lease), "one batch lease");
        done.extend(keys(&items));
        complete(&queue, &items).await?;
    }
    assert_eq!(done, numbers(1..=2500), "each once, in the order of the line");
    let ended = "select count(*) from gleaner.jobs where status = 'done' and agent = 'a' and finished_at is not null and result ->> 'by' = id::text";
    assert_eq!(world.count(ended).await?, 2500);
    assert_eq!(world.count("select (select count(*) from gleaner.bulk_range) + (select count(*) from gleaner.batch_lease)").await?, 0);
    Ok(())
}

#[tokio::test]
async fn racing_claims_of_many_and_of_few_never_share_a_row_and_leave_none() -> Result<()> {
    let (world, _) = meadow(8, 0).await?;
    let queue = Queue::open(&gleaner::pool(world.url(), 20)?, "jobs").await?;
    for (kind, n) in [("call", 1500), ("mail", 1100), ("call", 900)] {
        queue.enqueue_copy(&jobs(kind, n)).await?;
    }
    queue.enqueue(&jobs("mail", 100)).await?;
    let racers = (0..20).map(|n| {
        let queue = &queue;
        async move {
            let mut got = Vec::new();
            let mut empty = 0;
            // Rows that another session is claiming are briefly unavailable: a short answer does not prove that the queue is empty.
            while empty < 20 {
                let items = queue.claim(&Claim::by(format!("agent {n}")).limit([1, 5, 40, 200][n % 4])).await?.items;
                empty = if items.is_empty() { empty + 1 } else { 0 };
                got.extend(keys(&items));
                complete(queue, &items).await?;
            }
            anyhow::Ok(got)
        }
    });
    let all: Vec<String> = try_join_all(racers).await?.concat();
    assert_eq!(all.len(), all.iter().collect::<BTreeSet<_>>().len(), "handed out twice");
    assert_eq!(all.len(), 3600, "left behind");
    assert_eq!(world.count("select count(*) from gleaner.jobs where status = 'done'").await?, 3600);
    Ok(())
}

#[tokio::test]
async fn what_lies_and_what_stands_come_in_one_order() -> Result<()> {
    let (world, queue) = meadow(2, 0).await?;
    let stand = |id: i64, kind: &str, priority: i32, age: &str| {
        format!("insert into gleaner.jobs (id, kind, priority, due_at) values ({id}, '{kind}', {priority}, now() - interval '{age}')")
    };
    queue.enqueue_copy(&jobs("call", 3)).await?;
    world.age("jobs", "3 minutes").await?;
    queue.enqueue_copy(&(0..2).map(|_| json!({"kind": "mail", "priority": 1})).collect::<Vec<_>>()).await?;
    queue.enqueue_copy(&jobs("mail", 4)).await?;
    world.age("jobs", "1 minute").await?;
    // Ten minutes of head start: urgent rows are due ten minutes before the others.
    for row in
        [stand(100, "call", 0, "5 minutes"), stand(101, "mail", 0, "2 minutes"), stand(102, "call", 1, "0"), stand(103, "mail", 0, "0")]
    {
        world.run(&row).await?;
    }
    // One transaction has one time: then the key decides the order.
    let mut client = world.connect().await?;
    let tx = client.transaction().await?;
    queue.acts().enqueue_copy(&tx, &jobs("call", 3)).await?;
    tx.batch_execute("insert into gleaner.jobs (id, kind) values (0, 'call'), (200, 'call')").await?;
    tx.commit().await?;
    let line = [4, 5, 102, 100, 1, 2, 3, 101, 6, 7, 8, 9, 103, 0, 10, 11, 12, 200].map(|n| n.to_string());
    for limit in [1, 2, 4, 20] {
        let tx = client.transaction().await?;
        let mut got = Vec::new();
        loop {
            let items = queue.acts().claim(&tx, &Claim::by("a").limit(limit)).await?.items;
            if items.is_empty() {
                break;
            }
            got.extend(keys(&items));
        }
        assert_eq!(got, line, "{limit} at a time");
        tx.rollback().await?;
    }
    let calls = queue.claim(&Claim::by("b").kinds(["call"]).limit(20)).await?.items;
    assert_eq!(keys(&calls), ["102", "100", "1", "2", "3", "0", "10", "11", "12", "200"], "a kind alone");
    Ok(())
}

#[tokio::test]
async fn what_was_cancelled_buried_or_deleted_where_it_lay_is_not_given_out() -> Result<()> {
    for limit in [3, 20] {
        let (world, queue) = meadow(2, 10).await?;
        queue.cancel(&["2"], Some("not needed")).await?;
        queue.bury(&["4"], Some("by hand")).await?;
        world.run("delete from gleaner.jobs where id = 6; delete from gleaner.jobs where id = 8; insert into gleaner.jobs (id, kind) values (8, 'anew')").await?;
        assert_eq!(queue.requeue(&["10"]).await?.len(), 1);
        let mut got = Vec::new();
        loop {
            let items = queue.claim(&Claim::by("a").limit(limit)).await?.items;
            if items.is_empty() {
                break;
            }
            got.extend(keys(&items));
            complete(&queue, &items).await?;
        }
        assert_eq!(got, ["1", "3", "5", "7", "9", "10", "8"]);
        assert_eq!(world.count("select (select count(*) from gleaner.bulk_range) + (select count(*) from gleaner.batch_lease)").await?, 0);
        assert_eq!(world.count("select count(*) from gleaner.jobs where status = 'done'").await?, 7);
    }
    // All rows of one range at once, by the values they share.
    let (world, queue) = meadow(2, 6).await?;
    queue.enqueue_copy(&jobs("other", 4)).await?;
    queue.enqueue(&jobs("default", 2)).await?;
    assert_eq!(outcomes(&queue.cancel_matching(&json!({"kind": "default"}), None).await?), [Outcome::Done; 8]);
    assert_eq!(keys(&world.claim(&queue, "a", None, 20).await?), numbers(7..=10));
    Ok(())
}

#[tokio::test]
async fn a_crashed_holder_of_what_lay_together_loses_it_as_any_other() -> Result<()> {
    let (world, queue) = meadow(2, 6).await?;
    let items = queue.claim(&Claim::by("crashed").limit(4).started()).await?.items;
    assert_eq!(ranges(&world).await?, "5-6");
    world.age("jobs", "6 minutes").await?;
    let mut again = Vec::new();
    for _ in 0..5 {
        again.extend(claim_anew(&world, &queue, "other", None, 4).await?);
    }
    assert_eq!(keys(&again).into_iter().collect::<BTreeSet<_>>(), numbers(1..=6).into_iter().collect());
    assert_eq!(world.count("select count(*) from gleaner.jobs where lost = 1 and status = 'running'").await?, 4);
    let late: Vec<_> = items.iter().map(|i| Completion::new(i.held(), None)).collect();
    assert_eq!(outcomes(&queue.complete(&late).await?), [Outcome::Lost; 4]);
    complete(&queue, &again).await
}

#[tokio::test]
async fn a_claim_that_is_rolled_back_leaves_the_bulk_range_as_it_was() -> Result<()> {
    let (world, queue) = meadow(4, 10).await?;
    for limit in [1, 7, 10] {
        let mut client = world.connect().await?;
        let tx = client.transaction().await?;
        assert_eq!(queue.acts().claim(&tx, &Claim::by("a").limit(limit)).await?.items.len(), usize::try_from(limit)?);
        // A concurrent claim neither waits nor gets rows that another session holds.
        assert!(world.claim(&queue, "b", None, 1).await?.is_empty());
        tx.rollback().await?;
        assert_eq!(ranges(&world).await?, "1-10");
        assert_eq!(claimable_by(&world, &queue, None).await?, numbers(1..=10));
    }
    // Rows of a batch that was never committed do not exist either.
    let mut client = world.connect().await?;
    let tx = client.transaction().await?;
    queue.acts().enqueue_copy(&tx, &jobs("default", 10)).await?;
    tx.rollback().await?;
    assert_eq!(ranges(&world).await?, "1-10");
    Ok(())
}

#[tokio::test]
async fn a_repeated_request_returns_what_it_took_from_bulk_ranges() -> Result<()> {
    let (_world, queue) = meadow(2, 10).await?;
    queue.cancel(&["3"], None).await?;
    let mut claim = Claim::by("a").limit(6);
    claim.request = Some(Uuid::new_v4());
    let given = queue.claim(&claim).await?.items;
    assert_eq!(keys(&given), ["1", "2", "4", "5", "6", "7"]);
    complete(&queue, &given[..1]).await?;
    let again = queue.claim(&claim).await?.items;
    assert_eq!(keys(&again), keys(&given[1..]));
    Ok(())
}

#[tokio::test]
async fn explain_stats_lists_and_the_next_due_time_know_what_lies() -> Result<()> {
    let (world, queue) = meadow(2, 5).await?;
    let counted = || async {
        let sql = "select string_agg(state || ' ' || count, ', ' order by state) from gleaner.stats_jobs() where count > 0";
        world.text(sql).await.map(Option::unwrap_or_default)
    };
    assert_eq!(counted().await?, "ready 5");
    assert_eq!(queue.waiting(&Claim::by("b")).await?.count, 5);
    let why = queue.explain("3", None).await?.context("the row is there")?;
    assert_eq!((&why["state"], &why["claimable"]), (&json!("ready"), &json!(true)), "{why}");
    let view = View::of(&world.client, "jobs").await?;
    let ready = Filter { state: Some(State::Ready), limit: 10, ..Default::default() };
    assert_eq!(view.list(&world.client, &ready).await?.len(), 5);
    let due = |kinds: &'static str| format!("select extract(epoch from gleaner.next_due_jobs({kinds}))::text");
    assert_eq!(world.text(&due("")).await?.as_deref(), Some("0.000000"));
    assert_eq!(world.text(&due("array['other']")).await?, None);
    queue.claim(&Claim::by("a").limit(3)).await?;
    assert_eq!(counted().await?, "ready 2, running 3");
    assert_eq!(queue.waiting(&Claim::by("b")).await?.count, 2);
    assert_eq!(queue.explain("1", None).await?.context("row")?["state"], json!("running"));
    assert_eq!(view.list(&world.client, &ready).await?.len(), 2);
    let held = ["1", "2"].map(|key| Held::new(key, -1000));
    assert!(queue.ended(&held).await?.is_empty(), "they are held");
    Ok(())
}

#[tokio::test]
async fn only_what_is_alike_and_long_enough_lies_together() -> Result<()> {
    let (world, queue) = meadow(5, 0).await?;
    let kinds = |n: usize, kind: &str| jobs(kind, n);
    let batch: Vec<Value> = [kinds(6, "a"), kinds(3, "b"), kinds(5, "a")].concat();
    queue.enqueue_copy(&batch).await?;
    assert_eq!(ranges(&world).await?, "1-6 10-14");
    // A row with its own due time, unique key or key is single, and too few rows are not worth a record.
    let own = [json!({"due_at": "2020-01-01T00:00:00Z"}), json!({"unique_key": "n"}), json!({"id": 0})];
    for (n, item) in own.iter().enumerate() {
        let items: Vec<Value> = (0..6)
            .map(|i| {
                let mut item = item.clone();
                if let Some(key) = item.get_mut("unique_key") {
                    *key = json!(format!("{n} {i}"));
                }
                if let Some(key) = item.get_mut("id") {
                    *key = json!(1000 + i);
                }
                item
            })
            .collect();
        queue.enqueue_copy(&items).await?;
    }
    queue.enqueue_copy(&jobs("a", 4)).await?;
    assert_eq!(ranges(&world).await?, "1-6 10-14");
    // The same for a role that may not write leases.
    let mut service = world.service().await?;
    let acts = Acts::of(&service, "jobs").await?;
    let tx = service.transaction().await?;
    assert_eq!(acts.enqueue_copy(&tx, &jobs("a", 10)).await?, 10);
    tx.commit().await?;
    assert_eq!(ranges(&world).await?, "1-6 10-14");
    assert_eq!(claimable_by(&world, &queue, None).await?.len(), 14 + 18 + 4 + 10);
    Ok(())
}

#[tokio::test]
async fn keys_that_another_session_drew_meanwhile_are_in_no_bulk_range() -> Result<()> {
    let (world, queue) = meadow(2, 0).await?;
    let other = world.connect().await?;
    let pool = gleaner::pool(world.url(), 8)?;
    let loads = (0..4).map(|n| {
        let pool = &pool;
        async move {
            let queue = Queue::open(pool, "jobs").await?;
            queue.enqueue_copy(&jobs(&format!("kind {n}"), 5000)).await?;
            anyhow::Ok(())
        }
    });
    let singles = async {
        for _ in 0..300 {
            other.batch_execute("insert into gleaner.jobs (kind) values ('single')").await?;
        }
        anyhow::Ok(())
    };
    tokio::try_join!(try_join_all(loads), singles)?;
    let foreign = "select count(*) from gleaner.bulk_range as s join gleaner.jobs as q on q.id between s.first and s.last where q.kind <> s.kind or q.lease <> -1";
    assert_eq!(world.count(foreign).await?, 0);
    let mut got = BTreeSet::new();
    loop {
        let items = queue.claim(&Claim::by("a").limit(5000)).await?.items;
        if items.is_empty() {
            break;
        }
        for key in keys(&items) {
            assert!(got.insert(key), "handed out twice");
        }
    }
    assert_eq!(got.len(), 20_300);
    Ok(())
}

#[tokio::test]
async fn nothing_is_registered_twice_nor_by_a_transaction_that_did_not_insert_it() -> Result<()> {
    let (world, queue) = meadow(2, 10).await?;
    for lay in ["array[1], array[10]", "array[3], array[4]", "array[100], array[101]", "array[5], array[2]"] {
        let error = world.run(&format!("select gleaner.register_range_jobs({lay})")).await.expect_err(lay);
        assert!(format!("{error:#}").contains("cannot be registered"), "{error:#}");
    }
    let numbered = "begin; select * from gleaner.reserve_keys_jobs(4); insert into gleaner.jobs (id, lease) select n, -1 from generate_series(11, 14) n;";
    let error =
        world.run(&format!("{numbered} select gleaner.register_range_jobs(array[11, 12], array[12, 14])")).await.expect_err("overlapping");
    assert!(format!("{error:#}").contains("cannot be registered"), "{error:#}");
    world.run("rollback").await?;
    assert_eq!(claimable_by(&world, &queue, None).await?, numbers(1..=10));
    Ok(())
}

/// Between reading and locking, another claim unpacked the bulk range except for its first row, which another session was about
/// to change.
#[tokio::test]
async fn a_claim_takes_a_bulk_range_as_it_is_when_it_has_its_lock() -> Result<()> {
    for limit in [6, 20] {
        let (world, queue) = meadow(2, 12).await?;
        let mut other = world.connect().await?;
        let tx = other.transaction().await?;
        // Other sessions may read, but not lock.
        tx.batch_execute("lock table gleaner.bulk_range in exclusive mode").await?;
        let slow = tokio::spawn({
            let (queue, client) = (queue.clone(), world.connect().await?);
            async move { queue.acts().claim(&client, &Claim::by("slow").limit(limit)).await }
        });
        let waits = "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'";
        while world.count(waits).await? == 0 {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        tx.batch_execute(
            "set local role gleaner_engine;
             update gleaner.bulk_range set last = first;
             insert into gleaner.bulk_range select queue, kind, class, due_at, 8, 12 from gleaner.bulk_range;
             update gleaner.jobs set lease = 0 where id between 2 and 7",
        )
        .await?;
        tx.commit().await?;
        let mut all = keys(&slow.await??.items);
        while let items @ [_, ..] = world.claim(&queue, "quick", None, 20).await?.as_slice() {
            all.extend(keys(items));
        }
        all.sort_by_key(|key| key.parse::<i64>().unwrap_or_default());
        assert_eq!(all, numbers(1..=12), "each once");
        assert_eq!(ranges(&world).await?, "");
    }
    Ok(())
}

#[tokio::test]
async fn a_claim_of_few_rows_unpacks_what_it_needs_and_finds_it_before_every_cursor() -> Result<()> {
    let (world, queue) = meadow(64, 3000).await?;
    let session = world.connect().await?;
    let floor = r#"{"asked": "", "until": 4e9, "kinds": [], "lanes": {"default 2": ["2100-01-01T00:00:00Z", 1]}}"#;
    session.execute("select set_config('gleaner.cursor_jobs', $1, false)", &[&floor]).await?;
    assert_eq!(keys(&queue.acts().claim(&session, &Claim::by("a").limit(3)).await?.items), numbers(1..=3));
    assert_eq!(world.count("select count(*) from gleaner.jobs where lease <> -1").await?, 128);
    Ok(())
}

/// A user's table: with the adapter every row is stamped, and generated columns may differ in rows that were enqueued with equal values.
#[tokio::test]
async fn a_table_of_ones_own_lays_only_what_is_surely_alike() -> Result<()> {
    let world = world().await?;
    for (name, kind, adapt, trigger, lies) in [
        ("stamped", "kind text", "true", "", false),
        ("plain", "kind text", "false", "", true),
        ("computed", "kind text generated always as (case when n % 2 = 0 then 'a' else 'b' end) stored", "false", "", false),
        ("guessed", "kind text default md5(random()::text)", "false", "", false),
        (
            "set",
            "kind text",
            "false",
            "create trigger set before insert on public.set for each row execute function public.set_kind()",
            false,
        ),
    ] {
        world
            .run(&format!(
                "create or replace function public.set_kind() returns trigger language plpgsql as $$ begin new.kind := new.n % 2; return new; end $$;
                 create table public.{name} (id bigint generated always as identity primary key, {kind}, n int, urgency int not null default 0, status text not null default 'ready', created_at timestamptz default now());
                 {trigger}"
            ))
            .await?;
        let declared = |priority: &str| {
            format!(
                "table = \"public.{name}\"\nkind = \"kind\"\nbulk = 4\nadapt_inserts = {adapt}\n{priority}\n\
                 [status]\ncolumn = \"status\"\nready = \"ready\"\nrunning = \"running\"\ndone = \"done\"\nfailed = \"failed\"\n"
            )
        };
        world.attach(name, &declared("priority = { column = \"urgency\", classes = [2, 1, 0] }")).await?;
        let queue = world.queue(name).await?;
        queue.enqueue_copy(&(0..10).map(|n| json!({"n": n})).collect::<Vec<_>>()).await?;
        assert_eq!(!ranges(&world).await?.is_empty(), lies, "{name}");
        // Attached again with other classes: rows in a range of an old class are still found.
        world.attach(name, &declared("")).await?;
        assert_eq!(ranges(&world).await?, "", "{name}");
        assert_eq!(claimable_by(&world, &world.queue(name).await?, None).await?.len(), 10, "{name}");
    }
    Ok(())
}

#[tokio::test]
async fn what_a_bulk_range_says_of_all_its_rows_is_not_changed_in_one_of_them() -> Result<()> {
    let (world, queue) = meadow(2, 4).await?;
    for change in ["kind = 'other'", "priority = 2", "unique_key = 'mine'"] {
        let error = world.run(&format!("update gleaner.jobs set {change} where id = 2")).await.expect_err(change);
        assert!(format!("{error:#}").contains("changed by acts alone"), "{error:#}");
    }
    world.run("update gleaner.jobs set payload = '{}' where id = 2").await?;
    assert_eq!(claimable_by(&world, &queue, None).await?, numbers(1..=4));
    Ok(())
}

#[tokio::test]
async fn a_queue_without_bulk_ranges_any_more_has_every_row_in_its_line() -> Result<()> {
    // Attached again without batch leases; then detached and attached again, because the lease is this table's own column.
    let (world, queue) = meadow(2, 10).await?;
    world.claim(&queue, "a", None, 3).await?;
    world.never_bind_jobs().await?;
    assert_eq!(ranges(&world).await?, "");
    assert_eq!(claimable_by(&world, &world.queue("jobs").await?, None).await?, numbers(4..=10));

    let (world, queue) = meadow(2, 10).await?;
    let source = world.text("select source from gleaner.queue where name = 'jobs'").await?.context("attached")?;
    gleaner::attach::detach(&mut world.connect().await?, "jobs", false).await?;
    world.attach("jobs", &source).await?;
    assert_eq!(claimable_by(&world, &queue, None).await?, numbers(1..=10));
    queue.enqueue_copy(&jobs("default", 3)).await?;
    world.run("truncate gleaner.jobs").await?;
    assert_eq!(ranges(&world).await?, "");
    Ok(())
}

/// A table that is restored or copied without the ranges: its rows are marked as being in a range, and no claim would find them.
#[tokio::test]
async fn rows_whose_bulk_range_is_gone_stand_alone_again_when_prune_comes_by() -> Result<()> {
    let (world, queue) = meadow(2, 10).await?;
    let held = world.claim(&queue, "a", None, 2).await?;
    world.run("update gleaner.bulk_range set last = 4; insert into gleaner.jobs (id, kind, lease) values (50, 'copied', -1)").await?;
    assert_eq!(claimable_by(&world, &queue, None).await?, numbers(3..=4), "six lie there unseen, and one came so");
    for (key, state, claimable) in [("3", "ready", true), ("7", "orphan", false), ("50", "orphan", false), ("1", "running", false)] {
        let why = queue.explain(key, None).await?.context("the row is there")?;
        assert_eq!((&why["state"], &why["claimable"]), (&json!(state), &json!(claimable)), "{why}");
    }
    let requeued = queue.requeue(&["1", "3", "7"]).await?;
    assert_eq!(
        requeued.iter().map(|a| (a.key.as_str(), a.outcome)).collect::<Vec<_>>()[1..],
        [("3", Outcome::Already), ("7", Outcome::Done)]
    );
    world.run("select gleaner.prune_jobs()").await?;
    let mut found = claimable_by(&world, &queue, None).await?;
    found.sort_by_key(|key| key.parse::<i64>().unwrap_or_default());
    assert_eq!(found, [vec!["1".to_owned()], numbers(3..=10), vec!["50".into()]].concat());
    complete(&queue, &held[1..]).await?;
    assert_eq!(ranges(&world).await?, "3-4");
    Ok(())
}

#[tokio::test]
async fn a_claim_does_not_wait_for_a_transaction_that_changes_a_row_of_a_range() -> Result<()> {
    let (world, queue) = meadow(8, 10).await?;
    let mut other = world.connect().await?;
    let tx = other.transaction().await?;
    tx.batch_execute("update gleaner.jobs set payload = '{\"n\": 7}' where id in (1, 5, 6)").await?;
    let got = tokio::time::timeout(std::time::Duration::from_secs(20), async {
        let mut got = Vec::new();
        while got.len() < 7 {
            got.extend(keys(&world.claim(&queue, "a", None, 2).await?));
        }
        assert!(world.claim(&queue, "a", None, 2).await?.is_empty(), "the others are in somebody's hands");
        anyhow::Ok(got)
    });
    assert_eq!(got.await??, ["2", "3", "4", "7", "8", "9", "10"]);
    tx.commit().await?;
    let rest = claim_anew(&world, &queue, "a", None, 7).await?;
    assert_eq!(keys(&rest), ["1", "5", "6"]);
    assert!(rest.iter().all(|i| i.payload == json!({"n": 7})), "{rest:?}");
    Ok(())
}

#[tokio::test]
async fn a_row_that_refuses_to_stand_alone_does_not_keep_the_others_from_being_worked() -> Result<()> {
    for refusal in ["return null;", "raise exception 'not on my watch';"] {
        let (world, queue) = meadow(8, 10).await?;
        world
            .run(&format!(
                "create function public.refuse() returns trigger language plpgsql as $$ begin if old.id in (1, 5) then {refusal} end if; return new; end $$;
                 create trigger refuse before update on gleaner.jobs for each row execute function public.refuse()"
            ))
            .await?;
        let mut got = Vec::new();
        loop {
            let items = world.claim(&queue, "a", None, 3).await?;
            if items.is_empty() {
                break;
            }
            got.extend(keys(&items));
            complete(&queue, &items).await?;
        }
        assert_eq!(got, ["2", "3", "4", "6", "7", "8", "9", "10"]);
        assert_eq!(world.text("select string_agg(key, ' ' order by key) from gleaner.rejected_row").await?.as_deref(), Some("1 5"));
        // A minute later, and the trigger is dropped.
        world.run("drop trigger refuse on gleaner.jobs; update gleaner.rejected_row set until = now()").await?;
        world.age("jobs", "2 minutes").await?;
        assert_eq!(claimable_by(&world, &queue, None).await?, ["1", "5"]);
    }
    Ok(())
}

#[tokio::test]
async fn a_key_inserted_again_has_no_holder_even_where_its_range_was() -> Result<()> {
    let (world, queue) = meadow(2, 6).await?;
    let items = world.claim(&queue, "a", None, 6).await?;
    world.run("delete from gleaner.jobs where id = 3; insert into gleaner.jobs (id, kind) values (3, 'anew')").await?;
    assert_eq!(outcomes(&queue.complete(&[Completion::new(Held::new("3", items[2].lease), None)]).await?), [Outcome::Lost]);
    let anew = world.claim(&queue, "b", None, 6).await?;
    assert_eq!((keys(&anew), anew[0].kind.as_deref()), (vec!["3".to_owned()], Some("anew")), "the others are held");
    Ok(())
}

/// A session continues where it ended. A range that comes back before that position is found before a claim returns empty.
#[tokio::test]
async fn a_bulk_range_that_returns_before_the_cursor_is_found_before_a_claim_reports_empty() -> Result<()> {
    let (world, queue) = meadow(2, 2).await?;
    queue.enqueue_copy(&jobs("default", 2)).await?;
    let (session, mut other) = (world.connect().await?, world.connect().await?);
    let claim = Claim::by("a").limit(2);
    let tx = other.transaction().await?;
    assert_eq!(keys(&queue.acts().claim(&tx, &claim).await?.items), ["1", "2"]);
    assert_eq!(keys(&queue.acts().claim(&session, &claim).await?.items), ["3", "4"]);
    tx.rollback().await?;
    let floor = session.query_one("select current_setting('gleaner.cursor_jobs_ranges')::jsonb #>> '{lanes,default 2,1}'", &[]).await?;
    assert_eq!(floor.get::<_, &str>(0), "3");
    assert_eq!(keys(&queue.acts().claim(&session, &claim).await?.items), ["1", "2"]);
    Ok(())
}

/// Single rows are searched from the position up to which none was found, while there are bulk ranges to claim. Rows before it
/// are not forgotten.
#[tokio::test]
async fn a_row_that_appears_before_the_cursor_is_found_when_the_cursor_expires() -> Result<()> {
    let (world, queue) = meadow(2, 40).await?;
    let session = world.connect().await?;
    // As after a slow search that found nothing before the bulk range.
    let floor =
        r#"{"asked": "", "until": 4e9, "kinds": ["default"], "lanes": {"default 2": ["2100-01-01T00:00:00Z", -9223372036854775808]}}"#;
    session.execute("select set_config('gleaner.cursor_jobs', $1, false)", &[&floor]).await?;
    world.run("insert into gleaner.jobs (id, kind, due_at) values (1000, 'default', now() - interval '1 hour')").await?;
    let claim = Claim::by("a").limit(4);
    assert_eq!(keys(&queue.acts().claim(&session, &claim).await?.items), numbers(1..=4), "the floor hides it");
    let kept = session.query_one("select current_setting('gleaner.cursor_jobs')::jsonb #> '{lanes,default 2}' ->> 0", &[]).await?;
    assert!(kept.get::<_, &str>(0) < "2100", "and ends before the bulk range, not behind it");
    session
        .execute("select set_config('gleaner.cursor_jobs', replace(current_setting('gleaner.cursor_jobs'), '4000000000', '1'), false)", &[])
        .await?;
    assert_eq!(keys(&queue.acts().claim(&session, &claim).await?.items)[0], "1000", "its time is over");
    // And no claim returns empty because of it.
    session.execute("select set_config('gleaner.cursor_jobs', $1, false)", &[&floor]).await?;
    while !world.claim(&queue, "b", None, 40).await?.is_empty() {}
    world.run("insert into gleaner.jobs (id, kind, due_at) values (1001, 'default', now() - interval '1 hour')").await?;
    assert_eq!(keys(&queue.acts().claim(&session, &claim).await?.items), ["1001"]);
    Ok(())
}
