//! Keys of programs.

use anyhow::Result;
use gleaner_supabase::access::ApiKeys;
use gleaner_supabase::auth::api_keys::{self, Kind, New};
use reqwest::Method;
use serde_json::{Value, json};

use crate::auth::support::{ADA, World, world};

async fn add(world: &World, name: &str, kind: Kind) -> Result<String> {
    let new = New { name, kind, queues: None, kinds: None, valid: None };
    Ok(api_keys::add(&world.client, &new).await?.expect("the name is free").1)
}

fn keys(world: &World) -> Result<ApiKeys> {
    Ok(ApiKeys::new(gleaner::pool(&world.database.url, 2)?))
}

#[tokio::test]
async fn a_key_is_kept_as_a_hash_and_stands_for_its_claims() -> Result<()> {
    let world = world().await?;
    let scope = (vec!["activities".to_owned()], vec!["call".to_owned()]);
    let new = New { name: "whisper", kind: Kind::Worker, queues: Some(&scope.0), kinds: Some(&scope.1), valid: Some("1 day") };
    let (id, key) = api_keys::add(&world.client, &new).await?.expect("new");
    assert!(key.starts_with("sb_secret_") && key.len() > 50, "{key}");
    assert_eq!(world.count(&format!("select count(*) from gleaner.api_key k where k::text like '%{}%'", &key[20..])).await?, 0);
    let claims = keys(&world)?.verify(&key).await?.map(Value::Object);
    let wanted = json!({"role": "authenticated", "sub": id, "session_id": id, "key_id": id, "worker": true,
                        "queues": ["activities"], "kinds": ["call"]});
    assert_eq!(claims, Some(wanted));
    assert_eq!(api_keys::add(&world.client, &new).await?, None, "the name is taken");
    assert!(world.count("select count(*) from gleaner.api_key where last_used_at is not null").await? == 1);
    let listed = api_keys::list(&world.client).await?;
    assert_eq!((&listed[0]["state"], listed[0].get("hash")), (&json!("good"), None));
    for (kind, role) in [(Kind::Service, "service_role"), (Kind::Anon, "anon")] {
        let key = add(&world, kind.name(), kind).await?;
        let claims = keys(&world)?.verify(&key).await?.unwrap_or_default();
        assert_eq!((claims["role"].as_str(), claims.get("sub")), (Some(role), None));
    }
    Ok(())
}

#[tokio::test]
async fn an_opaque_project_key_opens_what_its_role_opens() -> Result<()> {
    let world = world().await?;
    world.ada().await?;
    let (anon, service, worker) =
        (add(&world, "web", Kind::Anon).await?, add(&world, "ops", Kind::Service).await?, add(&world, "agent", Kind::Worker).await?);
    assert!(anon.starts_with("sb_publishable_"));
    // With an opaque key the client sends the key itself as bearer token when no user is signed in.
    let list = |key: &str| {
        world.bare(Method::GET, "/admin/users").header("apikey", key).bearer(key).header("x-supabase-api-version", "2024-01-01").answer()
    };
    assert_eq!(list(&service).await.status, 200);
    assert_eq!(list(&anon).await.refused(), (403, "not_admin"));
    assert_eq!(list(&worker).await.refused(), (403, "not_admin"));
    let body = json!({"email": ADA, "password": crate::auth::support::PASSWORD});
    let session = world.bare(Method::POST, "/token?grant_type=password").header("apikey", &anon).json(&body).answer().await;
    assert_eq!(session.status, 200);
    Ok(())
}

#[tokio::test]
async fn a_revoked_or_expired_key_is_nothing() -> Result<()> {
    let world = world().await?;
    let mut gone = Vec::new();
    for name in ["by name", "by id", "by key"] {
        gone.push(add(&world, name, Kind::Service).await?);
    }
    let id = world.text("select id::text from gleaner.api_key where name = 'by id'").await?.unwrap_or_default();
    assert!(api_keys::revoke(&world.client, "by name").await?);
    assert!(api_keys::revoke(&world.client, &id).await?);
    assert!(api_keys::revoke(&world.client, &gone[2]).await?);
    assert!(!api_keys::revoke(&world.client, "by name").await?, "once");
    gone.push(add(&world, "by name", Kind::Service).await?);
    world.run("update gleaner.api_key set expires_at = now() where revoked_at is null").await?;
    for key in &gone {
        assert_eq!(keys(&world)?.verify(key).await?, None);
    }
    Ok(())
}

#[tokio::test]
async fn a_revoked_key_is_forgotten_within_seconds() -> Result<()> {
    let world = world().await?;
    let key = add(&world, "ops", Kind::Service).await?;
    let keys = keys(&world)?;
    assert!(keys.verify(&key).await?.is_some());
    api_keys::revoke(&world.client, "ops").await?;
    let begun = std::time::Instant::now();
    while keys.verify(&key).await?.is_some() {
        assert!(begun.elapsed().as_secs() < 8, "it is still believed");
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    Ok(())
}

/// Runs a statement as the holder of the key, in a transaction of its own.
async fn as_holder(world: &mut World, key: &str, sql: &str) -> Result<Vec<String>> {
    let claims = Value::Object(keys(world)?.verify(key).await?.expect("a good key"));
    let transaction = world.client.transaction().await?;
    transaction
        .execute(
            "select set_config('role', $1, true), set_config('request.jwt.claims', $2, true)",
            &[&claims["role"].as_str(), &claims.to_string()],
        )
        .await?;
    let rows = transaction.query(sql, &[]).await?;
    transaction.commit().await?;
    Ok(rows.iter().map(|row| row.get(0)).collect())
}

#[tokio::test]
async fn a_worker_sees_only_what_it_holds() -> Result<()> {
    let mut world = world().await?;
    world.ada().await?;
    world.run("update sales set stale_threshold_minutes = 0").await?;
    world
        .run(
            "insert into activities (type, raw_data, sales_id) select 'call', '{\"content\": \"secret\"}', id from sales;
             insert into activities (type) values ('call'), ('sms');
             insert into contacts (first_name) values ('Bob')",
        )
        .await?;
    let (mine, other) = (add(&world, "mine", Kind::Worker).await?, add(&world, "other", Kind::Worker).await?);
    let seen = "select type || coalesce(raw_data ->> 'content', '') from activities order by 1";
    assert_eq!(as_holder(&mut world, &mine, seen).await?, Vec::<String>::new(), "before it holds anything");
    let claim = "select id::text from gleaner.claim_activities('agent', 3, p_kinds => '{call}')";
    assert_eq!(as_holder(&mut world, &mine, claim).await?.len(), 2);
    assert_eq!(as_holder(&mut world, &mine, seen).await?, ["call", "callsecret"], "an owner's row too, once it was given");
    assert_eq!(as_holder(&mut world, &other, seen).await?, Vec::<String>::new());
    let done = "update activities set processing_status = 'completed', processed_data = '{}', locked_by = null, locked_at = null
                where raw_data is null returning processing_status";
    assert_eq!(as_holder(&mut world, &other, done).await?, Vec::<String>::new());
    assert_eq!(as_holder(&mut world, &mine, done).await?, ["completed"], "and it can complete its work by a plain update");
    for table in ["sales", "contacts", "crm_processing_nodes", "ingestion_providers", "activity_failures", "unmatched_activities"] {
        let left = as_holder(&mut world, &other, &format!("select t::text from {table} as t")).await?;
        assert_eq!(left, Vec::<String>::new(), "{table}");
    }
    for refused in [
        "insert into activities (type) values ('call') returning type",
        "insert into contacts (first_name) values ('x') returning first_name",
    ] {
        assert!(as_holder(&mut world, &mine, refused).await.is_err(), "{refused}");
    }
    Ok(())
}

#[tokio::test]
async fn a_key_works_only_the_queues_and_kinds_it_is_for() -> Result<()> {
    let mut world = world().await?;
    world.run("insert into activities (type) values ('call'), ('sms'), ('email')").await?;
    let (queues, kinds) = (vec!["activities".to_owned()], vec!["sms".to_owned(), "email".to_owned()]);
    let new = New { name: "texts", kind: Kind::Worker, queues: Some(&queues), kinds: Some(&kinds), valid: None };
    let (_, key) = api_keys::add(&world.client, &new).await?.expect("new");
    let claim = |kinds: &str| format!("select type from gleaner.claim_activities('agent', 5{kinds}) order by 1");
    let refused = as_holder(&mut world, &key, &claim(", p_kinds => '{call,sms}'")).await.expect_err("a call is not for it");
    let code = refused.downcast_ref::<tokio_postgres::Error>().and_then(|error| error.code().map(|code| code.code().to_owned()));
    assert_eq!(code.as_deref(), Some("42501"), "{refused:?}");
    assert_eq!(as_holder(&mut world, &key, &claim("")).await?, ["email", "sms"]);
    let elsewhere = vec!["jobs".to_owned()];
    let new = New { name: "jobs only", kind: Kind::Worker, queues: Some(&elsewhere), kinds: None, valid: None };
    let (_, key) = api_keys::add(&world.client, &new).await?.expect("new");
    assert!(as_holder(&mut world, &key, &claim("")).await.is_err());
    assert_eq!(world.count("select count(*) from activities where processing_status = 'raw'").await?, 1);
    Ok(())
}

/// A new table that members may read needs a policy for workers, or their keys can read it too.
#[tokio::test]
async fn no_table_of_the_team_forgets_the_workers() -> Result<()> {
    let world = world().await?;
    let rows = world
        .client
        .query(
            "select c.oid::regclass::text from pg_class as c
             where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and has_any_column_privilege('authenticated', c.oid, 'select')
               and not exists (select from pg_policy as p where p.polrelid = c.oid and not p.polpermissive and p.polcmd = '*'
                               and pg_get_expr(p.polqual, p.polrelid) like '%worker_session()%')
             order by 1",
            &[],
        )
        .await?;
    let open: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    // Channels are for administrators, and a key is not one. A dead letter is for those who may see its activity.
    assert_eq!(open, ["activity_failures", "ingestion_providers"]);
    Ok(())
}

#[tokio::test]
async fn the_rest_of_the_api_knows_the_keys_too() -> Result<()> {
    use axum::http::{HeaderMap, HeaderValue, header};
    use gleaner_http::{Caller, Role};
    use gleaner_supabase::access::{Access, Identify as _, Keyring};

    let world = world().await?;
    let session = world.ada_signed_in().await?;
    let worker = add(&world, "agent", Kind::Worker).await?;
    let ring = Keyring::new(Access::new(crate::auth::support::SECRET, "test")?, gleaner::pool(&world.database.url, 2)?);
    let carrying = |key: &str, bearer: Option<&str>| -> Result<HeaderMap> {
        let mut headers = HeaderMap::from_iter([(header::HeaderName::from_static("apikey"), HeaderValue::from_str(key)?)]);
        if let Some(token) = bearer {
            headers.insert(header::AUTHORIZATION, HeaderValue::from_str(&format!("Bearer {token}"))?);
        }
        Ok(headers)
    };
    for bearer in [None, Some(worker.as_str())] {
        let caller = ring.identify(&carrying(&worker, bearer)?, None).await.map_err(|error| anyhow::anyhow!("{error:?}"))?;
        assert!(matches!(&caller, Caller::Token { role: Role::Authenticated, claims } if claims["worker"] == true), "{caller:?}");
    }
    let person =
        ring.identify(&carrying(&world.anon, Some(session.access()))?, None).await.map_err(|error| anyhow::anyhow!("{error:?}"))?;
    assert!(matches!(&person, Caller::Token { role: Role::Authenticated, claims } if claims.get("worker").is_none()));
    assert!(ring.identify(&carrying("sb_secret_nonsense", None)?, None).await.is_err());
    Ok(())
}
