//! Which roles may call which functions: every role may execute a new function unless that right is revoked.

use std::collections::BTreeSet;

use anyhow::Result;

use crate::world::{World, world};

async fn list(world: &World, sql: &str) -> Result<Vec<String>> {
    Ok(world.client.query(sql, &[]).await?.iter().map(|r| r.get(0)).collect())
}

/// The kinds of declaration that the five systems do not cover: a tenant, an owner without a table, notifications.
async fn with_tenant_queue(world: &World) -> Result<()> {
    world
        .run(
            "create table public.shop_orders (shop uuid, id text, state text default 'a', who text, topic text, dedup text, at timestamptz default now(), ended timestamptz,
                                              lock text, primary key (shop, id));
             create table public.shop_dead (id bigserial primary key, original_order text, reason text)",
        )
        .await?;
    let toml = "table = 'public.shop_orders'\ntenant = 'shop'\nkind = 'topic'\nunique = 'dedup'\ncreated = 'at'\nfinished = 'ended'\nnotify = true\ndead = 'public.shop_dead'
                holder = { by = 'lock' }\nowner = { column = 'who' }\nstatus = { column = 'state', ready = 'a', running = 'b', done = 'c', failed = 'd' }";
    world.attach("shop_orders", toml).await?;
    Ok(())
}

#[tokio::test]
async fn no_function_of_ours_is_executable_by_everybody_or_by_strangers() -> Result<()> {
    let world = world().await?;
    with_tenant_queue(&world).await?;
    let open = list(
        &world,
        "select p.oid::regprocedure::text from pg_proc p
         where p.pronamespace = 'gleaner'::regnamespace
           and (has_function_privilege('anon', p.oid, 'execute')
                or p.proacl is null or exists (select from aclexplode(p.proacl) a where a.grantee = 0)) order by 1",
    )
    .await?;
    assert_eq!(open, Vec::<String>::new());
    Ok(())
}

/// A security definer function without a fixed search path runs whatever its caller puts on the path; temporary tables come last.
#[tokio::test]
async fn every_function_that_others_may_call_pins_its_search_path_with_the_temporary_schema_last() -> Result<()> {
    let world = world().await?;
    with_tenant_queue(&world).await?;
    let loose = list(
        &world,
        "select p.oid::regprocedure::text || coalesce(' ' || array_to_string(p.proconfig, ' '), '') from pg_proc p
         where (p.prosecdef and p.pronamespace in ('gleaner'::regnamespace, 'public'::regnamespace)
                -- What only the engine may call runs inside an act, on the act's path.
                or p.pronamespace = 'gleaner'::regnamespace
                   and (has_function_privilege('authenticated', p.oid, 'execute') or has_function_privilege('service_role', p.oid, 'execute')))
           and not exists (select from unnest(p.proconfig) c where c ~ '^search_path=pg_catalog(, .*)?, pg_temp$') order by 1",
    )
    .await?;
    assert_eq!(loose, Vec::<String>::new());
    Ok(())
}

#[tokio::test]
async fn the_registry_lists_every_function_of_the_engines_role_and_the_acts_are_definer_functions() -> Result<()> {
    let world = world().await?;
    with_tenant_queue(&world).await?;
    let helpers = declared_functions()?;
    let found = list(
        &world,
        "select p.oid::regprocedure::text from pg_proc p where p.pronamespace = 'gleaner'::regnamespace
           and pg_get_userbyid(p.proowner) = 'gleaner_engine' order by 1",
    )
    .await?;
    let callable = "select p.oid::regprocedure::text from pg_proc p where p.pronamespace = 'gleaner'::regnamespace and not p.prosecdef
           and pg_get_userbyid(p.proowner) = 'gleaner_engine'
           and (has_function_privilege('authenticated', p.oid, 'execute') or has_function_privilege('service_role', p.oid, 'execute'))";
    assert_eq!(list(&world, callable).await?, Vec::<String>::new(), "an act runs as the engine");
    let recorded = list(
        &world,
        "select to_regprocedure(f)::text from gleaner.queue q, jsonb_array_elements_text(q.added -> 'functions') f order by 1",
    )
    .await?;
    let (found, recorded): (BTreeSet<_>, BTreeSet<_>) = (found.into_iter().collect(), recorded.into_iter().collect());
    assert_eq!(found, recorded);
    let others = list(
        &world,
        "select p.proname::text from pg_proc p where p.pronamespace = 'gleaner'::regnamespace and pg_get_userbyid(p.proowner) <> 'gleaner_engine'",
    )
    .await?;
    assert_eq!(others.into_iter().collect::<BTreeSet<_>>(), helpers, "neither a forgotten function nor a leftover");
    for queue in ["jobs", "activities", "dumps", "runs", "followups", "schedules", "shop_orders"] {
        let recorded = world
            .count(&format!("select jsonb_array_length(added -> 'functions')::bigint from gleaner.queue where name = '{queue}'"))
            .await?;
        let found = world
            .count(&format!(
                "select count(*) from pg_proc where pronamespace = 'gleaner'::regnamespace and proname ~ '_{queue}(_matching|_many)?$'
                   and pg_get_userbyid(proowner) = 'gleaner_engine'"
            ))
            .await?;
        assert_eq!(found, recorded, "{queue} has {found} functions and records {recorded}");
    }
    Ok(())
}

/// The functions in schema `gleaner` that files of their own create, as opposed to acts rendered for a queue.
fn declared_functions() -> Result<BTreeSet<String>> {
    let sql = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/sql"));
    let systems = std::fs::read_dir(sql.join("systems"))?.map(|entry| entry.map(|e| e.path())).collect::<std::io::Result<Vec<_>>>()?;
    let mut names = BTreeSet::new();
    for folder in systems.into_iter().chain([sql.join("engine")]).map(|system| system.join("functions")).filter(|f| f.is_dir()) {
        for file in std::fs::read_dir(folder)? {
            let text = std::fs::read_to_string(file?.path())?;
            let created = text.lines().filter_map(|line| line.strip_prefix("create or replace function gleaner."));
            names.extend(created.filter_map(|rest| rest.split('(').next()).map(str::to_owned));
        }
    }
    Ok(names)
}

/// Only the roles that the declaration names may work; acts that see every row are for operators.
#[tokio::test]
async fn who_merely_signed_in_works_and_operates_nothing() -> Result<()> {
    let world = world().await?;
    let of = |role: &str, queue: &str| {
        format!(
            "select substr(p.proname, 1, length(p.proname) - {}) from pg_proc p
             where p.pronamespace = 'gleaner'::regnamespace and p.proname ~ '_{queue}$' and has_function_privilege('{role}', p.oid, 'execute') order by 1",
            queue.len() + 1
        )
    };
    let mut people = vec!["bury", "cancel", "explain", "prune", "requeue", "reschedule", "stats"];
    for queue in ["jobs", "dumps", "runs", "followups", "schedules"] {
        assert_eq!(list(&world, &of("authenticated", queue)).await?, people, "{queue} is worked with the service key");
    }
    people.retain(|act| *act != "prune");
    people.extend(["assign", "claim", "complete", "fail", "next_due", "progress", "release", "snooze", "start"]);
    people.sort_unstable();
    assert_eq!(list(&world, &of("authenticated", "activities")).await?, people);
    let all = list(&world, &of("service_role", "activities")).await?;
    for act in ["assign", "bury", "cancel", "enqueue", "recover", "requeue", "stats"] {
        assert!(all.contains(&act.to_owned()), "{act} is not in {all:?}");
    }
    for inner in ["adapt", "dead_letter", "settle", "lock", "lose", "operate", "find_own", "open", "own", "state", "take_each"] {
        assert!(!all.contains(&inner.to_owned()), "{inner} is nobody's to call");
    }

    let signed_in = world.connect().await?;
    signed_in.batch_execute("set role authenticated; set request.jwt.claims = '{\"role\": \"authenticated\"}'").await?;
    for call in [
        "requeue_activities('{}')",
        "cancel_activities('{}')",
        "reschedule_activities('{}', now())",
        "prune_jobs()",
        "bury_activities('{}')",
        "assign_activities('{}', 1)",
        "enqueue_activities('[]')",
        "stats_activities()",
        "recover_activities()",
    ] {
        let error = signed_in.query(&format!("select * from gleaner.{call}"), &[]).await.unwrap_err();
        assert_eq!(error.code().map(|c| c.code()), Some("42501"), "{call}: {error}");
    }
    let anon = world.connect().await?;
    anon.batch_execute("set role anon").await?;
    for call in ["claim_activities('a')", "claim_jobs('a')", "next_due_jobs()", "queue", "jobs"] {
        let error = anon.query(&format!("select * from gleaner.{call}"), &[]).await.unwrap_err();
        assert_eq!(error.code().map(|c| c.code()), Some("42501"), "{call}: {error}");
    }
    Ok(())
}
