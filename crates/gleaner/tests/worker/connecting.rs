//! Rejected logins on a real PostgreSQL: an error at the start; later an error that the worker reports and retries.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use gleaner::Error;
use gleaner::transport::{Direct, Endpoint};
use gleaner::worker::{Job, Poll, Worker};
use serde_json::{Value, json};
use tokio::sync::{Notify, watch};
use tokio_postgres::config::{Config, Host};

use crate::world::{World, jobs, world};

/// The same server with another role and database.
fn address(w: &World, role: &str, password: &str, database: &str) -> Result<String> {
    let config: Config = w.url().parse()?;
    let Some(Host::Unix(folder)) = config.get_hosts().first() else { anyhow::bail!("no socket in {}", w.url()) };
    let port = config.get_ports().first().copied().unwrap_or(5432);
    Ok(format!("postgresql://{role}:{password}@/{database}?host={}&port={port}", folder.display()))
}

/// Makes the server require a password for this role; the others connect as before.
async fn ask_for_passwords(w: &World, role: &str) -> Result<()> {
    let file = w.text("show hba_file").await?.context("a file")?;
    let file = Path::new(&file);
    let rules = std::fs::read_to_string(file)?;
    std::fs::write(file, format!("local all {role} scram-sha-256\n{rules}"))?;
    w.run("select pg_reload_conf()").await?;
    Ok(())
}

async fn every_way_in(url: &str) -> Result<[Error; 3]> {
    let direct = Direct::new(url, 1)?;
    let [one, two, three] =
        [gleaner::connect(url).await.err(), direct.queues().await.err(), direct.open("jobs").await.err()].map(|e| e.context("let in"));
    Ok([one?, two?, three?])
}

#[tokio::test]
async fn a_rejected_login_is_permanent_and_says_what_to_check() -> Result<()> {
    let w = world().await?;
    let own = w.database.name.clone();
    w.run(&format!(
        "create role shut_out nologin; create role asked login password 'right'; create role unwelcome login;
         revoke connect on database {own} from public"
    ))
    .await?;
    ask_for_passwords(&w, "asked").await?;
    // The new rules take effect a moment after the reload.
    let wrong = address(&w, "asked", "wrong", "postgres")?;
    for _ in 0..200 {
        if gleaner::connect(&wrong).await.is_err() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    gleaner::connect(&address(&w, "asked", "right", "postgres")?).await?;
    for (role, password, database, code, says) in [
        ("asked", "wrong", "postgres", Some("28P01"), "password"),
        ("asked", "", "postgres", None, "password"),
        ("nobody_by_that_name", "", own.as_str(), Some("28000"), "role"),
        ("shut_out", "", own.as_str(), Some("28000"), "log in"),
        ("unwelcome", "", own.as_str(), Some("42501"), "right to connect"),
        ("asked", "right", "no_such_database", Some("3D000"), "name of the database"),
    ] {
        let url = address(&w, role, password, database)?.replace(":@", "@");
        for error in every_way_in(&url).await.with_context(|| format!("{role} {database}"))? {
            let told = error.to_string();
            assert!(matches!(error, Error::Refused { .. }) && !error.is_transient(), "{role} {database}: {told}");
            assert_eq!(error.code().map(|code| code.code()), code, "{told}");
            assert!(told.contains(says) && told.contains("DATABASE_URL"), "{told}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn an_unreachable_or_full_server_is_a_transient_error() -> Result<()> {
    let w = world().await?;
    w.run("create role crowded login connection limit 0").await?;
    let crowded = address(&w, "crowded", "", &w.database.name)?;
    for url in [crowded.as_str(), "postgresql://me@/any?host=/nowhere/at/all", "postgresql://me@127.0.0.1:1/any"] {
        for error in every_way_in(url).await? {
            assert!(matches!(error, Error::Connect(_)) && error.is_transient(), "{url}: {error}");
        }
    }
    Ok(())
}

/// A changed password does not reach the server and its clients at the same moment.
#[tokio::test]
async fn a_worker_whose_login_is_rejected_reports_it_keeps_its_results_and_recovers() -> Result<()> {
    let w = world().await?;
    w.run("create role turned_away superuser login").await?;
    let queue = w.queue("jobs").await?;
    queue.enqueue(&jobs("any", 1)).await?;
    let endpoint = Direct::new(&address(&w, "turned_away", "", &w.database.name)?, 4)?;
    let quick = Duration::from_millis(20);
    let poll = Poll { base: quick, max: quick, pushed_base: quick, pushed_max: quick, ..Poll::default() };
    let (began, go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let worker = Worker::builder(endpoint.open("jobs").await?).concurrency(2).poll(poll).otherwise({
        let (began, go) = (began.clone(), go.clone());
        move |_: Job<Value>| {
            let (began, go) = (began.clone(), go.clone());
            async move {
                began.notify_one();
                go.notified().await;
                Ok(json!({"kept": true}))
            }
        }
    });
    let worker = worker.build();
    let control = worker.control().clone();
    let (stop, stopped) = watch::channel(false);
    let run = tokio::spawn(worker.run_until(stopped));
    tokio::time::timeout(Duration::from_secs(20), began.notified()).await.context("the job was not taken")?;

    // As separate statements: together they are one transaction, and a disconnected session could reconnect before it ends.
    w.run("alter role turned_away nologin").await?;
    w.run("select pg_terminate_backend(pid) from pg_stat_activity where usename = 'turned_away'").await?;
    // More often than any other refusal would be retried.
    until("it to be refused ten times", || control.stats().consecutive_errors >= 10).await?;
    let told = control.stats().errors.pop().context("an error")?;
    ensure!(told.category == "Refused" && told.message.contains("may log in"), "{told:?}");
    ensure!(!run.is_finished(), "it gave up");
    go.notify_one();
    // The result is there, and cannot be written.
    let before = control.stats().consecutive_errors;
    until("it to be refused with a result in its hands", || control.stats().consecutive_errors > before + 3).await?;

    w.run("alter role turned_away login").await?;
    until("it to be let in again", || control.stats().consecutive_errors == 0).await?;
    until("its result to be written", || control.stats().completed == 1).await?;
    assert_eq!(w.text("select result ->> 'kept' from gleaner.jobs where status = 'done'").await?.as_deref(), Some("true"));
    stop.send_replace(true);
    run.await??;
    Ok(())
}

async fn until(what: &str, is_so: impl Fn() -> bool) -> Result<()> {
    for _ in 0..1500 {
        if is_so() {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    anyhow::bail!("waited in vain for {what}")
}
