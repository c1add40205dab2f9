//! What wakes a worker, and what happens without a notification.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use gleaner::notify::Notifier;
use gleaner::transport::DirectQueue;
use gleaner::worker::{Builder, Control, Job, Poll, Stats, Wake, Worker};
use gleaner::{Pool, Queue};
use gleaner_postgres::testing::{self, PrivateServer};
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

use crate::world::world;

const SECOND: Duration = Duration::from_secs(1);

/// A worker that reports when it begins an item.
struct Idler {
    begins: mpsc::UnboundedReceiver<Instant>,
    stop: watch::Sender<bool>,
    control: Control,
    run: JoinHandle<gleaner::error::Result<gleaner::worker::Tally>>,
}

impl Idler {
    fn start(worker: Builder) -> Self {
        let (begin, begins) = mpsc::unbounded_channel();
        let (stop, stopped) = watch::channel(false);
        let handler = move |_: Job<Value>| {
            let _ = begin.send(Instant::now());
            async { Ok(()) }
        };
        let worker = worker.otherwise(handler).build();
        let control = worker.control().clone();
        Self { begins, stop, control, run: tokio::spawn(worker.run_until(stopped)) }
    }

    /// Waits until the worker listens and its next poll is far away: connecting counts as a notification, and makes it poll.
    async fn rests(&self) -> Result<()> {
        self.until(|stats| stats.push && stats.next_poll_seconds.is_some_and(|seconds| seconds > 60.0)).await
    }

    /// Waits until the worker has polled so many times since it started.
    async fn polled(&self, times: u64) -> Result<()> {
        self.until(|stats| stats.polls >= times).await
    }

    async fn until(&self, holds: impl Fn(&Stats) -> bool) -> Result<()> {
        let begun = Instant::now();
        while !holds(&self.control.stats()) {
            anyhow::ensure!(begun.elapsed() < Duration::from_secs(30), "waited in vain: {:?}", self.control.stats());
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        Ok(())
    }

    async fn begins_within(&mut self, limit: Duration) -> Result<Instant> {
        tokio::time::timeout(limit, self.begins.recv()).await.context("nothing was begun in time")?.context("the worker has ended")
    }

    async fn stop(self) -> Result<gleaner::worker::Tally> {
        self.stop.send_replace(true);
        Ok(self.run.await??)
    }
}

fn on(queue: Queue, url: &str) -> Builder {
    Worker::builder(Arc::new(DirectQueue::new(queue, Some(url))))
}

/// A poll so slow that it cannot be what found the work.
fn asleep(queue: Queue, url: &str) -> Builder {
    let hour = Duration::from_secs(3600);
    let poll = Poll { base: hour, max: hour, unnotified: hour, pushed_base: hour, pushed_max: hour, ..Poll::default() };
    on(queue, url).poll(poll)
}

/// A poll at this interval, whether notifications arrive or not.
fn every(wait: Duration) -> Poll {
    Poll { base: wait, max: wait, unnotified: wait, pushed_base: wait, pushed_max: wait, ..Poll::default() }
}

#[tokio::test]
async fn a_notification_wakes_a_worker_within_100_ms() -> Result<()> {
    let w = world().await?;
    let queue = w.queue("jobs").await?;
    let notifier = Notifier::new(w.pool.clone());
    let mut worker = Idler::start(asleep(queue.clone(), w.url()));
    worker.rests().await?;
    let mut took = Vec::new();
    for _ in 0..10 {
        queue.enqueue(&[json!({"kind": "wake"})]).await?;
        let notified = Instant::now();
        notifier.notify("jobs");
        took.push(worker.begins_within(Duration::from_secs(10)).await?.saturating_duration_since(notified));
        worker.rests().await?;
    }
    // The median, because this machine may be busy with other things.
    took.sort();
    assert!(took[5] < Duration::from_millis(100), "{took:?}");
    assert_eq!(worker.stop().await?.completed, 10);
    Ok(())
}

/// However the library adds a job to the built-in queue, an idle worker gets it within a second.
#[tokio::test]
async fn an_enqueued_job_wakes_an_idle_worker_within_a_second() -> Result<()> {
    let w = world().await?;
    let queue = w.queue("jobs").await?;
    let mut worker = Idler::start(asleep(queue.clone(), w.url()));
    worker.rests().await?;
    for _ in 0..3 {
        queue.enqueue(&[json!({"kind": "one"})]).await?;
        worker.begins_within(SECOND).await.context("enqueue")?;
    }
    let many: Vec<_> = (0..100).map(|n| json!({"kind": "many", "payload": n})).collect();
    queue.enqueue_copy(&many).await?;
    for _ in 0..many.len() {
        worker.begins_within(SECOND).await.context("enqueue_copy")?;
    }
    let done = w.text("select min(id)::text from gleaner.jobs where status = 'done'").await?.context("done")?;
    queue.requeue(&[&done]).await?;
    worker.begins_within(SECOND).await.context("requeue")?;
    worker.stop().await?;
    Ok(())
}

/// Programs that do not know Gleaner, on a table of their own: plain statements, triggers, and acts called from SQL.
#[tokio::test]
async fn a_plain_write_to_an_attached_table_wakes_an_idle_worker_within_a_second() -> Result<()> {
    let w = world().await?;
    w.run(
        "create table public.parcels (id bigint generated always as identity primary key, state text not null default 'new', send_at timestamptz);
         create table public.orders (id int);
         create function public.order_parcel() returns trigger language plpgsql as
         $$ begin insert into public.parcels default values; return null; end $$;
         create trigger order_parcel after insert on public.orders for each row execute function public.order_parcel()",
    )
    .await?;
    let toml = "table = 'public.parcels'\ndue = 'send_at'\nstatus = { column = 'state', ready = 'new', running = 'packing', done = 'sent', failed = 'lost' }";
    w.attach("parcels", toml).await?;
    let mut worker = Idler::start(asleep(w.queue("parcels").await?, w.url()));
    worker.rests().await?;
    for write in [
        "insert into parcels default values",
        "copy parcels (state) from program 'echo new'",
        "insert into orders values (1)",
        "update parcels set state = 'new' where id = 1",
        "select gleaner.requeue_parcels(array[1::bigint])",
        "select gleaner.enqueue_parcels('[{}]')",
    ] {
        w.run(write).await?;
        worker.begins_within(SECOND).await.context(write)?;
        w.run("select count(*) from parcels").await?;
        settle_done(&w, "parcels").await?;
    }
    worker.rests().await?;
    let polls = worker.control.stats().polls;
    w.run("insert into parcels (send_at) values (clock_timestamp() + interval '1 day')").await?;
    worker.polled(polls + 1).await?;
    worker.rests().await?;
    w.run("update parcels set send_at = clock_timestamp() where send_at is not null").await?;
    worker.begins_within(SECOND).await.context("an appointment brought forward")?;
    worker.stop().await?;
    Ok(())
}

async fn settle_done(w: &crate::world::World, table: &str) -> Result<()> {
    while w.count(&format!("select count(*) from {table} where state <> 'sent'")).await? > 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    Ok(())
}

#[tokio::test]
async fn a_lost_notification_costs_time_never_work() -> Result<()> {
    let w = world().await?;
    let queue = w.queue("jobs").await?;
    for wake in [Wake::Hybrid, Wake::PollOnly] {
        let poll = Duration::from_millis(300);
        let mut worker = Idler::start(on(queue.clone(), w.url()).poll(every(poll)).wake(wake));
        worker.polled(3).await?;
        w.run("insert into gleaner.jobs (kind) values ('unnoticed')").await?;
        worker.begins_within(Duration::from_secs(5)).await.with_context(|| format!("{wake:?}"))?;
        assert_eq!(worker.stop().await?.completed, 1);
    }
    Ok(())
}

/// The commit waits for a standby that does not exist: the notification arrives before the row is visible.
#[tokio::test]
async fn a_notification_before_its_row_is_visible_is_followed_by_another_poll() -> Result<()> {
    let server = PrivateServer::start(false).await?;
    gleaner::migrate::migrate(server.url(), &|_| {}).await?;
    // The worker's own commits do not wait for a standby.
    let url = format!("{}{}options=-c%20synchronous_commit%3Dlocal", server.url(), if server.url().contains('?') { "&" } else { "?" });
    let pool: Pool = gleaner::pool(&url, 5)?;
    let mut worker = Idler::start(asleep(Queue::open(&pool, "jobs").await?, &url));
    let notifier = Notifier::new(pool.clone());
    worker.rests().await?;

    let client = gleaner::connect(&url).await?;
    client.batch_execute("create table probe ()").await?;
    client.batch_execute("alter system set synchronous_standby_names = 'missing'").await?;
    client.batch_execute("select pg_reload_conf()").await?;
    let waiting = async |many: i64| {
        let waits = "select count(*) from pg_stat_activity where wait_event = 'SyncRep'";
        while client.query_one(waits, &[]).await?.get::<_, i64>(0) < many {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        anyhow::Ok(())
    };
    // The setting is in force when a commit waits.
    let prober = gleaner::connect(server.url()).await?;
    let probing = tokio::spawn(async move {
        loop {
            prober.batch_execute("set synchronous_commit = on; insert into probe default values").await?;
        }
        #[allow(unreachable_code)]
        anyhow::Ok(())
    });
    waiting(1).await?;
    let writer = gleaner::connect(server.url()).await?;
    let committed = tokio::spawn(async move {
        writer.batch_execute("set synchronous_commit = on").await?;
        writer.batch_execute("insert into gleaner.jobs (kind) values ('early')").await
    });
    waiting(2).await?;
    let polls = worker.control.stats().polls;
    notifier.notify("jobs");
    worker.polled(polls + 1).await?;
    assert!(worker.begins.try_recv().is_err(), "the row was begun before it could be seen");
    client.batch_execute("alter system reset synchronous_standby_names").await?;
    client.batch_execute("select pg_reload_conf()").await?;
    worker.begins_within(Duration::from_secs(5)).await?;
    committed.await??;
    probing.abort();
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
    let mut worker = Idler::start(asleep(queue, w.url()));
    let after = worker.begins_within(Duration::from_secs(10)).await?.duration_since(inserted);
    assert!(after > Duration::from_millis(2300) && after < Duration::from_millis(4000), "{after:?}");
    worker.stop().await?;
    Ok(())
}

/// Another session's open transaction keeps the only due row locked: the worker neither busy-loops nor forgets the row.
#[tokio::test]
async fn a_row_that_is_locked_is_found_when_its_locker_rolls_back() -> Result<()> {
    let w = world().await?;
    let queue = w.queue("jobs").await?;
    w.run("insert into gleaner.jobs (kind) values ('locked')").await?;
    let other = w.connect().await?;
    other.batch_execute("begin; select from gleaner.claim_jobs('other', 1)").await?;
    let begun = Instant::now();
    let mut worker = Idler::start(asleep(queue, w.url()));
    worker.polled(6).await?;
    assert!(begun.elapsed() > Duration::from_millis(800), "six polls in {:?}", begun.elapsed());
    other.batch_execute("rollback").await?;
    worker.begins_within(Duration::from_secs(3)).await?;
    worker.stop().await?;
    Ok(())
}

/// A row that is due and locked does not make the queue empty: the other session may roll back.
#[tokio::test]
async fn a_worker_until_empty_waits_for_a_due_row_that_another_session_has_locked() -> Result<()> {
    let w = world().await?;
    w.run("insert into gleaner.jobs (kind) values ('locked')").await?;
    let other = w.connect().await?;
    other.batch_execute("begin; select from gleaner.claim_jobs('other', 1)").await?;
    let mut worker = Idler::start(on(w.queue("jobs").await?, w.url()).until_empty());
    assert!(worker.begins_within(Duration::from_millis(700)).await.is_err() && !worker.run.is_finished(), "it left early");
    other.batch_execute("rollback").await?;
    worker.begins_within(Duration::from_secs(5)).await?;
    assert_eq!(worker.run.await??.completed, 1);
    Ok(())
}

/// At a hundred times the usual speed, so that seven minutes pass in four seconds.
#[tokio::test]
async fn an_idle_worker_costs_at_most_two_statements_a_minute() -> Result<()> {
    let w = world().await?;
    let watcher = testing::connect(&testing::server().cluster().url_of("postgres")).await?;
    let sql = "select (xact_commit + xact_rollback)::bigint from pg_stat_database where datname = $1";
    // A trigger notifies of every activity, so a worker that listens polls rarely. One that does not listen uses its own intervals.
    for wake in [Wake::Hybrid, Wake::PollOnly] {
        let mut cost = Vec::new();
        for seconds in [2, 6] {
            let before: i64 = watcher.query_one(sql, &[&w.database.name]).await?.get(0);
            let pool = gleaner::pool(w.url(), 5)?;
            let ms = Duration::from_millis;
            let poll =
                Poll { base: ms(50), max: ms(300), unnotified: ms(10), pushed_base: ms(300), pushed_max: ms(600), ..Poll::default() };
            let worker = Idler::start(on(Queue::open(&pool, "activities").await?, w.url()).poll(poll).wake(wake));
            tokio::time::sleep(Duration::from_secs(seconds)).await;
            worker.stop().await?;
            // A session's counts are complete when it has ended.
            pool.close();
            let ours = "select count(*) from pg_stat_activity where datname = $1";
            while watcher.query_one(ours, &[&w.database.name]).await?.get::<_, i64>(0) > 1 {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            cost.push(watcher.query_one(sql, &[&w.database.name]).await?.get::<_, i64>(0) - before);
        }
        // The start costs the same both times; the difference is seven minutes of idling.
        let idling = cost[1] - cost[0];
        assert!(idling <= 14 + 3, "{wake:?}: {idling} statements in seven minutes ({cost:?})");
        assert!(idling > 2, "{wake:?}: the poll has stopped ({cost:?})");
    }
    Ok(())
}
