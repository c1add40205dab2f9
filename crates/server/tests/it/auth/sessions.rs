//! Signing in.

use anyhow::Result;
use reqwest::Method;
use serde_json::{Value, json};

use crate::auth::support::{ADA, PASSWORD, claims, world};
use crate::log;

#[tokio::test]
async fn a_password_opens_a_session() -> Result<()> {
    let world = world().await?;
    let ada = world.ada().await?;
    let session = world.sign_in(" Ada@Example.COM ", PASSWORD).await;
    assert_eq!(session.status, 200, "{session:?}");
    let body = &session.body;
    assert_eq!((body["token_type"].as_str(), body["expires_in"].as_u64()), (Some("bearer"), Some(3600)));
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?.as_secs();
    assert!(body["expires_at"].as_u64().is_some_and(|at| at.abs_diff(now + 3600) < 60), "{body}");
    assert_eq!(session.header("cache-control"), Some("no-store"));

    let token = claims(session.access());
    assert_eq!(token["iss"], format!("{}/auth/v1", world.base));
    assert_eq!(token["sub"], ada.id.to_string());
    for (name, wanted) in [("aud", "authenticated"), ("role", "authenticated"), ("email", ADA), ("phone", ""), ("aal", "aal1")] {
        assert_eq!(token[name], wanted, "{name}");
    }
    assert_eq!((&token["is_anonymous"], &token["amr"][0]["method"]), (&json!(false), &json!("password")));
    assert!(token["amr"][0]["timestamp"].as_u64().is_some_and(|at| at.abs_diff(now) < 60), "{token}");
    assert!(token["exp"].as_u64().is_some_and(|exp| exp - token["iat"].as_u64().unwrap_or(0) == 3600));
    assert_eq!(token["app_metadata"], json!({"provider": "email", "providers": ["email"]}));
    assert_eq!(token["user_metadata"], json!({}));
    assert!(token["jti"].is_string());
    let stored = world.text("select id::text from auth.sessions").await?;
    assert_eq!(token["session_id"].as_str(), stored.as_deref());
    Ok(())
}

#[tokio::test]
async fn the_user_has_every_member_the_contract_names() -> Result<()> {
    let world = world().await?;
    let session = world.ada_signed_in().await?;
    let user = &session.body["user"];
    for name in [
        "id",
        "aud",
        "role",
        "email",
        "phone",
        "email_confirmed_at",
        "confirmed_at",
        "last_sign_in_at",
        "app_metadata",
        "user_metadata",
        "identities",
        "created_at",
        "updated_at",
        "is_anonymous",
    ] {
        assert!(!user[name].is_null(), "{name} in {user}");
    }
    let identity = &user["identities"][0];
    for name in ["identity_id", "id", "user_id", "provider", "last_sign_in_at", "created_at", "updated_at", "email"] {
        assert!(identity[name].is_string(), "{name} in {identity}");
    }
    assert_eq!((&identity["identity_data"]["email"], &identity["identity_data"]["sub"]), (&json!(ADA), &user["id"]));
    let at = user["created_at"].as_str().unwrap_or_default();
    assert!(at.len() == 27 && at.ends_with('Z') && at.as_bytes()[10] == b'T', "{at}");
    assert!(!session.text.contains("argon2"), "the hash stays here");
    let again = world.get("/user").bearer(session.access()).answer().await;
    assert_eq!((again.status, &again.body), (200, user));
    Ok(())
}

#[tokio::test]
async fn a_wrong_password_and_an_unknown_address_get_the_same_answer_for_the_same_work() -> Result<()> {
    let world = world().await?;
    world.ada().await?;
    world.run("insert into auth.users (email) values ('invited@example.com')").await?;
    let mut answers = Vec::new();
    for email in [ADA, "nobody@example.com", "invited@example.com", "no address\0at all"] {
        let before = world.auth.hasher().checked();
        let refused = world.sign_in(email, "wrong").await;
        assert_eq!(world.auth.hasher().checked() - before, 1, "{email}: one password is checked, user or not");
        answers.push((refused.status, refused.text));
    }
    assert_eq!(answers[0], (400, r#"{"code":"invalid_credentials","message":"Invalid login credentials"}"#.to_owned()));
    assert!(answers.iter().all(|answer| *answer == answers[0]), "{answers:?}");
    Ok(())
}

#[tokio::test]
async fn an_imported_bcrypt_hash_is_accepted_once_and_then_replaced() -> Result<()> {
    let world = world().await?;
    world.ada().await?;
    let imported = bcrypt::hash(PASSWORD, 4)?;
    world.run(&format!("update auth.users set encrypted_password = '{imported}'")).await?;
    assert_eq!(world.sign_in(ADA, "wrong").await.status, 400);
    assert_eq!(world.sign_in(ADA, PASSWORD).await.status, 200);
    let kept = world.text("select encrypted_password from auth.users").await?.unwrap_or_default();
    assert!(kept.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{kept}");
    assert_eq!(world.sign_in(ADA, PASSWORD).await.status, 200);
    Ok(())
}

#[tokio::test]
async fn a_banned_disabled_or_unconfirmed_user_cannot_sign_in() -> Result<()> {
    let world = world().await?;
    world.ada().await?;
    for (close, open, refused) in [
        ("update auth.users set banned_until = 'infinity'", "update auth.users set banned_until = null", (403, "user_banned")),
        (
            "update auth.users set banned_until = now() + interval '1 hour'",
            "update auth.users set banned_until = now()",
            (403, "user_banned"),
        ),
        ("update sales set disabled = true", "update sales set disabled = false", (403, "user_banned")),
        (
            "update auth.users set email_confirmed_at = null",
            "update auth.users set email_confirmed_at = now()",
            (400, "email_not_confirmed"),
        ),
    ] {
        world.run(close).await?;
        assert_eq!(world.sign_in(ADA, PASSWORD).await.refused(), refused, "{close}");
        assert_eq!(world.sign_in(ADA, "wrong").await.refused(), (400, "invalid_credentials"), "that is for those who know the password");
        world.run(open).await?;
        assert_eq!(world.sign_in(ADA, PASSWORD).await.status, 200, "{open}");
    }
    Ok(())
}

#[tokio::test]
async fn a_password_never_reaches_the_log() -> Result<()> {
    let log = log::everywhere();
    let world = world().await?;
    world.ada().await?;
    let secret = "hunter2 hunter2 hunter2";
    world.sign_in(ADA, secret).await;
    world.sign_in("nobody@example.com", secret).await;
    world
        .send(Method::POST, "/token?grant_type=password")
        .body(format!(r#"{{"email": "{ADA}", "password": "{secret}", }}"#))
        .answer()
        .await;
    world.post("/token?grant_type=password", &json!({"email": [secret], "password": secret})).answer().await;
    let session = world.sign_in(ADA, PASSWORD).await;
    let changed = world.send(Method::PUT, "/user").bearer(session.access()).json(&json!({"password": secret})).answer().await;
    assert_eq!(changed.status, 200, "{changed:?}");
    world.post("/admin/users", &json!({"email": "bob@example.com", "password": secret})).service().answer().await;
    // The database fails in the middle of the sign-in, and that is logged.
    world.run("alter function gleaner.open_session(uuid, text, text, text, text, inet) rename to mislaid").await?;
    assert_eq!(world.sign_in(ADA, secret).await.status, 500);
    let text = log.text();
    assert!(text.contains("unexpected failure"), "something was logged: {text}");
    assert!(!text.contains("hunter2"), "{text}");
    for token in [session.access(), session.refresh()] {
        assert!(!text.contains(token), "{token}");
    }
    Ok(())
}

#[tokio::test]
async fn an_invalid_request_is_reported() -> Result<()> {
    let world = world().await?;
    let token = |body: &'static str| world.send(Method::POST, "/token?grant_type=password").body(body).answer();
    for (body, code) in [
        ("{", "bad_json"),
        ("[]", "bad_json"),
        (r#"{"email": 7, "password": "x"}"#, "bad_json"),
        ("", "validation_failed"),
        ("{}", "validation_failed"),
        (r#"{"email": "ada@example.com"}"#, "validation_failed"),
        (r#"{"email": null, "password": null}"#, "validation_failed"),
    ] {
        assert_eq!(token(body).await.refused(), (400, code), "{body}");
    }
    for path in ["/token", "/token?grant_type=", "/token?grant_type=pkce"] {
        assert_eq!(world.post(path, &json!({})).answer().await.refused(), (400, "validation_failed"), "{path}");
    }
    let huge = Value::String("x".repeat(1_000_000)).to_string();
    assert_eq!(world.send(Method::POST, "/token?grant_type=password").body(huge).answer().await.refused(), (400, "bad_json"));
    assert_eq!(world.post("/token?grant_type=password", &json!({"phone": "+1", "password": "x"})).answer().await.status, 422);
    Ok(())
}
