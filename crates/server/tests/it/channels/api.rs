//! `/v1/channels` with every kind of caller.

use anyhow::Result;
use axum::body::Body;
use axum::http::{Method, Request, StatusCode};
use gleaner_http::Role;
use gleaner_intake::api::{Api, router};
use gleaner_intake::channels::Addresses;
use gleaner_supabase::access::Access;
use serde_json::{Value, json};
use tower::ServiceExt as _;

use crate::channels::world::{World, parrot, world};

const SECRET: &str = "a secret of at least thirty-two characters";

struct Caller<'a> {
    world: &'a World,
    token: Option<String>,
}

impl Caller<'_> {
    async fn send(&self, method: Method, path: &str, body: impl ToString) -> Result<(StatusCode, Value)> {
        let api = Api {
            channels: self.world.channels.clone(),
            authenticator: Access::new(SECRET, "test")?.into(),
            addresses: Addresses { public: Some("https://hooks.example".into()), local: None },
        };
        let mut request = Request::builder().method(method).uri(path);
        if let Some(token) = &self.token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let answer = axum::Router::from(router(api)).oneshot(request.body(Body::from(body.to_string()))?).await?;
        let status = answer.status();
        let bytes = axum::body::to_bytes(answer.into_body(), usize::MAX).await?;
        Ok((status, serde_json::from_slice(&bytes).unwrap_or_default()))
    }

    async fn get(&self, path: &str) -> Result<(StatusCode, Value)> {
        self.send(Method::GET, path, "").await
    }
}

fn with<'a>(world: &'a World, claims: Value) -> Caller<'a> {
    let access = Access::new(SECRET, "test").expect("a secret");
    Caller { world, token: Some(access.sign(claims.as_object().expect("claims"))) }
}

async fn signed_in<'a>(world: &'a World, email: &str, administrator: bool) -> Result<Caller<'a>> {
    let id = world.person(email, administrator).await?;
    let uid = world.text(&format!("select user_id::text from sales where id = {id}")).await?;
    Ok(with(world, json!({"role": "authenticated", "sub": uid})))
}

fn service(world: &World) -> Caller<'_> {
    let access = Access::new(SECRET, "test").expect("a secret");
    Caller { world, token: Some(access.project_key(Role::Service)) }
}

#[tokio::test]
async fn administrators_and_the_service_key_manage_channels() -> Result<()> {
    let world = world().await?;
    for (n, caller) in [signed_in(&world, "ada@example.com", true).await?, service(&world)].iter().enumerate() {
        let name = format!("Channel {n}");
        let body = json!({"name": name, "provider": "parrot", "owner": "ada@example.com",
                          "settings": {"token": "polly", "basic_auth.username": "ada", "basic_auth": {"password": "p"}}});
        let (status, added) = caller.send(Method::POST, "/v1/channels", body).await?;
        assert_eq!(status, StatusCode::CREATED, "{added}");
        let key = added["ingestion_key"].as_str().unwrap_or_default();
        assert_eq!(added["webhook_url"], json!(format!("https://hooks.example/functions/v1/ingest-activity?key={key}")));
        assert_eq!(added["settings"], json!({"token": "********", "basic_auth": {"username": "ada", "password": "********"}}));
        let at = format!("/v1/channels/{}", added["id"].as_str().unwrap_or_default());

        let (status, shown) = caller.get(&at).await?;
        assert_eq!((status, &shown["owner"]), (StatusCode::OK, &json!("ada@example.com")));
        assert!(!shown.to_string().contains("polly") && !shown.to_string().contains(key));
        assert_eq!(caller.get(&format!("{at}/key")).await?.1["ingestion_key"], json!(key));

        let changes = json!({"is_active": false, "owner": null, "settings": {"token": "********", "basic_auth": {"username": "eve"}}});
        let (status, set) = caller.send(Method::PATCH, &at, changes).await?;
        assert_eq!((status, &set["is_active"], &set["owner"]), (StatusCode::OK, &json!(false), &Value::Null));
        let settings = world.channels.reveal_settings(&name).await?;
        assert_eq!(Value::from(settings), json!({"token": "polly", "basic_auth": {"username": "eve", "password": "p"}}));

        let (status, rotated) = caller.send(Method::POST, &format!("{at}/rotate"), "").await?;
        assert_eq!(status, StatusCode::OK);
        assert_ne!(rotated["ingestion_key"], json!(key));
        let (status, rotated) = caller.send(Method::POST, &format!("{at}/rotate"), json!({"setting": "token", "value": "new"})).await?;
        assert_eq!((status, rotated["secrets_expire"].as_object().map(serde_json::Map::len)), (StatusCode::OK, Some(1)));
        assert_eq!(caller.send(Method::DELETE, &at, "").await?.0, StatusCode::NO_CONTENT);
        assert_eq!(caller.get(&at).await?.0, StatusCode::NOT_FOUND);
    }
    Ok(())
}

#[tokio::test]
async fn everybody_else_sees_and_changes_nothing() -> Result<()> {
    let world = world().await?;
    let added = world.channels.add(parrot("Support", &[("token", "polly")])).await?;
    let at = format!("/v1/channels/{}", added.channel.id);
    let anon = with(&world, json!({"role": "anon"}));
    let member = signed_in(&world, "bob@example.com", false).await?;
    let requests = [
        (Method::GET, "/v1/channels".to_owned(), json!({})),
        (Method::POST, "/v1/channels".to_owned(), json!({"name": "Mine", "provider": "parrot", "settings": {"token": "t"}})),
        (Method::GET, at.clone(), json!({})),
        (Method::PATCH, at.clone(), json!({"is_active": false})),
        (Method::DELETE, at.clone(), json!({})),
        (Method::GET, format!("{at}/key"), json!({})),
        (Method::POST, format!("{at}/rotate"), json!({})),
        (Method::POST, format!("{at}/test"), json!({})),
        (Method::GET, format!("{at}/refusals"), json!({})),
    ];
    for (method, path, body) in requests {
        let (status, answer) = anon.send(method.clone(), &path, body.clone()).await?;
        assert_eq!((status, &answer["code"]), (StatusCode::UNAUTHORIZED, &json!("42501")), "anon {method} {path}");
        let (status, answer) = member.send(method.clone(), &path, body).await?;
        let expected = match (&method, path.as_str()) {
            (&Method::GET, "/v1/channels") => StatusCode::OK,
            (&Method::POST, "/v1/channels") => StatusCode::FORBIDDEN,
            _ => StatusCode::NOT_FOUND,
        };
        assert_eq!(status, expected, "member {method} {path}: {answer}");
        if status == StatusCode::OK {
            assert_eq!(answer, json!([]));
        }
    }
    let after = world.channels.get("Support").await?;
    assert!(after.channel.is_active && after.key()? == added.key()?);
    assert_eq!(world.channels.list().await?.len(), 1);
    Ok(())
}

#[tokio::test]
async fn a_caller_without_a_valid_token_gets_an_error() -> Result<()> {
    let world = world().await?;
    for (token, code) in [(None, "PGRST302"), (Some("nonsense".to_owned()), "PGRST301")] {
        let (status, answer) = Caller { world: &world, token }.get("/v1/channels").await?;
        assert_eq!((status, &answer["code"]), (StatusCode::UNAUTHORIZED, &json!(code)));
        for key in ["message", "details", "hint"] {
            assert!(answer.get(key).is_some(), "{answer}");
        }
    }
    let (status, answer) = with(&world, json!({"role": "service_role", "exp": 1_000_000_000})).get("/v1/channels").await?;
    assert_eq!((status, &answer["code"], &answer["message"]), (StatusCode::UNAUTHORIZED, &json!("PGRST303"), &json!("JWT expired")));
    Ok(())
}

#[tokio::test]
async fn mistakes_are_answered_all_at_once_and_never_with_a_500() -> Result<()> {
    let world = world().await?;
    let caller = service(&world);
    let body = json!({"name": "", "provider": "parrot", "owner": 99, "settings": {"colour": "green"}});
    let (status, answer) = caller.send(Method::POST, "/v1/channels", body).await?;
    assert_eq!((status, answer["mistakes"].as_array().map(Vec::len)), (StatusCode::BAD_REQUEST, Some(4)), "{answer}");
    world.channels.add(parrot("Support", &[("token", "polly")])).await?;
    for (method, path, body) in [
        (Method::POST, "/v1/channels", "not json"),
        (Method::POST, "/v1/channels", "[]"),
        (Method::POST, "/v1/channels", "{\"name\": 7}"),
        (Method::POST, "/v1/channels", "{\"name\": \"a\\u0000b\", \"provider\": \"parrot\", \"settings\": {\"token\": \"x\"}}"),
        (
            Method::POST,
            "/v1/channels",
            "{\"name\": \"ab\", \"provider\": \"parrot\", \"settings\": {\"token\": \"x\", \"header\": \"a\\u0000b\"}}",
        ),
        (Method::POST, "/v1/channels", "{\"name\": \"ab\", \"provider\": \"a\\u0000\", \"owner\": \"\\u0000\"}"),
        (Method::PATCH, "/v1/channels/Support", "{\"colour\": 1}"),
        (Method::PATCH, "/v1/channels/Support", "{\"is_active\": \"polly-secret\"}"),
        (Method::POST, "/v1/channels/Support/rotate", "{\"setting\": \"token\"}"),
        (Method::POST, "/v1/channels/Support/rotate", "{\"keep_for_seconds\": -1}"),
        (Method::POST, "/v1/channels/Support/rotate", "{\"keep_for_seconds\": 1e300}"),
        (Method::GET, "/v1/channels/Support/refusals?limit=0", ""),
        (Method::GET, "/v1/channels/a%00b", ""),
        (Method::GET, "/v1/channels/%ff", ""),
    ] {
        let (status, answer) = caller.send(method, path, body).await?;
        assert!(status.is_client_error(), "{path} {body}: {status} {answer}");
        assert!(!answer.to_string().contains("polly-secret"), "{answer}");
    }
    Ok(())
}
