//! The systems' contracts: what `docs/reference/systems` promises to client programs, compared with the migrated catalogue.
//! The list is `contracts.toml`.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result};
use serde::Deserialize;
use tokio_postgres::Client;

use crate::world::{World, text, world};

const CONTRACTS: &str = include_str!("contracts.toml");

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Contracts {
    #[serde(rename = "enum")]
    enums: Vec<Enum>,
    table: Vec<Table>,
    constraint: Vec<Constraint>,
    index: Vec<Index>,
    function: Vec<Function>,
    trigger: Vec<Trigger>,
    view: Vec<View>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Enum {
    name: String,
    labels: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    name: String,
    /// The page in `docs/reference/systems` that describes it.
    page: String,
    columns: Vec<Column>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Column {
    name: String,
    #[serde(rename = "type")]
    data_type: String,
    default: Option<String>,
    nullable: Option<bool>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Constraint {
    table: String,
    kind: String,
    columns: Vec<String>,
    references: Option<String>,
    on_delete: Option<String>,
    values: Option<Vec<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Index {
    table: String,
    name: Option<String>,
    columns: Vec<String>,
    #[serde(rename = "where", default)]
    words: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Argument {
    name: String,
    #[serde(rename = "type")]
    data_type: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Function {
    name: String,
    arguments: Vec<Argument>,
    defaults: i32,
    returns: Option<String>,
    #[serde(default)]
    columns: Vec<Argument>,
    execute: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Trigger {
    table: String,
    name: String,
    timing: String,
    function: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct View {
    name: String,
    columns: Vec<Argument>,
}

/// Programs written against these pages find every name, type, default and signature they rely on.
#[tokio::test]
async fn everything_the_systems_pages_promise_is_in_the_catalogue() -> Result<()> {
    let contracts: Contracts = toml::from_str(CONTRACTS)?;
    let world = world().await?;
    world.run("set search_path = pg_catalog").await?;

    let mut missing = Vec::new();
    enums(&world, &contracts.enums, &mut missing).await?;
    tables(&world, &contracts.table, &mut missing).await?;
    constraints(&world, &contracts.constraint, &mut missing).await?;
    indexes(&world, &contracts.index, &mut missing).await?;
    functions(&world, &contracts.function, &mut missing).await?;
    triggers(&world, &contracts.trigger, &mut missing).await?;
    views(&world, &contracts.view, &mut missing).await?;
    assert!(missing.is_empty(), "{} differences from contracts.toml:\n  {}", missing.len(), missing.join("\n  "));
    Ok(())
}

/// The page of a system names every table, function, view, trigger and status value that a client program relies on.
#[test]
fn the_systems_pages_name_everything_that_clients_rely_on() -> Result<()> {
    let contracts: Contracts = toml::from_str(CONTRACTS)?;
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/systems/");
    let read = |page: &str| std::fs::read_to_string(format!("{folder}{page}")).with_context(|| format!("{folder}{page}"));
    let bare = |name: &str| name.trim_start_matches("public.").to_owned();
    let (mut pages, mut all, mut missing) = (BTreeSet::new(), String::new(), Vec::new());
    for table in &contracts.table {
        let page = read(&table.page)?;
        if !page.contains(&format!("`{}`", bare(&table.name))) && !page.contains(&table.name) {
            missing.push(format!("{}: {}", table.page, table.name));
        }
        if pages.insert(&table.page) {
            all += &page;
        }
    }
    let words = contracts.constraint.iter().filter_map(|c| c.values.as_ref()).chain(contracts.enums.iter().map(|e| &e.labels)).flatten();
    let names = contracts.function.iter().map(|f| bare(&f.name)).chain(contracts.view.iter().map(|v| bare(&v.name)));
    let names = names.chain(contracts.trigger.iter().map(|t| t.name.clone())).chain(words.cloned());
    missing.extend(names.filter(|name| !all.contains(&format!("`{name}"))));
    assert!(missing.is_empty(), "not in docs/reference/systems: {missing:?}");
    Ok(())
}

async fn enums(world: &World, wanted: &[Enum], missing: &mut Vec<String>) -> Result<()> {
    for e in wanted {
        let labels: Vec<String> = world
            .client
            .query("select enumlabel::text from pg_enum where enumtypid = to_regtype($1) order by enumsortorder", &[&e.name])
            .await?
            .iter()
            .map(|r| r.get(0))
            .collect();
        if labels != e.labels {
            missing.push(format!("enum {}: {labels:?} instead of {:?}", e.name, e.labels));
        }
    }
    Ok(())
}

async fn columns_of(client: &Client, relation: &str) -> Result<Vec<(String, String, Option<String>, bool)>> {
    let rows = client
        .query(
            "select a.attname::text, format_type(a.atttypid, a.atttypmod), pg_get_expr(d.adbin, d.adrelid), not a.attnotnull
             from pg_attribute a left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
             where a.attrelid = to_regclass($1) and a.attnum > 0 and not a.attisdropped order by a.attnum",
            &[&relation],
        )
        .await?;
    Ok(rows.iter().map(|r| (r.get(0), r.get(1), r.get(2), r.get(3))).collect())
}

async fn tables(world: &World, wanted: &[Table], missing: &mut Vec<String>) -> Result<()> {
    for table in wanted {
        let found = columns_of(&world.client, &table.name).await?;
        for want in &table.columns {
            let place = format!("{}.{} ({})", table.name, want.name, table.page);
            let Some((_, data_type, default, nullable)) = found.iter().find(|c| c.0 == want.name) else {
                missing.push(format!("{place} is missing"));
                continue;
            };
            if *data_type != want.data_type {
                missing.push(format!("{place} is {data_type} instead of {}", want.data_type));
            }
            if want.default.is_some() && want.default != *default {
                missing.push(format!("{place} has default {default:?} instead of {:?}", want.default));
            }
            if want.nullable.is_some_and(|n| n != *nullable) {
                missing.push(format!("{place} is nullable: {nullable}"));
            }
        }
    }
    Ok(())
}

async fn constraints(world: &World, wanted: &[Constraint], missing: &mut Vec<String>) -> Result<()> {
    for want in wanted {
        let kind = match want.kind.as_str() {
            "primary" => "p",
            "unique" => "u",
            "foreign" => "f",
            "check" => "c",
            other => anyhow::bail!("contracts.toml: constraint kind {other}"),
        };
        let rows = world
            .client
            .query(
                "select pg_get_constraintdef(c.oid), c.confdeltype::text,
                        format('%s (%s)', c.confrelid::regclass,
                               (select string_agg(a.attname, ', ' order by k.o) from unnest(c.confkey) with ordinality k (n, o)
                                join pg_attribute a on a.attrelid = c.confrelid and a.attnum = k.n))
                 from pg_constraint c
                 where c.conrelid = to_regclass($1) and c.contype::text = $2
                   and array(select a.attname::text from unnest(c.conkey) with ordinality k (n, o)
                             join pg_attribute a on a.attrelid = c.conrelid and a.attnum = k.n order by k.o) = $3
                 union all
                 select pg_get_indexdef(i.indexrelid), '', '' from pg_index i
                 where $2 = 'u' and i.indrelid = to_regclass($1) and i.indisunique and i.indpred is null and i.indisvalid
                   and array(select a.attname::text from unnest(i.indkey::int2[]) with ordinality k (n, o)
                             join pg_attribute a on a.attrelid = i.indrelid and a.attnum = k.n order by k.o) = $3",
                &[&want.table, &kind, &want.columns],
            )
            .await?;
        let place = format!("{} constraint on {} ({})", want.kind, want.table, want.columns.join(", "));
        if rows.is_empty() {
            missing.push(format!("{place} is missing"));
            continue;
        }
        if let Some(references) = &want.references
            && !rows.iter().any(|r| r.get::<_, String>(2) == *references)
        {
            missing.push(format!("{place} refers to {} instead of {references}", rows[0].get::<_, String>(2)));
        }
        if let Some(on_delete) = &want.on_delete {
            let found = match rows[0].get::<_, String>(1).as_str() {
                "r" => "restrict",
                "c" => "cascade",
                "n" => "set null",
                "d" => "set default",
                _ => "no action",
            };
            if found != on_delete {
                missing.push(format!("{place} on delete {found} instead of {on_delete}"));
            }
        }
        if let Some(values) = &want.values {
            let wanted: BTreeSet<&str> = values.iter().map(String::as_str).collect();
            let fits =
                rows.iter().any(|r| quoted_words(&r.get::<_, String>(0)).iter().map(String::as_str).collect::<BTreeSet<_>>() == wanted);
            if !fits {
                missing.push(format!("{place} is {}", rows[0].get::<_, String>(0)));
            }
        }
    }
    Ok(())
}

fn quoted_words(definition: &str) -> Vec<String> {
    definition.split('\'').skip(1).step_by(2).map(str::to_owned).collect()
}

async fn indexes(world: &World, wanted: &[Index], missing: &mut Vec<String>) -> Result<()> {
    for want in wanted {
        let rows = world
            .client
            .query(
                "select c.relname::text,
                        array(select pg_get_indexdef(i.indexrelid, k, true) from generate_series(1, i.indnkeyatts::int) k),
                        coalesce(pg_get_expr(i.indpred, i.indrelid), '')
                 from pg_index i join pg_class c on c.oid = i.indexrelid where i.indrelid = to_regclass($1) and i.indisvalid",
                &[&want.table],
            )
            .await?;
        let fits = rows.iter().any(|row| {
            let (name, columns, predicate): (String, Vec<String>, String) = (row.get(0), row.get(1), row.get(2));
            let words = quoted_words(&predicate);
            let covers = if want.name.is_some() { columns == want.columns } else { columns.starts_with(&want.columns) };
            want.name.as_ref().is_none_or(|n| *n == name)
                && covers
                && want.words.iter().all(|w| words.contains(w))
                && (!want.words.is_empty() || predicate.is_empty())
        });
        if !fits {
            missing.push(format!(
                "index {} on {} ({}) is missing",
                want.name.as_deref().unwrap_or("(any name)"),
                want.table,
                want.columns.join(", ")
            ));
        }
    }
    Ok(())
}

async fn functions(world: &World, wanted: &[Function], missing: &mut Vec<String>) -> Result<()> {
    for want in wanted {
        let types: Vec<&str> = want.arguments.iter().map(|a| a.data_type.as_str()).collect();
        let signature = format!("{}({})", want.name, types.join(", "));
        let rows = world
            .client
            .query(
                "select coalesce(p.proargnames, '{}'), p.pronargdefaults::int, pg_get_function_result(p.oid),
                        coalesce(array(select format_type(t, null) from unnest(p.proallargtypes) with ordinality u (t, n) order by n), '{}'),
                        array(select r from unnest(array['anon', 'authenticated', 'service_role']) r where has_function_privilege(r, p.oid, 'execute')),
                        p.pronargs::int
                 from pg_proc p where p.oid = to_regprocedure($1)",
                &[&signature],
            )
            .await
            .with_context(|| signature.clone())?;
        let Some(row) = rows.first() else {
            missing.push(format!("function {signature} is missing"));
            continue;
        };
        let (names, defaults, result, types): (Vec<String>, i32, String, Vec<String>) = (row.get(0), row.get(1), row.get(2), row.get(3));
        let (execute, inputs): (Vec<String>, i32) = (row.get(4), row.get(5));
        let wanted_names: Vec<&str> = want.arguments.iter().map(|a| a.name.as_str()).collect();
        if names.iter().map(String::as_str).take(wanted_names.len()).ne(wanted_names.iter().copied()) {
            missing.push(format!("{signature}: parameters are named {names:?}"));
        }
        if defaults != want.defaults {
            missing.push(format!("{signature}: {defaults} defaults instead of {}", want.defaults));
        }
        if want.returns.as_ref().is_some_and(|r| *r != result) {
            missing.push(format!("{signature} returns {result} instead of {}", want.returns.as_deref().unwrap_or_default()));
        }
        for (i, column) in want.columns.iter().enumerate() {
            let at = usize::try_from(inputs)? + i;
            let found = (names.get(at).map(String::as_str), types.get(at).map(String::as_str));
            if found != (Some(column.name.as_str()), Some(column.data_type.as_str())) {
                missing.push(format!("{signature}: output column {} is {found:?} instead of {} {}", i + 1, column.name, column.data_type));
            }
        }
        if execute != want.execute {
            missing.push(format!("{signature} may be called by {execute:?} instead of {:?}", want.execute));
        }
    }
    Ok(())
}

async fn triggers(world: &World, wanted: &[Trigger], missing: &mut Vec<String>) -> Result<()> {
    for want in wanted {
        let definition = text(
            &world.client,
            &format!(
                "select pg_get_triggerdef(t.oid) from pg_trigger t where t.tgrelid = '{}'::regclass and t.tgname = '{}'",
                want.table, want.name
            ),
        )
        .await?
        .unwrap_or_default();
        let fits = definition.to_lowercase().contains(&want.timing) && definition.contains(&format!("{}()", want.function));
        if !fits {
            missing.push(format!("trigger {} on {} ({} {}): {definition:?}", want.name, want.table, want.timing, want.function));
        }
    }
    Ok(())
}

async fn views(world: &World, wanted: &[View], missing: &mut Vec<String>) -> Result<()> {
    for view in wanted {
        let found = columns_of(&world.client, &view.name).await?;
        for (i, want) in view.columns.iter().enumerate() {
            let column = found.get(i).map(|c| (c.0.as_str(), c.1.as_str()));
            if column != Some((want.name.as_str(), want.data_type.as_str())) {
                missing.push(format!("view {}: column {} is {column:?} instead of {} {}", view.name, i + 1, want.name, want.data_type));
            }
        }
    }
    Ok(())
}
