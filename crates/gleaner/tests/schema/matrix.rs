//! Which caller may do what with which rows, tested cell by cell: in our own installation, and on a platform that grants
//! everything by default.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result};
use gleaner_postgres::testing;
use tokio_postgres::error::SqlState;

use crate::world::{World, world};
use expected::{CALLS, FUNCTIONS, RELATIONS};
use probe::{Rows, callers};

mod expected;
mod probe;

/// The hash of the key that `seed.sql` creates.
const WORKER_HASH: &[u8] = &[0];

/// What a platform does to every database before users add anything, and more: Supabase does it to schema public only.
const PLATFORM: &str = "
    alter default privileges grant all on tables to anon, authenticated;
    alter default privileges grant all on sequences to anon, authenticated;
    alter default privileges grant all on functions to anon, authenticated;";

/// A database in which every relation has rows.
async fn seeded() -> Result<World> {
    let world = world().await?;
    world.run(include_str!("matrix/seed.sql")).await?;
    Ok(world)
}

/// The same on a platform that grants everything to every role, by default, from the start.
async fn seeded_on_a_platform() -> Result<World> {
    // Roles belong to the whole server: once another database was migrated, they exist and can be granted to.
    drop(world().await?);
    let database = testing::server()
        .database_from("platform", async |url: String| {
            gleaner::connect(&url).await?.batch_execute(PLATFORM).await?;
            gleaner::migrate::migrate(&url, &|_| {}).await?;
            Ok::<_, anyhow::Error>(())
        })
        .await?;
    let world = World::on(database).await?;
    world.run(include_str!("matrix/seed.sql")).await?;
    Ok(world)
}

/// Lines of a table: its columns, split at the first `n` spaces between words.
fn lines(table: &str, n: usize) -> impl Iterator<Item = Vec<&str>> {
    table.lines().map(str::trim).filter(|line| !line.is_empty()).map(move |line| {
        let mut rest = line;
        let mut cells = Vec::new();
        while cells.len() < n - 1
            && let Some((cell, more)) = rest.split_once(' ')
        {
            cells.push(cell);
            rest = more.trim_start();
        }
        cells.push(rest);
        cells
    })
}

/// Every cell that differs from the table.
async fn wrong_cells(world: &World) -> Result<Vec<String>> {
    let callers = callers(&world.client).await?;
    let mut wrong = Vec::new();
    for line in lines(RELATIONS, callers.len() + 2).skip(1) {
        let [relation, expected @ .., condition] = line.as_slice() else { anyhow::bail!("not a line: {line:?}") };
        let rows = Rows { relation, condition };
        let there = world.count(&format!("select count(*) from {relation} where {condition}")).await?;
        anyhow::ensure!(there > 0, "{relation} has no rows where {condition}, and so nothing to try");
        for (caller, expected) in callers.iter().zip(expected) {
            let found = rows.cell(&world.client, caller).await?;
            if found != *expected {
                wrong.push(format!("{} on {relation} where {condition}: {found}, not {expected}", caller.name));
            }
        }
    }
    Ok(wrong)
}

#[tokio::test]
async fn every_caller_may_do_with_every_relation_what_the_matrix_says_and_no_more() -> Result<()> {
    assert_eq!(wrong_cells(&seeded().await?).await?, Vec::<String>::new());
    Ok(())
}

#[tokio::test]
async fn the_matrix_holds_where_a_platform_grants_everything_by_default() -> Result<()> {
    assert_eq!(wrong_cells(&seeded_on_a_platform().await?).await?, Vec::<String>::new());
    Ok(())
}

#[tokio::test]
async fn a_new_table_or_view_needs_a_line_in_the_matrix() -> Result<()> {
    let world = world().await?;
    let missing = async || -> Result<BTreeSet<String>> {
        let found = world
            .client
            .query(
                "select format('%s.%s', n.nspname, c.relname) from pg_class as c join pg_namespace as n on n.oid = c.relnamespace
                 where n.nspname in ('public', 'gleaner', 'auth') and c.relkind in ('r', 'p', 'v', 'm', 'f')",
                &[],
            )
            .await?;
        let found: BTreeSet<String> = found.iter().map(|row| row.get(0)).collect();
        let listed: BTreeSet<String> = lines(RELATIONS, 2).skip(1).map(|line| line[0].to_owned()).collect();
        Ok(found.symmetric_difference(&listed).cloned().collect())
    };
    assert_eq!(missing().await?, BTreeSet::new());
    world.run("create view gleaner.peep as select * from auth.users").await?;
    assert_eq!(missing().await?, BTreeSet::from(["gleaner.peep".to_owned()]));
    Ok(())
}

/// A view reads its tables as its owner unless it is declared otherwise, and policies do not apply to its owner.
#[tokio::test]
async fn every_view_reads_its_tables_as_its_caller() -> Result<()> {
    let views = world()
        .await?
        .text(
            "select string_agg(c.oid::regclass::text, ', ') from pg_class as c
             where c.relnamespace in ('public'::regnamespace, 'gleaner'::regnamespace, 'auth'::regnamespace)
               and (c.relkind = 'm' or c.relkind = 'v' and 'security_invoker=true' <> all (coalesce(c.reloptions, '{}')))",
        )
        .await?;
    assert_eq!(views, None);
    Ok(())
}

/// Which roles may execute which function, from the catalogue; overloads that differ would show as two.
async fn executable(world: &World) -> Result<BTreeMap<String, String>> {
    let rows = world
        .client
        .query(
            "select name, string_agg(distinct roles, ' or ')
             from (
                 select format('%s.%s', n.nspname, p.proname) as name,
                        (select string_agg(r, ' ' order by r) from unnest('{anon,authenticated,service_role}'::text[]) as r
                         where has_function_privilege(r, p.oid, 'execute')) as roles
                 from pg_proc as p join pg_namespace as n on n.oid = p.pronamespace
                 where n.nspname in ('public', 'gleaner', 'auth')) as f
             where roles is not null group by name",
            &[],
        )
        .await?;
    Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
}

/// The alternatives of a name with braces.
fn expand(name: &str) -> Vec<String> {
    let Some((before, (inside, after))) = name.split_once('{').and_then(|(b, rest)| Some((b, rest.split_once('}')?))) else {
        return vec![name.to_owned()];
    };
    inside.split(',').flat_map(|one| expand(&format!("{before}{one}{after}"))).collect()
}

#[tokio::test]
async fn a_function_is_executable_by_those_the_matrix_names() -> Result<()> {
    let expected: BTreeMap<String, String> =
        lines(FUNCTIONS, 2).flat_map(|line| expand(line[0]).into_iter().map(move |name| (name, line[1].to_owned()))).collect();
    assert_eq!(executable(&world().await?).await?, expected);
    assert_eq!(executable(&seeded_on_a_platform().await?).await?, expected, "by a platform's defaults");
    Ok(())
}

/// Security definer functions bypass row security, so what they return must be tested separately.
#[tokio::test]
async fn functions_give_every_caller_what_the_matrix_says_and_no_more() -> Result<()> {
    let world = seeded().await?;
    let callers = callers(&world.client).await?;
    let lease = world.count("select lease from activities where session like '%-00000000000e'").await?.to_string();
    let mut wrong = Vec::new();
    for line in lines(CALLS, callers.len() + 1).skip(1) {
        let (call, expected) = line.split_last().context("an empty line")?;
        let call = call.replace("LEASE", &lease);
        for (caller, expected) in callers.iter().zip(expected) {
            let found = match caller.attempt(&world.client, &format!("select from {call}")).await? {
                Ok(rows) => rows > 0,
                Err(error) if error.code() == Some(&SqlState::INSUFFICIENT_PRIVILEGE) => false,
                // No contact for this caller: the function's own error code.
                Err(error) if error.code().is_some_and(|code| code.code() == "GL003") => false,
                Err(error) => return Err(error).with_context(|| format!("{} {call}", caller.name)),
            };
            if found != (*expected == "x") {
                wrong.push(format!("{} {call}: {found}", caller.name));
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
    Ok(())
}

/// Besides select, insert, update and delete there are rights that bypass row security or lock a table, and sequences that any
/// caller could advance.
#[tokio::test]
async fn a_platforms_defaults_leave_no_other_right_on_anything_of_ours() -> Result<()> {
    let world = seeded_on_a_platform().await?;
    let left = world
        .client
        .query(
            "select format('%s may %s %s', a.grantee::regrole, lower(a.privilege_type), c.oid::regclass)
             from pg_class as c
             cross join lateral aclexplode(c.relacl) as a
             where c.relnamespace in ('public'::regnamespace, 'gleaner'::regnamespace, 'auth'::regnamespace)
               and (a.grantee in (0, 'anon'::regrole)
                    or a.grantee = 'authenticated'::regrole
                       and (c.relkind = 'S' or a.privilege_type not in ('SELECT', 'INSERT', 'UPDATE', 'DELETE')))
             union all
             select format('%s may %s %s.%s', x.grantee::regrole, lower(x.privilege_type), t.attrelid::regclass, t.attname)
             from pg_attribute as t
             cross join lateral aclexplode(t.attacl) as x
             where x.grantee in (0, 'anon'::regrole, 'authenticated'::regrole) and t.attrelid >= 16384
             order by 1",
            &[],
        )
        .await?;
    let left: Vec<String> = left.iter().map(|row| row.get(0)).collect();
    assert_eq!(left, Vec::<String>::new());
    Ok(())
}
