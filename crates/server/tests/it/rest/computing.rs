//! Functions of a row: computed columns and computed relationships.

use anyhow::Result;
use serde_json::json;

use crate::rest::world::{World, world};

async fn with_computed() -> Result<World> {
    let world = world().await?.with_things().await?;
    world
        .run(
            "create function shout(things) returns text stable language sql as $$ select upper($1.name) || '!' $$;
             create function around(things) returns setof things stable language sql
                 as $$ select * from things where id <> $1.id order by id $$;
             create function home(things) returns setof boxes rows 1 stable language sql as $$ select * from boxes where id = $1.box_id $$;
             create function home_or_none(things) returns boxes stable language sql as $$ select * from boxes where id = $1.box_id $$;
             create function boxes(labels) returns setof boxes stable language sql as $$ select * from boxes $$",
        )
        .await?;
    Ok(world)
}

#[tokio::test]
async fn a_function_of_a_row_is_a_column_in_select_filter_and_order() -> Result<()> {
    let world = with_computed().await?;
    assert_eq!(world.get("/things?select=id,shout&id=eq.1").expect(200).await?, json!([{"id": 1, "shout": "ANVIL!"}]));
    assert_eq!(world.get("/things?select=s:shout&shout=eq.ANVIL!").expect(200).await?, json!([{"s": "ANVIL!"}]));
    assert_eq!(world.get("/things?select=id&order=shout.desc&limit=1").expect(200).await?, json!([{"id": 3}]));
    assert_eq!(world.get("/things?select=id&or=(shout.like.BAL*,shout.eq.x)").expect(200).await?, json!([{"id": 2}]));
    let all = world.get("/things?id=eq.1").expect(200).await?;
    assert!(all[0].get("shout").is_none(), "it is only given when it is asked for");
    assert_eq!(
        world.get("/boxes?select=things!things_box_id_fkey(shout)&id=eq.1").expect(200).await?,
        json!([{"things": [{"shout": "ANVIL!"}, {"shout": "BALLOON!"}]}])
    );
    Ok(())
}

#[tokio::test]
async fn computed_columns_are_returned_by_writes_and_functions() -> Result<()> {
    let world = with_computed().await?;
    let row = world.patch("/things?id=eq.1&select=id,shout", json!({"name": "bell"})).returning().expect(200).await?;
    assert_eq!(row, json!([{"id": 1, "shout": "BELL!"}]));
    let row = world.post("/things?select=name,shout", json!({"name": "cup"})).returning().expect(201).await?;
    assert_eq!(row, json!([{"name": "cup", "shout": "CUP!"}]));
    world.patch("/things?shout=eq.CUP!", json!({"size": 3})).expect(204).await?;
    assert_eq!(world.delete("/things?shout=eq.CUP!&select=size").returning().expect(200).await?, json!([{"size": 3}]));
    world.run("create function some_things() returns setof things stable language sql as 'select * from things'").await?;
    let rows = world.get("/rpc/some_things?select=id,shout,home(name)&shout=eq.BELL!&order=shout").expect(200).await?;
    assert_eq!(rows, json!([{"id": 1, "shout": "BELL!", "home": {"name": "red"}}]));
    Ok(())
}

#[tokio::test]
async fn a_function_of_a_row_that_returns_rows_is_a_relationship() -> Result<()> {
    let world = with_computed().await?;
    assert_eq!(
        world.get("/things?select=id,around(id),home(name),home_or_none(name)&id=in.(2,3)&order=id").expect(200).await?,
        json!([
            {"id": 2, "around": [{"id": 1}, {"id": 3}], "home": {"name": "red"}, "home_or_none": {"name": "red"}},
            {"id": 3, "around": [{"id": 1}, {"id": 2}], "home": null, "home_or_none": null}
        ])
    );
    let inner = world.get("/things?select=id,h:home!inner(name)&h.name=eq.red&order=id").prefer("count=exact").send().await?;
    assert_eq!((inner.header("content-range"), inner.json()[0]["h"]["name"].as_str()), ("0-1/2", Some("red")));
    let row = world.patch("/things?id=eq.1&select=name,home(name)", json!({"size": 2})).returning().expect(200).await?;
    assert_eq!(row, json!([{"name": "anvil", "home": {"name": "red"}}]));
    // It replaces a relationship of the same name, and is one where there is no foreign key.
    assert_eq!(world.get("/labels?select=boxes(count)").expect(200).await?, json!([{"boxes": [{"count": 2}]}]));
    Ok(())
}

/// The function and its tables are the caller's to use, or not.
#[tokio::test]
async fn computed_columns_take_the_callers_rights() -> Result<()> {
    let world = with_computed().await?;
    world.run("revoke execute on function shout(things), home(things) from public; revoke select on boxes from anon").await?;
    assert_eq!(world.get("/things?select=shout").anon().refused(401).await?.0, "42501");
    assert_eq!(world.get("/things?select=id&shout=eq.x").anon().refused(401).await?.0, "42501");
    assert_eq!(world.get("/things?select=home_or_none(name)&id=eq.1").anon().refused(401).await?.0, "42501");
    Ok(())
}
