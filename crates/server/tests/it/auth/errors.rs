//! The forms of errors, and the routes that need a key or a token.

use anyhow::Result;
use gleaner_supabase::auth::Signup;
use reqwest::Method;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::auth::support::{ADA, PASSWORD, claims, signed, signed_with, world, world_with};

#[tokio::test]
async fn an_error_has_the_form_of_the_callers_release() -> Result<()> {
    let world = world().await?;
    let body = json!({"email": ADA, "password": "wrong"});
    let new = world.post("/token?grant_type=password", &body).answer().await;
    assert_eq!(new.header("x-supabase-api-version"), Some("2024-01-01"));
    assert_eq!(new.body, json!({"code": "invalid_credentials", "message": "Invalid login credentials"}));
    let old = world.bare(Method::POST, "/token?grant_type=password").header("apikey", &world.anon).json(&body).answer().await;
    assert_eq!(old.header("x-supabase-api-version"), None);
    assert_eq!(old.body, json!({"code": 400, "error_code": "invalid_credentials", "msg": "Invalid login credentials"}));
    assert_eq!(old.header("content-type"), Some("application/json"));
    Ok(())
}

#[tokio::test]
async fn without_a_key_of_the_project_nothing_is_answered() -> Result<()> {
    let world = world().await?;
    world.ada().await?;
    let body = json!({"email": ADA, "password": PASSWORD});
    let path = "/token?grant_type=password";
    let missing = world.bare(Method::POST, path).json(&body).answer().await;
    assert_eq!(missing.status, 401);
    assert_eq!(missing.body["message"], "No API key found in request");
    assert_eq!(missing.body["hint"], "No `apikey` request header or url param was found.");
    let session = world.sign_in(ADA, PASSWORD).await;
    let expired = signed(&json!({"role": "anon", "exp": 1_000_000_000}));
    let foreign = signed_with("somebody else's secret, long enough", &json!({"role": "service_role", "exp": 4_000_000_000_u64}));
    for key in ["", "nonsense", "sb_secret_nonsense", &expired, &foreign, session.access()] {
        let unknown = world.bare(Method::POST, path).header("apikey", key).json(&body).answer().await;
        assert_eq!((unknown.status, unknown.body["message"].as_str()), (401, Some("Invalid API key")), "{key}");
    }
    let in_query = world.bare(Method::POST, &format!("{path}&apikey={}", world.anon)).json(&body).answer().await;
    assert_eq!(in_query.status, 200);
    Ok(())
}

#[tokio::test]
async fn what_needs_no_key_is_answered_without_one() -> Result<()> {
    let world = world().await?;
    let health = world.bare(Method::GET, "/health").answer().await;
    assert_eq!((health.status, &health.body["name"]), (200, &json!("GoTrue")));
    assert!(health.body["version"].is_string() && health.body["description"].is_string());
    let jwks = world.bare(Method::GET, "/.well-known/jwks.json").answer().await;
    assert_eq!((jwks.status, &jwks.body), (200, &json!({"keys": []})));
    assert_eq!(jwks.header("cache-control"), Some("public, max-age=600"));
    Ok(())
}

#[tokio::test]
async fn a_bad_token_is_distinguished_from_none_and_from_an_ended_session() -> Result<()> {
    let world = world().await?;
    let session = world.ada_signed_in().await?;
    let with = |change: &dyn Fn(&mut Value)| {
        let mut claims = claims(session.access());
        change(&mut claims);
        claims
    };
    for (method, path) in [(Method::GET, "/user"), (Method::PUT, "/user"), (Method::POST, "/logout")] {
        let ask = |token: String| world.send(method.clone(), path).bearer(&token).answer();
        assert_eq!(world.send(method.clone(), path).answer().await.refused(), (401, "no_authorization"), "{path}");
        assert_eq!(ask("nonsense".into()).await.refused(), (403, "bad_jwt"), "{path}");
        assert_eq!(ask(world.anon.clone()).await.refused(), (403, "bad_jwt"), "a project key is no user: {path}");
        assert_eq!(ask(world.service.clone()).await.refused(), (403, "bad_jwt"), "{path}");
        assert_eq!(ask(signed(&with(&|c| c["exp"] = json!(1_000_000_000)))).await.refused(), (403, "bad_jwt"), "{path}");
        assert_eq!(ask(signed(&with(&|c| c["sub"] = json!("ada")))).await.refused(), (403, "bad_jwt"), "{path}");
        let foreign = signed_with("somebody else's secret, long enough", &with(&|_| {}));
        assert_eq!(ask(foreign).await.refused(), (403, "bad_jwt"), "{path}");
        assert_eq!(ask(signed(&with(&|c| c["session_id"] = json!(Uuid::new_v4())))).await.refused(), (403, "session_not_found"), "{path}");
        assert_eq!(ask(signed(&with(&|c| c["sub"] = json!(Uuid::new_v4())))).await.refused(), (403, "user_not_found"), "{path}");
    }
    Ok(())
}

#[tokio::test]
async fn what_is_not_here_is_a_clean_error() -> Result<()> {
    let world = world().await?;
    for path in ["/authorize", "/factors", "/sso", "/nonsense"] {
        let answer = world.post(path, &json!({})).answer().await;
        assert_eq!(answer.refused(), (404, "not_found"), "{path}");
    }
    assert_eq!(world.send(Method::DELETE, "/token").answer().await.refused(), (405, "method_not_allowed"));
    Ok(())
}

/// Whatever is sent, the response is a 4xx in our form, or a success.
#[tokio::test]
async fn hostile_requests_are_never_our_failure() -> Result<()> {
    let world = world_with(|settings| settings.signup = Signup::Open).await?;
    let session = world.ada_signed_in().await?;
    let id = session.body["user"]["id"].as_str().unwrap_or_default().to_owned();
    let routes = [
        (Method::POST, "/token?grant_type=password".to_owned()),
        (Method::POST, "/token?grant_type=refresh_token".to_owned()),
        (Method::POST, "/signup".to_owned()),
        (Method::POST, "/recover".to_owned()),
        (Method::POST, "/verify".to_owned()),
        (Method::POST, "/invite".to_owned()),
        (Method::POST, "/admin/users".to_owned()),
        (Method::PUT, format!("/admin/users/{id}")),
        (Method::POST, "/admin/generate_link".to_owned()),
        (Method::PUT, "/user".to_owned()),
    ];
    let deep = format!("{}{}", "[".repeat(5000), "]".repeat(5000));
    let values = [
        "null",
        "true",
        "-1",
        "1e400",
        "9007199254740993",
        r#""""#,
        r#""\u0000""#,
        r#""\ud800""#,
        r#""' or 1=1 --""#,
        r#""$2\u0000""#,
        r#""$argon2id$v=19$m=4294967295,t=4294967295,p=1$c2FsdHNhbHQ$aGFzaA""#,
        r#"{"a":"\u0000"}"#,
        r#"{"\u0000":1}"#,
        "[]",
        "{}",
        &deep,
    ];
    let names = [
        "email",
        "password",
        "password_hash",
        "refresh_token",
        "token",
        "token_hash",
        "type",
        "data",
        "user_metadata",
        "app_metadata",
        "ban_duration",
        "id",
        "role",
        "phone",
        "redirect_to",
        "email_confirm",
    ];
    let mut client = 0_u32;
    for (method, path) in &routes {
        for name in names {
            for value in values {
                // E-mail and password are given, so that the other fields are checked as well.
                let body = format!(r#"{{"email": "x@example.com", "type": "invite", "{name}": {value}}}"#);
                client += 1;
                let from = std::net::Ipv4Addr::from(0x0a00_0000 + client).to_string();
                let sending = world.send(method.clone(), path).header("x-test-client", &from).body(body.clone());
                let sending = if path == "/user" { sending.bearer(session.access()) } else { sending.service() };
                let answer = sending.answer().await;
                assert!(answer.status < 500, "{method} {path} {body}: {answer:?}");
                assert!(answer.status == 200 || answer.code().len() > 3, "{method} {path} {body}: {answer:?}");
            }
        }
    }
    for path in ["/logout?scope=a&scope=b", "/logout?scope=%ff", "/admin/users?page=1&page=2", "/admin/users/%ff", "/admin/users/%00"] {
        let method = if path.starts_with("/logout") { Method::POST } else { Method::GET };
        let sending = world.send(method, path);
        let answer = if path.starts_with("/logout") { sending.bearer(session.access()) } else { sending.service() }.answer().await;
        assert!((400..500).contains(&answer.status) && !answer.code().is_empty(), "{path}: {answer:?}");
    }
    Ok(())
}
