//! Signing up.

use anyhow::Result;
use gleaner_supabase::auth::Signup;
use serde_json::json;

use crate::auth::support::{ADA, PASSWORD, world, world_with};

#[tokio::test]
async fn signing_up_is_off_unless_configured() -> Result<()> {
    let world = world().await?;
    let refused = world.post("/signup", &json!({"email": ADA, "password": PASSWORD})).answer().await;
    assert_eq!(refused.refused(), (422, "signup_disabled"));
    assert_eq!(world.count("select count(*) from auth.users").await?, 0);
    assert_eq!(world.get("/settings").answer().await.body["disable_signup"], true);
    Ok(())
}

#[tokio::test]
async fn an_open_sign_up_answers_a_session_and_joins_the_team_as_a_member() -> Result<()> {
    let world = world_with(|settings| settings.signup = Signup::Open).await?;
    let body = json!({"email": "Ada@Example.com", "password": PASSWORD, "data": {"first_name": "Ada", "last_name": "L"},
                      "gotrue_meta_security": {}, "code_challenge": null, "code_challenge_method": null});
    let session = world.post("/signup", &body).answer().await;
    assert_eq!(session.status, 200, "{session:?}");
    assert_eq!((&session.body["user"]["email"], &session.body["user"]["user_metadata"]["first_name"]), (&json!(ADA), &json!("Ada")));
    assert_eq!(world.get("/user").bearer(session.access()).answer().await.status, 200);
    assert_eq!(
        world.text("select first_name || ' ' || last_name || ' ' || administrator from sales").await?.as_deref(),
        Some("Ada L false")
    );
    assert_eq!(world.post("/signup", &body).answer().await.refused(), (422, "user_already_exists"));
    Ok(())
}

/// Otherwise any caller that knows an administrator's address could become one.
#[tokio::test]
async fn signing_up_never_links_another_users_row() -> Result<()> {
    let world = world_with(|settings| settings.signup = Signup::Open).await?;
    world.run("insert into sales (email, administrator) values ('ada@example.com', true)").await?;
    let session = world.post("/signup", &json!({"email": ADA, "password": PASSWORD})).answer().await;
    assert_eq!(session.status, 200);
    assert_eq!(world.count("select count(*) from sales where user_id is not null and administrator").await?, 0);
    assert_eq!(world.count("select count(*) from sales where user_id is not null").await?, 1);
    Ok(())
}

#[tokio::test]
async fn what_is_no_address_or_a_weak_password_is_refused() -> Result<()> {
    let world = world_with(|settings| settings.signup = Signup::Open).await?;
    for email in
        ["ada", "@example.com", "ada@", "a@b@c", "ada lovelace@example.com", "ada@example.com\r\nbcc: x@y", "<ada@example.com>", "a\0@b.c"]
    {
        let refused = world.post("/signup", &json!({"email": email, "password": PASSWORD})).answer().await;
        assert_eq!(refused.refused(), (400, "validation_failed"), "{email:?}");
    }
    assert_eq!(world.post("/signup", &json!({"email": ADA, "password": "short"})).answer().await.refused(), (422, "weak_password"));
    assert_eq!(world.post("/signup", &json!({"email": ADA})).answer().await.refused(), (400, "validation_failed"));
    assert_eq!(world.post("/signup", &json!({})).answer().await.status, 422);
    assert_eq!(world.count("select count(*) from auth.users").await?, 0);
    Ok(())
}

#[tokio::test]
async fn accounts_are_not_made_by_the_hundred() -> Result<()> {
    let world = world_with(|settings| settings.signup = Signup::Open).await?;
    let mut limited = None;
    for n in 0..12 {
        let answer = world.post("/signup", &json!({"email": format!("{n}@example.com"), "password": PASSWORD})).answer().await;
        if answer.status == 429 {
            limited = limited.or(Some(n));
        }
    }
    assert_eq!(limited, Some(10));
    Ok(())
}
