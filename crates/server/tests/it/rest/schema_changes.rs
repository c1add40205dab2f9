//! The schema changes while the server runs.

use anyhow::Result;
use serde_json::json;

use crate::rest::world::world;

#[tokio::test]
async fn what_was_just_created_is_there() -> Result<()> {
    let world = world().await?.with_things().await?;
    assert_eq!(world.get("/fresh").refused(404).await?.0, "PGRST205");
    world.run("create table fresh (id int primary key); grant all on fresh to service_role").await?;
    world.post("/fresh", json!({"id": 1})).expect(201).await?;
    assert_eq!(world.get("/fresh?note=is.null").refused(400).await?.0, "42703");
    world.run("alter table fresh add column note text").await?;
    assert_eq!(world.get("/fresh").expect(200).await?, json!([{"id": 1, "note": null}]));
    assert_eq!(world.get("/fresh?note=is.null&select=id").expect(200).await?, json!([{"id": 1}]));
    world.patch("/fresh?id=eq.1", json!({"note": "x"})).expect(204).await?;
    assert_eq!(world.post("/rpc/newest", json!({})).refused(404).await?.0, "PGRST202");
    world.run("create function newest() returns int language sql as 'select 1'").await?;
    assert_eq!(world.post("/rpc/newest", json!({})).expect(200).await?, json!(1));
    Ok(())
}

/// The cached schema contains it, but the database does not: the schema is loaded again.
#[tokio::test]
async fn what_was_renamed_or_retyped_is_found_again() -> Result<()> {
    let world = world().await?.with_things().await?;
    world.get("/things?name=eq.anvil").expect(200).await?;
    world.run("alter table things rename column name to title").await?;
    assert_eq!(world.get("/things?name=eq.anvil").refused(400).await?, ("42703".into(), "column things.name does not exist".into()));
    assert_eq!(world.get("/things?title=eq.anvil&select=id").expect(200).await?, json!([{"id": 1}]));
    world.run("alter table things drop column size cascade; alter table things add column size uuid").await?;
    assert_eq!(world.get("/things?size=eq.x").refused(400).await?.1, "invalid input syntax for type uuid: \"x\"");
    world.run("drop table labels").await?;
    assert_eq!(world.get("/labels").refused(404).await?.0, "PGRST205");
    Ok(())
}
