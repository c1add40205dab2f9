//! Builds indexes without blocking writers: concurrently, per partition on partitioned tables, and again after an interrupted build.

use std::time::Duration;

use tokio_postgres::Client;
use tokio_postgres::GenericClient;
use tokio_postgres::types::Type;

use super::{Report, registered, with_lock_timeout};
use crate::error::{Error, Result};
use crate::introspect::{Table, literal, quote};
use crate::plan::{Index, Plan};

/// Builds missing indexes, and rebuilds those that an interrupted build left invalid. An index of an older declaration stays for
/// the acts that use it: its successor is built beside it, and [`settle_indexes`] later puts the successor in its place.
pub(super) async fn build_indexes(client: &mut Client, plan: &Plan, report: &mut Report, say: &(dyn Fn(&str) + Sync)) -> Result<()> {
    let known = registered(client, &plan.name).await?;
    for index in &plan.indexes {
        let recorded = |name: &str| known.as_ref().and_then(|k| k.added["indexes"][name].as_str());
        let next = successor(&index.name);
        let (here, beside) = (qualified(&plan.table, &index.name), qualified(&plan.table, &next));
        wait_for_other_build(client, &here).await?;
        wait_for_other_build(client, &beside).await?;
        let name = match (state(client, &here).await?, state(client, &beside).await?) {
            (Some(true), left) if recorded(&index.name).is_none_or(|r| r == index.definition) => {
                if left.is_some() {
                    drop_index(client, &plan.table, &next).await?;
                }
                record(client, &plan.name, &index.name, Some(&index.definition)).await?;
                continue;
            }
            (_, Some(true)) if recorded(&next) == Some(&index.definition) => continue,
            (standing, left) => {
                if left.is_some() {
                    drop_index(client, &plan.table, &next).await?;
                }
                match standing {
                    // On a partitioned table the indexes of the partitions would keep the successor's name.
                    Some(true) if plan.table.kind != 'p' => next,
                    Some(valid) => {
                        let why = if valid { "outdated index" } else { "invalid index left by an interrupted build:" };
                        say(&format!("dropping {why} {}", index.name));
                        drop_index(client, &plan.table, &index.name).await?;
                        index.name.clone()
                    }
                    None => index.name.clone(),
                }
            }
        };
        if plan.table.rows > 100_000.0 {
            say(&format!("building index {} on about {} rows; writers go on", index.name, plan.table.rows as u64));
        }
        tell_whom_we_wait_for(client, say).await;
        // Record the index before building it, so that detach finds an interrupted build. The empty definition keeps it from
        // being taken for a finished one.
        record(client, &plan.name, &name, Some("")).await?;
        if plan.table.kind == 'p' {
            build_partitioned(client, plan, index).await?;
        } else {
            let unique = if index.unique { "unique " } else { "" };
            client
                .batch_execute(&format!("create {unique}index concurrently if not exists {} {}", quote(&name), index.definition))
                .await
                .map_err(Error::doing(format!("build index {}", index.name)))?;
        }
        record(client, &plan.name, &name, Some(&index.definition)).await?;
        report.built_indexes.push(index.name.clone());
    }
    Ok(())
}

/// Runs once the acts use the new indexes: each replaces the one before it, and indexes that the declaration no longer needs are dropped.
pub(super) async fn settle_indexes(client: &mut Client, plan: &Plan, say: &(dyn Fn(&str) + Sync)) -> Result<()> {
    let Some(known) = registered(client, &plan.name).await? else { return Ok(()) };
    for index in &plan.indexes {
        let next = successor(&index.name);
        if known.added["indexes"][&next].as_str() == Some(&index.definition) {
            say(&format!("dropping outdated index {}", index.name));
            drop_index(client, &plan.table, &index.name).await?;
            let rename = format!("alter index if exists {} rename to {};", qualified(&plan.table, &next), quote(&index.name));
            with_lock_timeout(client, &format!("rename index {next}"), &rename).await?;
            record(client, &plan.name, &index.name, Some(&index.definition)).await?;
            record(client, &plan.name, &next, None).await?;
        }
    }
    let Some(known) = registered(client, &plan.name).await? else { return Ok(()) };
    let recorded = known.added["indexes"].as_object().into_iter().flat_map(|recorded| recorded.keys());
    for name in recorded.filter(|name| !plan.indexes.iter().any(|i| i.name == **name)) {
        say(&format!("dropping index {name}, which the declaration no longer needs"));
        drop_index(client, &plan.table, name).await?;
        record(client, &plan.name, name, None).await?;
    }
    Ok(())
}

/// The name of an index until it replaces the one before it.
fn successor(name: &str) -> String {
    shortened(&format!("{name}_next"))
}

fn qualified(table: &Table, index: &str) -> String {
    format!("{}.{}", quote(&table.schema), quote(index))
}

/// Drops without blocking writers. Under a partitioned parent, where PostgreSQL refuses that, it does not wait long for the lock.
pub(super) async fn drop_index(client: &mut Client, table: &Table, name: &str) -> Result<()> {
    let qualified = qualified(table, name);
    if table.kind == 'p' {
        return with_lock_timeout(client, &format!("drop index {name}"), &format!("drop index if exists {qualified}")).await;
    }
    client
        .batch_execute(&format!("drop index concurrently if exists {qualified}"))
        .await
        .map_err(Error::doing(format!("drop index {name}")))
}

/// Records an index's definition in the registry once the index is built.
async fn record(client: &impl GenericClient, queue: &str, index: &str, definition: Option<&str>) -> Result<()> {
    let added = match definition {
        Some(definition) => format!(
            "jsonb_set(added, array['indexes'], coalesce(added -> 'indexes', '{{}}') || jsonb_build_object({}, {}))",
            literal(index),
            literal(definition)
        ),
        None => format!("added #- array['indexes', {}]", literal(index)),
    };
    let sql = format!("update gleaner.queue set added = {added} where name = {} and added is distinct from {added}", literal(queue));
    client.batch_execute(&sql).await.map_err(Error::doing("record the index"))
}

/// Whether the index is valid; `None` when it does not exist.
async fn state(client: &impl GenericClient, index: &str) -> Result<Option<bool>> {
    let rows = client
        .query_typed("select i.indisvalid from pg_index i where i.indexrelid = to_regclass($1)", &[(&index, Type::TEXT)])
        .await
        .map_err(Error::doing("look for the index"))?;
    Ok(rows.first().map(|r| r.get(0)))
}

/// An index that another session is building at this moment is invalid too. Wait for that session to finish it.
async fn wait_for_other_build(client: &impl GenericClient, index: &str) -> Result<()> {
    loop {
        let rows = client
            .query_typed(
                "select from pg_stat_progress_create_index where index_relid = to_regclass($1) and pid <> pg_backend_pid()",
                &[(&index, Type::TEXT)],
            )
            .await
            .map_err(Error::doing("look for a build under way"))?;
        if rows.is_empty() {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// PostgreSQL refuses a concurrent build on a partitioned parent. So this creates an empty index on the parent and one on each
/// partition, and attaches each to its parent's. The topmost becomes valid with the last.
async fn build_partitioned(client: &impl GenericClient, plan: &Plan, index: &Index) -> Result<()> {
    let act = || Error::doing(format!("build index {} by partition", index.name));
    let root = plan.table.sql();
    let unique = if index.unique { "unique " } else { "" };
    // Parents come before their partitions.
    let tree = client
        .query_typed(
            "select n.nspname::text, c.relname::text, t.isleaf, case when p.oid is null then '' else format('%I.%I', pn.nspname, p.relname) end
             from pg_partition_tree(to_regclass($1)) t
             join pg_class c on c.oid = t.relid join pg_namespace n on n.oid = c.relnamespace
             left join pg_class p on p.oid = t.parentrelid left join pg_namespace pn on pn.oid = p.relnamespace
             order by t.level, c.oid",
            &[(&root, Type::TEXT)],
        )
        .await
        .map_err(act())?;
    let mut joints = Vec::new();
    let mut names = std::collections::HashMap::new();
    for node in &tree {
        let (schema, table, leaf, parent): (String, String, bool, String) = (node.get(0), node.get(1), node.get(2), node.get(3));
        let on = format!("{}.{}", quote(&schema), quote(&table));
        let name = if on == root { index.name.clone() } else { shortened(&format!("{table}_{}", index.name)) };
        let qualified = format!("{}.{}", quote(&schema), quote(&name));
        let definition = index.definition.replacen(&format!("on {root}"), &format!("on {}{on}", if leaf { "" } else { "only " }), 1);
        if leaf {
            wait_for_other_build(client, &qualified).await?;
            if state(client, &qualified).await? == Some(false) {
                client.batch_execute(&format!("drop index concurrently if exists {qualified}")).await.map_err(act())?;
            }
        }
        let concurrently = if leaf { "concurrently " } else { "" };
        client
            .batch_execute(&format!("create {unique}index {concurrently}if not exists {} {definition}", quote(&name)))
            .await
            .map_err(act())?;
        if on != root {
            joints.push((parent, qualified.clone()));
        }
        names.insert(on, qualified);
    }
    for (parent, child) in joints {
        client.batch_execute(&format!("alter index {} attach partition {child}", names[&parent])).await.map_err(act())?;
    }
    Ok(())
}

/// Identifiers are limited to 63 bytes; a digest keeps long ones distinct.
fn shortened(name: &str) -> String {
    if name.len() <= 63 {
        return name.to_owned();
    }
    use sha2::Digest as _;
    let digest: String = sha2::Sha256::digest(name).iter().take(4).map(|b| format!("{b:02x}")).collect();
    let end = (0..=54).rev().find(|i| name.is_char_boundary(*i)).unwrap_or(0);
    format!("{}_{digest}", &name[..end])
}

/// A concurrent build waits for every older transaction. Report which ones, so that the user knows what it waits for.
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

#[cfg(test)]
mod tests {
    #[test]
    fn long_names_stay_apart() {
        let (a, b) = (super::shortened(&format!("{}a", "x".repeat(70))), super::shortened(&format!("{}b", "x".repeat(70))));
        assert!(a.len() <= 63 && b.len() <= 63 && a != b);
    }
}
