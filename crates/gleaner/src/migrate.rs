//! Brings a database to the schema this library ships: versioned tables, repeatable functions and views, attached queues.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use sha2::{Digest, Sha256};
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, GenericClient};

use crate::attach::{self, attach};
use crate::connect::connect;
use crate::declaration::Declaration;
use crate::error::{Error, Result};
use crate::files;
use crate::introspect::literal;
use crate::plan::Plan;
use crate::registry;
use crate::render::render;

mod adopt;
mod lock;
mod rehearsal;
mod rights;
mod schedules;
mod statements;
mod systems;

use lock::Lock;
use rights::{Broken, Expected};

pub use rehearsal::dry_run;
pub use schedules::{Schedule, register, schedules};

/// The systems that ship with the engine, in the order they are migrated.
pub const SYSTEMS: &[&str] = &["jobs", "crm", "dumps", "runs", "followups"];

/// First line of a versioned file whose statements cannot share a transaction (a new enum value cannot be used in the transaction
/// that adds it).
const OUTSIDE_TRANSACTION: &str = "-- outside a transaction";

/// How a step is applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Run once, never edited after release.
    Versioned,
    /// Run again whenever its text changes.
    Repeatable,
    /// A declaration; attached again whenever it or the templates change.
    Queue,
}

/// One migration step, and whether it is done.
#[derive(Debug, Clone)]
pub struct Step {
    /// Path under `sql/`.
    pub name: &'static str,
    /// How it is applied.
    pub kind: Kind,
    /// The text of the file.
    pub text: &'static str,
    /// Whether it is done.
    pub state: State,
}

/// Whether a step is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Not applied yet.
    Pending,
    /// Applied in an earlier form; will be applied again.
    Changed,
    /// Applied in its current form.
    Applied,
    /// A versioned file that differs from what was applied: it was edited after release.
    Edited,
    /// A function or view of that name existed before. It stays until it is dropped.
    Kept,
    /// Applied, but roles, owners, grants or policies differ from what it set, for example after a restore without them.
    Drifted,
}

impl State {
    /// Whether nothing is left to do.
    pub fn is_done(self) -> bool {
        matches!(self, Self::Applied | Self::Kept)
    }
}

/// Migrates the database at `url`, with the systems it has, or those it starts with: see [`migrate_systems`].
pub async fn migrate(url: &str, say: &(dyn Fn(&str) + Sync)) -> Result<Vec<&'static str>> {
    migrate_systems(url, &[], say).await
}

/// Migrates the database at `url` with the systems it has and those in `asked`. Two runs at once are safe: the second waits for
/// the first. Returns what was applied.
///
/// On the first run with an empty `asked`, an empty database gets every system, and a database with tables of its own gets the
/// systems whose tables it has. The engine and `jobs` are always included.
pub async fn migrate_systems(url: &str, asked: &[String], say: &(dyn Fn(&str) + Sync)) -> Result<Vec<&'static str>> {
    systems::check(asked)?;
    let mut client = connect(url).await?;
    bootstrap(&client).await?;
    let lock = Lock::acquire(url, &client, say).await?;
    let result = apply(&mut client, &lock, asked, say).await;
    lock.release(&client).await;
    result
}

/// Every step and its state, without changing anything.
pub async fn status(client: &impl GenericClient) -> Result<Vec<Step>> {
    status_of(client, &[]).await
}

/// The same, including the systems in `asked`.
pub async fn status_of(client: &impl GenericClient, asked: &[String]) -> Result<Vec<Step>> {
    let choice = systems::choose(client, asked).await?;
    steps_of(client, &choice.systems).await
}

/// The systems this database has, or would start with.
pub async fn systems(client: &impl GenericClient) -> Result<Vec<&'static str>> {
    Ok(systems::choose(client, &[]).await?.systems)
}

async fn steps_of(client: &impl GenericClient, systems: &[&str]) -> Result<Vec<Step>> {
    let applied = applied(client).await?;
    let mut steps: Vec<Step> = all_steps()
        .into_iter()
        .filter(|(name, _, _)| system_of(name).is_none_or(|system| systems.contains(&system)))
        .map(|(name, kind, text)| {
            let state = match (applied.get(name).map(String::as_str), kind) {
                (None, _) => State::Pending,
                (Some(KEPT), _) => State::Kept,
                (Some(sum), _) if *sum == checksum(kind, text) => State::Applied,
                (Some(_), Kind::Versioned) => State::Edited,
                (Some(_), _) => State::Changed,
            };
            Step { name, kind, text, state }
        })
        .collect();
    let broken = broken_rights(client, &steps).await?;
    for step in steps.iter_mut().filter(|s| s.state == State::Applied && broken.iter().any(|b| b.source == s.name)) {
        step.state = State::Drifted;
    }
    Ok(steps)
}

/// The roles, owners, grants and policies of applied steps, and of the queues that users attached, that are not as they should be.
async fn broken_rights(client: &impl GenericClient, steps: &[Step]) -> Result<Vec<Broken>> {
    let mut expected = Expected::default();
    if steps.iter().any(|s| s.name == rights::ROLES_STEP && matches!(s.state, State::Applied | State::Drifted)) {
        let adopted = adopt::adopted(client).await?;
        let mut queues = registry::rendered(client).await?;
        for step in steps.iter().filter(|s| matches!(s.state, State::Applied | State::Drifted)) {
            if step.kind == Kind::Queue {
                let queue = queues.remove(declaration_of(step.name, step.text)?.name());
                let (sql, functions) = queue.unwrap_or_default();
                expected.read_queue(step.name, &sql, &functions);
            } else {
                expected.read(step.name, &adopt::respectful(step.text, &adopted));
            }
        }
        // Our own pending queues are attached anyway.
        for name in all_queues()? {
            queues.remove(&name);
        }
        queues.iter().for_each(|(name, (sql, functions))| expected.read_queue(name, sql, functions));
    }
    expected.broken(client).await
}

/// The names of the queues that ship with the library.
fn all_queues() -> Result<Vec<String>> {
    let queues = all_steps().into_iter().filter(|(_, kind, _)| *kind == Kind::Queue);
    queues.map(|(name, _, text)| declaration_of(name, text).map(|d| d.name().to_owned())).collect()
}

/// The steps applied to this database, with their checksums.
async fn applied(client: &impl GenericClient) -> Result<HashMap<String, String>> {
    let known = client
        .query_typed("select to_regclass('gleaner.migration') is not null", &[])
        .await
        .map_err(Error::doing("look for migrations"))?[0]
        .get::<_, bool>(0);
    if !known {
        return Ok(HashMap::new());
    }
    let rows =
        client.query_typed("select name, checksum from gleaner.migration", &[]).await.map_err(Error::doing("read applied migrations"))?;
    Ok(rows.iter().map(|r| (r.get(0), r.get(1))).collect())
}

/// The system a step belongs to; none for the engine's own steps.
fn system_of(step: &str) -> Option<&str> {
    step.strip_prefix("systems/")?.split('/').next()
}

/// Whether every database has this step: the engine and the built-in queue.
fn is_base(step: &Step) -> bool {
    system_of(step.name).is_none_or(|system| system == "jobs")
}

/// Stored in place of a checksum: a function or view of that name existed before.
const KEPT: &str = "kept";

async fn apply(client: &mut Client, lock: &Lock, asked: &[String], say: &(dyn Fn(&str) + Sync)) -> Result<Vec<&'static str>> {
    let choice = systems::choose(client, asked).await?;
    let steps = steps_of(client, &choice.systems).await?;
    if let Some(edited) = steps.iter().find(|s| s.state == State::Edited) {
        return Err(Error::Other(format!(
            "{} was changed after it had been applied to this database; a released migration is never edited: write a new file instead",
            edited.name
        )));
    }
    let broken = broken_rights(client, &steps).await?;
    if !broken.is_empty() {
        say(&format!("repairing roles, owners and grants: {}", rights::summary(&broken)));
    }
    let (base, rest): (Vec<Step>, Vec<Step>) = steps.into_iter().partition(is_base);
    let mut done = run(client, lock, &base, say).await?;
    let adoptions = fitting(client, choice, say).await?;
    systems::remember(client, adoptions.iter().map(|(system, _)| *system)).await?;
    for (system, adoption) in adoptions {
        let mut steps: Vec<Step> = rest.iter().filter(|s| system_of(s.name) == Some(system)).cloned().collect();
        if let Some(adoption) = adoption {
            lock.check(client).await?;
            done.extend(take_over(client, &adoption, &mut steps, say).await?);
        }
        done.extend(run(client, lock, &steps, say).await?);
    }
    adopt::finish(client, say).await?;
    refresh(client, &broken, say).await?;
    if !broken.is_empty() {
        let left = broken_rights(client, &status_of(client, &[]).await?).await?;
        if !left.is_empty() {
            say(&format!("these could not be repaired: {}; migrate as the owner of the tables, or as a superuser", rights::summary(&left)));
        }
    }
    Ok(done)
}

/// The systems beyond the engine, and what has to be done to tables that already exist. All are checked before any is changed.
/// One that was not asked for and does not fit is left alone.
async fn fitting(
    client: &mut impl GenericClient,
    choice: systems::Choice,
    say: &(dyn Fn(&str) + Sync),
) -> Result<Vec<(&'static str, Option<adopt::Adoption>)>> {
    let mut all = Vec::new();
    for system in choice.systems.iter().copied().filter(|system| *system != "jobs") {
        let adoption = if choice.is_new(system) { adopt::compare(client, system).await? } else { None };
        let Some(mistakes) = adoption.as_ref().map(|a| &a.mistakes).filter(|m| !m.is_empty()) else {
            all.push((system, adoption));
            continue;
        };
        let error = Error::Misfit { system: system.into(), mistakes: mistakes.clone() };
        if choice.asked.contains(&system) {
            return Err(error);
        }
        say(&format!("{error}\nIt was not asked for and is left out; `gleaner migrate --systems {system}` asks for it."));
    }
    Ok(all)
}

/// Adds to existing tables what they lack, together with the system's other tables, in one transaction.
async fn take_over(
    client: &mut Client,
    adoption: &adopt::Adoption,
    steps: &mut [Step],
    say: &(dyn Fn(&str) + Sync),
) -> Result<Vec<&'static str>> {
    let mut script = adoption.script();
    let mut done = Vec::new();
    for step in steps.iter_mut().filter(|s| s.kind == Kind::Versioned) {
        script += &format!("{};\n", record(step, TOOK));
        step.state = State::Applied;
        done.push(step.name);
    }
    attach::with_lock_timeout(client, "adopt the tables that are there", &script).await?;
    adoption.notes().iter().for_each(|note| say(note));
    Ok(done)
}

async fn run(client: &mut Client, lock: &Lock, steps: &[Step], say: &(dyn Fn(&str) + Sync)) -> Result<Vec<&'static str>> {
    let mut done = Vec::new();
    for step in steps.iter().filter(|s| s.state != State::Applied) {
        lock.check(client).await?;
        if let Some(theirs) = adopt::occupied(client, step).await? {
            if step.state == State::Pending {
                say(&format!("{theirs} was there first and stays; drop it and migrate again to have ours (sql/{})", step.name));
                client.batch_execute(&record_as(step, KEPT, "0")).await.map_err(Error::doing(format!("record {}", step.name)))?;
            }
            continue;
        }
        apply_step(client, step, say).await?;
        done.push(step.name);
    }
    Ok(done)
}

/// Queues that users attached themselves get the acts of this version too. One that no longer fits its table is reported and left alone.
async fn refresh(client: &mut Client, broken: &[Broken], say: &(dyn Fn(&str) + Sync)) -> Result<()> {
    let ours = all_queues()?;
    for entry in registry::list(client).await?.into_iter().filter(|e| !ours.contains(&e.name)) {
        let refreshed = async {
            let rendered = render(&Plan::make(client, &entry.declaration).await?)?;
            let is_broken = broken.iter().any(|b| b.source == entry.name);
            if !is_broken && rendered == attach::sql(client, &entry.name).await? {
                return Ok(());
            }
            say(&format!("bringing the acts of {} up to date", entry.name));
            let source = registry::source(client, &entry.name).await?;
            attach(client, &entry.declaration, &source, attach::Options { add_words: false }, say).await.map(drop)
        };
        if let Err(error) = refreshed.await {
            say(&format!("queue {} keeps its earlier acts: {error}", entry.name));
        }
    }
    Ok(())
}

/// Applies one step and records it. Does not wait long for a lock: every reader would be blocked behind a waiting `alter table`.
pub async fn apply_step(client: &mut Client, step: &Step, say: &(dyn Fn(&str) + Sync)) -> Result<()> {
    tracing::debug!(step = step.name, "migrate");
    let begun = Instant::now();
    let act = format!("apply {}", step.name);
    if step.kind == Kind::Queue {
        let declaration = declaration_of(step.name, step.text)?;
        attach(client, &declaration, step.text, attach::Options { add_words: true }, say).await?;
        client.batch_execute(&record(step, &begun.elapsed().as_millis().to_string())).await.map_err(Error::doing(act))
    } else if step.text.starts_with(OUTSIDE_TRANSACTION) {
        for statement in step.text.split(";\n").filter(|s| !s.trim().is_empty()) {
            client.batch_execute(statement).await.map_err(Error::doing(act.clone()))?;
        }
        client.batch_execute(&record(step, &begun.elapsed().as_millis().to_string())).await.map_err(Error::doing(act))
    } else {
        let text = text_of(client, step).await?;
        let script = format!("set local check_function_bodies = off;\n{text}\n;{}", record(step, TOOK));
        attach::with_lock_timeout(client, &act, &script).await
    }
}

/// The part of a file that is run in this database.
async fn text_of(client: &impl GenericClient, step: &Step) -> Result<String> {
    Ok(match (step.kind, step.state) {
        (Kind::Versioned, State::Drifted) if step.name != rights::ROLES_STEP => {
            adopt::respectful(&rights::statements_of(step.text), &adopt::adopted(client).await?)
        }
        (Kind::Repeatable, _) => adopt::respectful(step.text, &adopt::adopted(client).await?),
        _ => step.text.to_owned(),
    })
}

/// Milliseconds since the transaction began.
const TOOK: &str = "(extract(epoch from clock_timestamp() - now()) * 1000)::bigint";

fn record(step: &Step, took: &str) -> String {
    record_as(step, &checksum(step.kind, step.text), took)
}

fn record_as(step: &Step, checksum: &str, took: &str) -> String {
    format!(
        "insert into gleaner.migration (name, checksum, took_ms) values ({}, '{}', {})
         on conflict (name) do update set checksum = excluded.checksum, took_ms = excluded.took_ms, applied_at = clock_timestamp()",
        literal(step.name),
        checksum,
        took
    )
}

/// The tables that must exist before anything can be recorded.
const BOOTSTRAP: &str = "\
set client_min_messages = warning;
create schema if not exists gleaner;
create table if not exists gleaner.migration (
    name       text primary key,
    checksum   text        not null,
    applied_at timestamptz not null default clock_timestamp(),
    took_ms    bigint      not null
);
create table if not exists gleaner.system (
    name     text primary key,
    added_at timestamptz not null default clock_timestamp()
);
create table if not exists gleaner.migration_lock (
    id     integer primary key default 1,
    holder text        not null default '',
    fence  bigint      not null default 0,
    until  timestamptz not null default '-infinity',
    constraint migration_lock_single check (id = 1)
);
alter table gleaner.migration_lock
    add column if not exists backend_pid   integer,
    add column if not exists backend_start timestamptz;
insert into gleaner.migration_lock default values on conflict do nothing;
reset client_min_messages";

/// Runs [`BOOTSTRAP`]. Concurrent first runs may collide in the catalogue; the one that fails retries.
async fn bootstrap(client: &impl GenericClient) -> Result<()> {
    for _ in 0..10 {
        match client.batch_execute(BOOTSTRAP).await {
            Ok(()) => return Ok(()),
            Err(e)
                if matches!(
                    e.code(),
                    Some(
                        &SqlState::UNIQUE_VIOLATION
                            | &SqlState::DUPLICATE_SCHEMA
                            | &SqlState::DUPLICATE_TABLE
                            | &SqlState::DUPLICATE_OBJECT
                            | &SqlState::T_R_DEADLOCK_DETECTED
                    )
                ) =>
            {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            Err(e) => return Err(Error::doing("prepare the migration tables")(e)),
        }
    }
    Err(Error::Other("could not prepare the migration tables: another run kept colliding".into()))
}

fn declaration_of(name: &str, text: &str) -> Result<Declaration> {
    let stem = name.rsplit('/').next().and_then(|f| f.strip_suffix(".toml")).unwrap_or(name);
    Declaration::parse(text, stem)
}

fn all_steps() -> Vec<(&'static str, Kind, &'static str)> {
    let mut steps = Vec::new();
    let mut add = |folder: String, extension: &str, kind: Kind| {
        steps.extend(files::within(&folder, extension).into_iter().map(|(name, text)| (name, kind, text)));
    };
    add("engine/tables".into(), "sql", Kind::Versioned);
    add("engine/functions".into(), "sql", Kind::Repeatable);
    add("engine/policies".into(), "sql", Kind::Repeatable);
    for system in SYSTEMS {
        add(format!("systems/{system}/tables"), "sql", Kind::Versioned);
        add(format!("systems/{system}"), "toml", Kind::Queue);
        for folder in ["functions", "views", "policies"] {
            add(format!("systems/{system}/{folder}"), "sql", Kind::Repeatable);
        }
    }
    // Schedules are used by `--cron`; they are not declarations.
    steps.retain(|(name, _, _)| !name.ends_with("/cron.toml"));
    steps
}

/// The checksum of a queue also changes when the templates change.
fn checksum(kind: Kind, text: &str) -> String {
    let mut hash = Sha256::new();
    hash.update(text);
    if kind == Kind::Queue {
        for (_, template) in files::within("engine/acts", "sql") {
            hash.update(template);
        }
    }
    hash.finalize().iter().map(|b| format!("{b:02x}")).collect()
}
