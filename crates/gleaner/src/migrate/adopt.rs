//! Tables that existed before their system was installed: they get what they lack, and nothing they have is changed.
//!
//! What a system needs is found by running its files in a schema of their own, in a transaction that is rolled back. Both sets of
//! tables are then read from the catalogue, and the difference is what to add.

use tokio_postgres::types::Type;
use tokio_postgres::{Client, GenericClient, Transaction};

use super::statements::{self, Act};
use super::{Kind, State, Step, all_steps, declaration_of};
use crate::declaration::Declaration;
use crate::error::{Error, Result};
use crate::files;
use crate::introspect::literal;
use crate::plan::{Mistake, Plan};

mod compare;
mod shape;

use shape::Shape;

/// The schema in which the files run temporarily.
const SCRATCH: &str = "gleaner_wanted";

/// What has to be done to those tables of one system that already exist.
#[derive(Debug, Default)]
pub(super) struct Adoption {
    system: &'static str,
    /// Tables that the system's files do not touch, because everything they would do is in here.
    tables: Vec<Adopted>,
    /// Types that already exist.
    types: Vec<String>,
    /// Reasons to stop: if there are any, nothing is changed.
    pub(super) mistakes: Vec<Mistake>,
}

/// One table.
#[derive(Debug, Default)]
struct Adopted {
    name: String,
    /// The file creates it only if it is missing; such a file runs as it is.
    guarded: bool,
    /// Columns, keys and checks. They are added before the system's files run, whose own tables may refer to them.
    before: Vec<String>,
    /// Foreign keys. They are added after the system's files.
    behind: Vec<String>,
    /// What takes long and must not hold a lock meanwhile.
    afterwards: Vec<String>,
    notes: Vec<String>,
}

/// Compares the existing tables of `system` with those it needs; `None` when none exist.
pub(super) async fn compare(client: &mut impl GenericClient, system: &'static str) -> Result<Option<Adoption>> {
    let mut adoption = Adoption { system, ..Adoption::default() };
    let scripts = files::within(&format!("systems/{system}/tables"), "sql");
    let mut found = Vec::new();
    for (name, guarded) in tables(&scripts) {
        if let Some(shape) = Shape::read(client, "public", &name).await? {
            found.push((name, guarded, shape));
        }
    }
    for (_, text) in &scripts {
        for statement in statements::split(text) {
            if let Act::CreateType(name) = statements::act(statement)
                && exists(client, "to_regtype", name).await?
            {
                adoption.types.push(name.to_owned());
            }
        }
    }
    if found.is_empty() && adoption.types.is_empty() {
        return Ok(None);
    }
    let tx = client.transaction().await.map_err(Error::doing("begin"))?;
    want(&tx, system, &scripts).await?;
    let queues = queues(&tx, system).await?;
    // With another search path the catalogue would leave schemas out of types and defaults.
    tx.batch_execute("set local search_path = pg_catalog").await.map_err(Error::doing("set the search path"))?;
    for (name, guarded, _) in found {
        let (Some(wanted), Some(found)) = (Shape::read(&tx, SCRATCH, &name).await?, Shape::read(&tx, "public", &name).await?) else {
            continue;
        };
        let queue = queues.iter().find(|q| q.declaration.table == format!("public.{name}"));
        let mut adopted = Adopted { name: format!("public.{name}"), guarded, ..Adopted::default() };
        compare::table(&tx, &mut adopted, &mut adoption.mistakes, &wanted, &found, queue).await?;
        adoption.tables.push(adopted);
    }
    tx.rollback().await.map_err(Error::doing("roll the comparison back"))?;
    Ok(Some(adoption))
}

/// A queue of the system and the columns the engine adds to its table.
struct SystemQueue {
    declaration: Declaration,
    engine: Vec<String>,
}

/// Creates what the system needs, in the scratch schema.
async fn want(tx: &Transaction<'_>, system: &str, scripts: &[(&str, &str)]) -> Result<()> {
    let prepare = format!("set local client_min_messages = warning; set local check_function_bodies = off; create schema {SCRATCH}");
    tx.batch_execute(&prepare).await.map_err(Error::doing("prepare a schema to compare with"))?;
    for (name, text) in scripts {
        let there = text.replace("public.", &format!("{SCRATCH}."));
        tx.batch_execute(&there).await.map_err(Error::doing(format!("look at what {name} of {system} wants")))?;
    }
    Ok(())
}

async fn queues(tx: &Transaction<'_>, system: &str) -> Result<Vec<SystemQueue>> {
    let mut queues = Vec::new();
    for declaration in declarations(system)? {
        let there = |name: &str| name.replace("public.", &format!("{SCRATCH}."));
        let mut scratch = declaration.clone();
        scratch.table = there(&scratch.table);
        scratch.dead = scratch.dead.as_deref().map(there);
        if let Some(owner) = &mut scratch.owner {
            owner.table = owner.table.as_deref().map(there);
        }
        let engine = Plan::make(tx, &scratch).await?.columns.into_iter().map(|c| c.name).collect();
        queues.push(SystemQueue { declaration, engine });
    }
    Ok(queues)
}

/// The declarations of a system.
pub(super) fn declarations(system: &str) -> Result<Vec<Declaration>> {
    let folder = format!("systems/{system}/");
    all_steps()
        .into_iter()
        .filter(|(name, kind, _)| *kind == Kind::Queue && name.starts_with(&folder))
        .map(|(name, _, text)| declaration_of(name, text))
        .collect()
}

/// The tables in schema public that the files create, and whether each is created only if it is missing.
fn tables(scripts: &[(&str, &str)]) -> Vec<(String, bool)> {
    let mut all = Vec::new();
    for statement in scripts.iter().flat_map(|(_, text)| statements::split(text)) {
        let guarded = !matches!(statements::act(statement), Act::CreateTable(_));
        for (_, rest) in statement.match_indices("create table public.").map(|(at, found)| (at, &statement[at + found.len()..])) {
            if let Some(name) = rest.split(|c: char| !(c.is_alphanumeric() || c == '_')).next() {
                all.push((name.to_owned(), guarded));
            }
        }
    }
    all
}

impl Adoption {
    /// One script for everything that happens in a transaction: what the tables lack, and those statements of the system's files
    /// that are not about these tables.
    pub(super) fn script(&self) -> String {
        let (mut before, mut behind) = (String::new(), String::new());
        for table in &self.tables {
            for change in &table.before {
                before += &format!("alter table {} {change};\n", table.name);
            }
            for change in &table.behind {
                behind += &format!("alter table {} {change};\n", table.name);
            }
        }
        let ours: Vec<&str> = self.untouched().collect();
        let files: String = files::within(&format!("systems/{}/tables", self.system), "sql")
            .into_iter()
            .flat_map(|(_, text)| statements::split(text))
            .filter(|statement| match statements::act(statement) {
                Act::CreateTable(table) | Act::Shape(table) => !ours.contains(&table),
                Act::CreateType(name) => !self.types.iter().any(|t| t == name),
                // Skip dropping an index on a table that the user made. An index on a table of ours exists by now.
                Act::DropIndex(name) => !ours.iter().any(|table| name.starts_with(&format!("{table}_"))),
                _ => true,
            })
            .map(|statement| format!("{};\n", statement.trim()))
            .collect();
        before + &files + &behind + &self.record()
    }

    /// Tables whose part in the system's files is skipped.
    fn untouched(&self) -> impl Iterator<Item = &str> {
        self.tables.iter().filter(|t| !t.guarded).map(|t| t.name.as_str())
    }

    fn record(&self) -> String {
        self.tables
            .iter()
            .map(|table| {
                format!(
                    "insert into gleaner.adopted_table (name, system, own_rights, changes, afterwards) values ({}, {}, {}, {}, {})
                     on conflict (name) do update set changes = excluded.changes, afterwards = excluded.afterwards;\n",
                    literal(&table.name),
                    literal(self.system),
                    !table.guarded,
                    array(&table.notes),
                    array(&table.afterwards),
                )
            })
            .collect()
    }

    /// The statements that run outside of that transaction.
    pub(super) fn afterwards(&self) -> impl Iterator<Item = &str> {
        self.tables.iter().flat_map(|t| &t.afterwards).map(String::as_str)
    }

    /// What the adoption does, one line each.
    pub(super) fn notes(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for table in &self.tables {
            if !table.guarded {
                lines
                    .push(format!("{} was there before system {}: it is kept with its rows, rights and policies", table.name, self.system));
            }
            lines.extend(table.notes.iter().map(|note| format!("{}: {note}", table.name)));
        }
        lines
    }
}

fn array(texts: &[String]) -> String {
    let items: Vec<String> = texts.iter().map(|t| literal(t)).collect();
    format!("array[{}]::text[]", items.join(", "))
}

/// Builds the indexes and validates the constraints that an adoption left for later. Reports those that fail because of existing rows.
pub(super) async fn finish(client: &Client, say: &(dyn Fn(&str) + Sync)) -> Result<()> {
    let rows = client
        .query_typed(
            "select t.name, s from gleaner.adopted_table t, unnest(t.afterwards) with ordinality u (s, n) order by t.name, u.n",
            &[],
        )
        .await
        .map_err(Error::doing("read what is left to build"))?;
    for row in &rows {
        let (table, statement): (String, String) = (row.get(0), row.get(1));
        drop_broken_index(client, &statement).await?;
        say(&format!("{table}: {statement}"));
        if let Err(error) = client.batch_execute(&statement).await {
            if crate::error::is_transient(&error) {
                return Err(Error::doing(statement)(error));
            }
            drop_broken_index(client, &statement).await?;
            say(&format!("{table}: that failed and was left out: {}", crate::error::describe(&error)));
        }
        client
            .query_typed(
                "update gleaner.adopted_table set afterwards = array_remove(afterwards, $2) where name = $1",
                &[(&table, Type::TEXT), (&statement, Type::TEXT)],
            )
            .await
            .map_err(Error::doing("record what was built"))?;
    }
    Ok(())
}

/// An interrupted concurrent build leaves an unusable index, and `if not exists` would accept it.
async fn drop_broken_index(client: &Client, statement: &str) -> Result<()> {
    let Some(name) = statement.split("index concurrently if not exists ").nth(1).and_then(|rest| rest.split(' ').next()) else {
        return Ok(());
    };
    let rows = client
        .query_typed(
            "select exists (select from pg_index where indexrelid = to_regclass($1) and not indisvalid)",
            &[(&format!("public.{name}"), Type::TEXT)],
        )
        .await
        .map_err(Error::doing("look for a broken index"))?;
    if rows[0].get(0) {
        client
            .batch_execute(&format!("drop index concurrently if exists public.{name}"))
            .await
            .map_err(Error::doing(format!("drop the broken index {name}")))?;
    }
    Ok(())
}

/// The tables that were adopted with their own rights and policies.
pub(super) async fn adopted(client: &impl GenericClient) -> Result<Vec<String>> {
    if !exists(client, "to_regclass", "gleaner.adopted_table").await? {
        return Ok(Vec::new());
    }
    let rows = client
        .query_typed("select name from gleaner.adopted_table where own_rights", &[])
        .await
        .map_err(Error::doing("read which tables were adopted"))?;
    Ok(rows.iter().map(|r| r.get(0)).collect())
}

/// A repeatable file for a database in which the `adopted` tables existed before. Their own rights and policies apply, so that no
/// user sees more or less than before.
pub(super) fn respectful(text: &str, adopted: &[String]) -> String {
    if adopted.is_empty() {
        return text.to_owned();
    }
    statements::split(text)
        .into_iter()
        .filter(|statement| match statements::act(statement) {
            Act::EnableRowSecurity(table) | Act::Rights(table) => !adopted.iter().any(|a| a == table),
            _ => true,
        })
        .map(|statement| format!("{};\n", statement.trim()))
        .collect()
}

/// A function or view that is not ours and has the name that this step would create.
pub(super) async fn occupied(client: &impl GenericClient, step: &Step) -> Result<Option<String>> {
    if step.kind != Kind::Repeatable || !matches!(step.state, State::Pending | State::Kept) {
        return Ok(None);
    }
    let Some((kind, name)) = statements::made_in_public(step.text) else { return Ok(None) };
    let taken = exists(client, if kind == "view" { "to_regclass" } else { "to_regprocedure" }, &name).await?;
    Ok(taken.then(|| format!("{kind} {name}")))
}

async fn exists(client: &impl GenericClient, lookup: &str, name: &str) -> Result<bool> {
    let rows = client
        .query_typed(&format!("select {lookup}($1) is not null"), &[(&name, Type::TEXT)])
        .await
        .map_err(Error::doing(format!("look for {name}")))?;
    Ok(rows[0].get(0))
}
