//! The database login of `/rest/v1`.

use anyhow::{Context as _, Result};
use gleaner_server::ApiLogin;
use gleaner_supabase::rest::Login as _;

use crate::rest::world::world;

#[tokio::test]
async fn the_login_of_rest_may_do_nothing_by_itself() -> Result<()> {
    let world = world().await?.with_things().await?;
    world.get("/things").expect(200).await?;
    let login = ApiLogin::new(&world.database.url, None, world.pool.clone(), &world.access, 2);
    let client = login.pool().await.context("the login")?.get().await?;
    let said = "select concat_ws(' ', r.rolsuper, r.rolcreaterole, r.rolcreatedb, r.rolbypassrls, r.rolreplication)
        from pg_roles as r where r.rolname = session_user";
    assert_eq!(client.query_one(said, &[]).await?.get::<_, String>(0), "f f f f f");
    for sql in [
        "select from things",
        "select from sales",
        "select from auth.users",
        "select from gleaner.api_key",
        "create table public.mine ()",
        "select gleaner.claim_activities('x')",
        "select gleaner.prepare_api_login('x', 'x')",
        "set role gleaner_engine",
        "select pg_read_file('/etc/passwd')",
    ] {
        let refused = client.batch_execute(sql).await.err().context(sql)?;
        assert_eq!(refused.code().map(|code| code.code()), Some("42501"), "{sql}");
    }
    // The statement of the request ran on it: its session is still there.
    let sessions = "select string_agg(distinct usename, ' ') from pg_stat_activity where pid <> pg_backend_pid()
        and datname = current_database() and query = 'commit'";
    let names = world.text(sessions).await?.unwrap_or_default();
    assert!(names.starts_with("gleaner_api_") && !names.contains(' '), "{names}");
    Ok(())
}

/// Another server with the same secret uses the same login; one that is new to the database makes it again.
#[tokio::test]
async fn servers_that_share_the_secret_share_the_login() -> Result<()> {
    let world = world().await?.with_things().await?;
    let logins = (0..6).map(|_| ApiLogin::new(&world.database.url, None, world.pool.clone(), &world.access, 1));
    let logins: Vec<_> = logins.collect();
    let mut names = std::collections::BTreeSet::new();
    for pool in futures_util::future::try_join_all(logins.iter().map(|login| login.pool())).await? {
        names.insert(pool.get().await?.query_one("select session_user::text", &[]).await?.get::<_, String>(0));
    }
    assert!(names.len() == 1 && names.iter().all(|name| name.starts_with("gleaner_api_")), "{names:?}");
    Ok(())
}

/// Where roles cannot be made, as on a hosted platform, requests still work, on the server's own login.
#[tokio::test]
async fn without_the_right_to_create_roles_requests_run_on_the_servers_own_login() -> Result<()> {
    let world = world().await?;
    let owner = format!("modest_{}", uuid::Uuid::now_v7().simple());
    world.run(&format!("create role {owner} login password 'x'; grant usage on schema gleaner to {owner}; grant execute on all functions in schema gleaner to {owner}")).await?;
    let modest = gleaner::connect::pool_as(&world.database.url, &owner, "x", 1)?;
    let login = ApiLogin::new(&world.database.url, None, modest, &world.access, 1);
    let client = login.pool().await?.get().await?;
    let who: String = client.query_one("select session_user::text", &[]).await?.get(0);
    assert!(!who.starts_with("gleaner_api"), "{who}");
    Ok(())
}

/// The operator may name a login, such as the authenticator of a platform.
#[tokio::test]
async fn an_operator_may_name_the_login() -> Result<()> {
    let world = world().await?;
    let login = ApiLogin::new("postgres://nowhere.invalid/x", Some(&world.database.url), world.pool.clone(), &world.access, 1);
    assert_eq!(login.pool().await?.get().await?.query_one("select 1", &[]).await?.get::<_, i32>(0), 1);
    Ok(())
}
