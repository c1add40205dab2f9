//! Keys, tokens, roles, and preflight requests of browsers.

use anyhow::Result;
use gleaner_http::Role;
use http::Method;
use serde_json::json;

use crate::rest::world::world;

#[tokio::test]
async fn a_request_without_a_known_key_is_refused() -> Result<()> {
    let world = world().await?.with_things().await?;
    let answer = world.get("/things").key("").send().await?;
    assert_eq!((answer.status.as_u16(), &answer.error()["message"]), (401, &json!("No API key found in request")));
    assert_eq!(answer.error()["hint"], "No `apikey` request header or url param was found.");
    let (_, message) = world.get("/things").key("nonsense").refused(401).await?;
    assert_eq!(message, "Invalid API key");
    let (_, message) = world.get("/things").key(&world.token("00000000-0000-0000-0000-000000000001")).refused(401).await?;
    assert_eq!(message, "Invalid API key", "a person's token is no key");
    assert_eq!(world.get("/things").key("sb_secret_unknown").refused(401).await?.1, "Invalid API key");
    // A client with an opaque key sends it as bearer token too; it must not be parsed as a token.
    let bearer = world.get("/things?id=eq.1&select=id").header("authorization", "Bearer sb_publishable_x").bare_bearer();
    assert_eq!(bearer.expect(200).await?, json!([{"id": 1}]));
    // The key may be in the URL.
    let key = world.access.project_key(Role::Service);
    world.get(&format!("/things?id=eq.1&apikey={key}")).key("").expect(200).await?;
    Ok(())
}

#[tokio::test]
async fn a_token_that_does_not_hold_is_refused() -> Result<()> {
    let world = world().await?.with_things().await?;
    let expired = world.signed(json!({"role": "authenticated", "sub": "00000000-0000-0000-0000-000000000001", "exp": 1_000_000_000}));
    let answer = world.get("/things").signed_in(&expired).send().await?;
    assert_eq!(
        (answer.status.as_u16(), &answer.error()["code"], &answer.error()["message"]),
        (401, &json!("PGRST303"), &json!("JWT expired"))
    );
    assert_eq!(answer.header("www-authenticate"), "Bearer error=\"invalid_token\", error_description=\"JWT expired\"");
    assert_eq!(world.get("/things").signed_in("a.b.c").refused(401).await?.0, "PGRST301");
    assert_eq!(world.get("/things").signed_in(&world.signed(json!({"role": "postgres"}))).refused(401).await?.0, "PGRST303");
    Ok(())
}

#[tokio::test]
async fn the_database_knows_role_claims_and_request() -> Result<()> {
    let world = world().await?;
    world
        .run(
            "create function whoami() returns json language sql stable as $$ select json_build_object(
                'user', current_user, 'uid', auth.uid(), 'role', auth.role(), 'mail', auth.jwt() ->> 'email',
                'method', current_setting('request.method'), 'path', current_setting('request.path'),
                'agent', current_setting('request.headers')::json ->> 'x-agent', 'search_path', current_setting('search_path'),
                'read_only', current_setting('transaction_read_only')) $$",
        )
        .await?;
    let user = "00000000-0000-0000-0000-000000000001";
    let token = world.signed(json!({"role": "authenticated", "sub": user, "email": "a@example.com"}));
    let mine = world.post("/rpc/whoami", json!({})).signed_in(&token).header("x-agent", "x").expect(200).await?;
    let expected = json!({"user": "authenticated", "uid": user, "role": "authenticated", "mail": "a@example.com", "method": "POST",
        "path": "/rpc/whoami", "agent": "x", "search_path": "\"public\", \"extensions\"", "read_only": "off"});
    assert_eq!(mine, expected);
    // The settings end with the transaction: the connection serves other callers next.
    let anon = world.get("/rpc/whoami").anon().expect(200).await?;
    assert_eq!(
        (&anon["user"], &anon["uid"], &anon["mail"], &anon["read_only"]),
        (&json!("anon"), &json!(null), &json!(null), &json!("on"))
    );
    assert_eq!(world.post("/rpc/whoami", json!({})).expect(200).await?["user"], "service_role");
    for _ in 0..8 {
        let client = world.pool.get().await?;
        let row = client
            .query_one("select current_user <> 'service_role', coalesce(current_setting('request.jwt.claims', true), '')", &[])
            .await?;
        assert_eq!((row.get(0), row.get::<_, String>(1)), (true, String::new()));
    }
    Ok(())
}

#[tokio::test]
async fn a_missing_right_is_401_for_anonymous_callers_and_403_for_others() -> Result<()> {
    let world = world().await?;
    let (_, user) = world.person("anna", true).await?;
    let token = world.token(&user);
    for table in ["activities", "sales", "ingestion_providers", "contacts"] {
        let answer = world.get(&format!("/{table}")).anon().send().await?;
        assert_eq!((answer.status.as_u16(), &answer.error()["code"]), (401, &json!("42501")), "{table}");
        assert_eq!(answer.error()["message"], format!("permission denied for table {table}"));
        assert_eq!(answer.header("www-authenticate"), "Bearer");
    }
    assert_eq!(world.post("/rpc/claim_stale_activity", json!({})).anon().refused(401).await?.0, "42501");
    assert_eq!(world.get("/contact_addresses").signed_in(&token).refused(403).await?.0, "42501");
    let (code, message) =
        world.post("/ingestion_providers", json!({"provider_code": "generic", "name": "x"})).signed_in(&token).refused(403).await?;
    assert_eq!(
        (code.as_str(), message.as_str()),
        ("42501", "new row violates row-level security policy for table \"ingestion_providers\"")
    );
    assert_eq!(world.get("/ingestion_providers").signed_in(&token).expect(200).await?, json!([]), "hidden by policy");
    Ok(())
}

#[tokio::test]
async fn rows_out_of_sight_are_skipped_silently() -> Result<()> {
    let world = world().await?;
    let (_, anna) = world.person("anna", true).await?;
    let (berta, _) = world.person("berta", false).await?;
    let token = world.token(&anna);
    let made = world.post("/activities?select=id", json!({"type": "note", "sales_id": berta})).returning().single().expect(201).await?;
    let id = made["id"].as_str().unwrap();
    assert_eq!(world.get(&format!("/activities?id=eq.{id}")).signed_in(&token).expect(200).await?, json!([]));
    world.patch(&format!("/activities?id=eq.{id}"), json!({"type": "call"})).signed_in(&token).expect(204).await?;
    world.patch(&format!("/sales?id=eq.{berta}"), json!({"first_name": "x"})).signed_in(&token).expect(204).await?;
    assert_eq!(
        world.text("select first_name || type from sales, activities where sales.id = sales_id").await?.as_deref(),
        Some("bertanote")
    );
    Ok(())
}

#[tokio::test]
async fn browsers_may_ask_first_without_a_key_and_read_every_answer() -> Result<()> {
    let world = world().await?.with_things().await?;
    let asked = "apikey,authorization,content-profile,prefer,x-client-info,x-retry-count";
    let preflight = world.call(Method::OPTIONS, "/things").key("").header("access-control-request-headers", asked).send().await?;
    assert_eq!((preflight.status.as_u16(), preflight.text.as_str()), (200, ""));
    assert_eq!(preflight.header("access-control-allow-origin"), "*");
    assert_eq!(preflight.header("access-control-allow-headers"), asked);
    assert_eq!(preflight.header("access-control-allow-methods"), "GET,HEAD,POST,PATCH,PUT,DELETE,OPTIONS");
    assert_eq!(preflight.header("access-control-max-age"), "86400");
    for answer in [world.get("/things").send().await?, world.get("/nope").send().await?, world.get("/things").key("").send().await?] {
        assert_eq!(answer.header("access-control-allow-origin"), "*", "{}", answer.status);
        assert!(answer.header("access-control-expose-headers").contains("content-range"));
    }
    Ok(())
}

/// Many callers share few connections, and each keeps its own identity.
#[tokio::test]
async fn callers_at_the_same_time_are_not_mixed_up() -> Result<()> {
    let world = world().await?;
    world.run("create function me() returns text language sql as 'select concat(current_user, auth.uid())'").await?;
    let calls = (0..120).map(|n| {
        let world = &world;
        async move {
            let user = format!("00000000-0000-0000-0000-{n:012}");
            let (call, expected) = match n % 3 {
                0 => (world.post("/rpc/me", json!({})), "service_role".to_owned()),
                1 => (world.post("/rpc/me", json!({})).anon(), "anon".to_owned()),
                _ => (world.post("/rpc/me", json!({})).signed_in(&world.token(&user)), format!("authenticated{user}")),
            };
            anyhow::Ok((call.expect(200).await?, json!(expected)))
        }
    });
    for answer in futures_util::future::join_all(calls).await {
        let (found, expected) = answer?;
        assert_eq!(found, expected);
    }
    Ok(())
}
