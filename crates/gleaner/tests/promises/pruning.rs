//! What prune deletes and what it leaves, when it walks along the key and records how far it got.

use std::time::Duration;

use anyhow::{Context as _, Result};
use futures_util::future::try_join_all;

use crate::world::{World, world};

/// Jobs with keys from `from` to `to`, created and, unless `ended` is null, done this long ago. Written as the engine's role, so
/// that no trigger takes them for an act.
async fn jobs(world: &World, from: i64, to: i64, created: &str, ended: &str) -> Result<()> {
    let ended = if ended == "null" { "null".to_owned() } else { format!("now() - interval '{ended}'") };
    world
        .run(&format!(
            "begin; set local role gleaner_engine;
             insert into gleaner.jobs (id, created_at, finished_at, status, due_at)
             select n, now() - interval '{created}', {ended}, case when {ended} is null then 'ready' else 'done' end, case when {ended} is null then now() end
             from generate_series({from}, {to}) n; commit"
        ))
        .await
}

/// Simulates that time passes, for the rows and for what is recorded about them.
async fn later(world: &World, interval: &str) -> Result<()> {
    world
        .run(&format!(
            "begin; set local role gleaner_engine;
             update gleaner.jobs set created_at = created_at - interval '{interval}', finished_at = finished_at - interval '{interval}';
             update gleaner.prune_mark set oldest = oldest - interval '{interval}', unread_since = unread_since - interval '{interval}'; commit"
        ))
        .await
}

async fn left(world: &World) -> Result<i64> {
    world.count("select count(*) from gleaner.jobs").await
}

async fn call(world: &World, arguments: &str) -> Result<i64> {
    world.count(&format!("select gleaner.prune_jobs({arguments})::bigint")).await
}

#[tokio::test]
async fn what_ended_before_the_retention_goes_and_nothing_else_does() -> Result<()> {
    let world = world().await?;
    let source = world.text("select source from gleaner.queue where name = 'jobs'").await?.context("attached")?;
    let unbound = source.lines().filter(|line| !line.starts_with("bulk")).collect::<Vec<_>>().join("\n");
    for declaration in [&source, &unbound] {
        world.attach("jobs", declaration).await?;
        world
            .run(
                "begin; set local role gleaner_engine;
                 insert into gleaner.jobs (kind, status, due_at, created_at, finished_at)
                 select v.kind, v.status, v.due_at, now() - interval '20 days', v.ended
                 from (values ('goes', 'done', null, now() - interval '8 days'), ('goes', 'cancelled', null, now() - interval '8 days'),
                              ('goes', 'failed', null, now() - interval '8 days'), ('goes', 'done', now(), now() - interval '7 days 1 second'),
                              ('stays', 'done', null, now() - interval '6 days'), ('stays', 'failed', now(), now() - interval '8 days'),
                              ('stays', 'ready', now(), null), ('stays', 'running', now(), null), ('stays', 'ready', now(), now() - interval '8 days'),
                              ('stays', 'done', null, null)) as v (kind, status, due_at, ended); commit",
            )
            .await?;
        assert_eq!(world.queue("jobs").await?.prune(None).await?, 4);
        assert_eq!(world.text("select string_agg(distinct kind, ' ') || count(*) from gleaner.jobs").await?.as_deref(), Some("stays6"));
        assert_eq!(world.queue("jobs").await?.prune(None).await?, 0);
        world.run("truncate gleaner.jobs").await?;
    }
    Ok(())
}

/// Thousands of rows that wait for ever come first, and more are among the old ones.
#[tokio::test]
async fn a_prune_removes_all_that_is_old_in_one_go() -> Result<()> {
    let world = world().await?;
    jobs(&world, 1, 25_000, "30 days", "null").await?;
    jobs(&world, 25_001, 37_000, "30 days", "8 days").await?;
    world.run("delete from gleaner.jobs where id > 25000 and id % 3 = 0").await?;
    jobs(&world, 40_001, 45_000, "30 days", "null").await?;
    jobs(&world, 45_001, 45_700, "30 days", "8 days").await?;
    jobs(&world, 50_001, 51_000, "1 day", "1 day").await?;
    assert_eq!(world.queue("jobs").await?.prune(None).await?, 8_700);
    assert_eq!(left(&world).await?, 31_000);
    Ok(())
}

/// Keys ascend with time, and work ends in any order: after every walk with a short answer nothing old is left.
#[tokio::test]
async fn whatever_ends_in_whatever_order_a_short_answer_means_that_nothing_old_is_left() -> Result<()> {
    let world = world().await?;
    let mut chance: u64 = 11;
    let mut draw = |n: u64| {
        chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (chance >> 33) % n
    };
    let mut next = 1;
    for _ in 0..60 {
        let more = draw(400) as i64;
        jobs(&world, next, next + more - 1, "0", "null").await?;
        next += more;
        let ended = draw(90);
        world
            .run(&format!(
                "begin; set local role gleaner_engine;
                 update gleaner.jobs set status = 'done', due_at = null, finished_at = clock_timestamp() where status = 'ready' and hashint8(id + {}) & 127 < {ended}; commit",
                draw(1000)
            ))
            .await?;
        later(&world, &format!("{} hours", draw(60))).await?;
        let (limit, days) = ([1, 30, 100, 1000][draw(4) as usize], [2, 4, 7][draw(3) as usize]);
        while call(&world, &format!("{limit}, '{days} days'")).await? >= limit {}
        let old =
            format!("select count(*) from gleaner.jobs where status = 'done' and finished_at < clock_timestamp() - interval '{days} days'");
        assert_eq!(world.count(&old).await?, 0);
        assert_eq!(world.count("select count(*) from gleaner.prune_mark where begins = -9223372036854775808").await?, 1);
    }
    assert!(next > 5000 && left(&world).await? > 100);
    Ok(())
}

#[tokio::test]
async fn a_call_deletes_no_more_than_its_limit_and_the_next_continues_there() -> Result<()> {
    let world = world().await?;
    jobs(&world, 1, 250, "30 days", "8 days").await?;
    let mut told = Vec::new();
    for _ in 0..5 {
        told.push(call(&world, "70").await?);
    }
    assert_eq!(told, [70, 70, 70, 40, 0]);
    // A stretch that is just as long as the slice, and another after it.
    jobs(&world, 1001, 3000, "1 day", "1 day").await?;
    world.run("truncate gleaner.prune_mark").await?;
    assert_eq!(call(&world, "").await?, 0);
    assert_eq!(call(&world, "1000, '1 hour'").await?, 1000);
    assert_eq!(call(&world, "1000, '1 hour'").await?, 1000);
    assert_eq!(call(&world, "1000, '1 hour'").await?, 0);
    Ok(())
}

/// Young rows are not read unless needed, but no inference is trusted for longer than twice the retention.
#[tokio::test]
async fn a_row_whose_key_is_out_of_order_goes_late_and_is_not_forgotten() -> Result<()> {
    let world = world().await?;
    jobs(&world, 1, 3000, "1 day", "1 day").await?;
    // After all keys that will ever come, among the young, and before the first: each ended long ago.
    jobs(&world, 1_000_000_000_000, 1_000_000_000_000, "1 year", "1 year").await?;
    assert_eq!(call(&world, "").await?, 0, "it is behind the young, where nobody looks");
    jobs(&world, 1_000_000_000_001, 1_000_000_000_001, "0", "null").await?;
    jobs(&world, -5, -5, "1 year", "1 year").await?;
    world
        .run("update gleaner.jobs set created_at = now() - interval '1 year', finished_at = now() - interval '1 year' where id = 2500")
        .await?;
    let odd = "select count(*) from gleaner.jobs where id in (-5, 2500, 1000000000000)";
    for day in 1..=14 {
        // There is always a young row before the last.
        jobs(&world, day * 10_000, day * 10_000 + 1500, "0", "null").await?;
        later(&world, "1 day").await?;
        world.queue("jobs").await?.prune(None).await?;
        if day == 8 {
            assert_eq!(world.count(odd).await?, 1, "those with keys that were passed by are late by one retention at most");
        }
    }
    assert_eq!(world.count(odd).await?, 0);
    Ok(())
}

/// On the last day before the walk must go to the end, the first rows are younger than ever.
#[tokio::test]
async fn what_was_not_read_is_read_after_two_retentions_however_young_the_rows_before_it() -> Result<()> {
    let world = world().await?;
    jobs(&world, 1, 1000, "0", "null").await?;
    jobs(&world, 1_000_000, 1_000_000, "1 year", "1 year").await?;
    jobs(&world, 1_000_001, 1_000_001, "0", "null").await?;
    assert_eq!(call(&world, "").await?, 0);
    world.run("delete from gleaner.jobs where id <= 1000").await?;
    later(&world, "13 days").await?;
    jobs(&world, 2001, 4000, "0", "null").await?;
    assert_eq!(call(&world, "").await?, 0);
    later(&world, "1 day 1 hour").await?;
    assert_eq!(call(&world, "").await?, 1);
    Ok(())
}

#[tokio::test]
async fn a_shorter_age_asked_for_by_a_person_is_not_hidden_by_a_longer_one() -> Result<()> {
    let world = world().await?;
    let queue = world.queue("jobs").await?;
    jobs(&world, 1, 4000, "20 days", "3 days").await?;
    jobs(&world, 4001, 8000, "2 days", "1 day").await?;
    jobs(&world, 8001, 8100, "1 minute", "0").await?;
    let hours = |n: u64| Some(Duration::from_secs(n * 3600));
    assert_eq!(queue.prune(hours(30 * 24)).await?, 0);
    assert_eq!(queue.prune(None).await?, 0);
    assert_eq!(queue.prune(hours(48)).await?, 4000);
    assert_eq!(queue.prune(hours(48)).await?, 0);
    assert_eq!(queue.prune(None).await?, 0);
    assert_eq!(queue.prune(hours(12)).await?, 4000);
    assert_eq!(queue.prune(Some(Duration::ZERO)).await?, 100);
    assert_eq!(left(&world).await?, 0);
    Ok(())
}

#[tokio::test]
async fn prunes_at_once_share_the_work_and_leave_nothing_old() -> Result<()> {
    let world = world().await?;
    for round in 0..3 {
        jobs(&world, round * 100_000, round * 100_000 + 11_999, "30 days", "8 days").await?;
        world.run("begin; set local role gleaner_engine; update gleaner.jobs set status = 'ready', finished_at = null, due_at = now() where id % 4 = 0; commit").await?;
        let queue = world.queue("jobs").await?;
        let deleted = try_join_all((0..4).map(|_| queue.prune(None))).await?;
        assert_eq!(deleted.iter().sum::<u64>(), 9_000, "{deleted:?}");
        later(&world, "8 days").await?;
    }
    assert_eq!(left(&world).await?, 9_000);
    Ok(())
}

#[tokio::test]
async fn a_call_waits_for_no_lock_and_locked_rows_are_deleted_by_the_next() -> Result<()> {
    let world = world().await?;
    jobs(&world, 1, 5000, "30 days", "8 days").await?;
    world.run("set statement_timeout = '20s'").await?;
    let mut other = world.connect().await?;
    let editor = other.transaction().await?;
    editor.execute("select from gleaner.jobs where id in (7, 4321) for key share", &[]).await?;
    let queue = world.queue("jobs").await?;
    assert_eq!(tokio::time::timeout(Duration::from_secs(60), queue.prune(None)).await.context("waited for the editor")??, 4998);
    editor.rollback().await?;
    assert_eq!(queue.prune(None).await?, 2);

    // A call that has not ended yet: the rest of its stretch is reserved for it, and nothing of it is recorded if it is interrupted.
    jobs(&world, 5001, 9000, "30 days", "8 days").await?;
    later(&world, "8 days").await?;
    let pruner = other.transaction().await?;
    assert_eq!(pruner.query_one("select gleaner.prune_jobs(10)", &[]).await?.get::<_, i32>(0), 10);
    assert_eq!(call(&world, "").await?, 0);
    pruner.rollback().await?;
    assert_eq!(queue.prune(None).await?, 4000);
    Ok(())
}

/// A call uses at most half of the statement timeout: a call cancelled by the timeout would have to start again, every time.
#[tokio::test]
async fn a_call_answers_in_time_and_the_next_continues_there() -> Result<()> {
    let world = world().await?;
    jobs(&world, 1, 12_000, "30 days", "null").await?;
    jobs(&world, 12_001, 12_010, "30 days", "8 days").await?;
    world.run("set statement_timeout = '8s'").await?;
    let late = "select gleaner.prune_jobs()::bigint from (select pg_sleep(4.1) offset 0) as s";
    assert_eq!(world.count(late).await?, 0);
    assert_eq!(world.count("select max(begins) from gleaner.prune_mark").await?, 1001);
    assert_eq!(call(&world, "").await?, 10);
    Ok(())
}

#[tokio::test]
async fn what_was_remembered_goes_when_the_queue_does() -> Result<()> {
    let world = world().await?;
    jobs(&world, 1, 10, "1 day", "1 day").await?;
    call(&world, "").await?;
    assert!(world.count("select count(*) from gleaner.prune_mark").await? > 0);
    gleaner::attach::detach(&mut world.connect().await?, "jobs", false).await?;
    assert_eq!(world.count("select count(*) from gleaner.prune_mark").await?, 0);
    Ok(())
}
