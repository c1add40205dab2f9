//! Turns a table into a queue, without a rewrite and without blocking its writers; and takes it off again.

use std::time::Duration;

use serde_json::{Value, json};
use tokio_postgres::error::SqlState;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, GenericClient};

use crate::declaration::Declaration;
use crate::error::{Error, Result};
use crate::introspect::{Bystander, Table, literal, quote};
use crate::plan::{Index, Mistake, Plan};
use crate::render::{functions, render};

/// What attach may do beyond adding columns, indexes and functions.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options {
    /// Add status words the enum lacks. They cannot be removed again, so it is asked for.
    pub add_words: bool,
}

/// What attach did and saw, for people to read.
#[derive(Debug, Clone, Default)]
pub struct Report {
    pub queue: String,
    pub added_columns: Vec<String>,
    pub built_indexes: Vec<String>,
    pub filled: u64,
    pub notes: Vec<String>,
}

/// Attaches the table, or brings an attached one up to date. Idempotent. `say` is told each step that may take long.
pub async fn attach(
    client: &mut Client,
    declaration: &Declaration,
    source: &str,
    options: Options,
    say: &(dyn Fn(&str) + Sync),
) -> Result<Report> {
    let plan = Plan::make(client, declaration).await?;
    refuse_second_queue(client, &plan).await?;
    add_missing_words(client, &plan, options, say).await?;

    let mut report = Report { queue: plan.name.clone(), ..Report::default() };
    let added = add_columns(client, &plan, &mut report).await?;
    grant_engine(client, &plan, &mut report).await?;
    let script = render(&plan)?;
    let known = registered(client, &plan.name).await?;
    install(client, &plan, &script, source, &added, known.as_ref()).await?;
    report.filled = fill(client, &plan, say).await?;
    build_indexes(client, &plan, known.as_ref(), &mut report, say).await?;
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

/// Takes the queue off its table and leaves the table as it was.
pub async fn detach(client: &mut Client, name: &str, force: bool) -> Result<Vec<String>> {
    let Some(known) = registered(client, name).await? else {
        return Err(crate::registry::unknown(client, name).await?);
    };
    let declaration: Declaration =
        serde_json::from_value(known.declaration.clone()).map_err(|e| Error::Other(format!("read the stored declaration: {e}")))?;
    let plan = Plan::make(client, &declaration).await?;
    let status = &plan.context["status"];
    let text = |v: &Value| v.as_str().unwrap_or_default().to_owned();
    if !force {
        let sql = format!("select count(*) from {} where {} in ({})", plan.table.sql(), text(&status["column"]), text(&status["held"]));
        let running: i64 = client.query_typed(&sql, &[]).await.map_err(Error::doing("count running rows"))?[0].get(0);
        if running > 0 {
            return Err(Error::Unsupported {
                queue: name.into(),
                what: format!(
                    "has {running} running rows: let their agents finish, or detach with --force (they stay as they are, held by nobody)"
                ),
            });
        }
    }
    let columns: Vec<String> =
        known.added["columns"].as_array().into_iter().flatten().filter_map(|c| c.as_str().map(str::to_owned)).collect();
    let users = views_using(client, &plan.table, &columns).await?;
    if !users.is_empty() {
        return Err(Error::Unsupported {
            queue: name.into(),
            what: format!("cannot be detached: {} came to use the engine's columns; drop or change them first", users.join(", ")),
        });
    }
    let mut done = Vec::new();
    for index in &plan.indexes {
        let sql = format!("drop index concurrently if exists {}.{}", quote(&plan.table.schema), quote(&index.name));
        let sql = if plan.table.kind == 'p' { sql.replace(" concurrently", "") } else { sql };
        client.batch_execute(&sql).await.map_err(Error::doing(format!("drop index {}", index.name)))?;
        done.push(format!("dropped index {}", index.name));
    }
    let mut script = String::new();
    for trigger in ["insert", "update", "notify"] {
        script += &format!("drop trigger if exists zz_gleaner_{trigger}_{name} on {};\n", plan.table.sql());
    }
    for f in functions(&plan) {
        script += &format!("drop function if exists gleaner.{}({});\n", f.name, f.arguments);
    }
    if !columns.is_empty() {
        let drops: Vec<String> = columns.iter().map(|c| format!("drop column if exists {}", quote(c))).collect();
        script += &format!("alter table {} {};\n", plan.table.sql(), drops.join(", "));
    }
    script += &format!("revoke all on {} from gleaner_engine;\n", plan.table.sql());
    script += &format!("delete from gleaner.queue where name = {};\n", literal(name));
    with_lock_timeout(client, "detach", &script).await?;
    done.push(format!("dropped {} columns, the functions and the triggers of {name}", columns.len()));
    Ok(done)
}

/// A queue as the registry knows it.
struct Known {
    declaration: Value,
    added: Value,
}

async fn registered(client: &impl GenericClient, name: &str) -> Result<Option<Known>> {
    let rows = client
        .query_typed("select declaration, added from gleaner.queue where name = $1", &[(&name, Type::TEXT)])
        .await
        .map_err(Error::doing("read the registry"))?;
    Ok(rows.first().map(|r| Known { declaration: r.get(0), added: r.get(1) }))
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

/// Enum values go in a step of their own: a value added in a transaction cannot be used in it.
async fn add_missing_words(client: &impl GenericClient, plan: &Plan, options: Options, say: &(dyn Fn(&str) + Sync)) -> Result<()> {
    if plan.missing_labels.is_empty() {
        return Ok(());
    }
    let status = &plan.declaration.status;
    let data_type = &plan.table.columns[&status.column].data_type;
    if !options.add_words {
        let mistakes = plan
            .missing_labels
            .iter()
            .map(|word| Mistake {
                what: format!("status word {word:?}: the enum {data_type} has no such value"),
                instead: format!(
                    "use one of {}, or run attach with --add-words (an enum value cannot be removed again)",
                    plan.table.columns[&status.column].labels.join(", ")
                ),
            })
            .collect();
        return Err(Error::Declaration { queue: plan.name.clone(), mistakes });
    }
    for word in &plan.missing_labels {
        say(&format!("adding the value {word:?} to {data_type}"));
        client
            .batch_execute(&format!("alter type {data_type} add value if not exists {}", literal(word)))
            .await
            .map_err(Error::doing(format!("add {word:?} to {data_type}")))?;
    }
    Ok(())
}

/// Adds the engine's columns that are missing. Nothing here rewrites the table: nulls, and constants PostgreSQL keeps in the catalogue.
async fn add_columns(client: &mut Client, plan: &Plan, report: &mut Report) -> Result<Vec<String>> {
    let mut parts = Vec::new();
    let mut names = Vec::new();
    for column in plan.columns.iter().filter(|c| !plan.table.columns.contains_key(&c.name)) {
        let name = quote(&column.name);
        parts.push(match column.default {
            "" => format!("add column {name} {}", column.definition),
            // A default that is not a constant would make history claimable: null first, the default for rows to come.
            "now()" => format!("add column {name} {}, alter column {name} set default now()", column.definition),
            constant => format!("add column {name} {} not null default {constant}", column.definition),
        });
        names.push(column.name.clone());
    }
    if !parts.is_empty() {
        let script = format!("alter table {} {};", plan.table.sql(), parts.join(", "));
        with_lock_timeout(client, "add the engine's columns", &script).await?;
        report.added_columns.clone_from(&names);
    }
    Ok(names)
}

/// The acts run as the engine's role: it needs the table, its owner table and its dead letters, and the rights the table's
/// own triggers were written for.
async fn grant_engine(client: &impl GenericClient, plan: &Plan, report: &mut Report) -> Result<()> {
    let mut script = format!(
        "grant usage on schema {} to gleaner_engine;\ngrant select, insert, update, delete on {} to gleaner_engine;\n",
        quote(&plan.table.schema),
        plan.table.sql()
    );
    if let Some(owner) = plan.context["owner"]["table"].as_str() {
        script += &format!("grant select on {owner} to gleaner_engine;\n");
    }
    if let Some(dead) = plan.context["dead"]["table"].as_str() {
        script += &format!("grant select, insert on {dead} to gleaner_engine;\n");
    }
    script += &format!(
        "do $$ declare v_sequence record; begin
           for v_sequence in select s.oid::regclass as name from pg_depend d join pg_class s on s.oid = d.objid and s.relkind = 'S'
                             where d.refobjid = {}::regclass loop
             execute format('grant usage on sequence %s to gleaner_engine', v_sequence.name);
           end loop;
         end $$;",
        literal(&plan.table.sql())
    );
    client.batch_execute(&script).await.map_err(Error::doing("grant the engine's role what it needs"))?;

    let member = format!(
        "do $$ begin
           if not pg_has_role('gleaner_engine', {0}, 'usage') then
             execute format('grant %I to gleaner_engine{1}', {0});
           end if;
         end $$",
        literal(&plan.table.owner),
        if server_version(client).await? >= 160_000 { " with inherit true, set false" } else { "" }
    );
    if client.batch_execute(&member).await.is_err() {
        let triggers = plan.table.bystanders(client).await?.into_iter().filter(|b| b.kind == "trigger").map(|b| b.name).collect::<Vec<_>>();
        if !triggers.is_empty() {
            report.notes.push(format!(
                "acts run as gleaner_engine, which could not be made a member of {}: the triggers {} must find their rights there (grant them, or make their functions security definer)",
                plan.table.owner,
                triggers.join(", ")
            ));
        }
    }
    // Forced row security would silently empty every claim.
    let rows = client
        .query_typed(
            "select c.relforcerowsecurity, r.rolbypassrls, c.relrowsecurity and not r.rolbypassrls and not pg_has_role(r.oid, c.relowner, 'usage')
             from pg_class c, pg_roles r where c.oid = to_regclass($1) and r.rolname = 'gleaner_engine'",
            &[(&plan.table.sql(), Type::TEXT)],
        )
        .await
        .map_err(Error::doing("check row security"))?;
    if let Some(row) = rows.first() {
        let (forced, bypass, active): (bool, bool, bool) = (row.get(0), row.get(1), row.get(2));
        if forced && !bypass || active {
            return Err(Error::Declaration {
                queue: plan.name.clone(),
                mistakes: vec![Mistake {
                    what: format!(
                        "{} has {}row-level security, which would hide its rows from the engine",
                        plan.table.sql(),
                        if forced { "forced " } else { "" }
                    ),
                    instead: format!(
                        "alter role gleaner_engine bypassrls, or: create policy gleaner_engine on {} to gleaner_engine using (true) with check (true)",
                        plan.table.sql()
                    ),
                }],
            });
        }
        if forced {
            report.notes.push("the table has forced row-level security; the engine's role bypasses it".into());
        }
    }
    Ok(())
}

/// Functions, grants and triggers in one transaction, with the registry row that knows of them.
async fn install(client: &mut Client, plan: &Plan, script: &str, source: &str, added: &[String], known: Option<&Known>) -> Result<()> {
    let mut columns: Vec<Value> = known.map(|k| k.added["columns"].as_array().cloned().unwrap_or_default()).unwrap_or_default();
    columns.extend(added.iter().map(|c| json!(c)));
    let indexes: serde_json::Map<String, Value> = plan.indexes.iter().map(|i| (i.name.clone(), json!(i.definition))).collect();
    let record = json!({"columns": columns, "indexes": indexes});
    let wanted: Vec<String> = functions(plan).iter().map(|f| format!("gleaner.{}({})", f.name, f.arguments)).collect();
    let names: Vec<String> = functions(plan).iter().map(|f| literal(&f.name)).collect();
    // Signatures of an earlier declaration go first: `create or replace` would leave them beside the new ones.
    let stale = format!(
        "do $$ declare v_old record; begin
           for v_old in select p.oid::regprocedure as signature from pg_proc p join pg_namespace n on n.oid = p.pronamespace
                        where n.nspname = 'gleaner' and p.proname in ({})
                          and p.oid <> all (array(select to_regprocedure(w)::oid from unnest(array[{}]) w where to_regprocedure(w) is not null)) loop
             execute format('drop function %s cascade', v_old.signature);
           end loop;
         end $$;\n",
        names.join(", "),
        wanted.iter().map(|w| literal(w)).collect::<Vec<_>>().join(", ")
    );
    let registry = format!(
        "insert into gleaner.queue as known (name, table_name, declaration, source, added, rendered) values ({}, {}, {}, {}, {}, {})
         on conflict (name) do update set declaration = excluded.declaration, source = excluded.source, added = excluded.added,
             rendered = excluded.rendered, changed_at = now()
         where (known.declaration, known.added, known.rendered) is distinct from (excluded.declaration, excluded.added, excluded.rendered);\n",
        literal(&plan.name),
        literal(&plan.table.sql()),
        literal(&serde_json::to_string(&plan.declaration).unwrap_or_default()),
        literal(source),
        literal(&record.to_string()),
        literal(script),
    );
    with_lock_timeout(client, "install the acts", &format!("{stale}{script}\n{registry}")).await
}

/// Runs `script` in a transaction that does not wait long for locks: waiting, it would block every reader behind it.
async fn with_lock_timeout(client: &mut Client, act: &str, script: &str) -> Result<()> {
    const TRIES: u32 = 20;
    for attempt in 1..=TRIES {
        let run = async {
            let tx = client.transaction().await?;
            tx.batch_execute("set local lock_timeout = '1500ms'").await?;
            tx.batch_execute(script).await?;
            tx.commit().await
        };
        match run.await {
            Ok(()) => return Ok(()),
            Err(e) if matches!(e.code(), Some(&SqlState::LOCK_NOT_AVAILABLE | &SqlState::T_R_DEADLOCK_DETECTED)) => {
                tracing::debug!(attempt, act, "the table is in use; trying again");
                tokio::time::sleep(Duration::from_millis(u64::from(attempt) * 100)).await;
            }
            Err(e) => return Err(Error::doing(act)(e)),
        }
    }
    Err(Error::TableBusy { act: act.into(), tries: TRIES, blockers: "look for long transactions in pg_stat_activity".into() })
}

async fn fill(client: &impl GenericClient, plan: &Plan, say: &(dyn Fn(&str) + Sync)) -> Result<u64> {
    const SLICE: i32 = 5000;
    let sql = format!("select gleaner.fill_{}(nullif($1, '')::{}, $2)::text", plan.name, plan.key_type);
    let mut after = String::new();
    let mut slices = 0u64;
    loop {
        let row = client
            .query_typed(&sql, &[(&after, Type::TEXT), (&SLICE, Type::INT4)])
            .await
            .map_err(Error::doing("fill in the times of waiting rows"))?;
        match row[0].get::<_, Option<String>>(0) {
            Some(last) => after = last,
            None => return Ok(slices * SLICE as u64),
        }
        slices += 1;
        if slices.is_multiple_of(20) {
            say(&format!("looked at {} rows of {}", slices * SLICE as u64, plan.table.sql()));
        }
    }
}

/// Builds what is missing without blocking writers; rebuilds what an interrupted build left invalid, or an older declaration different.
async fn build_indexes(
    client: &impl GenericClient,
    plan: &Plan,
    known: Option<&Known>,
    report: &mut Report,
    say: &(dyn Fn(&str) + Sync),
) -> Result<()> {
    for index in &plan.indexes {
        let qualified = format!("{}.{}", quote(&plan.table.schema), quote(&index.name));
        let rows = client
            .query_typed("select i.indisvalid from pg_index i where i.indexrelid = to_regclass($1)", &[(&qualified, Type::TEXT)])
            .await
            .map_err(Error::doing("look for the index"))?;
        let valid = rows.first().map(|r| r.get::<_, bool>(0));
        let same = known.is_none_or(|k| k.added["indexes"][&index.name].as_str().is_none_or(|d| d == index.definition));
        match valid {
            Some(true) if same => continue,
            Some(_) => {
                say(&format!(
                    "dropping {} {}",
                    if valid == Some(true) { "outdated index" } else { "invalid index left by an interrupted build:" },
                    index.name
                ));
                let concurrently = if plan.table.kind == 'p' { "" } else { "concurrently " };
                client
                    .batch_execute(&format!("drop index {concurrently}if exists {qualified}"))
                    .await
                    .map_err(Error::doing("drop the index"))?;
            }
            None => {}
        }
        if plan.table.kind == 'p' {
            build_partitioned(client, plan, index).await?;
        } else {
            if plan.table.rows > 100_000.0 {
                say(&format!("building index {} on about {} rows; writers go on", index.name, plan.table.rows as u64));
            }
            tell_whom_we_wait_for(client, say).await;
            let unique = if index.unique { "unique " } else { "" };
            client
                .batch_execute(&format!("create {unique}index concurrently if not exists {} {}", quote(&index.name), index.definition))
                .await
                .map_err(Error::doing(format!("build index {}", index.name)))?;
        }
        report.built_indexes.push(index.name.clone());
    }
    Ok(())
}

/// A concurrent build is refused on a partitioned parent: build on each partition, then join them under the parent's index.
async fn build_partitioned(client: &impl GenericClient, plan: &Plan, index: &Index) -> Result<()> {
    let act = || Error::doing(format!("build index {} by partition", index.name));
    let parent = plan.table.sql();
    let unique = if index.unique { "unique " } else { "" };
    client
        .batch_execute(&format!(
            "create {unique}index if not exists {} {}",
            quote(&index.name),
            index.definition.replacen("on ", "on only ", 1)
        ))
        .await
        .map_err(act())?;
    let leaves = client
        .query_typed(
            "select n.nspname::text, c.relname::text from pg_partition_tree(to_regclass($1)) t join pg_class c on c.oid = t.relid join pg_namespace n on n.oid = c.relnamespace
             where t.isleaf and t.level > 0",
            &[(&parent, Type::TEXT)],
        )
        .await
        .map_err(act())?;
    for leaf in &leaves {
        let (schema, table): (String, String) = (leaf.get(0), leaf.get(1));
        let mut name = format!("{}_{}", table, index.name);
        name.truncate(63);
        let on_leaf = index.definition.replacen(&format!("on {parent}"), &format!("on {}.{}", quote(&schema), quote(&table)), 1);
        client.batch_execute(&format!("create {unique}index concurrently if not exists {} {on_leaf}", quote(&name))).await.map_err(act())?;
        client
            .batch_execute(&format!(
                "alter index {}.{} attach partition {}.{}",
                quote(&plan.table.schema),
                quote(&index.name),
                quote(&schema),
                quote(&name)
            ))
            .await
            .map_err(act())?;
    }
    Ok(())
}

/// A concurrent build waits for every older transaction; whoever watches should know for whom.
async fn tell_whom_we_wait_for(client: &impl GenericClient, say: &(dyn Fn(&str) + Sync)) {
    let rows = client
        .query_typed(
            "select pid, coalesce(usename::text, '?'), (clock_timestamp() - xact_start)::text from pg_stat_activity
             where xact_start < clock_timestamp() - interval '2 seconds' and pid <> pg_backend_pid() and datname = current_database() order by xact_start limit 3",
            &[],
        )
        .await
        .unwrap_or_default();
    for row in rows {
        let (pid, user, age): (i32, String, String) = (row.get(0), row.get(1), row.get(2));
        say(&format!("the build will wait for process {pid} of {user}, whose transaction has been open for {age}"));
    }
}

async fn look_around(client: &impl GenericClient, plan: &Plan, report: &mut Report) -> Result<()> {
    let bystanders = plan.table.bystanders(client).await?;
    let of = |kind: &str| bystanders.iter().filter(|b: &&Bystander| b.kind == kind).map(|b| b.name.clone()).collect::<Vec<_>>();
    let triggers = of("trigger");
    if !triggers.is_empty() {
        report.notes.push(format!(
            "{} fire on every act that changes a row (claim, progress, complete): {}",
            plural(triggers.len(), "trigger"),
            triggers.join(", ")
        ));
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

async fn views_using(client: &impl GenericClient, table: &Table, columns: &[String]) -> Result<Vec<String>> {
    let rows = client
        .query_typed(
            "select distinct format('%I.%I', n.nspname, v.relname)
             from pg_depend d join pg_rewrite r on r.oid = d.objid join pg_class v on v.oid = r.ev_class join pg_namespace n on n.oid = v.relnamespace
             join pg_attribute a on a.attrelid = d.refobjid and a.attnum = d.refobjsubid
             where d.refobjid = to_regclass($1) and a.attname::text = any ($2)",
            &[(&table.sql(), Type::TEXT), (&columns, Type::TEXT_ARRAY)],
        )
        .await
        .map_err(Error::doing("look for views on the engine's columns"))?;
    Ok(rows.iter().map(|r| r.get(0)).collect())
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
