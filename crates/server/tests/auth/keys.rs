//! Keys of programs.

use anyhow::Result;
use gleaner_server::auth::api_keys::{self, ApiKeys, Kind, New};
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{ADA, World, world};

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
    // With an opaque key the client sends the key itself as bearer when nobody is signed in.
    let list = |key: &str| {
        world.bare(Method::GET, "/admin/users").header("apikey", key).bearer(key).header("x-supabase-api-version", "2024-01-01").answer()
    };
    assert_eq!(list(&service).await.status, 200);
    assert_eq!(list(&anon).await.refused(), (403, "not_admin"));
    assert_eq!(list(&worker).await.refused(), (403, "not_admin"));
    let body = json!({"email": ADA, "password": crate::support::PASSWORD});
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
