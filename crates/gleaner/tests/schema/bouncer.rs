//! Behind PgBouncer in transaction mode every statement may meet another session: nothing may lean on one.

use std::time::Duration;

use anyhow::Result;
use gleaner::worker::Options;
use gleaner::{Claim, Failure, Outcome, Queue, Worker};
use serde_json::json;
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
    let held: Vec<(&str, i64)> = items.iter().map(|i| (i.key.as_str(), i.lease)).collect();
    assert_eq!(held.len(), 3);
    parcels.start(&held).await?;
    assert_eq!(parcels.progress(held[0].0, held[0].1, Some("loading"), Some(50.0), None).await?.0.outcome, Outcome::Done);
    assert_eq!(parcels.complete(&[(held[0].0, held[0].1, None)]).await?[0].outcome, Outcome::Done);
    assert_eq!(parcels.fail(held[1].0, held[1].1, &Failure::new("wet")).await?.outcome, Outcome::Done);
    assert_eq!(parcels.release(&held[2..]).await?[0].outcome, Outcome::Done);
    gleaner::attach::detach(&mut client, "parcels", false).await?;

    // A worker that only polls, beside the claims of others on the same few server connections.
    let queue = Queue::open(&pool, "jobs").await?;
    queue.enqueue(&jobs("mail", 50)).await?;
    queue.enqueue_copy(&jobs("mail", 50)).await?;
    let (_stop, stopped) = watch::channel(false);
    let options = Options { listen: false, until_empty: true, poll_base: Duration::from_millis(20), concurrency: 4, ..Options::default() };
    let tally = Worker::new(queue, None, options).run(|_item, _context| async move { Ok(Some(json!({"ok": true}))) }, stopped).await?;
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
