//! `/v1/contacts/…` with every kind of caller.

use anyhow::Result;
use axum::body::Body;
use axum::http::{Method, Request, StatusCode};
use gleaner_http::Role;
use gleaner_intake::contacts::router;
use gleaner_supabase::access::Access;
use serde_json::{Value, json};
use tower::ServiceExt as _;
use uuid::Uuid;

use crate::contacts::world::{World, world};

const SECRET: &str = "a secret of at least thirty-two characters";

struct Caller<'a> {
    world: &'a World,
    token: Option<String>,
}

impl Caller<'_> {
    async fn send(&self, method: Method, path: &str, body: impl ToString) -> Result<(StatusCode, Value)> {
        let mut request = Request::builder().method(method).uri(path);
        if let Some(token) = &self.token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let router = axum::Router::from(router(gleaner::pool(&self.world.database.url, 2)?, Access::new(SECRET, "test")?));
        let answer = router.oneshot(request.body(Body::from(body.to_string()))?).await?;
        let status = answer.status();
        let bytes = axum::body::to_bytes(answer.into_body(), usize::MAX).await?;
        Ok((status, serde_json::from_slice(&bytes).unwrap_or_default()))
    }

    async fn get(&self, path: &str) -> Result<(StatusCode, Value)> {
        self.send(Method::GET, path, "").await
    }

    async fn post(&self, path: &str, body: Value) -> Result<(StatusCode, Value)> {
        self.send(Method::POST, path, body).await
    }
}

async fn member<'a>(world: &'a World, name: &str) -> Result<(i64, Caller<'a>)> {
    let id = world.person(name).await?;
    let user = world.text(&format!("select user_id::text from sales where id = {id}")).await?;
    let claims = json!({"role": "authenticated", "sub": user});
    Ok((id, Caller { world, token: Some(Access::new(SECRET, "test")?.sign(claims.as_object().expect("claims"))) }))
}

#[tokio::test]
async fn a_member_reads_the_inbox_page_by_page_and_empties_it() -> Result<()> {
    let world = world().await?;
    let (_, member) = member(&world, "ann").await?;
    let channel = world.channel("desk").await?;
    let contact = world.contact(None, None).await?;
    for _ in 0..3 {
        world.arrive(channel, "email", "new@x.com").await?;
    }
    let (status, first) = member.get("/v1/contacts/unmatched?limit=2").await?;
    assert_eq!((status, first["items"].as_array().map(Vec::len)), (StatusCode::OK, Some(2)), "{first}");
    assert_eq!(first["items"][0]["sender"], json!("new@x.com"));
    let next = first["next"].as_str().expect("more");
    let (_, second) = member.get(&format!("/v1/contacts/unmatched?limit=2&after={next}")).await?;
    assert_eq!((second["items"].as_array().map(Vec::len), &second["next"]), (Some(1), &Value::Null));

    let activity = &first["items"][0]["id"];
    let body = json!({"activity": activity, "contact": contact, "backfill": true, "remember": true});
    let (status, linked) = member.post("/v1/contacts/link", body).await?;
    assert_eq!((status, linked["activities"].as_array().map(Vec::len)), (StatusCode::OK, Some(3)), "{linked}");
    assert_eq!(linked["activities"][0], json!({"id": activity, "outcome": "done"}));
    assert_eq!(member.get("/v1/contacts/unmatched").await?.1, json!({"items": [], "next": null}));
    assert_eq!(world.arrive(channel, "email", "new@x.com").await?.contact, Some(contact));

    let (status, unlinked) = member.post("/v1/contacts/unlink", json!({"activity": activity})).await?;
    assert_eq!((status, &unlinked), (StatusCode::OK, &json!({"activities": [{"id": activity, "outcome": "done"}]})));
    let (_, inbox) = member.get("/v1/contacts/unmatched").await?;
    assert_eq!(inbox["items"][0]["candidates"], json!([{"id": contact, "name": "Ann"}]));
    Ok(())
}

#[tokio::test]
async fn other_callers_are_refused_and_a_bad_request_says_what_is_wrong() -> Result<()> {
    let world = world().await?;
    let (owner, _) = member(&world, "private").await?;
    let (_, member) = member(&world, "ann").await?;
    world.run(&format!("update sales set allow_remote_processing = false where id = {owner}")).await?;
    let private = world.channel_with("private", "{}", false, Some(owner)).await?;
    let hidden = world.arrive(private, "email", "a@x.com").await?.id;
    let contact = world.contact(None, None).await?;
    let link = |activity: Uuid, contact: i64| json!({"activity": activity, "contact": contact});

    let anonymous = Caller { world: &world, token: Some(Access::new(SECRET, "test")?.project_key(Role::Anon)) };
    let stranger = Caller { world: &world, token: None };
    for caller in [&anonymous, &stranger] {
        assert_eq!(caller.get("/v1/contacts/unmatched").await?.0, StatusCode::UNAUTHORIZED);
        assert_eq!(caller.post("/v1/contacts/link", link(hidden, contact)).await?.0, StatusCode::UNAUTHORIZED);
        assert_eq!(caller.post("/v1/contacts/unlink", json!({"activity": hidden})).await?.0, StatusCode::UNAUTHORIZED);
    }
    assert_eq!(member.get("/v1/contacts/unmatched").await?.1["items"], json!([]));
    assert_eq!(member.post("/v1/contacts/link", link(hidden, contact)).await?.0, StatusCode::NOT_FOUND);
    assert_eq!(member.post("/v1/contacts/unlink", json!({"activity": hidden})).await?.0, StatusCode::NOT_FOUND);
    assert_eq!(member.post("/v1/contacts/link", link(hidden, contact + 1)).await?, {
        let told = json!({"code": "GL003", "message": "there is no such contact", "details": null, "hint": null});
        (StatusCode::NOT_FOUND, told)
    });

    for query in ["limit=0", "limit=1001", "limit=x", "after=x", "after=9999-99-99T99:99:99.999999Z_00000000-0000-0000-0000-000000000000"] {
        assert_eq!(member.get(&format!("/v1/contacts/unmatched?{query}")).await?.0, StatusCode::BAD_REQUEST, "{query}");
    }
    for body in ["", "{", "[]", r#"{"activity": 7, "contact": 1}"#, r#"{"activity": "x", "contact": 1}"#, "\u{0}"] {
        assert_eq!(member.send(Method::POST, "/v1/contacts/link", body).await?.0, StatusCode::BAD_REQUEST, "{body}");
        assert_eq!(member.send(Method::POST, "/v1/contacts/unlink", body).await?.0, StatusCode::BAD_REQUEST, "{body}");
    }
    Ok(())
}
