//! `gleaner migrate`: once, twice, concurrently, interrupted, and while other sessions use the tables.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use anyhow::Result;
use gleaner::migrate::{self, Kind, State, Step, migrate};

use crate::dump::pg_dump;
use crate::world::{World, empty_world, world};

async fn applied(world: &World) -> Result<Vec<&'static str>> {
    Ok(migrate(world.url(), &|_| {}).await?)
}

/// Waits until the condition holds; tests wait for conditions, not for seconds.
async fn until(world: &World, condition: &str) -> Result<()> {
    let begun = Instant::now();
    while world.text(&format!("select 1::text where {condition}")).await?.is_none() {
        anyhow::ensure!(begun.elapsed() < Duration::from_secs(30), "never came true: {condition}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    Ok(())
}

/// Indexes that a concurrent build left unusable.
async fn invalid_indexes(world: &World) -> Result<i64> {
    world.count("select count(*) from pg_index where not indisvalid").await
}

#[tokio::test]
async fn a_fresh_database_gets_everything_and_a_second_run_changes_nothing() -> Result<()> {
    let world = empty_world().await?;
    assert!(migrate::status(&world.client).await?.iter().all(|s| s.state == State::Pending));
    let first = applied(&world).await?;
    assert_eq!(first.len(), migrate::status(&world.client).await?.len());
    assert!(migrate::status(&world.client).await?.iter().all(|s| s.state == State::Applied));
    let before = (pg_dump(world.url(), &[])?, world.text("select max(changed_at)::text from gleaner.queue").await?);
    assert!(applied(&world).await?.is_empty());
    assert_eq!(before, (pg_dump(world.url(), &[])?, world.text("select max(changed_at)::text from gleaner.queue").await?));
    assert_eq!(invalid_indexes(&world).await?, 0);
    Ok(())
}

#[tokio::test]
async fn five_runs_at_once_apply_each_step_once() -> Result<()> {
    let world = empty_world().await?;
    let runs = futures_util::future::join_all((0..5).map(|_| applied(&world))).await;
    let mut done: Vec<&str> = runs.into_iter().collect::<Result<Vec<_>>>()?.concat();
    let all = done.len();
    done.sort_unstable();
    done.dedup();
    assert_eq!((done.len(), all), (migrate::status(&world.client).await?.len(), all), "a step was applied twice");
    assert_eq!(invalid_indexes(&world).await?, 0);
    Ok(())
}

/// A concurrent index build waits for older transactions; the second run waits for the first without blocking it.
#[tokio::test]
async fn two_runs_survive_a_transaction_held_while_an_index_is_built() -> Result<()> {
    let world = empty_world().await?;
    let old = world.connect().await?;
    old.batch_execute("begin isolation level repeatable read; select 1").await?;
    let told = Mutex::new(Vec::new());
    let first = async { Ok::<_, anyhow::Error>(migrate(world.url(), &|line| told.lock().unwrap().push(line.to_owned())).await?) };
    let release = async {
        until(&world, "exists (select from pg_stat_progress_create_index where phase like 'waiting%' and datname = current_database())")
            .await?;
        Ok::<_, anyhow::Error>(old.batch_execute("commit").await?)
    };
    let (first, second, release) = tokio::join!(first, applied(&world), release);
    release?;
    assert_eq!(first?.len() + second?.len(), migrate::status(&world.client).await?.len());
    assert_eq!(invalid_indexes(&world).await?, 0);
    Ok(())
}

#[tokio::test]
async fn an_invalid_index_left_by_an_interrupted_build_is_rebuilt() -> Result<()> {
    let world = world().await?;
    world
        .run(
            "update pg_index set indisvalid = false where indexrelid = 'gleaner.gleaner_jobs_global'::regclass;
             update gleaner.migration set checksum = 'older' where name = 'systems/jobs/jobs.toml'",
        )
        .await?;
    let old = world.text("select 'gleaner.gleaner_jobs_global'::regclass::oid::text").await?;
    assert_eq!(applied(&world).await?, ["systems/jobs/jobs.toml"]);
    assert_ne!(world.text("select 'gleaner.gleaner_jobs_global'::regclass::oid::text").await?, old);
    assert_eq!(invalid_indexes(&world).await?, 0);
    Ok(())
}

#[tokio::test]
async fn the_lock_of_a_run_that_died_is_taken_over_when_its_lease_ends() -> Result<()> {
    let world = world().await?;
    world
        .run("update gleaner.migration_lock set holder = 'process 1 on a host that is gone', fence = 41, until = clock_timestamp() + interval '700 milliseconds'")
        .await?;
    let told = Mutex::new(Vec::new());
    let begun = Instant::now();
    migrate(world.url(), &|line| told.lock().unwrap().push(line.to_owned())).await?;
    assert!(begun.elapsed() >= Duration::from_millis(500), "a standing lease is respected");
    assert!(told.lock().unwrap().iter().any(|line| line.contains("a host that is gone")), "{told:?}");
    assert_eq!(world.text("select fence::text || ' ' || until::text from gleaner.migration_lock").await?.as_deref(), Some("42 -infinity"));
    Ok(())
}

/// Without a pooler PostgreSQL detects at once that a process is gone; its lease would last for half a minute.
#[tokio::test]
async fn the_lock_of_a_run_that_died_does_not_make_others_wait_for_its_lease() -> Result<()> {
    let world = empty_world().await?;
    let old = world.connect().await?;
    old.batch_execute("begin isolation level repeatable read; select 1").await?;
    let url = world.url().to_owned();
    let run = tokio::spawn(async move { migrate(&url, &|_| {}).await.map(drop) });
    until(&world, "exists (select from pg_stat_progress_create_index where phase like 'waiting%' and datname = current_database())")
        .await?;
    run.abort();
    let _ = run.await;
    let lease = world.text("select until::text from gleaner.migration_lock where until > clock_timestamp() + interval '5 seconds'").await?;
    let lease = lease.expect("the lease stands");
    old.batch_execute("commit").await?;
    let taken = async {
        until(&world, &format!("exists (select from gleaner.migration_lock where fence = 2 and clock_timestamp() < '{lease}')")).await
    };
    let (run, taken) = tokio::join!(applied(&world), taken);
    taken?;
    run?;
    Ok(())
}

#[tokio::test]
async fn the_lock_of_a_run_that_lives_is_respected() -> Result<()> {
    let world = world().await?;
    let holder = world.connect().await?;
    holder.query("select 1", &[]).await?;
    let pid: i32 = holder.query_one("select pg_backend_pid()", &[]).await?.get(0);
    world
        .run(&format!(
            "update gleaner.migration_lock l set holder = 'one that lives', fence = 41, until = clock_timestamp() + interval '1 hour',
                 backend_pid = a.pid, backend_start = a.backend_start from pg_stat_activity a where a.pid = {pid}"
        ))
        .await?;
    let told = Mutex::new(Vec::new());
    let url = world.url().to_owned();
    let say = |line: &str| told.lock().unwrap().push(line.to_owned());
    let release = async {
        while told.lock().unwrap().is_empty() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert_eq!(world.text("select fence::text from gleaner.migration_lock").await?.as_deref(), Some("41"));
        world.run(&format!("select pg_terminate_backend({pid})")).await
    };
    let (run, release) = tokio::join!(migrate(&url, &say), release);
    release?;
    run?;
    assert_eq!(world.text("select fence::text from gleaner.migration_lock").await?.as_deref(), Some("42"));
    Ok(())
}

/// A run that lost its lease (for example on a suspended machine) detects that before its next step, and leaves the lock to its
/// new holder.
#[tokio::test]
async fn a_run_that_was_overtaken_stops_before_its_next_step() -> Result<()> {
    let world = empty_world().await?;
    let old = world.connect().await?;
    old.batch_execute("begin isolation level repeatable read; select 1").await?;
    let overtake = async {
        until(&world, "exists (select from pg_stat_progress_create_index where phase like 'waiting%' and datname = current_database())")
            .await?;
        world
            .run("update gleaner.migration_lock set holder = 'thief', fence = fence + 1, until = clock_timestamp() + interval '1 hour'")
            .await?;
        Ok::<_, anyhow::Error>(old.batch_execute("commit").await?)
    };
    let (run, overtake) = tokio::join!(migrate(world.url(), &|_| {}), overtake);
    overtake?;
    assert!(matches!(run, Err(gleaner::Error::MigrationBusy { .. })), "{run:?}");
    assert_eq!(world.text("select holder from gleaner.migration_lock where until > now()").await?.as_deref(), Some("thief"));
    world.run("update gleaner.migration_lock set until = '-infinity'").await?;
    applied(&world).await?;
    let steps = migrate::status(&world.client).await?;
    assert!(steps.iter().all(|s| s.state == State::Applied), "the next run goes on where it stopped");
    for system in migrate::SYSTEMS {
        assert!(steps.iter().any(|s| s.name.starts_with(&format!("systems/{system}/"))), "{system} was meant to come, too");
    }
    Ok(())
}

#[tokio::test]
async fn an_edited_versioned_file_is_refused_by_name_before_anything_runs() -> Result<()> {
    let world = world().await?;
    world
        .run(
            "update gleaner.migration set checksum = 'what was applied back then' where name = 'systems/runs/tables/0001_execution_jobs.sql';
             delete from gleaner.migration where name = 'engine/functions/backoff.sql'",
        )
        .await?;
    let error = migrate(world.url(), &|_| {}).await.unwrap_err().to_string();
    assert!(error.contains("systems/runs/tables/0001_execution_jobs.sql") && error.contains("write a new file"), "{error}");
    assert_eq!(world.count("select count(*) from gleaner.migration where name = 'engine/functions/backoff.sql'").await?, 0);
    Ok(())
}

#[tokio::test]
async fn a_repeatable_file_is_applied_again_when_its_text_changed() -> Result<()> {
    let world = world().await?;
    let step = "systems/crm/functions/normalize_phone.sql";
    world
        .run(&format!(
            "create or replace function public.normalize_phone(p_text text) returns text language sql immutable as $$ select 'old' $$;
             update gleaner.migration set checksum = 'older' where name = '{step}'"
        ))
        .await?;
    assert_eq!(migrate::status(&world.client).await?.iter().find(|s| s.name == step).map(|s| s.state), Some(State::Changed));
    assert_eq!(applied(&world).await?, [step]);
    assert_eq!(world.text("select normalize_phone('(415) 867-5309')").await?.as_deref(), Some("+14158675309"));
    Ok(())
}

/// A new enum value cannot be used in the transaction that adds it; such a file runs statement by statement.
#[tokio::test]
async fn a_step_outside_a_transaction_adds_an_enum_value_and_uses_it() -> Result<()> {
    let world = world().await?;
    world.run("create type mood as enum ('calm'); create table today (mood mood)").await?;
    let mut client = world.connect().await?;
    let within = Step {
        name: "tests/0001_within.sql",
        kind: Kind::Versioned,
        text: "alter type mood add value 'merry';\ninsert into today values ('merry');\n",
        state: State::Pending,
    };
    assert!(migrate::apply_step(&mut client, &within, &|_| {}).await.is_err());
    let outside = Step {
        name: "tests/0001_outside.sql",
        text: "-- outside a transaction\nalter type mood add value if not exists 'merry';\ninsert into today values ('merry');\n",
        ..within
    };
    migrate::apply_step(&mut client, &outside, &|_| {}).await?;
    assert_eq!(world.text("select mood::text from today").await?.as_deref(), Some("merry"));
    assert_eq!(world.count("select count(*) from gleaner.migration where name like 'tests/%'").await?, 1);
    Ok(())
}

/// A migration that waited for a table's lock would block every reader behind it; it gives up the lock request and retries instead.
#[tokio::test]
async fn a_migration_gives_way_to_readers_of_a_locked_table() -> Result<()> {
    let world = empty_world().await?;
    world.run(crate::supabase::CRM).await?;
    let holder = world.connect().await?;
    holder.batch_execute("begin; select * from sales").await?;
    let reading = async {
        until(&world, "exists (select from pg_locks where relation = 'sales'::regclass and not granted)").await?;
        let begun = Instant::now();
        world.count("select count(*) from sales").await?;
        let waited = begun.elapsed();
        holder.batch_execute("commit").await?;
        Ok::<_, anyhow::Error>(waited)
    };
    let (run, waited) = tokio::join!(applied(&world), reading);
    assert!(waited? < Duration::from_secs(4), "a reader waits for the lock timeout at most");
    assert!(!run?.is_empty());
    Ok(())
}

/// Queues that users attached get the acts of the installed version, too. One that no longer fits is reported and does not stop the rest.
#[tokio::test]
async fn a_migration_refreshes_the_queues_people_attached_themselves() -> Result<()> {
    let world = world().await?;
    let status = "status = { column = 'status', ready = 'new', running = 'busy', done = 'done', failed = 'bad' }";
    for name in ["parcels", "letters"] {
        world.run(&format!("create table public.{name} (id bigserial primary key, status text not null default 'new')")).await?;
        world.attach(name, &format!("table = 'public.{name}'\n{status}")).await?;
    }
    let rendered = world.text("select rendered from gleaner.queue where name = 'parcels'").await?;
    // As an earlier version left them: other text in the registry, and an act that does not exist yet.
    world.run("update gleaner.queue set rendered = 'earlier'; drop function gleaner.explain_parcels(bigint)").await?;
    world.run("alter table public.letters rename column status to state").await?;
    let said = Mutex::new(Vec::new());
    migrate(world.url(), &|s| said.lock().unwrap().push(s.to_owned())).await?;
    assert_eq!(world.text("select rendered from gleaner.queue where name = 'parcels'").await?, rendered);
    assert_eq!(world.count("select count(*) from pg_proc where proname = 'explain_parcels'").await?, 1);
    let said = said.into_inner()?;
    assert!(said.iter().any(|s| s.contains("letters keeps its earlier acts")), "{said:?}");
    Ok(())
}
