//! Behind PgBouncer in transaction mode every statement may run in another session: nothing may depend on session state.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use gleaner::transport::DirectQueue;
use gleaner::worker::{Job, Poll, Wake};
use gleaner::{Claim, Completion, Failure, Held, Outcome, Progress, Queue, Worker};
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::pooler::Bouncer;
use crate::world::{World, empty_world, jobs};

#[tokio::test]
async fn a_whole_life_passes_through_pgbouncer_in_transaction_mode() -> Result<()> {
    let bouncer = Bouncer::start().await?;
    let world = empty_world().await?;
    let url = bouncer.url_of(&world.database.name);

    let (first, second) = tokio::join!(gleaner::migrate::migrate(&url, &|_| {}), gleaner::migrate::migrate(&url, &|_| {}));
    assert_eq!(first?.len() + second?.len(), gleaner::migrate::status(&world.client).await?.len());

    world.run("create table public.parcels (id bigint generated always as identity primary key, state text not null default 'new', note text)").await?;
    world.run("insert into public.parcels (state) select 'new' from generate_series(1, 10)").await?;
    let toml =
        "table = 'public.parcels'\nstatus = { column = 'state', ready = 'new', running = 'moving', done = 'delivered', failed = 'lost' }";
    let mut client = gleaner::connect(&url).await?;
    gleaner::attach::attach(
        &mut client,
        &gleaner::Declaration::parse(toml, "parcels")?,
        toml,
        gleaner::attach::Options::default(),
        &|_| {},
    )
    .await?;

    let pool = gleaner::pool(&url, 8)?;
    let parcels = Queue::open(&pool, "parcels").await?;
    let items = parcels.claim(&Claim::by("a").limit(3)).await?.items;
    let held: Vec<Held> = items.iter().map(|i| i.held()).collect();
    assert_eq!(held.len(), 3);
    parcels.start(&held).await?;
    assert_eq!(parcels.progress(&held[0], &Progress::stage("loading").percent(50.0)).await?.0.outcome, Outcome::Done);
    assert_eq!(parcels.complete(&[Completion::new(held[0].clone(), None)]).await?[0].outcome, Outcome::Done);
    assert_eq!(parcels.fail(&held[1], &Failure::new("wet")).await?.outcome, Outcome::Done);
    assert_eq!(parcels.release(&held[2..]).await?[0].outcome, Outcome::Done);
    gleaner::attach::detach(&mut client, "parcels", false).await?;

    // A worker that only polls, next to the claims of others on the same few server connections.
    let queue = Queue::open(&pool, "jobs").await?;
    queue.enqueue(&jobs("mail", 50)).await?;
    queue.enqueue_copy(&jobs("mail", 50)).await?;
    let (_stop, stopped) = watch::channel(false);
    let worker = Worker::builder(Arc::new(DirectQueue::new(queue, None)))
        .wake(Wake::PollOnly)
        .until_empty()
        .poll(Poll { base: Duration::from_millis(20), ..Poll::default() })
        .otherwise(|_: Job<Value>| async { Ok(json!({"ok": true})) })
        .build();
    let tally = worker.run_until(stopped).await?;
    assert_eq!(tally.completed, 100);
    still_working(&world).await
}

async fn still_working(world: &World) -> Result<()> {
    assert_eq!(world.count("select count(*) from gleaner.jobs where status = 'done'").await?, 100);
    assert_eq!(
        world
            .count("select count(*) from pg_attribute where attrelid = 'public.parcels'::regclass and attnum > 0 and not attisdropped")
            .await?,
        3
    );
    Ok(())
}
