//! What a prune costs when the table is large and no index has the time when work ended: it walks along the key, reads about as
//! much as it deletes, and never reads the same rows twice for nothing.

use anyhow::Result;

use crate::plans::{SESSIONS, Watched, load};
use crate::world::{World, world};

/// One row for each that was deleted, so that the limit grows with them.
const TEN: &str = "select generate_series(1, gleaner.prune_jobs(10))";
const THOUSAND: &str = "select generate_series(1, gleaner.prune_jobs())";

/// Inserts `n` jobs that ended this long ago, or that wait if `ended` is null.
fn many(n: i64, ended: &str) -> String {
    match ended {
        "null" => format!("insert into gleaner.jobs (created_at) select now() - interval '30 days' from generate_series(1, {n})"),
        ended => format!(
            "insert into gleaner.jobs (status, due_at, created_at, finished_at)
             select 'done', null, now() - interval '{ended}' + n * interval '1 microsecond', now() - interval '{ended}' + n * interval '1 microsecond'
             from generate_series(1, {n}) n"
        ),
    }
}

/// Runs `calls` with each way in which a plan is made, with statistics from when the table was empty and with true ones.
async fn under_every_plan(world: &World, calls: impl AsyncFn(&mut Watched, &dyn Fn(&str) -> String) -> Result<()>) -> Result<()> {
    for statistics in ["empty", "true"] {
        if statistics == "true" {
            world.run("analyze gleaner.jobs").await?;
        }
        for (session, settings) in SESSIONS {
            let mut watched = Watched::connect(world, "jobs", settings).await?;
            calls(&mut watched, &|what: &str| format!("{what} ({session}, {statistics} statistics)")).await?;
        }
    }
    Ok(())
}

/// The usual case: hundreds of thousands of finished rows, and none of them old enough.
#[tokio::test]
async fn a_prune_that_finds_nothing_old_reads_one_slice() -> Result<()> {
    let world = world().await?;
    load(&world, "gleaner.jobs", &many(400_000, "1 day")).await?;
    under_every_plan(&world, async |watched, named| {
        world.run("truncate gleaner.prune_mark").await?;
        for _ in 1..=7 {
            assert_eq!(watched.run(&named("prune, nothing old"), THOUSAND).await?.rows, 0);
        }
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_prune_of_a_table_that_is_all_old_reads_what_it_deletes() -> Result<()> {
    let world = world().await?;
    load(&world, "gleaner.jobs", &many(400_000, "9 days")).await?;
    under_every_plan(&world, async |watched, named| {
        for _ in 1..=7 {
            assert_eq!(watched.run(&named("prune ten, all old"), TEN).await?.rows, 10);
            assert_eq!(watched.run(&named("prune a thousand, all old"), THOUSAND).await?.rows, 1000);
        }
        Ok(())
    })
    .await
}

#[tokio::test]
async fn rows_that_wait_for_ever_before_the_old_are_read_once_and_not_by_every_call() -> Result<()> {
    let world = world().await?;
    load(&world, "gleaner.jobs", &format!("{}; {}", many(400_000, "null"), many(1000, "9 days"))).await?;
    assert_eq!(world.count("select gleaner.prune_jobs(10)::bigint").await?, 10);
    under_every_plan(&world, async |watched, named| {
        for _ in 1..=7 {
            assert_eq!(watched.run(&named("prune ten behind the waiting"), TEN).await?.rows, 10);
        }
        Ok(())
    })
    .await?;
    assert_eq!(world.count("select gleaner.prune_jobs()::bigint").await?, 1000 - 290);
    under_every_plan(&world, async |watched, named| {
        for _ in 1..=7 {
            assert_eq!(watched.run(&named("prune, nothing old but the waiting"), TEN).await?.rows, 0);
        }
        Ok(())
    })
    .await
}

/// A forgotten transaction prevents vacuum from removing them, and every search from the start would read them again.
#[tokio::test]
async fn the_dead_entries_of_what_was_pruned_are_not_walked_again() -> Result<()> {
    let world = world().await?;
    load(&world, "gleaner.jobs", &format!("{}; {}", many(100_000, "9 days"), many(100_000, "1 day"))).await?;
    let forgotten = world.connect().await?;
    forgotten.batch_execute("begin isolation level repeatable read; select 1").await?;
    assert_eq!(world.count("select gleaner.prune_jobs(99000)::bigint").await?, 99_000);
    under_every_plan(&world, async |watched, named| {
        for _ in 1..=7 {
            assert_eq!(watched.run(&named("prune ten behind the dead"), TEN).await?.rows, 10);
        }
        Ok(())
    })
    .await?;
    assert_eq!(world.count("select gleaner.prune_jobs()::bigint").await?, 1000 - 280);
    under_every_plan(&world, async |watched, named| {
        for _ in 1..=7 {
            assert_eq!(watched.run(&named("prune, nothing old behind the dead"), TEN).await?.rows, 0);
        }
        Ok(())
    })
    .await?;
    Ok(forgotten.batch_execute("commit").await?)
}

/// The next migration drops the index from databases that have it; queues without batch leases keep theirs.
#[tokio::test]
async fn a_migration_drops_the_index_that_bulk_work_no_longer_needs() -> Result<()> {
    let world = world().await?;
    let index = "select string_agg(relname, ' ') from pg_class where relname = 'gleaner_jobs_finished'";
    assert_eq!(world.text(index).await?, None);
    let source = world.text("select source from gleaner.queue where name = 'jobs'").await?.unwrap_or_default();
    let unbound: Vec<&str> = source.lines().filter(|line| !line.starts_with("bulk")).collect();
    world.attach("jobs", &unbound.join("\n")).await?;
    assert_eq!(world.text(index).await?.as_deref(), Some("gleaner_jobs_finished"));
    let plan = "explain select from gleaner.jobs where finished_at < now()";
    world.run("set enable_seqscan = off").await?;
    let found = world.client.query(plan, &[]).await?.iter().any(|r| r.get::<_, String>(0).contains("gleaner_jobs_finished"));
    assert!(found, "it serves the walkless prune");
    world.run("update gleaner.migration set checksum = 'older' where name = 'systems/jobs/jobs.toml'").await?;
    gleaner::migrate::migrate(world.url(), &|_| {}).await?;
    assert_eq!(world.text(index).await?, None);
    assert_eq!(
        world.count("select count(*) from gleaner.queue where name = 'jobs' and added -> 'indexes' ? 'gleaner_jobs_finished'").await?,
        0
    );
    Ok(())
}
