//! Rows that one claim holds together, by one record: every guarantee of a lease applies to them as it does to single rows.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use futures_util::future::try_join_all;
use gleaner::queue::Item;
use gleaner::{Acts, Claim, Completion, Failure, Held, Outcome, Progress, Queue};
use serde_json::{Value, json};
use tokio_postgres::Client;
use tokio_postgres::error::SqlState;
use uuid::Uuid;

use crate::hands::claim_anew;
use crate::world::{World, jobs, keys, outcomes, world};

/// A database whose jobs get batch leases from two rows on, with `n` jobs.
async fn field(n: usize) -> Result<(World, Queue)> {
    let world = world().await?;
    world.bind_jobs_from(2).await?;
    let queue = world.queue("jobs").await?;
    queue.enqueue(&jobs("default", n)).await?;
    Ok((world, queue))
}

/// The same, with all jobs held by `agent` under one batch lease.
async fn bound(n: usize, agent: &str) -> Result<(World, Queue, Vec<Item>)> {
    let (world, queue) = field(n).await?;
    let items = queue.claim(&Claim::by(agent).limit(i32::try_from(n)?).started()).await?.items;
    ensure!(items.len() == n && items.iter().all(|i| i.lease == items[0].lease && i.lease < 0), "not one batch lease: {items:?}");
    Ok((world, queue, items))
}

fn results(items: &[Item]) -> Vec<Completion> {
    items.iter().map(|i| Completion::new(i.held(), Some(json!({"by": i.key})))).collect()
}

fn held(items: &[Item]) -> Vec<Held> {
    items.iter().map(|i| i.held()).collect()
}

async fn versions(world: &World) -> Result<Option<String>> {
    world.text("select string_agg(ctid::text || status, ' ' order by id) from gleaner.jobs").await
}

#[tokio::test]
async fn a_claim_of_many_writes_none_of_its_rows_and_their_completion_each_once() -> Result<()> {
    let (world, queue) = field(10).await?;
    let before = versions(&world).await?;
    let items = queue.claim(&Claim::by("a").limit(10)).await?.items;
    assert_eq!(versions(&world).await?, before, "the claim wrote rows");
    assert_eq!(world.count("select count(*) from gleaner.batch_lease").await?, 1);
    assert!(items.iter().all(|i| i.lease_for > Duration::from_secs(290) && i.deadline_in > Duration::from_secs(3500)), "{items:?}");

    // In two parts: the rest of a batch lease is still held.
    let (first, rest) = items.split_at(4);
    assert_eq!(outcomes(&queue.complete(&results(first)).await?), [Outcome::Done; 4]);
    assert!(world.claim(&queue, "b", None, 10).await?.is_empty(), "the rest is held");
    assert_eq!(outcomes(&queue.complete(&results(rest)).await?), [Outcome::Done; 6]);
    assert_eq!(world.count("select count(*) from gleaner.batch_lease").await?, 0, "an empty batch lease is gone");
    assert_eq!(world.count("select count(*) from gleaner.jobs where status = 'done' and finished_at is not null and result ->> 'by' = id::text and agent = 'a'").await?, 10);
    assert_eq!(outcomes(&queue.complete(&results(&items)).await?), [Outcome::Already; 10], "and a repeated completion is recognised");
    Ok(())
}

#[tokio::test]
async fn racing_claims_of_many_and_of_one_never_share_a_row() -> Result<()> {
    let (world, _) = field(0).await?;
    let pool = gleaner::pool(world.url(), 25)?;
    let queue = Queue::open(&pool, "jobs").await?;
    for round in 0..4 {
        queue.enqueue(&jobs("call", 300)).await?;
        queue.enqueue(&jobs("mail", 300)).await?;
        // Batch leases and single rows at once, repeatedly, each agent completing half of what it has.
        let racers = (0..40).map(|n| {
            let queue = &queue;
            async move {
                let mut got = Vec::new();
                let mut taken = 0;
                for _ in 0..4 {
                    let items = queue.claim(&Claim::by(format!("agent {n}")).limit(if n % 3 == 0 { 1 } else { 12 })).await?.items;
                    got.extend(keys(&items));
                    let half = &items[..items.len() / 2];
                    if !half.is_empty() {
                        let answers = queue.complete(&results(half)).await?;
                        ensure!(answers.iter().all(|a| a.outcome == Outcome::Done), "{answers:?}");
                        taken += half.len();
                    }
                }
                anyhow::Ok((got, taken))
            }
        });
        let all = try_join_all(racers).await?;
        let handed_out: Vec<&String> = all.iter().flat_map(|(got, _)| got).collect();
        let different: BTreeSet<_> = handed_out.iter().collect();
        assert_eq!(different.len(), handed_out.len(), "round {round}: a row was handed out twice");
        assert!(handed_out.len() > 300, "only {} rows in the race: it was none", handed_out.len());
        let done: usize = all.iter().map(|(_, taken)| taken).sum();
        assert_eq!(world.count("select count(*) from gleaner.jobs where status = 'done'").await?, i64::try_from(done)?);
        world.run("truncate gleaner.jobs, gleaner.batch_lease").await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_crashed_holders_batch_lease_comes_back_by_itself_and_its_late_results_are_refused() -> Result<()> {
    let (world, queue, items) = bound(5, "crashed").await?;
    assert!(world.claim(&queue, "other", None, 5).await?.is_empty(), "it is held");
    world.age("jobs", "6 minutes").await?;
    // Rows that lost a lease are claimed one by one.
    let mut again = Vec::new();
    for _ in 0..5 {
        again.extend(claim_anew(&world, &queue, "other", None, 5).await?);
    }
    assert_eq!(keys(&again), keys(&items));
    assert_eq!(world.count("select count(*) from gleaner.jobs where lost = 1 and status = 'running'").await?, 5, "each is counted as lost");
    let first = &items[0];
    assert_eq!(outcomes(&queue.complete(&results(&items)).await?), [Outcome::Lost; 5]);
    assert_eq!(queue.fail(&first.held(), &Failure::new("late")).await?.outcome, Outcome::Lost);
    assert_eq!(queue.progress(&first.held(), &Progress::stage("late")).await?.0.outcome, Outcome::Lost);
    assert_eq!(outcomes(&queue.release(&held(&items)).await?), [Outcome::Lost; 5]);
    assert_eq!(world.count("select count(*) from gleaner.late_result").await?, 5, "late results are evidence");
    assert_eq!(outcomes(&queue.complete(&results(&again)).await?), [Outcome::Done; 5]);
    Ok(())
}

#[tokio::test]
async fn what_was_never_begun_of_a_crashed_batch_lease_is_not_counted_as_lost() -> Result<()> {
    let (world, queue) = field(4).await?;
    let items = queue.claim(&Claim::by("crashed").limit(4)).await?.items;
    assert_eq!(outcomes(&queue.start(&held(&items[..1])).await?), [Outcome::Done]);
    world.age("jobs", "6 minutes").await?;
    claim_anew(&world, &queue, "other", None, 4).await?;
    claim_anew(&world, &queue, "other", None, 4).await?;
    assert_eq!(world.text("select string_agg(lost::text, '' order by id) from gleaner.jobs").await?.as_deref(), Some("1000"));
    Ok(())
}

#[tokio::test]
async fn an_expired_batch_lease_that_was_not_taken_still_completes() -> Result<()> {
    let (world, queue, items) = bound(4, "asleep").await?;
    world.age("jobs", "1 day").await?;
    assert_eq!(outcomes(&queue.complete(&results(&items[..2])).await?), [Outcome::Done; 2]);
    queue.recover().await?;
    assert_eq!(outcomes(&queue.complete(&results(&items[2..])).await?), [Outcome::Lost; 2], "recovered rows wait again");
    Ok(())
}

#[tokio::test]
async fn one_of_a_batch_lease_fails_one_snoozes_one_goes_back_and_the_rest_completes() -> Result<()> {
    let (world, queue, items) = bound(6, "a").await?;
    let [failed, snoozed, released, slow, ..] = &items[..] else { anyhow::bail!("six") };
    assert_eq!(queue.fail(&failed.held(), &Failure::new("broke")).await?.status.as_deref(), Some("failed"));
    assert_eq!(queue.snooze(&snoozed.held(), Duration::from_secs(600)).await?.outcome, Outcome::Done);
    assert_eq!(outcomes(&queue.release(&[released.held()]).await?), [Outcome::Done]);
    assert_eq!(queue.progress(&slow.held(), &Progress::stage("halfway").percent(50.0)).await?.0.outcome, Outcome::Done);
    assert_eq!(queue.fail(&failed.held(), &Failure::new("broke")).await?.outcome, Outcome::Already, "repeated");
    assert_eq!(outcomes(&queue.complete(&results(&items[3..])).await?), [Outcome::Done; 3]);
    let statuses = world.text("select string_agg(status || attempts, ' ' order by id) from gleaner.jobs").await?;
    assert_eq!(statuses.as_deref(), Some("failed1 ready0 ready0 done0 done0 done0"));
    assert_eq!(
        keys(&world.claim(&queue, "b", None, 6).await?),
        std::slice::from_ref(&released.key),
        "what was given back is free, the others wait"
    );
    Ok(())
}

#[tokio::test]
async fn progress_keeps_one_of_a_batch_lease_from_being_stolen_with_the_others() -> Result<()> {
    let (world, queue, items) = bound(3, "slow").await?;
    world.age("jobs", "4 minutes").await?;
    queue.progress(&items[0].held(), &Progress::default()).await?;
    world.age("jobs", "2 minutes").await?;
    let mut taken = claim_anew(&world, &queue, "thief", None, 5).await?;
    taken.extend(claim_anew(&world, &queue, "thief", None, 5).await?);
    taken.extend(claim_anew(&world, &queue, "thief", None, 5).await?);
    assert_eq!(keys(&taken), keys(&items[1..]));
    assert_eq!(outcomes(&queue.complete(&results(&items[..1])).await?), [Outcome::Done]);
    Ok(())
}

#[tokio::test]
async fn cancel_bury_and_requeue_take_rows_out_of_a_batch_lease() -> Result<()> {
    let (world, queue, items) = bound(4, "a").await?;
    let key = |n: usize| items[n].key.as_str();
    assert_eq!(outcomes(&queue.cancel(&[key(0)], None).await?), [Outcome::Done]);
    assert_eq!(outcomes(&queue.bury(&[key(1)], None).await?), [Outcome::Done]);
    assert_eq!(outcomes(&queue.requeue(&[key(2)]).await?), [Outcome::Done]);
    // The row waits again, and no late result may end it.
    assert_eq!(outcomes(&queue.requeue(&[key(0)]).await?), [Outcome::Done]);
    let ended: BTreeSet<String> = queue.ended(&held(&items)).await?.into_iter().map(|held| held.key).collect();
    assert_eq!(ended, items[..3].iter().map(|i| i.key.clone()).collect(), "the holder learns which it lost, and only those");
    assert_eq!(outcomes(&queue.complete(&results(&items)).await?).iter().filter(|o| **o == Outcome::Done).count(), 1);
    let mut free = keys(&world.claim(&queue, "b", None, 5).await?);
    free.sort();
    assert_eq!(free, [items[0].key.clone(), items[2].key.clone()]);
    Ok(())
}

/// Consecutive keys are read as one piece. Keys that are not consecutive, or not in claim order, are not.
#[tokio::test]
async fn a_batch_lease_gives_out_its_own_rows_in_the_order_of_the_line() -> Result<()> {
    let (world, queue) = field(0).await?;
    let backwards: Vec<Value> = (0..6).map(|n| json!({"kind": "back", "due_at": format!("2020-01-0{}T00:00:00Z", 7 - n)})).collect();
    let between: Vec<Value> = (0..12).map(|n| json!({"kind": if n % 2 == 0 { "even" } else { "odd" }, "payload": n})).collect();
    queue.enqueue(&backwards).await?;
    queue.enqueue(&between).await?;
    for (kind, order) in [("back", "due_at, id"), ("even", "id"), ("odd", "id")] {
        let items = queue.claim(&Claim::by("a").kinds([kind]).limit(6)).await?.items;
        let line =
            world.text(&format!("select string_agg(id::text, ' ' order by {order}) from gleaner.jobs where kind = '{kind}'")).await?;
        assert_eq!(Some(keys(&items).join(" ")), line, "{kind}");
        assert!(items.iter().all(|i| i.kind.as_deref() == Some(kind) && i.lease < 0), "{items:?}");
    }
    assert_eq!(world.count("select sum(upper(r) - lower(r))::bigint from gleaner.batch_lease, unnest(keys) as r").await?, 18);
    Ok(())
}

/// Without results a batch lease is ended along its key, piece by piece: rows within the piece that are no longer held stay as they are.
#[tokio::test]
async fn a_completion_without_results_ends_what_is_held_and_nothing_between() -> Result<()> {
    let (world, queue, items) = bound(8, "a").await?;
    let key = |n: usize| items[n].key.as_str();
    queue.cancel(&[key(1)], None).await?;
    queue.requeue(&[key(3)]).await?;
    world.run(&format!("delete from gleaner.jobs where id = {}", key(4))).await?;
    // As in a restored backup: the batch lease names the row, and the row was claimed before.
    world
        .run(&format!(
            "begin; set local role gleaner_engine; update gleaner.jobs set lease = 9, status = 'cancelled' where id = {}; commit",
            key(2)
        ))
        .await?;
    // The first six, the last of them twice: the seventh and eighth are not included.
    let meant: Vec<_> = items[..6].iter().chain(&items[5..6]).map(|i| Completion::new(i.held(), None)).collect();
    let mut told: Vec<(String, Outcome)> = queue.complete(&meant).await?.into_iter().map(|a| (a.key, a.outcome)).collect();
    told.sort_by_key(|t| t.0.parse::<i64>().unwrap_or_default());
    told.dedup();
    let expected = [Outcome::Done, Outcome::Lost, Outcome::Lost, Outcome::Lost, Outcome::Gone, Outcome::Done];
    assert_eq!(told, items.iter().map(|i| i.key.clone()).zip(expected).collect::<Vec<_>>());
    let seen = world.text("select string_agg(status, ' ' order by id) from gleaner.jobs").await?;
    assert_eq!(seen.as_deref(), Some("done cancelled cancelled ready done ready ready"));
    assert_eq!(
        world.count("select count(*) from gleaner.batch_lease as b join gleaner.jobs as j on b.keys @> j.id and j.lease = b.mark and j.status = 'ready'").await?,
        2,
        "two are still held"
    );
    // Out of order, in pieces, and together with another agent's row.
    let other = queue.claim(&Claim::by("b").limit(1)).await?.items;
    let rest = [&items[7], &other[0], &items[6]].map(|item| Completion::new(item.held(), None));
    assert_eq!(outcomes(&queue.complete(&rest).await?), [Outcome::Done; 3]);
    assert_eq!(world.count("select count(*) from gleaner.jobs where status = 'done'").await?, 5);
    // The record still counts the row that was changed without it, and is deleted when it expires.
    world.age("jobs", "10 minutes").await?;
    queue.claim(&Claim::by("b").limit(1)).await?;
    assert_eq!(world.count("select count(*) from gleaner.batch_lease").await?, 0);
    Ok(())
}

#[tokio::test]
async fn plain_writers_neither_take_nor_end_what_a_batch_lease_holds() -> Result<()> {
    let (world, queue, items) = bound(3, "a").await?;
    for change in [
        "status = 'running'",
        "status = 'done'",
        "status = 'ready'",
        "due_at = now()",
        "lease = 5",
        "id = id + 1000",
        "payload = '{}', attempts = 9",
        "kind = 'other'",
        "unique_key = 'k' || id",
    ] {
        for role in ["", "set local role service_role; "] {
            let error = world.run(&format!("begin; {role}update gleaner.jobs set {change}; commit")).await.expect_err(change);
            world.run("rollback").await?;
            let told =
                error.chain().find_map(|e| e.downcast_ref::<tokio_postgres::Error>()?.as_db_error()).context("an error of the database")?;
            assert_eq!(told.code(), &SqlState::INSUFFICIENT_PRIVILEGE, "{told:?}");
            assert!(told.hint().is_some_and(|hint| hint.contains("gleaner.cancel_jobs")), "the error says what to do: {told:?}");
        }
    }
    assert!(world.claim(&queue, "b", None, 5).await?.is_empty());
    // Other columns may be changed by any writer, as on a single row that is held.
    world.run("update gleaner.jobs set payload = '{\"edited\": true}'").await?;
    assert!(world.claim(&queue, "b", None, 5).await?.is_empty());
    assert_eq!(outcomes(&queue.complete(&results(&items)).await?), [Outcome::Done; 3]);
    Ok(())
}

/// A key that is inserted again is a new row: no agent holds it, and the former holder's result is refused.
#[tokio::test]
async fn a_key_inserted_again_has_no_holder_and_its_former_holder_has_no_lease_on_it() -> Result<()> {
    let (world, queue, items) = bound(6, "a").await?;
    let gone = &items[2];
    world
        .run(&format!("delete from gleaner.jobs where id = {0}; insert into gleaner.jobs (id, kind) values ({0}, 'anew')", gone.key))
        .await?;
    assert_eq!(outcomes(&queue.complete(&[Completion::new(gone.held(), None)]).await?), [Outcome::Lost]);
    let anew = world.claim(&queue, "b", None, 10).await?;
    assert_eq!((keys(&anew), anew[0].kind.as_deref()), (vec![gone.key.clone()], Some("anew")), "the others are held");
    assert_eq!(outcomes(&queue.complete(&results(&anew)).await?), [Outcome::Done]);
    let rest: Vec<Item> = items.into_iter().filter(|i| i.key != anew[0].key).collect();
    assert_eq!(outcomes(&queue.complete(&results(&rest)).await?), [Outcome::Done; 5]);
    assert_eq!(world.count("select count(*) from gleaner.batch_lease").await?, 0);

    // All rows of a batch lease are deleted: no row is left whose lease could expire. The whole table is emptied: keys start
    // again, and no batch lease stays.
    queue.enqueue(&jobs("default", 3)).await?;
    world.claim(&queue, "a", None, 3).await?;
    world.run("delete from gleaner.jobs").await?;
    assert_eq!(world.count("select count(*) from gleaner.batch_lease").await?, 0);
    queue.enqueue(&jobs("default", 3)).await?;
    let held = world.claim(&queue, "a", None, 3).await?;
    world.run("truncate gleaner.jobs restart identity").await?;
    world.run(&format!("insert into gleaner.jobs (id) select {} + n from generate_series(0, 2) as n", held[0].key)).await?;
    assert_eq!(outcomes(&queue.complete(&results(&held)).await?), [Outcome::Lost; 3]);
    assert_eq!(world.claim(&queue, "b", None, 3).await?.len(), 3);
    Ok(())
}

#[tokio::test]
async fn a_row_with_a_unique_key_is_never_in_a_batch_lease_and_its_successor_may_wait() -> Result<()> {
    let (world, queue) = field(3).await?;
    queue.enqueue(&[json!({"unique_key": "report", "due_at": "2020-01-01T00:00:00Z"})]).await?;
    let items = queue.claim(&Claim::by("a").limit(10)).await?.items;
    assert_eq!(items.iter().map(|i| i.lease > 0).collect::<Vec<_>>(), [true, false, false, false], "in the order of the line");
    assert_eq!(queue.enqueue(&[json!({"unique_key": "report"})]).await?[0].outcome, "enqueued");
    assert_eq!(outcomes(&queue.complete(&results(&items)).await?), [Outcome::Done; 4]);
    assert_eq!(world.count("select count(*) from gleaner.jobs where status = 'ready'").await?, 1);
    Ok(())
}

#[tokio::test]
async fn a_repeated_request_returns_the_rows_of_its_batch_lease() -> Result<()> {
    let (_world, queue) = field(6).await?;
    let mut claim = Claim::by("a").limit(4);
    claim.request = Some(Uuid::new_v4());
    let given = queue.claim(&claim).await?.items;
    queue.complete(&results(&given[..1])).await?;
    queue.cancel(&[&given[1].key], None).await?;
    let again = queue.claim(&claim).await?.items;
    assert_eq!(held(&again), held(&given[2..]));
    Ok(())
}

/// One part of the batch is held by a batch lease, another row by row: a repeated request mixes them as the lost answer did.
#[tokio::test]
async fn a_repeated_request_keeps_the_order_of_the_line_and_survives_a_table_that_grows() -> Result<()> {
    let (world, queue) = field(3).await?;
    queue.enqueue(&[json!({"unique_key": "between"})]).await?;
    queue.enqueue(&jobs("default", 3)).await?;
    let mut claim = Claim::by("a").limit(10);
    claim.request = Some(Uuid::new_v4());
    let given = queue.claim(&claim).await?.items;
    assert_eq!(given.iter().map(|i| i.lease > 0).collect::<Vec<_>>(), [false, false, false, true, false, false, false]);
    let again = queue.claim(&claim).await?.items;
    assert_eq!(held(&again), held(&given));
    // After a change of the table that the function does not know, it can only return rows as they are. Rows of the batch lease
    // expire by themselves.
    world.run("alter table gleaner.jobs add column note text").await?;
    assert_eq!(held(&queue.claim(&claim).await?.items), held(&given[3..4]));
    assert_eq!(outcomes(&queue.complete(&results(&given)).await?), [Outcome::Done; 7]);
    Ok(())
}

/// The search for open batch leases begins where the last one ended: at the oldest transaction that could still commit one.
#[tokio::test]
async fn a_batch_lease_bound_by_a_transaction_older_than_many_others_is_not_overlooked() -> Result<()> {
    let (world, queue) = field(40).await?;
    let mut slow: Client = world.connect().await?;
    let transaction = slow.transaction().await?;
    transaction.execute("select pg_current_xact_id()", &[]).await?;
    let acts = Acts::of(&world.client, "jobs").await?;
    for _ in 0..5 {
        let items = acts.claim(&world.client, &Claim::by("quick").limit(3)).await?.items;
        acts.complete(&world.client, &results(&items)).await?;
    }
    let late = acts.claim(&transaction, &Claim::by("slow").limit(5)).await?.items;
    transaction.commit().await?;
    world.run("select set_config('gleaner.cursor_jobs', '', false)").await?;
    let rest = acts.claim(&world.client, &Claim::by("quick").limit(100)).await?.items;
    assert_eq!(rest.len(), 20);
    assert!(keys(&late).iter().all(|key| !keys(&rest).contains(key)), "handed out twice");
    assert!(world.claim(&queue, "other", None, 100).await?.is_empty());
    Ok(())
}

#[tokio::test]
async fn a_table_that_grew_a_column_is_claimed_row_by_row_until_it_is_attached_anew() -> Result<()> {
    let (world, queue) = field(4).await?;
    world.run("alter table gleaner.jobs add column note text").await?;
    let items = queue.claim(&Claim::by("a").limit(2)).await?.items;
    assert!(items.len() == 2 && items.iter().all(|i| i.lease > 0), "{items:?}");
    world.bind_jobs_from(2).await?;
    let items = queue.claim(&Claim::by("a").limit(2)).await?.items;
    assert!(items.len() == 2 && items.iter().all(|i| i.lease < 0), "{items:?}");
    Ok(())
}

#[tokio::test]
async fn a_queue_that_binds_no_more_leaves_its_holders_their_leases() -> Result<()> {
    let (world, queue, items) = bound(3, "a").await?;
    let source = world.text("select source from gleaner.queue where name = 'jobs'").await?.context("attached")?;
    world.attach("jobs", &source.lines().filter(|line| !line.starts_with("bulk")).collect::<Vec<_>>().join("\n")).await?;
    assert_eq!(world.count("select count(*) from gleaner.batch_lease").await?, 0);
    assert!(world.claim(&queue, "b", None, 5).await?.is_empty(), "still held");
    assert_eq!(outcomes(&queue.complete(&results(&items)).await?), [Outcome::Done; 3]);
    Ok(())
}

#[tokio::test]
async fn explain_stats_and_the_next_due_time_know_what_a_batch_lease_holds() -> Result<()> {
    let (world, queue, items) = bound(3, "a").await?;
    let why = queue.explain(&items[0].key, None).await?.context("the row is there")?;
    assert_eq!((&why["state"], &why["claimable"], &why["agent"]), (&json!("running"), &json!(false), &json!("a")), "{why}");
    let counted =
        world.text("select string_agg(state || ' ' || count, ', ' order by state) from gleaner.stats_jobs() where count > 0").await?;
    assert_eq!(counted.as_deref(), Some("running 3"));
    assert_eq!(queue.waiting(&Claim::by("b")).await?.count, 0);
    let next = queue.claim(&Claim::by("b").limit(5)).await?.next_due_in.context("the batch lease will run out")?;
    assert!(next > Duration::from_secs(290) && next <= Duration::from_secs(300), "{next:?}");
    let view = gleaner::view::View::of(&world.client, "jobs").await?;
    let running = gleaner::view::Filter { state: Some(gleaner::view::State::Running), limit: 10, ..Default::default() };
    let shown = view.list(&world.client, &running).await?;
    assert_eq!(shown.len(), 3);
    assert_eq!((&shown[0]["state"], &shown[0]["agent"]), (&json!("running"), &json!("a")));
    let ready = gleaner::view::Filter { state: Some(gleaner::view::State::Ready), limit: 10, ..Default::default() };
    assert!(view.list(&world.client, &ready).await?.is_empty());
    Ok(())
}
