//! Turns a table into a queue without rewriting it and without blocking its writers, and detaches it again.

use std::time::Duration;

use serde_json::{Value, json};
use tokio_postgres::error::SqlState;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, GenericClient};

use crate::declaration::Declaration;
use crate::error::{Error, Result};
use crate::introspect::{Bystander, literal, quote};
use crate::plan::{Mistake, Plan, TRIGGERS, trigger_name};
use crate::render::{Function, functions, render};

mod access;
mod detach;
mod fill;
mod indexes;
mod words;

pub(crate) use access::grant_script;
pub use detach::detach;

/// What attach may do beyond adding columns, indexes and functions.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options {
    /// Add the status values that the enum lacks. They cannot be removed again, so the caller must ask for it.
    pub add_words: bool,
}

/// What attach did and found, for people to read.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// The queue's name.
    pub queue: String,
    /// Columns that were added to the table.
    pub added_columns: Vec<String>,
    /// Indexes that were built.
    pub built_indexes: Vec<String>,
    /// Existing rows that got their due time.
    pub filled: u64,
    /// What the author should know, one sentence each.
    pub notes: Vec<String>,
}

/// Attaches the table, or brings an attached one up to date. Idempotent. Calls `say` before each step that may take long.
pub async fn attach(
    client: &mut Client,
    declaration: &Declaration,
    source: &str,
    options: Options,
    say: &(dyn Fn(&str) + Sync),
) -> Result<Report> {
    let plan = Plan::make(client, declaration).await?;
    refuse_second_queue(client, &plan).await?;
    let known = registered(client, &plan.name).await?;
    refuse_borrowed_columns(&plan, known.as_ref())?;
    words::refuse_forbidden(client, &plan, |word| !plan.missing_labels.contains(word)).await?;
    words::add_missing(client, &plan, options, say).await?;
    words::refuse_forbidden(client, &plan, |word| plan.missing_labels.contains(word)).await?;

    let mut report = Report { queue: plan.name.clone(), ..Report::default() };
    let grants = access::grant_engine(client, &plan, &mut report).await?;
    // If the columns exist already, the indexes are built first, so that the new acts find them. A table without the columns has
    // nothing to claim yet.
    let early = known.is_some() && column_script(&plan).is_none();
    if early {
        indexes::build_indexes(client, &plan, &mut report, say).await?;
    }
    install(client, &plan, source, &grants, &mut report).await?;
    report.filled = fill::fill(client, &plan, say).await?;
    if !early {
        indexes::build_indexes(client, &plan, &mut report, say).await?;
    }
    indexes::settle_indexes(client, &plan, say).await?;
    look_around(client, &plan, &mut report).await?;
    Ok(report)
}

/// The SQL that [`attach`] runs for its functions and triggers.
pub async fn sql(client: &impl GenericClient, name: &str) -> Result<String> {
    let rows = client
        .query_typed("select rendered from gleaner.queue where name = $1", &[(&name, Type::TEXT)])
        .await
        .map_err(Error::doing("read the registry"))?;
    match rows.first() {
        Some(row) => Ok(row.get(0)),
        None => Err(crate::registry::unknown(client, name).await?),
    }
}

/// A queue as recorded in the registry.
struct Registered {
    table: String,
    declaration: Value,
    /// `columns` that attach added, names of all `engine` columns, `indexes` by definition, `functions` by signature, and how to
    /// revoke its `grants`.
    added: Value,
}

async fn registered(client: &impl GenericClient, name: &str) -> Result<Option<Registered>> {
    let rows = client
        .query_typed("select table_name, declaration, added from gleaner.queue where name = $1", &[(&name, Type::TEXT)])
        .await
        .map_err(Error::doing("read the registry"))?;
    Ok(rows.first().map(|r| Registered { table: r.get(0), declaration: r.get(1), added: r.get(2) }))
}

fn strings(list: &Value) -> Vec<String> {
    list.as_array().into_iter().flatten().filter_map(|v| v.as_str().map(str::to_owned)).collect()
}

async fn refuse_second_queue(client: &impl GenericClient, plan: &Plan) -> Result<()> {
    let rows = client
        .query_typed(
            "select name, table_name from gleaner.queue where (table_name = $1) <> (name = $2)",
            &[(&plan.table.sql(), Type::TEXT), (&plan.name, Type::TEXT)],
        )
        .await
        .map_err(Error::doing("read the registry"))?;
    let Some(row) = rows.first() else { return Ok(()) };
    let (name, table): (String, String) = (row.get(0), row.get(1));
    let (what, instead) = if name == plan.name {
        (format!("queue {name} is attached to {table}"), format!("choose another name, or run `gleaner detach {name}` first"))
    } else {
        (
            format!("{table} is attached already, as queue {name}"),
            format!("write name = {name:?} to change it, or run `gleaner detach {name}` first"),
        )
    };
    Err(Error::Declaration { queue: plan.name.clone(), mistakes: vec![Mistake { what, instead }] })
}

/// A column that only happens to have the name and type of an engine column holds the user's data, and acts would overwrite it.
/// Only when all engine columns exist were they added for Gleaner, in a migration of the user's own.
fn refuse_borrowed_columns(plan: &Plan, known: Option<&Registered>) -> Result<()> {
    let ours = known.map(|k| strings(&k.added["engine"])).unwrap_or_default();
    let (found, missing): (Vec<_>, Vec<_>) = plan.columns.iter().partition(|c| plan.table.columns.contains_key(&c.name));
    let borrowed: Vec<_> = found.into_iter().filter(|c| !ours.contains(&c.name)).collect();
    if borrowed.is_empty() || missing.is_empty() {
        return Ok(());
    }
    let mistakes = borrowed
        .iter()
        .map(|c| Mistake {
            what: format!("{} has a column {:?} already, and the engine would write over it", plan.table.sql(), c.name),
            instead: format!("write rename = {{ {} = \"queue_{0}\" }}", c.default_name),
        })
        .collect();
    Err(Error::Declaration { queue: plan.name.clone(), mistakes })
}

/// The missing columns as one `alter table`, and their names. Nothing here rewrites the table: it adds nulls, and constants that
/// PostgreSQL stores in the catalogue.
pub(crate) fn column_script(plan: &Plan) -> Option<(String, Vec<String>)> {
    let missing: Vec<_> = plan.columns.iter().filter(|c| !plan.table.columns.contains_key(&c.name)).collect();
    let parts: Vec<String> = missing
        .iter()
        .map(|column| {
            let name = quote(&column.name);
            match column.default {
                "" => format!("add column if not exists {name} {}", column.definition),
                // A default that is not a constant would make existing rows claimable. So existing rows get null, and the default
                // applies to new rows.
                "now()" => format!("add column if not exists {name} {}, alter column {name} set default now()", column.definition),
                constant => format!("add column if not exists {name} {} not null default {constant}", column.definition),
            }
        })
        .collect();
    if parts.is_empty() {
        return None;
    }
    let script = format!("alter table {} {};", plan.table.sql(), parts.join(", "));
    Some((script, missing.iter().map(|c| c.name.clone()).collect()))
}

/// Columns, functions, grants and triggers are installed in one transaction, together with the registry row that records them. So
/// no row is written to a half-attached table, and an interrupted attach leaves nothing that detach would not find.
async fn install(client: &mut Client, plan: &Plan, source: &str, grants: &[String], report: &mut Report) -> Result<()> {
    let known = registered(client, &plan.name).await?;
    let known = known.as_ref();
    let before = |key: &str| known.map(|k| strings(&k.added[key])).unwrap_or_default();
    let (alter, missing) = column_script(plan).unwrap_or_default();
    let signatures: Vec<String> = functions(plan)?.iter().map(Function::signature).collect();
    // Drop the signatures of an earlier declaration first: `create or replace` would leave them beside the new ones.
    let had = before("functions");
    let stale: Vec<String> = had.iter().filter(|f| !signatures.contains(f)).cloned().collect();
    // Drop triggers before the functions they call. The script creates again those that the queue still needs.
    let untriggered: String =
        TRIGGERS.map(|event| format!("drop trigger if exists {} on {};\n", trigger_name(event, &plan.name), plan.table.sql())).concat();
    let script = render(plan)?;
    let record = json!({
        "columns": union(before("columns"), &missing),
        "engine": plan.columns.iter().map(|c| c.name.clone()).collect::<Vec<_>>(),
        "functions": signatures,
        "grants": union(before("grants"), grants),
        "indexes": known.map_or(json!({}), |k| k.added["indexes"].clone()),
    });
    // Store the key's name even when the author left it to the table: agents that connect through a server cannot look it up.
    let declared = Declaration { key: Some(plan.key.clone()), ..plan.declaration.clone() };
    let registry = format!(
        "insert into gleaner.queue as known (name, table_name, declaration, source, added, rendered) values ({}, {}, {}, {}, {}, {})
         on conflict (name) do update set declaration = excluded.declaration, source = excluded.source, added = excluded.added,
             rendered = excluded.rendered, changed_at = now()
         where (known.declaration, known.source, known.added, known.rendered)
               is distinct from (excluded.declaration, excluded.source, excluded.added, excluded.rendered);\n",
        literal(&plan.name),
        literal(&plan.table.sql()),
        literal(&serde_json::to_string(&declared).map_err(|e| Error::Other(format!("write the declaration: {e}")))?),
        literal(source),
        literal(&record.to_string()),
        literal(&script),
    );
    // The queue no longer uses batch leases. Move held rows and bulk ranges back to single rows while the functions that can do
    // it still exist.
    let mut unbatched = String::new();
    let unbatch = format!("gleaner.unbatch_{}(", plan.name);
    if stale.iter().any(|f| f.starts_with(&unbatch)) {
        unbatched += &format!("select {unbatch}null);\n");
    }
    // If the kinds or classes have changed, what bulk ranges record about their rows is no longer true.
    let lines = |d: &Value| (d["kind"].clone(), d["priority"]["column"].clone(), d["priority"]["classes"].clone());
    let declared_now = serde_json::to_value(&declared).unwrap_or_default();
    let relined = known.is_some_and(|k| lines(&k.declaration) != lines(&declared_now));
    unbatched += &unpack_ranges(&plan.name, if relined { &had } else { &stale });
    // The conditions of triggers are resolved now, so set the same search path that the functions have.
    let path = format!("set local search_path = {};\n", plan.shape.search_path);
    let act = "install the acts";
    if plan.shape.distributed {
        let rest = format!("{}{script}\n{registry}", drop_functions(&stale));
        in_parts(client, act, &[&format!("{path}{SEQUENTIAL}"), &alter, &rest]).await?;
    } else {
        let reclaimed = reclaim(client, plan, known.map(|k| &k.declaration)).await?;
        let whole = format!("{path}{alter}\n{untriggered}{unbatched}{}{reclaimed}{script}\n{registry}", drop_functions(&stale));
        with_lock_timeout(client, act, &whole).await?;
    }
    report.added_columns = missing;
    Ok(())
}

/// A transaction that changes a distributed table and functions must use one connection to each worker.
const SEQUENTIAL: &str = "set local citus.multi_shard_modify_mode = 'sequential';";

/// Turns every row in a bulk range of the queue into a single row, if the function for that is among those about to be dropped.
fn unpack_ranges(queue: &str, going: &[String]) -> String {
    let unpack = format!("gleaner.unpack_range_{queue}(");
    if !going.iter().any(|f| f.starts_with(&unpack)) {
        return String::new();
    }
    format!("select {unpack}r, r.last) from gleaner.bulk_range as r where r.queue = {};\n", literal(queue))
}

fn union(mut list: Vec<String>, more: &[String]) -> Vec<String> {
    for item in more {
        if !list.contains(item) {
            list.push(item.clone());
        }
    }
    list
}

/// Gives the functions that exist already, from an earlier attach or from a backup, the owner they should have, and removes all other rights
/// to them: `create or replace` needs the first and changes neither.
pub(crate) async fn reclaim(client: &impl GenericClient, plan: &Plan, declared: Option<&Value>) -> Result<String> {
    let signatures: Vec<String> = functions(plan)?.iter().map(Function::signature).collect();
    let rows = client
        .query_typed("select f from unnest($1) as f where to_regprocedure(f) is not null", &[(&signatures, Type::TEXT_ARRAY)])
        .await
        .map_err(Error::doing("look for the queue's functions"))?;
    let mut roles: Vec<String> = ["public", "anon", "authenticated", "service_role"].map(String::from).into();
    for audience in ["work", "operate"] {
        roles = union(
            roles,
            &strings(&declared.map_or(Value::Null, |d| d["grant"][audience].clone())).iter().map(|r| quote(r)).collect::<Vec<_>>(),
        );
    }
    let (owner, roles) = (quote(plan.acts_owner()), roles.join(", "));
    Ok(rows
        .iter()
        .map(|row| row.get::<_, String>(0))
        .map(|f| format!("alter function {f} owner to {owner};\nrevoke all on function {f} from {roles};\n"))
        .collect())
}

/// Drops those of the functions that exist. Without `cascade`, so that the error names any object that depends on one.
fn drop_functions(signatures: &[String]) -> String {
    signatures.iter().map(|signature| format!("drop function if exists {signature};\n")).collect()
}

/// Runs `script` in a transaction with a short lock timeout: while it waits for a lock, every reader behind it is blocked.
pub(crate) async fn with_lock_timeout(client: &mut Client, act: &str, script: &str) -> Result<()> {
    in_parts(client, act, &[script]).await
}

/// The same for several queries in one transaction. Citus forwards an `alter table` to the shards as the whole text of its query,
/// so it must be a query of its own.
async fn in_parts(client: &mut Client, act: &str, scripts: &[&str]) -> Result<()> {
    const TRIES: u32 = 20;
    for attempt in 1..=TRIES {
        let run = async {
            let tx = client.transaction().await?;
            tx.batch_execute("set local lock_timeout = '1500ms'; set local client_min_messages = warning").await?;
            for script in scripts {
                tx.batch_execute(script).await?;
            }
            tx.commit().await
        };
        match run.await {
            Ok(()) => return Ok(()),
            Err(e) if is_momentary(&e) => {
                tracing::debug!(attempt, act, "the table is in use; trying again");
                tokio::time::sleep(Duration::from_millis(u64::from(attempt) * 100)).await;
            }
            Err(e) => return Err(Error::doing(act)(e)),
        }
    }
    Err(Error::TableBusy { act: act.into(), tries: TRIES, blockers: long_transactions(client).await })
}

/// The lock was not available, or another session granted or revoked on the same object at the same moment.
fn is_momentary(e: &tokio_postgres::Error) -> bool {
    match e.as_db_error() {
        Some(e) if *e.code() == SqlState::INTERNAL_ERROR => e.message().contains("concurrently updated"),
        Some(e) => [SqlState::LOCK_NOT_AVAILABLE, SqlState::T_R_DEADLOCK_DETECTED].contains(e.code()),
        None => false,
    }
}

async fn long_transactions(client: &impl GenericClient) -> String {
    let rows = client
        .query_typed(
            "select format('process %s of %s (%s)', pid, coalesce(usename::text, '?'), coalesce(application_name, '')) from pg_stat_activity
             where xact_start is not null and pid <> pg_backend_pid() and datname = current_database() order by xact_start limit 3",
            &[],
        )
        .await
        .unwrap_or_default();
    let names: Vec<String> = rows.iter().map(|r| r.get(0)).collect();
    if names.is_empty() {
        "the locks are gone by now: try again".into()
    } else {
        format!("the longest transactions are of {}", names.join(", "))
    }
}

async fn look_around(client: &impl GenericClient, plan: &Plan, report: &mut Report) -> Result<()> {
    if plan.shape.distributed {
        report.notes.push(format!(
            "the table is distributed: acts run as its owner {}; other writers may insert and read, for their updates and deletes are not fenced; \
             workers poll; keys are not in order of time",
            plan.table.owner
        ));
    }
    let bystanders = plan.table.bystanders(client).await?;
    let of = |kind: &str| bystanders.iter().filter(|b: &&Bystander| b.kind == kind).map(|b| b.name.clone()).collect::<Vec<_>>();
    let triggers = of("trigger");
    if !triggers.is_empty() {
        report.notes.push(format!(
            "{} fire on every act that changes a row (claim, progress, complete): {}",
            plural(triggers.len(), "trigger"),
            triggers.join(", ")
        ));
        if plan.open_schemas.contains(&plan.table.schema) {
            report.notes.push(format!(
                "anyone may create objects in the schema {0}, so acts do not look there, and the table's triggers find only names with a schema: revoke create on schema {0} from public (and from anon and authenticated), then attach again",
                quote(&plan.table.schema)
            ));
        }
    }
    let readers: Vec<String> = of("view").into_iter().chain(of("function")).collect();
    if !readers.is_empty() && !report.added_columns.is_empty() {
        report.notes.push(format!("the table has new columns; these read it, check any `select *`: {}", readers.join(", ")));
    }
    if plan.table.width > 400.0 {
        report.notes.push(format!(
            "rows are about {:.0} bytes wide and the table has {} indexes: expect roughly {:.1} kB of WAL per item for claim and complete",
            plan.table.width,
            plan.table.indexes,
            (plan.table.width * 2.0 + 300.0 + 120.0 * plan.table.indexes as f64) / 1000.0
        ));
    }
    Ok(())
}

async fn server_version(client: &impl GenericClient) -> Result<i32> {
    let rows = client
        .query_typed("select current_setting('server_version_num')::int", &[])
        .await
        .map_err(Error::doing("ask the server's version"))?;
    Ok(rows[0].get(0))
}

fn plural(n: usize, noun: &str) -> String {
    if n == 1 { format!("1 {noun}") } else { format!("{n} {noun}s") }
}
