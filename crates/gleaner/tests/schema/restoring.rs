//! Backups: `migrate` repairs what pg_restore leaves without roles, owners or grants.

use std::path::Path;
use std::process::{Command, Output};
use std::sync::Mutex;

use anyhow::{Context as _, Result, ensure};
use gleaner::migrate::{State, migrate, status};
use gleaner_postgres::testing::PrivateServer;

use crate::dump::installation;
use crate::world::{World, text, world};

fn program(name: &str, args: &[&str]) -> Result<Output> {
    Command::new(installation()?.program(name)).args(args).output().with_context(|| format!("run {name}"))
}

fn dump(world: &World, file: &Path) -> Result<()> {
    let output = program("pg_dump", &["--format=custom", "--file", &file.to_string_lossy(), "--dbname", world.url()])?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}

/// Everything that decides which role may do what with our functions and tables, by name.
const RIGHTS: &str = "
    select string_agg(line, E'\n' order by line) from (
        select format('function %s %s %s', p.oid::regprocedure, case when pg_get_userbyid(p.proowner) = 'gleaner_engine' then 'engine' else 'other' end,
                      array(select format('%s', case when a.grantee = 0 then 'public' else pg_get_userbyid(a.grantee) end)
                            from aclexplode(p.proacl) a where a.grantee <> p.proowner order by 1))
        from pg_proc p where p.pronamespace in ('gleaner'::regnamespace, 'public'::regnamespace)
        union all
        select format('policy %s %s %s', polrelid::regclass, polname, array(select r::regrole::text from unnest(polroles) r order by 1)) from pg_policy
        union all
        select format('table %s %s', c.oid::regclass,
                      array(select format('%s:%s', case when a.grantee = 0 then 'public' else pg_get_userbyid(a.grantee) end, a.privilege_type)
                            from aclexplode(c.relacl) a where a.grantee <> c.relowner order by 1))
        from pg_class c where c.relnamespace in ('gleaner'::regnamespace, 'public'::regnamespace) and c.relkind in ('r', 'v')
    ) lines (line)";

/// Restores into a separate server, which has none of our roles unless they are created first; returns what migrate printed.
async fn restored(with: &[&str], roles: &str) -> Result<(PrivateServer, World, String, String)> {
    let origin = world().await?;
    origin.run("create table public.orders (id bigserial primary key, state text not null default 'new')").await?;
    origin
        .attach(
            "orders",
            "table = 'public.orders'\nstatus = { column = 'state', ready = 'new', running = 'busy', done = 'done', failed = 'bad' }",
        )
        .await?;
    origin.run("insert into public.orders default values; insert into gleaner.jobs (kind) values ('a')").await?;
    let rights = origin.text(RIGHTS).await?.unwrap_or_default();
    let server = PrivateServer::start(false).await?;
    let file = std::env::temp_dir().join(format!("gleaner-{}-{}.dump", std::process::id(), with.join("")));
    dump(&origin, &file)?;
    let admin = server.connect().await?;
    admin.batch_execute("create database restored").await?;
    admin.batch_execute(roles).await?;
    let url = server.cluster().url_of("restored");
    let path = file.to_string_lossy().into_owned();
    let mut args = vec!["--dbname", &url];
    args.extend(with);
    args.push(&path);
    // Without roles it reports hundreds of errors, and continues.
    program("pg_restore", &args)?;
    std::fs::remove_file(&file)?;

    let client = gleaner::connect(&url).await?;
    assert!(status(&client).await?.iter().any(|s| s.state == State::Drifted), "what is wrong shows before it is repaired");
    let said = Mutex::new(Vec::new());
    migrate(&url, &|line| said.lock().unwrap().push(line.to_owned())).await?;
    let now = text(&client, RIGHTS).await?.unwrap_or_default();
    let differing: Vec<&str> = now.lines().filter(|l| !rights.contains(l)).chain(rights.lines().filter(|l| !now.contains(l))).collect();
    assert_eq!(differing, Vec::<&str>::new(), "{said:?}");
    assert!(migrate(&url, &|_| {}).await?.is_empty(), "a second run has nothing to do");
    Ok((server, origin, url, said.into_inner()?.join("\n")))
}

async fn works(url: &str) -> Result<()> {
    let client = gleaner::connect(url).await?;
    client.batch_execute("set role service_role").await?;
    assert_eq!(text(&client, "select kind from gleaner.claim_jobs('agent')").await?.as_deref(), Some("a"));
    assert_eq!(text(&client, "select id::text from gleaner.claim_orders('agent')").await?.as_deref(), Some("1"));
    Ok(())
}

#[tokio::test]
async fn a_restore_without_roles_is_repaired() -> Result<()> {
    let (_server, _origin, url, said) = restored(&[], "select 1").await?;
    assert!(said.contains("roles or memberships missing") && said.contains("functions with another owner"), "{said}");
    works(&url).await
}

const ROLES: &str = "create role anon nologin noinherit; create role authenticated nologin noinherit;
    create role service_role nologin noinherit bypassrls; create role gleaner_engine nologin inherit bypassrls;";

#[tokio::test]
async fn a_restore_without_owners_is_repaired() -> Result<()> {
    let (_server, _origin, url, said) = restored(&["--no-owner"], ROLES).await?;
    assert!(said.contains("functions with another owner") && !said.contains("roles or memberships"), "{said}");
    works(&url).await
}

/// Without its grants every role may call every function.
#[tokio::test]
async fn a_restore_without_grants_is_closed_again() -> Result<()> {
    let (_server, _origin, url, said) = restored(&["--no-owner", "--no-privileges"], ROLES).await?;
    assert!(said.contains("objects open to everyone") && said.contains("grants missing"), "{said}");
    works(&url).await
}
