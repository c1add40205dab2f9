//! The user's own account.

use anyhow::Result;
use reqwest::Method;
use serde_json::{Value, json};

use crate::auth::support::{ADA, Answer, PASSWORD, World, world};

async fn put(world: &World, token: &str, body: &Value) -> Answer {
    world.send(Method::PUT, "/user").bearer(token).json(body).answer().await
}

#[tokio::test]
async fn metadata_is_merged_and_a_null_takes_a_member_out() -> Result<()> {
    let world = world().await?;
    let session = world.ada_signed_in().await?;
    put(&world, session.access(), &json!({"data": {"name": "Ada", "theme": "dark"}})).await;
    let changed = put(&world, session.access(), &json!({"data": {"theme": null, "age": 36}})).await;
    assert_eq!((changed.status, &changed.body["user_metadata"]), (200, &json!({"name": "Ada", "age": 36})));
    assert_eq!(put(&world, session.access(), &json!({"data": {"x": "\0"}})).await.refused(), (400, "validation_failed"));
    let hardly = put(&world, session.access(), &json!({"app_metadata": {"role": "administrator"}, "role": "service_role"})).await;
    assert_eq!((hardly.status, &hardly.body["role"]), (200, &json!("authenticated")), "what is not one's own to change stays");
    assert!(hardly.body["app_metadata"].get("role").is_none());
    Ok(())
}

#[tokio::test]
async fn a_new_password_ends_every_other_session() -> Result<()> {
    let world = world().await?;
    let here = world.ada_signed_in().await?;
    let there = world.sign_in(ADA, PASSWORD).await;
    let changed = put(&world, here.access(), &json!({"password": "a new and longer one"})).await;
    assert_eq!(changed.status, 200, "{changed:?}");
    assert_eq!(world.get("/user").bearer(here.access()).answer().await.status, 200);
    assert_eq!(world.get("/user").bearer(there.access()).answer().await.refused(), (403, "session_not_found"));
    assert_eq!(world.sign_in(ADA, PASSWORD).await.status, 400);
    assert_eq!(world.sign_in(ADA, "a new and longer one").await.status, 200);
    Ok(())
}

#[tokio::test]
async fn a_new_password_needs_the_old_one_or_a_fresh_sign_in() -> Result<()> {
    let world = world().await?;
    let session = world.ada_signed_in().await?;
    world.run("update auth.sessions set created_at = created_at - interval '1 hour'").await?;
    let stolen = put(&world, session.access(), &json!({"password": "a new and longer one"})).await;
    assert_eq!(stolen.refused(), (401, "reauthentication_needed"));
    let guessed = put(&world, session.access(), &json!({"password": "a new and longer one", "current_password": "a guess"})).await;
    assert_eq!(guessed.refused(), (400, "invalid_credentials"));
    assert_eq!(world.sign_in(ADA, PASSWORD).await.status, 200, "nothing has changed");
    let known = put(&world, session.access(), &json!({"password": "a new and longer one", "current_password": PASSWORD})).await;
    assert_eq!(known.status, 200, "{known:?}");
    assert_eq!(world.sign_in(ADA, "a new and longer one").await.status, 200);
    Ok(())
}

#[tokio::test]
async fn a_weak_password_is_refused_with_its_reasons() -> Result<()> {
    let world = world().await?;
    let session = world.ada_signed_in().await?;
    for (password, reason) in [("short", "length"), ("Password123", "pwned"), (ADA, "pwned")] {
        let refused = put(&world, session.access(), &json!({"password": password})).await;
        assert_eq!(refused.refused(), (422, "weak_password"), "{password}");
        assert_eq!(refused.body["weak_password"], json!({"reasons": [reason]}), "{password}");
    }
    assert_eq!(put(&world, session.access(), &json!({"password": PASSWORD})).await.refused(), (422, "same_password"));
    assert_eq!(world.sign_in(ADA, PASSWORD).await.status, 200, "nothing has changed");
    Ok(())
}

#[tokio::test]
async fn an_address_is_not_changed_without_proof() -> Result<()> {
    let world = world().await?;
    let session = world.ada_signed_in().await?;
    assert_eq!(put(&world, session.access(), &json!({"email": "boss@example.com"})).await.refused(), (400, "validation_failed"));
    assert_eq!(put(&world, session.access(), &json!({"email": "ADA@example.com"})).await.status, 200, "the same is no change");
    Ok(())
}

/// A sign-in that raced with a ban or a new password must not survive it.
#[tokio::test]
async fn a_password_that_changed_while_it_was_checked_opens_nothing() -> Result<()> {
    let world = world().await?;
    let ada = world.ada().await?;
    let opened: Value =
        world.client.query_one("select gleaner.open_session($1, 'another hash', 't', 'password', null, null)", &[&ada.id]).await?.get(0);
    assert_eq!(opened["outcome"], "refused");
    assert_eq!(world.count("select count(*) from auth.sessions").await?, 0);
    Ok(())
}

#[tokio::test]
async fn no_role_reads_users_or_sessions() -> Result<()> {
    let world = world().await?;
    world.ada_signed_in().await?;
    // The engine's role inherits from the owner of each attached table, who may be the owner of these as well.
    for role in ["anon", "authenticated", "service_role"] {
        for table in ["auth.users", "auth.identities", "auth.sessions", "auth.refresh_tokens", "auth.one_time_tokens", "gleaner.api_key"] {
            let refused = world.run(&format!("begin; set local role {role}; select * from {table}; commit")).await;
            world.run("rollback").await?;
            assert!(refused.is_err(), "{role} reads {table}");
        }
        for call in [
            "gleaner.show_user(null)",
            "gleaner.verify_key('')",
            "gleaner.redeem_token('', '{}', null)",
            "gleaner.is_disabled(null)",
            "gleaner.add_first_administrator('a', 'b')",
            "gleaner.change_user(null, '{}', null)",
            "gleaner.find_ban(null)",
        ] {
            let refused = world.run(&format!("begin; set local role {role}; select {call}; commit")).await;
            world.run("rollback").await?;
            assert!(refused.is_err(), "{role} calls {call}");
        }
    }
    Ok(())
}
