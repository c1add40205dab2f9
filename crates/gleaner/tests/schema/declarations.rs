//! A declaration that does not fit its table: all mistakes are reported at once, each with what to write instead.

use anyhow::Result;
use gleaner::attach::{Options, attach};
use gleaner::{Completion, Declaration, Error};

use crate::world::{World, world};

/// The mistakes attach reports, as `what: instead`.
async fn mistakes(world: &World, name: &str, toml: &str) -> Result<Vec<String>> {
    let mut client = world.connect().await?;
    match attach(&mut client, &Declaration::parse(toml, name)?, toml, Options::default(), &|_| {}).await {
        Err(Error::Declaration { mistakes, .. }) => Ok(mistakes.iter().map(ToString::to_string).collect()),
        Err(other) => Err(other.into()),
        Ok(_) => Ok(Vec::new()),
    }
}

/// Asserts that each expected pair of (what, instead) is in the list, and nothing else.
fn assert_told(told: &[String], expected: &[(&str, &str)]) {
    for (what, instead) in expected {
        assert!(
            told.iter().any(|m| m.contains(what) && m.contains(instead)),
            "no mistake says {what:?} and {instead:?} in\n  {}",
            told.join("\n  ")
        );
    }
    assert_eq!(told.len(), expected.len(), "more was told than expected:\n  {}", told.join("\n  "));
}

const STATUS: &str = "status = { column = 'status', ready = 'new', running = 'busy', done = 'done', failed = 'bad' }";

#[tokio::test]
async fn every_mistake_is_reported_at_once_with_what_to_write_instead() -> Result<()> {
    let world = world().await?;
    world
        .run(
            "create type public.phase as enum ('new', 'busy', 'done');
             create table public.orders (id bigint primary key, phase public.phase not null, customer text, created_at timestamptz,
                                         amount numeric, tags text[], due_at text, wanted_on date, info jsonb)",
        )
        .await?;
    let told = mistakes(
        &world,
        "orders",
        "table    = 'public.orders'
         status   = { column = 'phase', ready = 'new', running = 'busy', done = 'done', failed = 'done' }
         owner    = { column = 'custmer', table = 'public.customers' }
         kind     = 'amount'
         result   = 'outcome'
         progress = 'tags'
         error    = 'amount'
         recovered = 'info'
         due      = 'wanted_on'
         dead     = 'public.graveyard'
         hold     = '5'
         deadline = { urgent = '1 fortnight' }
         retain   = '30 days'
         unique   = 'idd'
         zone     = 'Mars/Olympus'
         rename   = { leese = 'x' }
         priority = { column = 'customer', classes = [1, 3, 2] }
         retry    = { backoff = ['soon', '1 hour'] }
         grant    = { work = ['nobody_at_all'] }",
    )
    .await?;
    assert_told(
        &told,
        &[
            ("status.failed and status.done are both \"done\"", "a word of its own"),
            ("owner.column = \"custmer\"", "did you mean \"customer\"?"),
            ("owner.table = \"public.customers\": there is no such table", "schema.table"),
            ("kind = \"amount\": the column is numeric", "text or enum column"),
            ("result = \"outcome\"", "it has amount, created_at, customer"),
            ("progress = \"tags\": the column is text[]", "jsonb or text"),
            ("error = \"amount\": the column is numeric", "jsonb or text"),
            ("recovered = \"info\"", "metadata.recovery_count"),
            ("due = \"wanted_on\": the column is date", "timestamp with time zone"),
            ("dead = \"public.graveyard\": there is no such table", "create it first"),
            ("hold = \"5\" is not a duration", "5 minutes"),
            ("deadline.urgent = \"1 fortnight\" is not a duration", "5 minutes"),
            ("retain needs to know when work ended", "declare `finished`"),
            ("unique = \"idd\"", "did you mean \"id\"?"),
            ("zone = \"Mars/Olympus\"", "pg_timezone_names"),
            ("rename.leese: the engine has no column of that name", "due_at, open_at, lease"),
            ("priority.classes are numbers, and \"customer\" is text", "list its words"),
            ("priority.classes", "must rise or fall"),
            ("retry.backoff = \"soon\"", "5 minutes"),
            ("grant names the role \"nobody_at_all\"", "create it first"),
            (
                "the engine needs a column \"due_at\" of type timestamptz, and public.orders has one of type text",
                "rename = { due_at = \"queue_due_at\" }",
            ),
        ],
    );
    assert_eq!(world.count("select count(*) from gleaner.queue where name = 'orders'").await?, 0);
    assert_eq!(world.count("select count(*) from pg_proc where proname like '%\\_orders'").await?, 0);
    Ok(())
}

#[tokio::test]
async fn a_table_whose_rows_cannot_be_distinguished_is_refused() -> Result<()> {
    let world = world().await?;
    world
        .run(
            "create table public.keyless (status text, created_at timestamptz);
             create table public.composite (a bigint, b bigint, status text, primary key (a, b));
             create table public.odd_key (id point, at date primary key, status text);
             create table public.plain (id bigint primary key, other bigint, status text)",
        )
        .await?;
    let of = |table: &str, more: &str| format!("table = 'public.{table}'\n{STATUS}\n{more}");
    assert_told(&mistakes(&world, "q", &of("keyless", "")).await?, &[("public.keyless has no primary key", "add one")]);
    assert_told(&mistakes(&world, "q", &of("composite", "")).await?, &[("the primary key has 2 columns (a, b)", "`tenant`")]);
    assert_told(&mistakes(&world, "q", &of("odd_key", "")).await?, &[("key = \"at\": the column is date", "bigint or integer")]);
    assert_told(&mistakes(&world, "q", &of("plain", "key = 'other'")).await?, &[("key = \"other\" is not the primary key", "id is used")]);
    Ok(())
}

#[tokio::test]
async fn what_is_not_a_table_is_refused() -> Result<()> {
    let world = world().await?;
    world
        .run(
            "create table public.base (id bigint primary key, status text);
             create view public.seen as select * from public.base;
             create materialized view public.kept as select * from public.base;
             create foreign data wrapper nothing; create server elsewhere foreign data wrapper nothing;
             create foreign table public.far (id bigint, status text) server elsewhere",
        )
        .await?;
    for (table, word) in [("seen", "is a view"), ("kept", "is a materialised view"), ("far", "is a foreign table")] {
        let told = mistakes(&world, "q", &format!("table = 'public.{table}'\n{STATUS}")).await?;
        assert!(told.iter().any(|m| m.contains(word) && m.contains("attach the table it reads from")), "{told:?}");
    }
    for missing in ["public.nowhere", "no.such.place.at.all", "\"open"] {
        let told = mistakes(&world, "q", &format!("table = '{missing}'\n{STATUS}")).await?;
        assert_told(&told, &[("there is no such table", "write schema.table as in psql")]);
    }
    Ok(())
}

#[tokio::test]
async fn a_name_that_cannot_be_part_of_a_function_is_refused() -> Result<()> {
    let world = world().await?;
    world.run("create table public.base (id bigint primary key, status text)").await?;
    for name in ["Orders", "or ders", "9lives", "x'; drop table y; --", "a_name_so_long_that_no_function_could_carry_it"] {
        let told = mistakes(&world, name, &format!("table = 'public.base'\n{STATUS}")).await?;
        assert_told(&told, &[("name = ", "lower-case letters")]);
    }
    Ok(())
}

/// Acts change the status; a table partitioned by it would fail concurrent acts with "moved to another partition".
#[tokio::test]
async fn partitioning_by_a_column_that_acts_change_is_refused() -> Result<()> {
    let world = world().await?;
    world
        .run(
            "create table public.by_status (id bigint, status text, primary key (id, status)) partition by list (status);
             create table public.by_owner (id bigint, status text, owner bigint, created_at timestamptz, primary key (id, owner)) partition by hash (owner)",
        )
        .await?;
    let told = mistakes(&world, "q", &format!("table = 'public.by_status'\n{STATUS}")).await?;
    assert_told(&told, &[("partitioned by \"status\", which acts change", "creation time")]);
    let told = mistakes(&world, "q", &format!("table = 'public.by_owner'\n{STATUS}\nowner = {{ column = 'owner' }}")).await?;
    assert_told(&told, &[("partitioned by \"owner\", which acts change", "creation time")]);
    Ok(())
}

#[tokio::test]
async fn owners_and_kinds_are_checked_against_their_own_tables_and_types() -> Result<()> {
    let world = world().await?;
    world
        .run(
            "create type public.kind as enum ('call', 'mail');
             create table public.people (id uuid primary key, minutes text, shares text, login text);
             create table public.pairs (a int, b int, primary key (a, b));
             create table public.base (id bigint primary key, status text, owner bigint, kind public.kind, created_at timestamptz)",
        )
        .await?;
    let of = |more: &str| format!("table = 'public.base'\n{STATUS}\n{more}");
    let told = mistakes(
        &world,
        "q",
        &of("owner = { column = 'owner', table = 'public.people', open_after = 'minuts', shared = 'shares', user = 'login' }\nkind = 'kind'\nhold = { fax = '1 minute' }"),
    )
    .await?;
    assert_told(
        &told,
        &[
            ("owner.column = \"owner\" is bigint, the key of public.people is uuid", "owner.key"),
            ("owner.open_after = \"minuts\"", "did you mean \"minutes\"?"),
            ("owner.shared = \"shares\": the column is text", "boolean"),
            ("owner.user = \"login\": the column is text", "uuid"),
            ("an enum that may be null", "set not null"),
            ("hold.fax: there is no such kind", "call, mail"),
        ],
    );
    let told = mistakes(&world, "q", &of("hold = { call = '1 minute' }")).await?;
    assert_told(&told, &[("hold has a duration per kind, and no kind is declared", "declare `kind`")]);
    let told = mistakes(&world, "q", &of("owner = { column = 'owner', table = 'public.pairs' }")).await?;
    assert_told(&told, &[("public.pairs has no single-column primary key", "declare owner.key")]);
    let told = mistakes(&world, "q", &of("owner = { column = 'owner', shared = 'shares', user = 'login' }")).await?;
    assert_told(
        &told,
        &[("owner.shared names a column of the owner table, and there is none", "owner.table"), ("owner.user names", "owner.table")],
    );
    Ok(())
}

/// Values cannot be removed from an enum again, so they are added only on request.
#[tokio::test]
async fn a_status_word_the_enum_lacks_is_added_only_when_asked() -> Result<()> {
    let world = world().await?;
    world
        .run("create type public.phase as enum ('new', 'busy', 'done'); create table public.base (id bigint primary key, phase public.phase not null default 'new')")
        .await?;
    let toml = "table = 'public.base'\nstatus = { column = 'phase', ready = 'new', running = 'busy', done = 'done', failed = 'bad', cancelled = 'off' }";
    let told = mistakes(&world, "base", toml).await?;
    assert_told(
        &told,
        &[("status word \"bad\": the enum public.phase has no such value", "--add-words"), ("status word \"off\"", "new, busy, done")],
    );
    assert_eq!(world.count("select count(*) from pg_enum where enumtypid = 'public.phase'::regtype").await?, 3);

    let mut client = world.connect().await?;
    attach(&mut client, &Declaration::parse(toml, "base")?, toml, Options { add_words: true }, &|_| {}).await?;
    world.run("insert into public.base (id) values (1), (2)").await?;
    let queue = world.queue("base").await?;
    let item = &world.claim(&queue, "a", None, 1).await?[0];
    queue.fail(&item.held(), &gleaner::Failure::new("no").for_good()).await?;
    queue.cancel(&["2"], None).await?;
    assert_eq!(world.text("select string_agg(phase::text, ' ' order by id) from public.base").await?.as_deref(), Some("bad off"));
    Ok(())
}

#[tokio::test]
async fn a_column_that_exists_already_is_never_overwritten() -> Result<()> {
    let world = world().await?;
    world
        .run(
            "create table public.calls (id bigint primary key, status text not null default 'new', agent text, due_at date);
             insert into public.calls values (1, 'new', 'the caller''s insurance agent', '2020-01-01')",
        )
        .await?;
    let told = mistakes(&world, "calls", &format!("table = 'public.calls'\n{STATUS}\nrename = {{ due_at = 'queue_due_at' }}")).await?;
    assert_told(&told, &[("has a column \"agent\" already", "rename = { agent = \"queue_agent\" }")]);

    let toml = format!("table = 'public.calls'\n{STATUS}\nrename = {{ due_at = 'queue_due_at', agent = 'queue_agent' }}");
    world.attach("calls", &toml).await?;
    let queue = world.queue("calls").await?;
    let item = world.claim(&queue, "me", None, 1).await?.remove(0);
    assert_eq!(
        world.text("select concat_ws(', ', agent, due_at, queue_agent, queue_due_at > now()) from public.calls").await?.as_deref(),
        Some("the caller's insurance agent, 2020-01-01, me, t")
    );
    queue.complete(&[Completion::new(item.held(), None)]).await?;
    let mut client = world.connect().await?;
    gleaner::attach::detach(&mut client, "calls", false).await?;
    assert_eq!(
        world.text("select concat_ws(', ', status, agent, due_at) from public.calls").await?.as_deref(),
        Some("done, the caller's insurance agent, 2020-01-01")
    );
    Ok(())
}

#[tokio::test]
async fn a_table_that_is_a_queue_already_is_not_made_a_second_one() -> Result<()> {
    let world = world().await?;
    let toml =
        "table = 'gleaner.jobs'\nstatus = { column = 'status', ready = 'ready', running = 'running', done = 'done', failed = 'failed' }";
    assert_told(
        &mistakes(&world, "more_jobs", toml).await?,
        &[("gleaner.jobs is attached already, as queue jobs", "write name = \"jobs\"")],
    );
    world.run("create table public.base (id bigint primary key, status text)").await?;
    let told = mistakes(&world, "jobs", &format!("table = 'public.base'\n{STATUS}")).await?;
    assert_told(&told, &[("queue jobs is attached to gleaner.jobs", "choose another name")]);
    Ok(())
}

#[tokio::test]
async fn a_generated_status_column_is_refused() -> Result<()> {
    let world = world().await?;
    world
        .run(
            "create table public.parcels (id bigint primary key, sent boolean not null default false,
                 status text generated always as (case when sent then 'done' else 'new' end) stored)",
        )
        .await?;
    let told = mistakes(&world, "parcels", &format!("table = 'public.parcels'\n{STATUS}")).await?;
    assert_told(&told, &[("status.column = \"status\": the column is generated", "name a column that is written")]);
    Ok(())
}

/// Otherwise no act could write the status, and rows would be claimable and never claimed.
#[tokio::test]
async fn a_status_word_that_a_check_does_not_allow_is_refused_by_name() -> Result<()> {
    let world = world().await?;
    world
        .run(
            "create table public.parcels (id bigint primary key, size integer, status character varying(20) not null default 'new',
                 constraint parcels_known check (status in ('new', 'busy', 'done', 'sent')),
                 -- What reads other columns depends on the row.
                 constraint parcels_small check (size < 10 or status <> 'busy'));
             alter table public.parcels add constraint parcels_short check (length(status) < 4) not valid",
        )
        .await?;
    let declared = format!("table = 'public.parcels'\n{STATUS}");
    let told = mistakes(&world, "parcels", &declared).await?;
    let (known, short) = ("the check constraint parcels_known of public.parcels", "the check constraint parcels_short of public.parcels");
    assert_told(
        &told,
        &[
            (&format!("status word \"bad\": {known} does not allow it"), "'sent'"),
            (&format!("status word \"busy\": {short} does not allow it"), "length"),
            (&format!("status word \"done\": {short} does not allow it"), "length"),
        ],
    );
    assert_eq!(world.count("select count(*) from gleaner.queue where name = 'parcels'").await?, 0);
    world.run("alter table public.parcels drop constraint parcels_known, drop constraint parcels_short").await?;
    assert_told(&mistakes(&world, "parcels", &declared).await?, &[]);
    Ok(())
}
