//! Rows of other tables, by foreign key.

use anyhow::Result;
use gleaner_supabase::rest::{Limits, Settings};
use serde_json::json;

use crate::rest::world::{world, world_with};

#[tokio::test]
async fn a_foreign_key_here_gives_an_object_and_one_there_a_list() -> Result<()> {
    let world = world().await?.with_things().await?;
    let rows = world.get("/things?select=id,boxes!things_box_id_fkey(name)&order=id").expect(200).await?;
    assert_eq!(rows, json!([{"id": 1, "boxes": {"name": "red"}}, {"id": 2, "boxes": {"name": "red"}}, {"id": 3, "boxes": null}]));
    let rows = world.get("/boxes?select=name,things!box_id(id)&order=id").expect(200).await?;
    assert_eq!(rows, json!([{"name": "red", "things": [{"id": 1}, {"id": 2}]}, {"name": "blue", "things": []}]));
    let rows = world.get("/things?select=id,inside:box_id(*),spare:boxes!spare_id(name)&id=eq.1").expect(200).await?;
    assert_eq!(rows, json!([{"id": 1, "inside": {"id": 1, "name": "red", "kept_in": null}, "spare": {"name": "blue"}}]));
    // There can be at most one, so it is an object.
    let rows = world.get("/things?select=id,labels(text)&order=id&limit=2").expect(200).await?;
    assert_eq!(rows, json!([{"id": 1, "labels": {"text": "keep dry"}}, {"id": 2, "labels": null}]));
    let rows = world.get("/labels?select=text,things(name,boxes!box_id(name))").expect(200).await?;
    assert_eq!(rows, json!([{"text": "keep dry", "things": {"name": "anvil", "boxes": {"name": "red"}}}]));
    Ok(())
}

#[tokio::test]
async fn inner_leaves_out_rows_without_any() -> Result<()> {
    let world = world().await?.with_things().await?;
    let rows = world.get("/things?select=id,boxes!box_id!inner(name)&order=id").expect(200).await?;
    assert_eq!(rows.as_array().map(Vec::len), Some(2));
    let rows = world.get("/boxes?select=name,things!box_id!inner(id)&things.size=gt.50").expect(200).await?;
    assert_eq!(rows, json!([{"name": "red", "things": [{"id": 1}]}]));
    let answer = world.get("/boxes?select=name,things!things_box_id_fkey!inner()").prefer("count=exact").send().await?;
    assert_eq!((answer.json(), answer.header("content-range")), (json!([{"name": "red"}]), "0-0/1"));
    Ok(())
}

#[tokio::test]
async fn embedded_rows_are_filtered_ordered_and_limited() -> Result<()> {
    let world = world().await?.with_things().await?;
    let rows = world.get("/boxes?select=name,things!box_id(id)&things.order=id.desc&things.limit=1&order=id").expect(200).await?;
    assert_eq!(rows, json!([{"name": "red", "things": [{"id": 2}]}, {"name": "blue", "things": []}]));
    let rows = world.get("/boxes?select=name,t:things!box_id(id)&t.or=(id.eq.2,id.eq.3)&t.offset=0&id=eq.1").expect(200).await?;
    assert_eq!(rows, json!([{"name": "red", "t": [{"id": 2}]}]));
    assert_eq!(world.get("/boxes?things.id=eq.1").refused(400).await?.0, "PGRST108");
    Ok(())
}

#[tokio::test]
async fn written_rows_can_embed() -> Result<()> {
    let world = world().await?.with_things().await?;
    let path = "/things?select=name,boxes!box_id(name)";
    let row = world.post(path, json!({"name": "cup", "box_id": 2})).returning().single().expect(201).await?;
    assert_eq!(row, json!({"name": "cup", "boxes": {"name": "blue"}}));
    Ok(())
}

#[tokio::test]
async fn no_or_several_relationships_are_reported() -> Result<()> {
    let world = world().await?.with_things().await?;
    let (code, message) = world.get("/things?select=id,sales(id)").refused(400).await?;
    assert_eq!(
        (code.as_str(), message.as_str()),
        ("PGRST200", "Could not find a relationship between 'things' and 'sales' in the schema cache")
    );
    let answer = world.get("/things?select=id,boxes(name)").send().await?;
    assert_eq!((answer.status.as_u16(), &answer.error()["code"]), (300, &json!("PGRST201")));
    assert!(answer.error()["hint"].as_str().is_some_and(|hint| hint.contains("'boxes!things_spare_id_fkey'")), "{}", answer.text);
    Ok(())
}

/// Embedding reads the other table with the caller's rights.
#[tokio::test]
async fn embedded_rows_obey_row_security() -> Result<()> {
    let world = world().await?.with_things().await?;
    world.run("alter table boxes enable row level security; create policy blue on boxes to anon using (name = 'blue')").await?;
    let rows = world.get("/things?select=id,boxes!box_id(name)&id=eq.1").anon().expect(200).await?;
    assert_eq!(rows, json!([{"id": 1, "boxes": null}]));
    world.run("revoke all on boxes from anon").await?;
    assert_eq!(world.get("/things?select=id,boxes!box_id(name)&id=eq.1").anon().refused(401).await?.0, "42501");
    Ok(())
}

/// Each level multiplies the rows of a response.
#[tokio::test]
async fn embedding_is_limited_in_depth_in_rows_and_in_bytes() -> Result<()> {
    let world =
        world_with(Settings { authenticated: Limits { statement_timeout: None, max_rows: Some(3) }, ..Settings::default() }).await?;
    world
        .run(
            "create table parents (id int primary key);
             create table children (id int primary key, parent int references parents, text text);
             grant select on parents, children to authenticated;
             insert into parents values (1);
             insert into children select n, 1, repeat('x', 3 * 1024 * 1024) from generate_series(1, 10) as n",
        )
        .await?;
    let token = world.token("00000000-0000-0000-0000-000000000001");
    let get = |path: &str| world.get(path).signed_in(&token);
    let rows = get("/parents?select=id,children(id)").expect(200).await?;
    assert_eq!(rows[0]["children"].as_array().map(Vec::len), Some(3), "the limit of rows holds for embedded lists");
    let rows = get("/parents?select=id,children(id)&children.limit=2").expect(200).await?;
    assert_eq!(rows[0]["children"].as_array().map(Vec::len), Some(2));
    let deep =
        (0..9).fold("id".to_owned(), |inner, n| if n % 2 == 0 { format!("id,parents({inner})") } else { format!("id,children({inner})") });
    assert_eq!(get(&format!("/children?select={deep}")).refused(400).await?.0, "PGRST100");
    // Three times three children with three megabytes each, through their parent.
    let wide = "/children?select=id,parents(children(id,text,parents(children(text))))";
    let answer = get(wide).send().await?;
    assert_eq!((answer.status.as_u16(), &answer.error()["code"]), (400, &json!("54000")));
    Ok(())
}
