//! Tables of every shape, attached and worked through every act.

use std::time::Duration;

use anyhow::Result;
use gleaner::{Claim, Completion, Failure, Held, Outcome, Progress};
use serde_json::json;

use crate::attaching::STATUS;
use crate::world::{World, keys, world};

/// One shape of table, attached and used with every act.
struct Shape {
    name: &'static str,
    table: &'static str,
    declaration: &'static str,
    /// Columns and values of six rows, inserted by plain statements; `{n}` is the number of the row.
    row: &'static str,
    owner: Option<&'static str>,
}

const SHAPES: &[Shape] = &[
    Shape {
        name: "bare_bigint",
        table: "(id bigint generated always as identity primary key, status text not null default 'new')",
        declaration: STATUS,
        row: "(status) values ('new')",
        owner: None,
    },
    Shape {
        name: "uuid_key_and_enum_status",
        table: "(id uuid primary key default gen_random_uuid(), status public.phase not null default 'new', kind public.sort not null default 'mail')",
        declaration: "kind = 'kind'\nstatus = { column = 'status', ready = 'new', running = 'busy', done = 'done', failed = 'bad', cancelled = 'off' }\nhold = { call = '1 hour', default = '2 minutes' }",
        row: "(kind) values ('call')",
        owner: None,
    },
    Shape {
        name: "text_key_varchar_status",
        table: "(ticket varchar(40) primary key, status varchar(10) default 'new', body text, result text, progress text, error text, \"Order\" smallint)",
        declaration: "status = { column = 'status', ready = 'new', running = 'busy', done = 'done', failed = 'bad' }
                      result = 'result'\nprogress = 'progress'\nerror = 'error'\npayload = 'body'
                      priority = { column = 'Order', classes = [1, 5, 9] }",
        row: "(ticket, body, \"Order\") values ('t-{n}', 'hello', {n})",
        owner: None,
    },
    Shape {
        name: "integer_key_all_columns",
        table: "(id serial primary key, status text not null default 'new', owner text, topic text, prio text default 'low', dedup text,
                 result jsonb, progress numeric, info jsonb, by_whom text, since timestamp, tries smallint not null default 0,
                 made timestamp not null default (now() at time zone 'America/New_York'), ended timestamp)",
        declaration: "status = { column = 'status', ready = 'new', claimed = 'taken', running = 'busy', done = 'done', failed = 'bad', cancelled = 'off' }
                      owner = { column = 'owner', open_after = '10 minutes' }\nkind = 'topic'\nunique = 'dedup'\nresult = 'result'\nprogress = 'progress'
                      error = 'info.error'\nrecovered = 'info.recoveries'\nholder = { by = 'by_whom', at = 'since' }\nattempts = 'tries'\ncreated = 'made'
                      finished = 'ended'\nretain = '1 day'\nzone = 'America/New_York'\nnotify = true
                      priority = { column = 'prio', classes = ['high', 'low'], head_start = '1 minute' }",
        row: "(owner, topic, dedup) values ('ann', 'letters', 'd{n}')",
        owner: Some("ann"),
    },
    Shape {
        name: "smallint_key_odd_names",
        table: "(\"Key\" smallint primary key, \"The Status\" text not null default 'n''ew', \"select\" jsonb, \"Owner Id\" bigint, \"when\" timestamptz default now())",
        declaration: "status = { column = 'The Status', ready = \"n'ew\", running = 'b\"usy', done = 'do%ne', failed = 'ba\\d', cancelled = 'off' }
                      owner = { column = 'Owner Id' }\nresult = 'select'\ncreated = 'when'",
        row: "(\"Key\", \"Owner Id\") values ({n}, 7)",
        owner: Some("7"),
    },
];

#[tokio::test]
async fn every_shape_of_table_is_worked_through_every_act() -> Result<()> {
    let world = world().await?;
    world
        .run("create type public.phase as enum ('new', 'busy', 'done', 'bad', 'off'); create type public.sort as enum ('call', 'mail')")
        .await?;
    for shape in SHAPES {
        work_through(&world, shape).await.map_err(|e| e.context(shape.name))?;
    }
    Ok(())
}

async fn work_through(world: &World, shape: &Shape) -> Result<()> {
    let name = shape.name;
    let insert = |n: usize| format!("insert into public.{name} {}", shape.row.replace("{n}", &n.to_string()));
    world.run(&format!("create table public.{name} {}", shape.table)).await?;
    for n in 0..3 {
        world.run(&insert(n)).await?;
    }
    let toml = format!("table = 'public.{name}'\n{}", shape.declaration);
    world.attach(name, &toml).await?;
    for n in 3..8 {
        world.run(&insert(n)).await?;
    }
    let queue = world.queue(name).await?;
    let mut claim = Claim::by("agent").limit(8);
    claim.owner = shape.owner.map(str::to_owned);
    let items = queue.claim(&claim).await?.items;
    assert_eq!(items.len(), 8, "rows inserted before and after are claimable");
    let held: Vec<Held> = items.iter().map(|i| i.held()).collect();

    assert!(queue.start(&held).await?.iter().all(|a| a.outcome == Outcome::Done));
    assert_eq!(
        queue.progress(&held[0], &Progress::stage("half").percent(50.0).partial(json!({"early": 1}))).await?.0.outcome,
        Outcome::Done
    );
    assert_eq!(queue.complete(&[Completion::new(held[0].clone(), Some(json!({"late": 2})))]).await?[0].outcome, Outcome::Done);
    assert_eq!(queue.complete(&[Completion::new(held[0].clone(), None)]).await?[0].outcome, Outcome::Already);
    assert_eq!(queue.fail(&held[1], &Failure::new("again")).await?.outcome, Outcome::Done);
    assert_eq!(queue.fail(&held[2], &Failure::new("never").for_good()).await?.outcome, Outcome::Done);
    assert_eq!(queue.release(&held[3..4]).await?[0].outcome, Outcome::Done);
    assert_eq!(queue.snooze(&held[4], Duration::from_secs(60)).await?.outcome, Outcome::Done);
    assert_eq!(queue.cancel(&[&held[5].key], Some("not needed")).await?[0].outcome, Outcome::Done);
    assert_eq!(queue.bury(&[&held[6].key], Some("broken")).await?[0].outcome, Outcome::Done);
    assert_eq!(queue.requeue(&[&held[6].key]).await?[0].outcome, Outcome::Done);
    assert_eq!(queue.complete(&[Completion::new(Held::new(&held[7].key, held[7].lease - 1), None)]).await?[0].outcome, Outcome::Lost);
    if shape.owner.is_some() {
        assert_eq!(queue.assign(&[&held[6].key], None).await?[0].outcome, Outcome::Done);
    }
    for Held { key, .. } in &held {
        assert!(queue.explain(key, shape.owner).await?.is_some());
    }
    assert_eq!(queue.recover().await?, 0);
    let again = queue.claim(&claim).await?.items;
    let mut expected = vec![held[3].key.clone(), held[6].key.clone()];
    let mut found = keys(&again);
    expected.sort();
    found.sort();
    assert_eq!(found, expected, "what was released and requeued comes back, and nothing else");
    assert_eq!(queue.claim(&claim).await?.items.len(), 0);
    Ok(())
}

/// A `timestamp` without time zone is read in the declared zone, whatever the session's zone is; it is never compared unconverted.
#[tokio::test]
async fn times_without_a_zone_mean_the_same_in_every_session() -> Result<()> {
    let world = world().await?;
    world
        .run("create table public.visits (id bigint generated always as identity primary key, status text default 'new', owner bigint, at timestamp not null)")
        .await?;
    world
        .attach("visits", &format!("table = 'public.visits'\n{STATUS}\nowner = {{ column = 'owner', open_after = '30 minutes' }}\ncreated = 'at'\nzone = 'Europe/Rome'"))
        .await?;
    for zone in ["America/New_York", "Asia/Tokyo", "UTC"] {
        world
            .run(&format!(
                "set timezone = '{zone}';
                 insert into public.visits (owner, at) values (1, clock_timestamp() at time zone 'Europe/Rome' - interval '20 minutes'),
                                                              (1, clock_timestamp() at time zone 'Europe/Rome' - interval '40 minutes')"
            ))
            .await?;
    }
    for zone in ["Pacific/Auckland", "UTC"] {
        world.run(&format!("set timezone = '{zone}'")).await?;
        let open = world.client.query("select at from gleaner.claim_visits('a', 1, 2)", &[]).await?;
        assert_eq!(open.len(), 1, "of the six the three that waited forty minutes are open to others");
    }
    assert_eq!(world.client.query("select * from gleaner.claim_visits('a', 10, 2)", &[]).await?.len(), 1);
    Ok(())
}
