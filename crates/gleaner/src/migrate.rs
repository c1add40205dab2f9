//! Brings a database to the schema this library ships: versioned tables, repeatable functions and views, attached queues.

use std::time::{Duration, Instant};

use sha2::{Digest, Sha256};
use tokio_postgres::error::SqlState;
use tokio_postgres::types::Type;
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

mod rehearsal;
mod schedules;

pub use rehearsal::dry_run;
pub use schedules::{Schedule, register, schedules};

/// The systems that ship with the engine, in the order they are migrated.
pub const SYSTEMS: &[&str] = &["jobs", "crm", "dumps", "runs", "followups"];

/// First line of a versioned file whose statements cannot share a transaction (a new enum value cannot be used in its own).
const OUTSIDE_TRANSACTION: &str = "-- outside a transaction";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Run once, never edited after release.
    Versioned,
    /// Run again whenever its text changes.
    Repeatable,
    /// A declaration; attached again whenever it or the templates change.
    Queue,
}

/// One thing to do, and whether it is done.
#[derive(Debug, Clone)]
pub struct Step {
    /// Path under `sql/`.
    pub name: &'static str,
    pub kind: Kind,
    pub text: &'static str,
    pub state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    Pending,
    /// Applied in an earlier form; will be applied again.
    Changed,
    Applied,
    /// A versioned file that differs from what was applied: somebody edited history.
    Edited,
}

/// Migrates the database behind `url`. Two runs at once are safe: the second waits for the first. Returns what was applied.
pub async fn migrate(url: &str, say: &(dyn Fn(&str) + Sync)) -> Result<Vec<&'static str>> {
    let mut client = connect(url).await?;
    bootstrap(&client).await?;
    let lock = Lock::acquire(url, &client, say).await?;
    let result = apply(&mut client, &lock, say).await;
    lock.release(&client).await;
    result
}

/// Every step and its state, without changing anything.
pub async fn status(client: &impl GenericClient) -> Result<Vec<Step>> {
    let known = client
        .query_typed("select to_regclass('gleaner.migration') is not null", &[])
        .await
        .map_err(Error::doing("look for migrations"))?[0]
        .get::<_, bool>(0);
    let applied = if known {
        client
            .query_typed("select name, checksum from gleaner.migration", &[])
            .await
            .map_err(Error::doing("read applied migrations"))?
            .iter()
            .map(|r| (r.get(0), r.get(1)))
            .collect()
    } else {
        std::collections::HashMap::<String, String>::new()
    };
    Ok(all_steps()
        .into_iter()
        .map(|(name, kind, text)| {
            let state = match (applied.get(name), kind) {
                (None, _) => State::Pending,
                (Some(sum), _) if *sum == checksum(kind, text) => State::Applied,
                (Some(_), Kind::Versioned) => State::Edited,
                (Some(_), _) => State::Changed,
            };
            Step { name, kind, text, state }
        })
        .collect())
}

async fn apply(client: &mut Client, lock: &Lock, say: &(dyn Fn(&str) + Sync)) -> Result<Vec<&'static str>> {
    let steps = status(client).await?;
    if let Some(edited) = steps.iter().find(|s| s.state == State::Edited) {
        return Err(Error::Other(format!(
            "{} was changed after it had been applied to this database; a released migration is never edited: write a new file instead",
            edited.name
        )));
    }
    let mut done = Vec::new();
    for step in steps.iter().filter(|s| s.state != State::Applied) {
        lock.check(client).await?;
        apply_step(client, step, say).await?;
        done.push(step.name);
    }
    refresh(client, say).await?;
    Ok(done)
}

/// Queues people attached themselves get the acts of this version too. One that no longer fits its table is told, and left.
async fn refresh(client: &mut Client, say: &(dyn Fn(&str) + Sync)) -> Result<()> {
    let ours: Vec<String> = all_steps()
        .into_iter()
        .filter(|(_, kind, _)| *kind == Kind::Queue)
        .map(|(name, _, text)| declaration_of(name, text).map(|d| d.name().to_owned()))
        .collect::<Result<_>>()?;
    for entry in registry::list(client).await?.into_iter().filter(|e| !ours.contains(&e.name)) {
        let refreshed = async {
            let rendered = render(&Plan::make(client, &entry.declaration).await?)?;
            if rendered == attach::sql(client, &entry.name).await? {
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

/// Applies one step and records it. Waits for nobody's lock for long: behind a waiting `alter table` every reader would stand.
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
        let script = format!("set local check_function_bodies = off;\n{}\n;{}", step.text, record(step, TOOK));
        attach::with_lock_timeout(client, &act, &script).await
    }
}

/// Milliseconds since the transaction began.
const TOOK: &str = "(extract(epoch from clock_timestamp() - now()) * 1000)::bigint";

fn record(step: &Step, took: &str) -> String {
    format!(
        "insert into gleaner.migration (name, checksum, took_ms) values ({}, '{}', {})
         on conflict (name) do update set checksum = excluded.checksum, took_ms = excluded.took_ms, applied_at = clock_timestamp()",
        literal(step.name),
        checksum(step.kind, step.text),
        took
    )
}

/// What must exist before anything can be recorded.
const BOOTSTRAP: &str = "\
set client_min_messages = warning;
create schema if not exists gleaner;
create table if not exists gleaner.migration (
    name       text primary key,
    checksum   text        not null,
    applied_at timestamptz not null default clock_timestamp(),
    took_ms    bigint      not null
);
create table if not exists gleaner.migration_lock (
    id     integer primary key default 1,
    holder text        not null default '',
    fence  bigint      not null default 0,
    until  timestamptz not null default '-infinity',
    constraint migration_lock_single check (id = 1)
);
insert into gleaner.migration_lock default values on conflict do nothing;
reset client_min_messages";

/// Makes that. Concurrent first runs may collide in the catalogue; the loser tries again.
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

/// A lock row with a lease, polled. Session locks deadlock with concurrent index builds and do not survive a pooler.
struct Lock {
    fence: i64,
    renewal: tokio::task::JoinHandle<()>,
}

impl Lock {
    const LEASE: &'static str = "30 seconds";

    async fn acquire(url: &str, client: &impl GenericClient, say: &(dyn Fn(&str) + Sync)) -> Result<Self> {
        let holder = format!("process {} on {}", std::process::id(), std::env::var("HOSTNAME").unwrap_or_else(|_| "this host".into()));
        let begun = Instant::now();
        let mut told = false;
        loop {
            let rows = client
                .query_typed(
                    &format!(
                        "update gleaner.migration_lock set holder = $1, fence = fence + 1, until = clock_timestamp() + interval '{}'
                         where id = 1 and until < clock_timestamp() returning fence",
                        Self::LEASE
                    ),
                    &[(&holder, Type::TEXT)],
                )
                .await
                .map_err(Error::doing("take the migration lock"))?;
            if let Some(row) = rows.first() {
                let fence = row.get(0);
                return Ok(Self { fence, renewal: tokio::spawn(renew(url.to_owned(), fence)) });
            }
            let other =
                client.query_typed("select holder from gleaner.migration_lock", &[]).await.map_err(Error::doing("ask who migrates"))?;
            let other: String = other.first().map(|r| r.get(0)).unwrap_or_default();
            if begun.elapsed() > Duration::from_secs(600) {
                return Err(Error::MigrationBusy { holder: other, age: format!("{} s", begun.elapsed().as_secs()) });
            }
            if !told {
                say(&format!("waiting for another migration ({other})"));
                told = true;
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    /// Nobody else may have taken over: a step must not run twice at once.
    async fn check(&self, client: &impl GenericClient) -> Result<()> {
        let rows = client
            .query_typed(
                "select 1 from gleaner.migration_lock where fence = $1 and until > clock_timestamp()",
                &[(&self.fence, Type::INT8)],
            )
            .await
            .map_err(Error::doing("check the migration lock"))?;
        if rows.is_empty() {
            return Err(Error::MigrationBusy { holder: "somebody who took over".into(), age: "a moment".into() });
        }
        Ok(())
    }

    async fn release(self, client: &impl GenericClient) {
        self.renewal.abort();
        let released = client
            .query_typed("update gleaner.migration_lock set until = '-infinity' where fence = $1", &[(&self.fence, Type::INT8)])
            .await;
        if let Err(error) = released {
            tracing::debug!(%error, "the migration lock will run out by itself");
        }
    }
}

/// Keeps the lease alive from a connection of its own: an index build may keep the first one busy for hours.
async fn renew(url: String, fence: i64) {
    loop {
        tokio::time::sleep(Duration::from_secs(10)).await;
        let renewed = async {
            let client = connect(&url).await?;
            client
                .query_typed(
                    &format!("update gleaner.migration_lock set until = clock_timestamp() + interval '{}' where fence = $1", Lock::LEASE),
                    &[(&fence, Type::INT8)],
                )
                .await
                .map_err(Error::doing("renew the migration lock"))
        };
        if let Err(error) = renewed.await {
            tracing::warn!(%error, "renewing the migration lock failed");
        }
    }
}

fn declaration_of(name: &str, text: &str) -> Result<Declaration> {
    let stem = name.rsplit('/').next().and_then(|f| f.strip_suffix(".toml")).unwrap_or(name);
    Declaration::parse(text, stem).map_err(|source| Error::Syntax { file: name.into(), source })
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
    // Schedules are for `--cron`, not declarations.
    steps.retain(|(name, _, _)| !name.ends_with("/cron.toml"));
    steps
}

/// A queue also changes when the templates do.
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
