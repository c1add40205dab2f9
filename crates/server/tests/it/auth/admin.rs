//! The admin users API.

use anyhow::Result;
use reqwest::Method;
use serde_json::{Value, json};

use crate::auth::support::{ADA, Answer, PASSWORD, World, world};

async fn create(world: &World, body: &Value) -> Answer {
    world.post("/admin/users", body).service().answer().await
}

async fn update(world: &World, id: &Value, body: &Value) -> Answer {
    let path = format!("/admin/users/{}", id.as_str().unwrap_or_default());
    world.send(Method::PUT, &path).service().json(body).answer().await
}

#[tokio::test]
async fn only_the_service_key_opens_it() -> Result<()> {
    let world = world().await?;
    let session = world.ada_signed_in().await?;
    world.run("update sales set administrator = true").await?;
    let id = session.body["user"]["id"].as_str().unwrap_or_default().to_owned();
    for (method, path) in [
        (Method::GET, "/admin/users".to_owned()),
        (Method::POST, "/admin/users".to_owned()),
        (Method::GET, format!("/admin/users/{id}")),
        (Method::PUT, format!("/admin/users/{id}")),
        (Method::DELETE, format!("/admin/users/{id}")),
        (Method::POST, "/admin/generate_link".to_owned()),
        (Method::POST, "/invite".to_owned()),
    ] {
        let ask = |token: &str| world.send(method.clone(), &path).bearer(token).json(&json!({"email": "x@example.com"})).answer();
        assert_eq!(ask(session.access()).await.refused(), (403, "not_admin"), "{method} {path}");
        assert_eq!(ask(&world.anon).await.refused(), (403, "not_admin"), "{method} {path}");
        assert_eq!(ask("nonsense").await.refused(), (403, "bad_jwt"), "{method} {path}");
        assert_eq!(world.send(method.clone(), &path).json(&json!({})).answer().await.refused(), (403, "not_admin"), "{method} {path}");
    }
    let by_key = world.bare(Method::GET, "/admin/users").header("apikey", &world.service).answer().await;
    assert_eq!(by_key.status, 200, "without a bearer the key's role counts");
    Ok(())
}

#[tokio::test]
async fn a_user_is_made_shown_changed_and_deleted() -> Result<()> {
    let world = world().await?;
    let made = create(
        &world,
        &json!({"email": "Ada@example.com", "password": PASSWORD, "email_confirm": true,
        "user_metadata": {"first_name": "Ada"}, "app_metadata": {"plan": "pro"}}),
    )
    .await;
    assert_eq!(made.status, 200, "{made:?}");
    let id = &made.body["id"];
    assert_eq!((&made.body["email"], &made.body["app_metadata"]["plan"]), (&json!(ADA), &json!("pro")));
    assert_eq!(world.text("select first_name from sales where user_id is not null").await?.as_deref(), Some("Ada"));
    assert_eq!(world.sign_in(ADA, PASSWORD).await.status, 200);
    assert_eq!(create(&world, &json!({"email": ADA, "password": PASSWORD})).await.refused(), (422, "email_exists"));

    let path = format!("/admin/users/{}", id.as_str().unwrap_or_default());
    assert_eq!(world.get(&path).service().answer().await.body["id"], *id);
    let changed =
        update(&world, id, &json!({"email": "lovelace@example.com", "user_metadata": {"x": 1}, "app_metadata": {"plan": null}})).await;
    assert_eq!(changed.body["email"], "lovelace@example.com", "{changed:?}");
    assert_eq!(changed.body["identities"][0]["email"], "lovelace@example.com");
    assert_eq!(changed.body["user_metadata"], json!({"first_name": "Ada", "x": 1}));
    assert!(changed.body["app_metadata"].get("plan").is_none());
    assert_eq!(world.sign_in("lovelace@example.com", PASSWORD).await.status, 200);
    create(&world, &json!({"email": "bob@example.com"})).await;
    assert_eq!(update(&world, id, &json!({"email": "bob@example.com"})).await.refused(), (422, "email_exists"));
    assert_eq!(update(&world, id, &json!({"password": "short"})).await.refused(), (422, "weak_password"));

    let session = world.sign_in("lovelace@example.com", PASSWORD).await;
    let gone = world.send(Method::DELETE, &path).service().json(&json!({"should_soft_delete": false})).answer().await;
    assert_eq!(gone.status, 200);
    assert_eq!(world.get("/user").bearer(session.access()).answer().await.refused(), (403, "user_not_found"));
    assert_eq!(world.refresh(session.refresh()).await.refused(), (400, "refresh_token_not_found"));
    assert_eq!(world.get(&path).service().answer().await.refused(), (404, "user_not_found"));
    assert_eq!(world.send(Method::DELETE, &path).service().answer().await.refused(), (404, "user_not_found"));
    assert_eq!(world.get("/admin/users/7").service().answer().await.refused(), (404, "validation_failed"));
    Ok(())
}

#[tokio::test]
async fn a_ban_ends_sessions_and_can_be_lifted() -> Result<()> {
    let world = world().await?;
    let session = world.ada_signed_in().await?;
    let id = session.body["user"]["id"].clone();
    let banned = update(&world, &id, &json!({"ban_duration": "24h"})).await;
    assert!(banned.body["banned_until"].is_string(), "{banned:?}");
    assert_eq!(world.sign_in(ADA, PASSWORD).await.refused(), (403, "user_banned"));
    assert_eq!(world.refresh(session.refresh()).await.refused(), (400, "refresh_token_not_found"));
    assert_eq!(update(&world, &id, &json!({"ban_duration": "a while"})).await.refused(), (400, "validation_failed"));
    assert!(update(&world, &id, &json!({"ban_duration": "none"})).await.body["banned_until"].is_null());
    assert_eq!(world.sign_in(ADA, PASSWORD).await.status, 200);
    Ok(())
}

#[tokio::test]
async fn users_come_a_page_at_a_time() -> Result<()> {
    let world = world().await?;
    world.run("insert into auth.users (email, created_at) select n || '@example.com', now() + n * interval '1 second' from generate_series(1, 5) as n").await?;
    let page = world.get("/admin/users?page=2&per_page=2").service().answer().await;
    let emails: Vec<&str> = page.body["users"].as_array().into_iter().flatten().filter_map(|user| user["email"].as_str()).collect();
    assert_eq!(emails, ["3@example.com", "2@example.com"]);
    assert_eq!((page.header("x-total-count"), &page.body["aud"]), (Some("5"), &json!("authenticated")));
    assert_eq!(page.header("link"), Some("</admin/users?page=3&per_page=2>; rel=\"next\", </admin/users?page=3&per_page=2>; rel=\"last\""));
    let all = world.get("/admin/users?page=&per_page=").service().answer().await;
    assert_eq!(all.body["users"].as_array().map(Vec::len), Some(5));
    assert_eq!(world.get("/admin/users?page=99999999999").service().answer().await.body["users"], json!([]));
    for bad in ["page=0", "page=x", "per_page=-1", "page=99999999999999999999"] {
        assert_eq!(world.get(&format!("/admin/users?{bad}")).service().answer().await.refused(), (400, "validation_failed"), "{bad}");
    }
    Ok(())
}

#[tokio::test]
async fn a_user_of_another_project_comes_with_its_hash_and_id() -> Result<()> {
    let world = world().await?;
    let id = uuid::Uuid::new_v4();
    let hash = bcrypt::hash(PASSWORD, 4)?;
    let made = create(&world, &json!({"id": id, "email": ADA, "password_hash": hash, "email_confirm": true})).await;
    assert_eq!((made.status, &made.body["id"]), (200, &json!(id)), "{made:?}");
    assert_eq!(world.sign_in(ADA, PASSWORD).await.status, 200);
    for body in [
        json!({"email": "b@example.com", "password_hash": "md5"}),
        json!({"email": "b@example.com", "password_hash": hash, "password": PASSWORD}),
        json!({"email": "b@example.com", "role": "service_role"}),
        json!({"email": "b@example.com", "phone": "+1"}),
        json!({"email": ""}),
        json!({}),
    ] {
        assert_eq!(create(&world, &body).await.refused(), (400, "validation_failed"), "{body}");
    }
    assert_eq!(create(&world, &json!({"id": "seven", "email": "b@example.com"})).await.refused(), (400, "bad_json"));
    Ok(())
}
