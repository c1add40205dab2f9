//! Preferences and the `Range` header.

use anyhow::Result;
use http::Method;
use serde_json::json;

use crate::rest::world::world;

#[tokio::test]
async fn a_function_that_returns_more_rows_than_allowed_is_rolled_back() -> Result<()> {
    let world = world().await?.with_things().await?;
    world
        .run(
            "create function shrink() returns setof things language sql as 'update things set size = 1 returning *';
             create function shrunk() returns int language sql as 'select 1'",
        )
        .await?;
    let strict = "handling=strict, max-affected=2";
    assert_eq!(world.post("/rpc/shrink", json!({})).prefer(strict).refused(400).await?.0, "PGRST124");
    assert_eq!(world.text("select count(*)::text from things where size = 1").await?.as_deref(), Some("0"));
    // A single value does not say how many rows were affected.
    assert_eq!(world.post("/rpc/shrunk", json!({})).prefer(strict).refused(400).await?.0, "PGRST128");
    let answer = world.post("/rpc/shrink", json!({})).prefer("handling=strict, max-affected=3").send().await?;
    assert_eq!((answer.status.as_u16(), answer.header("preference-applied")), (200, "handling=strict, max-affected=3"));
    world.post("/rpc/shrink", json!({})).prefer("max-affected=1").expect(200).await?;
    Ok(())
}

#[tokio::test]
async fn a_range_header_is_a_page_of_a_get() -> Result<()> {
    let world = world().await?.with_things().await?;
    for (path, asked, expected, range) in [
        ("/things?select=id&order=id", "0-1", json!([{"id": 1}, {"id": 2}]), "0-1/*"),
        ("/things?select=id&order=id", "1-", json!([{"id": 2}, {"id": 3}]), "1-2/*"),
        ("/things?select=id&order=id&limit=1", "1-2", json!([]), ""),
        ("/things?select=id&order=id&offset=1", "0-1", json!([{"id": 2}]), "1-1/*"),
        ("/things?select=id&limit=0", "1-2", json!([]), "*/*"),
        ("/things?select=id&id=eq.1", "nonsense", json!([{"id": 1}]), "0-0/*"),
    ] {
        let answer = world.get(path).header("range-unit", "items").header("range", asked).send().await?;
        if range.is_empty() {
            assert_eq!(answer.status, 416, "{path}: the two have no row in common");
            continue;
        }
        assert_eq!((answer.json(), answer.header("content-range")), (expected, range), "{path} {asked}");
    }
    let answer = world.get("/things?select=id&order=id").header("range", "0-0").prefer("count=exact").send().await?;
    assert_eq!((answer.status.as_u16(), answer.header("content-range")), (206, "0-0/3"));
    let answer = world.get("/things").header("range", "2-1").send().await?;
    assert_eq!((answer.status.as_u16(), answer.error()["code"].as_str()), (416, Some("PGRST103")));
    // HTTP defines it for GET alone.
    let answer = world.call(Method::HEAD, "/things").header("range", "0-0").send().await?;
    assert_eq!(answer.header("content-range"), "0-2/*");
    Ok(())
}

#[tokio::test]
async fn columns_that_a_single_object_or_an_update_lacks_get_their_default_on_request() -> Result<()> {
    let world = world().await?.with_things().await?;
    let path = "/things?columns=id,name,size&select=id,name,size";
    let prefer = "missing=default, return=representation";
    assert_eq!(
        world.post(path, json!({"id": 70, "size": 5})).prefer(prefer).expect(201).await?,
        json!([{"id": 70, "name": "nameless", "size": 5}])
    );
    assert_eq!(world.post(path, json!({"id": 71, "size": 5})).returning().refused(400).await?.0, "23502", "without it null");
    let answer = world.patch("/things?id=eq.1&columns=name,size&select=name,size", json!({"size": 6})).prefer(prefer).send().await?;
    assert_eq!(answer.json(), json!([{"name": "nameless", "size": 6}]));
    assert_eq!(answer.header("preference-applied"), prefer);
    Ok(())
}

#[tokio::test]
async fn times_come_in_the_time_zone_that_is_preferred() -> Result<()> {
    let world = world().await?.with_things().await?;
    let path = "/things?select=made_at&id=eq.2";
    let answer = world.get(path).prefer("timezone=America/Los_Angeles").send().await?;
    assert_eq!(answer.json(), json!([{"made_at": "2025-01-15T14:00:00-08:00"}]));
    assert_eq!(answer.header("preference-applied"), "timezone=America/Los_Angeles");
    // It ends with the request.
    assert_eq!(world.get(path).expect(200).await?, json!([{"made_at": "2025-01-15T22:00:00+00:00"}]));
    assert_eq!(
        world.get(path).prefer("timezone=Jupiter/Red_Spot").refused(400).await?,
        ("22023".to_owned(), "invalid value for parameter \"TimeZone\": \"Jupiter/Red_Spot\"".to_owned())
    );
    Ok(())
}

#[tokio::test]
async fn strict_handling_refuses_preferences_that_are_unknown() -> Result<()> {
    let world = world().await?.with_things().await?;
    let answer = world.delete("/things?id=eq.1").prefer("handling=strict, anything, count=every").send().await?;
    assert_eq!(answer.status, 400);
    assert_eq!(
        (&answer.error()["code"], &answer.error()["details"]),
        (&json!("PGRST122"), &json!("Invalid preferences: anything, count=every"))
    );
    assert_eq!(world.text("select count(*)::text from things").await?.as_deref(), Some("3"), "nothing was done");
    let answer = world.get("/things?id=eq.1").prefer("handling=lenient, anything").send().await?;
    assert_eq!((answer.status.as_u16(), answer.header("preference-applied")), (200, "handling=lenient"));
    Ok(())
}
