//! Which systems a database has, and which it gets.

use tokio_postgres::GenericClient;
use tokio_postgres::types::Type;

use super::{SYSTEMS, adopt, applied};
use crate::error::{Error, Result};

/// What a run brings up to date.
#[derive(Debug)]
pub(super) struct Choice {
    /// In the order they are migrated; `jobs` is always among them.
    pub(super) systems: Vec<&'static str>,
    pub(super) asked: Vec<&'static str>,
    /// Systems whose tables exist.
    standing: Vec<&'static str>,
}

impl Choice {
    /// Whether the database has none of this system's tables from us.
    pub(super) fn is_new(&self, system: &str) -> bool {
        !self.standing.contains(&system)
    }
}

/// What the database has and what is asked for. Before the first run: every system on an empty database; on a database with
/// tables of its own, the systems whose queue or owner tables exist, and those asked for.
pub(super) async fn choose(client: &impl GenericClient, asked: &[String]) -> Result<Choice> {
    let asked = check(asked)?;
    let steps = applied(client).await?;
    let standing: Vec<&'static str> =
        SYSTEMS.iter().copied().filter(|system| steps.keys().any(|step| step.starts_with(&format!("systems/{system}/tables/")))).collect();
    let mut there = remembered(client).await?;
    there.extend(standing.iter().filter(|s| **s != "jobs").map(|s| (*s).to_owned()));
    if there.is_empty() {
        if has_tables(client).await? {
            there = found(client).await?;
        } else if asked.is_empty() {
            there = SYSTEMS.iter().map(|s| (*s).to_owned()).collect();
        }
    }
    let systems = SYSTEMS.iter().copied().filter(|s| *s == "jobs" || there.iter().any(|t| t == s) || asked.contains(s)).collect();
    Ok(Choice { systems, asked, standing })
}

/// The systems of those names; an error if one does not ship with the library.
pub(super) fn check(names: &[String]) -> Result<Vec<&'static str>> {
    let known = |name: &String| {
        let system = SYSTEMS.iter().copied().find(|system| system == name);
        system.ok_or_else(|| Error::Other(format!("there is no system {name:?}; there are: {}", SYSTEMS.join(", "))))
    };
    names.iter().map(known).collect()
}

/// The systems recorded for this database.
async fn remembered(client: &impl GenericClient) -> Result<Vec<String>> {
    let doing = || Error::doing("read which systems are here");
    let rows = client.query_typed("select to_regclass('gleaner.system') is not null", &[]).await.map_err(doing())?;
    if !rows[0].get::<_, bool>(0) {
        return Ok(Vec::new());
    }
    let rows = client.query_typed("select name from gleaner.system", &[]).await.map_err(doing())?;
    Ok(rows.iter().map(|r| r.get(0)).collect())
}

/// Records which systems the database has, so that the next run continues an interrupted one, and a later run adds nothing.
pub(super) async fn remember(client: &impl GenericClient, systems: impl Iterator<Item = &'static str>) -> Result<()> {
    let names: Vec<&str> = std::iter::once("jobs").chain(systems).collect();
    client
        .query_typed("insert into gleaner.system (name) select unnest($1) on conflict do nothing", &[(&names, Type::TEXT_ARRAY)])
        .await
        .map_err(Error::doing("note which systems are here"))?;
    Ok(())
}

/// Whether there is any table that was not created by us, an extension or the platform.
async fn has_tables(client: &impl GenericClient) -> Result<bool> {
    const PLATFORM: &[&str] = &[
        "information_schema",
        "gleaner",
        "auth",
        "storage",
        "realtime",
        "vault",
        "supabase_functions",
        "supabase_migrations",
        "extensions",
        "graphql",
        "graphql_public",
        "net",
        "cron",
        "pgsodium",
        "pgmq",
        "_realtime",
    ];
    let rows = client
        .query_typed(
            "select exists (
                 select from pg_class c join pg_namespace n on n.oid = c.relnamespace
                 where c.relkind in ('r', 'p') and n.nspname !~ '^pg_' and n.nspname <> all ($1)
                   and not exists (select from pg_depend d
                                   where d.classid = 'pg_class'::regclass and d.objid = c.oid and d.deptype = 'e'))",
            &[(&PLATFORM, Type::TEXT_ARRAY)],
        )
        .await
        .map_err(Error::doing("look for tables"))?;
    Ok(rows[0].get(0))
}

/// The systems whose queue table or owner table exists.
async fn found(client: &impl GenericClient) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for system in SYSTEMS {
        let mut tables = Vec::new();
        for declaration in adopt::declarations(system)? {
            tables.extend(declaration.owner.and_then(|owner| owner.table));
            tables.push(declaration.table);
        }
        let rows = client
            .query_typed("select exists (select from unnest($1) t where to_regclass(t) is not null)", &[(&tables, Type::TEXT_ARRAY)])
            .await
            .map_err(Error::doing(format!("look for the tables of {system}")))?;
        if rows[0].get(0) {
            found.push((*system).to_owned());
        }
    }
    Ok(found)
}
