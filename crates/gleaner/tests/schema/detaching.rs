//! A queue is detached again, and the table is as it was.

use std::time::Duration;

use anyhow::Result;
use gleaner::attach::{Options, attach, detach};
use gleaner::{Claim, Completion, Declaration, Failure, Held, Outcome, Progress};
use serde_json::json;

use crate::dump::pg_dump;
use crate::world::{World, keys, world};

/// A table unlike our own: bigint key, enum status, text owner, triggers, foreign keys in both directions, row security with its
/// own policies, a view and a check. Related tables must not change either.
const CLINIC: &str = "
    create schema clinic;
    create type clinic.stage as enum ('waiting', 'in treatment', 'healed', 'sent away', 'left');
    create table clinic.doctor (login text primary key, patience interval, takes_others boolean, user_id uuid);
    create table clinic.room (id int primary key);
    create table clinic.patient (
        number     bigserial primary key,
        stage      clinic.stage not null default 'waiting',
        doctor     text references clinic.doctor (login),
        room       int references clinic.room (id) on delete set null,
        complaint  text not null check (complaint <> ''),
        findings   jsonb,
        touched_at timestamptz,
        arrived_at timestamptz not null default now()
    );
    create table clinic.prescription (id serial primary key, patient bigint not null references clinic.patient (number) on delete cascade, what text);
    create table clinic.log (at timestamptz default clock_timestamp(), patient bigint, stage text);
    create table clinic.archive (id uuid primary key default gen_random_uuid(), original_patient_id bigint, reason text, complaint text);
    create index patient_room on clinic.patient (room) where stage <> 'left';
    create function clinic.touch() returns trigger language plpgsql as $$ begin new.touched_at := clock_timestamp(); return new; end $$;
    create function clinic.write_log() returns trigger language plpgsql as
        $$ begin insert into clinic.log (patient, stage) values (new.number, new.stage::text); return null; end $$;
    create trigger touch before update on clinic.patient for each row execute function clinic.touch();
    create trigger zzz_log after insert or update of stage on clinic.patient for each row execute function clinic.write_log();
    create view clinic.waiting_room as select number, complaint, doctor from clinic.patient where stage = 'waiting';
    alter table clinic.patient enable row level security;
    create policy own on clinic.patient for all to authenticated using (doctor = current_setting('clinic.me', true));
    create policy auditors on clinic.patient as restrictive for delete to authenticated using (false);
    grant usage on schema clinic to authenticated;
    grant select, update on clinic.patient to authenticated;
    comment on table clinic.patient is 'People.';
    alter table clinic.patient replica identity full;
    alter table clinic.patient set (fillfactor = 80);
    insert into clinic.doctor values ('ann', '1 hour', true, null), ('ben', null, false, null);
    insert into clinic.patient (doctor, complaint) select case n % 3 when 0 then 'ann' when 1 then 'ben' end, 'ouch ' || n from generate_series(1, 30) n;";

const PATIENTS: &str = "
    table    = 'clinic.patient'
    status   = { column = 'stage', ready = 'waiting', running = 'in treatment', done = 'healed', failed = 'sent away', cancelled = 'left' }
    owner    = { column = 'doctor', table = 'clinic.doctor', open_after = 'patience', shared = 'takes_others', user = 'user_id' }
    created  = 'arrived_at'
    result   = 'findings'
    dead     = 'clinic.archive'
    payload  = 'complaint'";

async fn take_off(world: &World, name: &str) -> gleaner::Result<Vec<String>> {
    detach(&mut gleaner::connect(world.url()).await?, name, false).await
}

#[tokio::test]
async fn a_table_we_have_never_seen_is_attached_worked_and_detached_and_nothing_else_about_it_has_changed() -> Result<()> {
    let world = world().await?;
    world.run(CLINIC).await?;
    let before = pg_dump(world.url(), &[])?;
    world.attach("patients", PATIENTS).await?;

    world.run("insert into clinic.patient (doctor, complaint) values ('ann', 'a cough')").await?;
    let queue = world.queue("patients").await?;
    let mut claim = Claim::by("scalpel").limit(15);
    claim.owner = Some("ann".into());
    let items = queue.claim(&claim).await?.items;
    let owners: Vec<_> = items.iter().map(|i| i.owner.as_deref()).collect();
    assert_eq!(
        owners,
        [vec![Some("ann"); 11], vec![None; 4]].concat(),
        "own first, then nobody's, and never the one who keeps work private"
    );
    let held: Vec<Held> = items.iter().map(|i| i.held()).collect();
    queue.start(&held).await?;
    queue.progress(&held[0], &Progress::stage("x-ray").partial(json!({"bones": 206}))).await?;
    assert_eq!(queue.complete(&[Completion::new(held[0].clone(), Some(json!({"ok": true})))]).await?[0].outcome, Outcome::Done);
    assert_eq!(queue.fail(&held[1], &Failure::new("hopeless").for_good()).await?.outcome, Outcome::Done);
    assert_eq!(queue.fail(&held[2], &Failure::new("later")).await?.outcome, Outcome::Done);
    assert_eq!(queue.snooze(&held[3], Duration::from_secs(5)).await?.outcome, Outcome::Done);
    assert_eq!(queue.cancel(&[&held[4].key], None).await?[0].outcome, Outcome::Done);
    assert_eq!(queue.bury(&[&held[5].key], Some("gone home")).await?[0].outcome, Outcome::Done);
    assert_eq!(queue.assign(&[&held[6].key], Some("ben")).await?[0].outcome, Outcome::Done);
    assert_eq!(queue.cancel_matching(&json!({"doctor": "ben"}), Some("holiday")).await?.len(), 11);
    queue.release(&held[7..]).await?;
    assert_eq!(queue.requeue(&[&held[0].key]).await?[0].outcome, Outcome::Done);
    queue.recover().await?;
    assert!(queue.explain(&held[2].key, Some("ann")).await?.is_some());
    assert_eq!(
        world
            .text("select string_agg(reason || ': ' || complaint, ', ' order by reason) from clinic.archive")
            .await?
            .map(|s| s.split(", ").count()),
        Some(2)
    );
    assert!(world.count("select count(*) from clinic.log").await? > 60, "the table's own triggers fired in the acts");
    assert_eq!(world.count("select count(*) from clinic.patient where touched_at is null and stage <> 'waiting'").await?, 0);

    let data = "select md5(string_agg(to_jsonb(p)::text, '' order by number)) from (select number, stage, doctor, room, complaint, findings from clinic.patient) p";
    let worked = world.text(data).await?;
    take_off(&world, "patients").await?;
    assert_eq!(pg_dump(world.url(), &[])?, before);
    assert_eq!(world.text(data).await?, worked, "what the work changed stays");
    assert_eq!(world.count("select count(*) from gleaner.rejected_row where queue = 'patients'").await?, 0);

    // And again, from the state it was left in.
    world.attach("patients", PATIENTS).await?;
    assert!(!queue.claim(&claim).await?.items.is_empty());
    Ok(())
}

#[tokio::test]
async fn what_came_to_use_an_engine_column_blocks_detach_by_name() -> Result<()> {
    let world = world().await?;
    world.run(CLINIC).await?;
    world.attach("patients", PATIENTS).await?;
    world
        .run(
            "create view clinic.overdue as select number, due_at from clinic.patient where due_at < now();
             create materialized view clinic.leases as select lease from clinic.patient;
             create index by_agent on clinic.patient (agent);
             create policy late on clinic.patient for select to authenticated using (lost > 0)",
        )
        .await?;
    let error = take_off(&world, "patients").await.unwrap_err().to_string();
    for part in [
        "view clinic.overdue",
        "view clinic.leases",
        "index clinic.by_agent",
        "policy late on table clinic.patient",
        "drop or change them first",
    ] {
        assert!(error.contains(part), "{part:?} is not in: {error}");
    }
    assert_eq!(world.claim(&world.queue("patients").await?, "a", None, 1).await?.len(), 1, "nothing was taken off");
    world.run("drop view clinic.overdue; drop materialized view clinic.leases; drop index clinic.by_agent; drop policy late on clinic.patient; update clinic.patient set stage = 'healed'").await?;
    world.run("begin; set local role gleaner_engine; update clinic.patient set stage = 'healed'; commit").await?;
    take_off(&world, "patients").await?;
    Ok(())
}

#[tokio::test]
async fn running_rows_stand_in_the_way_of_detach_unless_it_is_forced() -> Result<()> {
    let world = world().await?;
    world.run(CLINIC).await?;
    world.attach("patients", PATIENTS).await?;
    let queue = world.queue("patients").await?;
    assert_eq!(keys(&world.claim(&queue, "a", None, 2).await?).len(), 2);
    let error = take_off(&world, "patients").await.unwrap_err().to_string();
    assert!(error.contains("has 2 running rows") && error.contains("--force"), "{error}");
    detach(&mut world.connect().await?, "patients", true).await?;
    assert_eq!(world.count("select count(*) from clinic.patient where stage = 'in treatment'").await?, 2);
    assert_eq!(world.count("select count(*) from gleaner.queue where name = 'patients'").await?, 0);
    Ok(())
}

/// Detach uses what was recorded: a table that changed since, or was dropped, does not prevent it.
#[tokio::test]
async fn a_queue_whose_table_changed_or_is_gone_can_be_detached() -> Result<()> {
    let world = world().await?;
    world.run("create table public.brief (id bigint primary key, status text default 'a', topic text, created_at timestamptz)").await?;
    let toml =
        "table = 'public.brief'\nkind = 'topic'\nstatus = { column = 'status', ready = 'a', running = 'b', done = 'c', failed = 'd' }";
    world.attach("brief", toml).await?;
    world.run("alter table public.brief drop column topic").await?;
    take_off(&world, "brief").await?;
    assert_eq!(
        world
            .count("select count(*) from pg_attribute where attrelid = 'public.brief'::regclass and attnum > 0 and not attisdropped")
            .await?,
        3
    );

    world.run("alter table public.brief add column topic text").await?;
    world.attach("brief", toml).await?;
    world.run("drop table public.brief cascade").await?;
    take_off(&world, "brief").await?;
    assert_eq!(world.count("select count(*) from pg_proc where proname like '%\\_brief%'").await?, 0);
    let error = take_off(&world, "brief").await.unwrap_err().to_string();
    assert!(error.contains("there is no queue \"brief\"") && error.contains("jobs"), "{error}");
    Ok(())
}

/// Detach revokes only what attach granted: rights that existed before, or that another queue needs, stay.
#[tokio::test]
async fn rights_that_were_there_before_or_serve_another_queue_stay() -> Result<()> {
    let world = world().await?;
    world.run(CLINIC).await?;
    world
        .run(
            "grant select on clinic.patient to gleaner_engine;
             create table clinic.visitor (id bigint primary key, status text default 'a', doctor text, created_at timestamptz default now())",
        )
        .await?;
    let before = pg_dump(world.url(), &["--schema=clinic"])?;
    let visitors = "table = 'clinic.visitor'\nstatus = { column = 'status', ready = 'a', running = 'b', done = 'c', failed = 'd' }
                    owner = { column = 'doctor', table = 'clinic.doctor' }";
    let mut client = world.connect().await?;
    for (name, toml) in [("patients", PATIENTS), ("visitors", visitors)] {
        attach(&mut client, &Declaration::parse(toml, name)?, toml, Options::default(), &|_| {}).await?;
    }
    take_off(&world, "patients").await?;
    world.run("insert into clinic.visitor (id, doctor) values (1, 'ann')").await?;
    assert_eq!(client.query("select * from gleaner.claim_visitors('a', 1, 'ann')", &[]).await?.len(), 1);
    detach(&mut client, "visitors", true).await?;
    assert_eq!(pg_dump(world.url(), &["--schema=clinic"])?, before);
    Ok(())
}

#[tokio::test]
async fn triggers_that_note_changes_for_a_server_without_the_log_go_too() -> Result<()> {
    let world = world().await?;
    world.run(CLINIC).await?;
    let before = pg_dump(world.url(), &["--schema=clinic"])?;
    world.run("alter publication supabase_realtime add table clinic.patient").await?;
    world.run("select gleaner.capture_changes('clinic.patient', true)").await?;
    world.attach("patients", PATIENTS).await?;
    take_off(&world, "patients").await?;
    world.run("alter publication supabase_realtime drop table clinic.patient").await?;
    assert_eq!(pg_dump(world.url(), &["--schema=clinic"])?, before);

    // These triggers reject nothing, so a claim may still use the fast path.
    world.run("create table clinic.bed (id int primary key, state text); alter publication supabase_realtime add table clinic.bed").await?;
    world.run("select gleaner.capture_changes('clinic.bed', true)").await?;
    assert_eq!(world.count("select count(*) from pg_trigger where tgrelid = 'clinic.bed'::regclass").await?, 4);
    assert_eq!(world.count("select count(*) where gleaner.is_plain('clinic.bed', '{state}', 'state')").await?, 1);
    Ok(())
}
