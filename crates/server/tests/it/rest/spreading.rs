//! `...rel(a,b)`: columns of related rows as columns of the row.

use anyhow::Result;
use serde_json::json;

use crate::rest::world::world;

#[tokio::test]
async fn columns_of_the_one_related_row_become_columns_of_the_row() -> Result<()> {
    let world = world().await?.with_things().await?;
    assert_eq!(
        world.get("/things?select=id,...boxes!box_id(box:name,kept_in)&order=id").expect(200).await?,
        json!([{"id": 1, "box": "red", "kept_in": null}, {"id": 2, "box": "red", "kept_in": null}, {"id": 3, "box": null, "kept_in": null}])
    );
    let answer = world.get("/things?select=id,...boxes!box_id!inner(box:name)&boxes.name=eq.red&order=id&limit=1").prefer("count=exact");
    let answer = answer.send().await?;
    assert_eq!((answer.json(), answer.header("content-range")), (json!([{"id": 1, "box": "red"}]), "0-0/2"));
    let row = world.patch("/things?id=eq.1&select=size,...boxes!box_id(box:name)", json!({"size": 4})).returning().single();
    assert_eq!(row.expect(200).await?, json!({"size": 4, "box": "red"}));
    assert_eq!(world.get("/labels?select=text,...things(*)").single().expect(200).await?["name"], "anvil");
    assert_eq!(
        world.get("/labels?select=text,...things(name,...boxes!box_id(box:name))").expect(200).await?,
        json!([{"text": "keep dry", "name": "anvil", "box": "red"}])
    );
    Ok(())
}

#[tokio::test]
async fn columns_of_several_related_rows_become_lists() -> Result<()> {
    let world = world().await?.with_things().await?;
    let path = "/boxes?select=name,...things!things_box_id_fkey(ids:id,names:name)&things.order=id.desc&order=id";
    assert_eq!(
        world.get(path).expect(200).await?,
        json!([{"name": "red", "ids": [2, 1], "names": ["balloon", "anvil"]}, {"name": "blue", "ids": [], "names": []}])
    );
    Ok(())
}

#[tokio::test]
async fn lists_of_spread_columns_have_the_row_limit_too() -> Result<()> {
    let mut settings = gleaner_supabase::rest::Settings::default();
    settings.service_role.max_rows = Some(1);
    let world = crate::rest::world::world_with(settings).await?.with_things().await?;
    let row = world.get("/boxes?select=...things!things_box_id_fkey(ids:id)&id=eq.1").single().expect(200).await?;
    assert_eq!(row["ids"].as_array().map(Vec::len), Some(1));
    // And a limit on their nesting, as all embedding.
    let deep = "...boxes!kept_in(".repeat(10) + "name" + &")".repeat(10);
    assert_eq!(world.get(&format!("/boxes?select={deep}")).refused(400).await?.0, "PGRST100");
    Ok(())
}
