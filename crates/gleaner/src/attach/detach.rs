//! Detaches a queue from its table and restores the table to what it was.

use serde_json::Value;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, GenericClient};

use super::indexes::drop_index;
use super::{Registered, SEQUENTIAL, drop_functions, in_parts, registered, strings, unpack_ranges};
use crate::declaration::Declaration;
use crate::error::{Error, Result};
use crate::introspect::{Table, literal, quote};

/// Detaches the queue from its table. Uses what the registry recorded, not the declaration: the table may have changed since, or
/// have been dropped. Refuses while rows are running unless `force`d, and while any object uses the engine's columns.
pub async fn detach(client: &mut Client, name: &str, force: bool) -> Result<Vec<String>> {
    let Some(known) = registered(client, name).await? else {
        return Err(crate::registry::unknown(client, name).await?);
    };
    let table = Table::find(client, &known.table).await?;
    let mut done = Vec::new();
    let (mut script, mut alter) = (String::new(), String::new());
    let functions = drop_functions(&strings(&known.added["functions"]));
    if let Some(table) = &table {
        if !force {
            refuse_running(client, name, table, &known).await?;
        }
        let columns = strings(&known.added["columns"]);
        let indexes: Vec<String> = known.added["indexes"].as_object().into_iter().flat_map(|i| i.keys().cloned()).collect();
        refuse_used(client, name, table, &columns, &indexes).await?;
        for index in &indexes {
            drop_index(client, table, index).await?;
            done.push(format!("dropped index {index}"));
        }
        for trigger in triggers(client, table).await? {
            script += &format!("drop trigger {trigger} on {};\n", table.sql());
        }
        // If the lease column stays, so does its mark on rows in bulk ranges, and after another attach those rows could not be claimed.
        let lease = known.declaration["rename"]["lease"].as_str().unwrap_or("lease");
        if !columns.iter().any(|c| c == lease) {
            script += &unpack_ranges(name, &strings(&known.added["functions"]));
        }
        script += &functions;
        if !columns.is_empty() {
            let drops: Vec<String> = columns.iter().map(|c| format!("drop column if exists {}", quote(c))).collect();
            alter = format!("alter table {} {};\n", table.sql(), drops.join(", "));
        }
        done.push(format!("dropped {} columns, the functions and the triggers of {name}", columns.len()));
    } else {
        script += &functions;
        done.push(format!("{} is gone; dropped the functions of {name}", known.table));
    }
    let mut records = revocations(client, name, &strings(&known.added["grants"])).await?;
    let queue = literal(name);
    records += &format!("delete from gleaner.queue where name = {queue};\n");
    // Records about rows of this table. The audit is kept.
    for notes in ["request", "rejected_row", "batch_lease", "bulk_range", "prune_mark", "operation", "pause"] {
        records += &format!("delete from gleaner.{notes} where queue = {queue};\n");
    }
    if table.is_some_and(|t| t.distribution.is_some()) {
        script.insert_str(0, SEQUENTIAL);
    }
    in_parts(client, "detach", &[&script, &alter, &records]).await?;
    Ok(done)
}

/// Our triggers on the table. A table has one queue, so all triggers of that name belong to it. The triggers that record changes
/// come back within seconds if the table is published and a server uses them to follow it.
async fn triggers(client: &impl GenericClient, table: &Table) -> Result<Vec<String>> {
    let rows = client
        .query_typed(
            "select quote_ident(t.tgname) from pg_trigger t
             where t.tgrelid = to_regclass($1) and (t.tgname like 'zz\\_gleaner\\_%' or t.tgname like '00\\_gleaner\\_%')",
            &[(&table.sql(), Type::TEXT)],
        )
        .await
        .map_err(Error::doing("look for our triggers"))?;
    Ok(rows.iter().map(|r| r.get(0)).collect())
}

async fn refuse_running(client: &impl GenericClient, name: &str, table: &Table, known: &Registered) -> Result<()> {
    let declaration: Declaration =
        serde_json::from_value(known.declaration.clone()).map_err(|e| Error::Other(format!("read the stored declaration: {e}")))?;
    let status = &declaration.status;
    if !table.columns.contains_key(&status.column) {
        return Ok(());
    }
    let held: Vec<String> = status.claimed.iter().chain([&status.running]).map(|word| literal(word)).collect();
    let sql = format!(
        "select (select count(*) from {} where {}::text in ({}))
              + (select coalesce(sum(remaining), 0)::bigint from gleaner.batch_lease where queue = {})",
        table.sql(),
        quote(&status.column),
        held.join(", "),
        literal(name)
    );
    let running: i64 = client.query_typed(&sql, &[]).await.map_err(Error::doing("count running rows"))?[0].get(0);
    if running > 0 {
        return Err(Error::Unsupported {
            queue: name.into(),
            what: format!(
                "has {running} running rows: let their agents finish, or detach with --force (they keep their status and lose their lease)"
            ),
        });
    }
    Ok(())
}

/// Views, policies, indexes and other objects that depend on the engine's columns: dropping a column would fail, or drop them too.
async fn refuse_used(client: &impl GenericClient, name: &str, table: &Table, columns: &[String], ours: &[String]) -> Result<()> {
    let rows = client
        .query_typed(
            "select distinct case when d.classid = 'pg_rewrite'::regclass
                                  then (select format('view %s', format('%I.%I', n.nspname, v.relname))
                                        from pg_rewrite r join pg_class v on v.oid = r.ev_class join pg_namespace n on n.oid = v.relnamespace
                                        where r.oid = d.objid)
                                  else pg_describe_object(d.classid, d.objid, d.objsubid) end
             from pg_depend d join pg_attribute a on a.attrelid = d.refobjid and a.attnum = d.refobjsubid
             where d.refclassid = 'pg_class'::regclass and d.refobjid = to_regclass($1) and a.attname::text = any ($2)
               and d.classid <> 'pg_attrdef'::regclass
               and not (d.classid = 'pg_trigger'::regclass
                        and exists (select from pg_trigger t where t.oid = d.objid and t.tgname like 'zz\\_gleaner\\_%'))
               and not (d.classid = 'pg_class'::regclass
                        and exists (select from pg_class i where i.oid = d.objid and i.relname::text = any ($3)))
               and not (d.classid = 'pg_constraint'::regclass
                        and exists (select from pg_constraint c where c.oid = d.objid and c.contype = 'n'))
             order by 1",
            &[(&table.sql(), Type::TEXT), (&columns, Type::TEXT_ARRAY), (&ours, Type::TEXT_ARRAY)],
        )
        .await
        .map_err(Error::doing("look for what uses the engine's columns"))?;
    if rows.is_empty() {
        return Ok(());
    }
    let users: Vec<String> = rows.iter().map(|r| r.get(0)).collect();
    Err(Error::Unsupported {
        queue: name.into(),
        what: format!("cannot be detached: {} came to use the engine's columns; drop or change them first", users.join(", ")),
    })
}

/// Revokes the recorded rights on objects that still exist. A right that another queue needs (on a schema, an owner table) moves
/// to that queue's record instead.
async fn revocations(client: &impl GenericClient, name: &str, revokes: &[String]) -> Result<String> {
    let rows = client
        .query_typed(
            "select q.name, q.table_name, q.declaration, coalesce(quote_ident(pg_get_userbyid(c.relowner)), '')
             from gleaner.queue as q left join pg_class as c on c.oid = to_regclass(q.table_name) where q.name <> $1 order by q.name",
            &[(&name, Type::TEXT)],
        )
        .await
        .map_err(Error::doing("read the registry"))?;
    let others: Vec<(String, String, Value, String)> = rows.iter().map(|r| (r.get(0), r.get(1), r.get(2), r.get(3))).collect();
    let mut script = String::new();
    for revoke in revokes {
        let Some((kind, object, role)) = object_of(revoke) else { continue };
        let exists = client
            .query_typed(
                "select case $1 when 'schema' then to_regnamespace($2)::oid when 'function' then to_regprocedure($2)::oid else to_regclass($2)::oid end is not null",
                &[(&kind, Type::TEXT), (&object, Type::TEXT)],
            )
            .await
            .map_err(Error::doing("look for what was granted"))?[0]
            .get::<_, bool>(0);
        if !exists {
            continue;
        }
        let heir = others.iter().find(|(_, table, declaration, owner)| {
            // The acts of a distributed table run as its owner, and use the engine's objects.
            if role != "gleaner_engine" {
                return owner == role;
            }
            let schema = format!("{object}.");
            let names = [Some(table.as_str()), declaration["owner"]["table"].as_str(), declaration["dead"].as_str()];
            names.into_iter().flatten().any(|n| n == object || kind == "schema" && n.starts_with(&schema))
        });
        script += &match heir {
            Some((heir, ..)) => format!(
                "update gleaner.queue set added = jsonb_set(added, '{{grants}}', coalesce(added -> 'grants', '[]') || to_jsonb({}::text)) where name = {};\n",
                literal(revoke),
                literal(heir)
            ),
            None => format!("{revoke};\n"),
        };
    }
    Ok(script)
}

/// Splits `revoke select on table public.t from gleaner_engine` into table, public.t, gleaner_engine.
fn object_of(revoke: &str) -> Option<(&str, &str, &str)> {
    let (_, rest) = revoke.split_once(" on ")?;
    let (on, role) = rest.rsplit_once(" from ")?;
    let (kind, object) = on.split_once(' ')?;
    Some((kind, object, role))
}
