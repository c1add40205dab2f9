//! `kill -9` in the middle of a drain, of workers and of PostgreSQL itself, repeatedly: every item is completed exactly once and
//! none is lost.
//!
//! Workers are processes: this test program itself, started again with `GLEANER_DRAIN` set. Each records what it did in the
//! transaction that completes the item, so the record shows how often work took effect.

use std::collections::BTreeMap;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use gleaner::queue::Acts;
use gleaner::{Claim, Completion, Outcome};
use gleaner_postgres::testing::PrivateServer;
use tokio::process::{Child, Command};
use tokio_postgres::Client;

use crate::scale;
use crate::world::world;

const ITEMS: usize = 10_000;
const WORKERS: usize = 4;

/// A worker process. Does nothing unless a test below starts it.
#[tokio::test]
async fn is_a_draining_process_when_started_as_one() -> Result<()> {
    let Ok(url) = std::env::var("GLEANER_DRAIN") else { return Ok(()) };
    loop {
        // PostgreSQL may go away at any moment. The outcome of running work is then unknown, and another worker claims it again.
        if let Ok(true) = drain(&url).await {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Works until nothing is left, and then returns true.
async fn drain(url: &str) -> Result<bool> {
    let mut client = gleaner::connect(url).await?;
    let acts = Acts::of(&client, "jobs").await?;
    let mut claim = Claim::by(format!("process {}", std::process::id())).limit(25);
    claim.hold = Some(Duration::from_millis(1000));
    loop {
        let claimed = acts.claim(&client, &claim).await?;
        if claimed.items.is_empty() {
            match claimed.next_due_in {
                None => return Ok(true),
                Some(wait) => tokio::time::sleep(wait.clamp(Duration::from_millis(5), Duration::from_millis(100))).await,
            }
        }
        if claimed.items.len() == 1 {
            // A row that lost its holder before is claimed alone. Work slowly, so that its former holder may come back meanwhile.
            tokio::time::sleep(Duration::from_millis(30)).await;
        }
        for some in claimed.items.chunks(5) {
            let tx = client.transaction().await?;
            let done: Vec<_> = some.iter().map(|item| Completion::new(item.held(), None)).collect();
            for answer in acts.complete(&tx, &done).await? {
                // The effect is committed with the completion or not at all.
                if answer.outcome == Outcome::Done {
                    let id: i64 = answer.key.parse()?;
                    let lease = some.iter().find(|item| item.key == answer.key).map_or(0, |item| item.lease);
                    tx.execute("insert into effects (id, lease) values ($1, $2)", &[&id, &lease]).await?;
                }
            }
            tx.commit().await?;
        }
    }
}

fn start_worker(url: &str) -> Result<Child> {
    Command::new(std::env::current_exe()?)
        .args(["--exact", "chaos::is_a_draining_process_when_started_as_one", "--test-threads=1"])
        .env("GLEANER_DRAIN", url)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .context("start a worker")
}

/// `STOP` or `CONT`: a worker that sleeps past its lease and wakes up again, as laptops do.
async fn signal(worker: &Child, name: &str) -> Result<()> {
    let Some(pid) = worker.id() else { return Ok(()) };
    Command::new("sh").args(["-c", &format!("kill -{name} {pid}")]).status().await?;
    Ok(())
}

async fn fill(client: &Client, items: usize) -> Result<()> {
    client.batch_execute("create table effects (id bigint not null, lease bigint not null)").await?;
    let items = i64::try_from(items)?;
    client.execute("insert into gleaner.jobs (kind) select 'k' || n % 3 from generate_series(1, $1::bigint) n", &[&items]).await?;
    Ok(())
}

async fn done(client: &Client) -> Result<i64> {
    Ok(client.query_one("select count(*) from effects", &[]).await?.get(0))
}

/// No item is lost, none is done twice, and each effect was written under the lease that completed the item.
async fn exactly_once(client: &Client, items: usize) -> Result<()> {
    let items = i64::try_from(items)?;
    let one = async |sql: &str| Ok::<i64, anyhow::Error>(client.query_one(sql, &[]).await?.get(0));
    ensure!(one("select count(*) from gleaner.jobs").await? == items, "rows have vanished");
    let done = one("select count(*) from gleaner.jobs where status = 'done'").await?;
    ensure!(done == items, "{done} of {items} are done");
    let effects = one("select count(*) from effects").await?;
    let distinct = one("select count(distinct id) from effects").await?;
    ensure!(effects == items && distinct == items, "{effects} effects on {distinct} items, of {items}");
    let foreign = one("select count(*) from effects e join gleaner.jobs j using (id) where e.lease <> j.lease").await?;
    ensure!(foreign == 0, "{foreign} items were completed by somebody who no longer held them");
    Ok(())
}

#[tokio::test]
async fn killed_workers_neither_lose_nor_double_work() -> Result<()> {
    let items = ITEMS * scale(10);
    let w = world().await?;
    fill(&w.client, items).await?;
    let mut workers: BTreeMap<usize, Child> = BTreeMap::new();
    for n in 0..WORKERS {
        workers.insert(n, start_worker(w.url())?);
    }
    let begun = Instant::now();
    let kills = 12 * scale(10);
    for kill in 0..kills {
        // Wait for the middle of the drain: some work is done, and some is left.
        while usize::try_from(done(&w.client).await?)? < items * (kill + 1) / (kills + 4) {
            tokio::time::sleep(Duration::from_millis(5)).await;
            ensure!(begun.elapsed() < Duration::from_secs(60 * scale(5) as u64), "the drain stands still");
        }
        let mut killed = workers.insert(kill % WORKERS, start_worker(w.url())?).context("a worker to kill")?;
        killed.kill().await?;
    }
    // One worker is stopped while it holds items, and continues when another worker has claimed some of them and works on them.
    let sleeper = &workers[&0];
    let agent = format!("process {}", sleeper.id().unwrap_or(0));
    let holds = format!("select count(*) from gleaner.jobs where status = 'running' and agent = '{agent}'");
    loop {
        ensure!(w.count("select count(*) from gleaner.jobs where status = 'ready'").await? > 0, "the sleeper came too late to work");
        signal(sleeper, "STOP").await?;
        // It completes five at a time, and may be in the middle of that.
        if w.count("select count(*) from gleaner.jobs where status = 'ready'").await? < 2000 && w.count(&holds).await? > 10 {
            break;
        }
        signal(sleeper, "CONT").await?;
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    w.run(&format!("create table slept_on as select id from gleaner.jobs where status = 'running' and agent = '{agent}'")).await?;
    let taken_over = format!("select count(*) from gleaner.jobs join slept_on using (id) where status = 'running' and agent <> '{agent}'");
    while w.count(&taken_over).await? == 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
        ensure!(begun.elapsed() < Duration::from_secs(90 * scale(5) as u64), "nobody takes over what the sleeper holds");
    }
    signal(sleeper, "CONT").await?;
    for (_, mut worker) in workers {
        tokio::time::timeout(Duration::from_secs(60), worker.wait()).await.context("a worker does not end")??;
    }
    exactly_once(&w.client, items).await?;
    ensure!(w.count("select count(*) from gleaner.late_result").await? > 0, "the sleeper brought no late result");
    Ok(())
}

#[tokio::test]
async fn a_killed_postgres_neither_loses_nor_doubles_work() -> Result<()> {
    let items = ITEMS * scale(10);
    let mut server = PrivateServer::start(true).await?;
    let url = server.url().to_owned();
    gleaner::migrate::migrate(&url, &|_| {}).await?;
    fill(&gleaner::connect(&url).await?, items).await?;
    let mut workers = Vec::new();
    for _ in 0..WORKERS {
        workers.push(start_worker(&url)?);
    }
    let crashes = 4 * scale(5);
    let begun = Instant::now();
    for n in 0..crashes {
        let client = gleaner::connect(&url).await?;
        while usize::try_from(done(&client).await?)? < items * (n + 1) / (crashes + 2) {
            tokio::time::sleep(Duration::from_millis(10)).await;
            ensure!(begun.elapsed() < Duration::from_secs(120 * scale(5) as u64), "the drain stands still");
        }
        server.crash().await?;
        server.restart().await?;
    }
    for mut worker in workers {
        tokio::time::timeout(Duration::from_secs(90), worker.wait()).await.context("a worker does not end")??;
    }
    exactly_once(&gleaner::connect(&url).await?, items).await
}
