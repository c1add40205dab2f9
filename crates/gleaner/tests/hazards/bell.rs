//! What wakes a worker, and what happens when nothing does.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use gleaner::bell::Bell;
use gleaner::worker::{Options, Worker};
use gleaner::{Pool, Queue};
use gleaner_postgres::testing::{self, PrivateServer};
use serde_json::json;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

use crate::world::world;

/// A worker that tells when it begins an item.
struct Idler {
    begins: mpsc::UnboundedReceiver<Instant>,
    stop: watch::Sender<bool>,
    run: JoinHandle<gleaner::error::Result<gleaner::worker::Tally>>,
}

impl Idler {
    fn start(queue: Queue, url: &str, options: Options) -> Self {
        let (begin, begins) = mpsc::unbounded_channel();
        let (stop, stopped) = watch::channel(false);
        let worker = Worker::new(queue, Some(url), options);
        let handler = move |_, _| {
            let _ = begin.send(Instant::now());
            async { Ok(None) }
        };
        Self { begins, stop, run: tokio::spawn(worker.run(handler, stopped)) }
    }

    async fn begins_within(&mut self, limit: Duration) -> Result<Instant> {
        tokio::time::timeout(limit, self.begins.recv()).await.context("nothing was begun in time")?.context("the worker has ended")
    }

    async fn stop(self) -> Result<gleaner::worker::Tally> {
        self.stop.send_replace(true);
        Ok(self.run.await??)
    }
}

/// A poll so slow that it cannot be what found the work.
fn asleep() -> Options {
    Options { poll_base: Duration::from_secs(30), poll_max: Duration::from_secs(30), ..Options::default() }
}

/// Until the worker has looked often enough after its start to sleep for long: connecting counts as a ring.
async fn settled() {
    tokio::time::sleep(Duration::from_millis(1800)).await;
}

#[tokio::test]
async fn a_bell_wakes_a_worker_within_100_ms() -> Result<()> {
    let w = world().await?;
    let queue = w.queue("jobs").await?;
    let bell = Bell::new(w.pool.clone());
    let mut worker = Idler::start(queue.clone(), w.url(), asleep());
    settled().await;
    let mut took = Vec::new();
    for _ in 0..10 {
        queue.enqueue(&[json!({"kind": "wake"})]).await?;
        let rung = Instant::now();
        bell.ring("jobs");
        took.push(worker.begins_within(Duration::from_secs(10)).await?.saturating_duration_since(rung));
        tokio::time::sleep(Duration::from_millis(40)).await;
    }
    // The median: this machine may have other things to do.
    took.sort();
    assert!(took[5] < Duration::from_millis(100), "{took:?}");
    assert_eq!(worker.stop().await?.completed, 10);
    Ok(())
}

#[tokio::test]
async fn a_lost_bell_costs_time_never_work() -> Result<()> {
    let w = world().await?;
    let queue = w.queue("jobs").await?;
    for listen in [true, false] {
        let poll = Duration::from_millis(300);
        let mut worker = Idler::start(queue.clone(), w.url(), Options { poll_base: poll, poll_max: poll, listen, ..Options::default() });
        settled().await;
        queue.enqueue(&[json!({"kind": "unheard"})]).await?;
        worker.begins_within(Duration::from_secs(5)).await.with_context(|| format!("listening: {listen}"))?;
        assert_eq!(worker.stop().await?.completed, 1);
    }
    Ok(())
}

/// The commit waits for a standby that does not exist: the bell rings, and the row cannot be seen yet.
#[tokio::test]
async fn a_wake_ahead_of_visibility_is_looked_at_again() -> Result<()> {
    let server = PrivateServer::start(false).await?;
    gleaner::migrate::migrate(server.url(), &|_| {}).await?;
    // The worker's own commits wait for nobody.
    let url = format!("{}{}options=-c%20synchronous_commit%3Dlocal", server.url(), if server.url().contains('?') { "&" } else { "?" });
    let pool: Pool = gleaner::pool(&url, 5)?;
    let mut worker = Idler::start(Queue::open(&pool, "jobs").await?, &url, asleep());
    let bell = Bell::new(pool.clone());
    settled().await;

    let client = gleaner::connect(&url).await?;
    client.batch_execute("alter system set synchronous_standby_names = 'nobody'").await?;
    client.batch_execute("select pg_reload_conf()").await?;
    tokio::time::sleep(Duration::from_millis(200)).await;
    let writer = gleaner::connect(server.url()).await?;
    let committed = tokio::spawn(async move {
        writer.batch_execute("set synchronous_commit = on").await?;
        writer.batch_execute("insert into gleaner.jobs (kind) values ('early')").await
    });
    let waits = "select count(*) from pg_stat_activity where wait_event = 'SyncRep'";
    while client.query_one(waits, &[]).await?.get::<_, i64>(0) == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    bell.ring("jobs");
    tokio::time::sleep(Duration::from_millis(400)).await;
    assert!(worker.begins.try_recv().is_err(), "the row was begun before it could be seen");
    client.batch_execute("alter system reset synchronous_standby_names").await?;
    client.batch_execute("select pg_reload_conf()").await?;
    worker.begins_within(Duration::from_secs(5)).await?;
    committed.await??;
    worker.stop().await?;
    server.stop().await?;
    Ok(())
}

#[tokio::test]
async fn a_scheduled_row_is_picked_up_when_it_is_due_and_not_at_the_next_poll() -> Result<()> {
    let w = world().await?;
    let queue = w.queue("jobs").await?;
    w.run("insert into gleaner.jobs (kind, due_at) values ('later', clock_timestamp() + interval '2.5 seconds')").await?;
    let inserted = Instant::now();
    let mut worker = Idler::start(queue, w.url(), asleep());
    let after = worker.begins_within(Duration::from_secs(10)).await?.duration_since(inserted);
    assert!(after > Duration::from_millis(2300) && after < Duration::from_millis(4000), "{after:?}");
    worker.stop().await?;
    Ok(())
}

/// Somebody's open transaction keeps the only due row locked: the worker neither spins nor forgets it.
#[tokio::test]
async fn a_row_that_is_locked_is_found_when_its_locker_rolls_back() -> Result<()> {
    let w = world().await?;
    let queue = w.queue("jobs").await?;
    w.run("insert into gleaner.jobs (kind) values ('locked')").await?;
    let other = w.connect().await?;
    other.batch_execute("begin; select from gleaner.claim_jobs('other', 1)").await?;
    let mut worker = Idler::start(queue, w.url(), asleep());
    settled().await;
    let looks = w.count("select count(*) from gleaner.request").await?;
    assert!(looks < 15, "{looks} looks in two seconds");
    other.batch_execute("rollback").await?;
    worker.begins_within(Duration::from_secs(3)).await?;
    worker.stop().await?;
    Ok(())
}

/// At a hundred times the usual pace, so that seven minutes pass in four seconds.
#[tokio::test]
async fn an_idle_worker_costs_at_most_two_statements_a_minute() -> Result<()> {
    let w = world().await?;
    let watcher = testing::connect(&testing::server().cluster().url_of("postgres")).await?;
    let sql = "select (xact_commit + xact_rollback)::bigint from pg_stat_database where datname = $1";
    for listen in [true, false] {
        let mut cost = Vec::new();
        for seconds in [2, 6] {
            let before: i64 = watcher.query_one(sql, &[&w.database.name]).await?.get(0);
            let pool = gleaner::pool(w.url(), 5)?;
            let options =
                Options { poll_base: Duration::from_millis(50), poll_max: Duration::from_millis(300), listen, ..Options::default() };
            let worker = Idler::start(Queue::open(&pool, "jobs").await?, w.url(), options);
            tokio::time::sleep(Duration::from_secs(seconds)).await;
            worker.stop().await?;
            // A session's counts are complete when it has ended.
            pool.close();
            let ours = "select count(*) from pg_stat_activity where datname = $1";
            while watcher.query_one(ours, &[&w.database.name]).await?.get::<_, i64>(0) > 1 {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
            cost.push(watcher.query_one(sql, &[&w.database.name]).await?.get::<_, i64>(0) - before);
        }
        // Starting costs the same both times; what is left is seven minutes of idling.
        let idling = cost[1] - cost[0];
        assert!(idling <= 14 + 3, "listening: {listen}: {idling} statements in seven minutes ({cost:?})");
        assert!(idling > 2, "listening: {listen}: the poll has stopped ({cost:?})");
    }
    Ok(())
}
