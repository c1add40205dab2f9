//! People and keys over HTTP, for administrators.

use anyhow::{Context as _, Result};
use gleaner_http::Role;
use serde_json::{Value, json};

use crate::webhooks::support::{World, world};

async fn send(world: &World, token: &str, method: &str, path: &str, body: &Value) -> Result<(u16, Value)> {
    let bearer = format!("Bearer {token}");
    let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    let answer = world.send(method, path, &[("authorization", &bearer)], &body).await?;
    Ok((answer.status, answer.json()))
}

#[tokio::test]
async fn only_administrators_invite_and_disable_people_and_make_keys() -> Result<()> {
    let world = world().await?;
    let state = world.server.state();
    let (service, anon) = (state.access.project_key(Role::Service), state.access.project_key(Role::Anon));
    let client = state.pool.get().await?;
    let row =
        client.query_one("insert into sales (first_name, user_id) values ('bob', gen_random_uuid()) returning user_id::text", &[]).await?;
    let claims = json!({"role": "authenticated", "sub": row.get::<_, String>(0), "session_id": "s"});
    let member = state.access.sign(claims.as_object().context("claims")?);
    for (method, path, body) in [
        ("GET", "/v1/people", Value::Null),
        ("POST", "/v1/people/invite", json!({"email": "eve@example.com", "administrator": true})),
        ("POST", "/v1/people/reset", json!({"email": "eve@example.com"})),
        ("POST", "/v1/people/disable", json!({"email": "eve@example.com"})),
        ("POST", "/v1/people/enable", json!({"email": "eve@example.com"})),
        ("POST", "/v1/people/administrator", json!({"email": "eve@example.com", "administrator": true})),
        ("GET", "/v1/keys", Value::Null),
        ("POST", "/v1/keys", json!({"name": "k", "role": "service"})),
        ("POST", "/v1/keys/revoke", json!({"name": "k"})),
    ] {
        assert_eq!(send(&world, &member, method, path, &body).await?.0, 403, "a member: {method} {path}");
        let anonymous = send(&world, &anon, method, path, &body).await?.0;
        assert!(matches!(anonymous, 401 | 403), "nobody: {method} {path}: {anonymous}");
    }

    let (status, made) = send(&world, &service, "POST", "/v1/people/invite", &json!({"email": "eve@example.com"})).await?;
    assert_eq!((status, made["link"].as_str().map(|link| link.contains("/invite#token="))), (200, Some(true)), "{made}");
    let (status, again) = send(&world, &service, "POST", "/v1/people/invite", &json!({"email": "eve@example.com"})).await?;
    assert!(status == 200 && again["link"] != made["link"], "a new link for who never chose a password: {again}");
    let (_, people) = send(&world, &service, "GET", "/v1/people", &Value::Null).await?;
    let eve = people.as_array().and_then(|all| all.iter().find(|one| one["email"] == "eve@example.com")).context("eve")?;
    assert_eq!((&eve["state"], &eve["administrator"]), (&json!("invited"), &json!(false)));
    let promote = json!({"email": "eve@example.com", "administrator": true});
    assert_eq!(send(&world, &service, "POST", "/v1/people/administrator", &promote).await?.0, 200);
    assert_eq!(send(&world, &service, "POST", "/v1/people/disable", &json!({"email": "eve@example.com"})).await?.0, 200);
    assert_eq!(send(&world, &service, "POST", "/v1/people/disable", &json!({"email": "nobody@example.com"})).await?.0, 404);

    let (_, made) = send(&world, &service, "POST", "/v1/keys", &json!({"name": "laptop", "role": "worker", "queues": ["jobs"]})).await?;
    let key = made["key"].as_str().context("a key")?.to_owned();
    assert_eq!(send(&world, &service, "POST", "/v1/keys", &json!({"name": "laptop", "role": "worker"})).await?.0, 409);
    assert_eq!(send(&world, &service, "POST", "/v1/keys", &json!({"name": "x", "role": "service", "queues": ["jobs"]})).await?.0, 400);
    let (_, keys) = send(&world, &service, "GET", "/v1/keys", &Value::Null).await?;
    assert!(!keys.to_string().contains(&key) && keys[0]["name"] == "laptop", "{keys}");
    assert_eq!(send(&world, &key, "POST", "/v1/people/invite", &json!({"email": "x@example.com"})).await?.0, 403, "a worker's key");
    assert_eq!(send(&world, &service, "POST", "/v1/keys/revoke", &json!({"name": "laptop"})).await?.0, 200);
    assert_eq!(send(&world, &service, "POST", "/v1/keys/revoke", &json!({"name": "laptop"})).await?.0, 404);

    let acts: Vec<String> = client
        .query("select act from gleaner.audit where queue in ('people', 'keys') order by id", &[])
        .await?
        .iter()
        .map(|row| row.get(0))
        .collect();
    assert_eq!(acts, ["invite", "invite", "administrator", "disable", "add", "revoke"]);
    Ok(())
}
