//! What a request may ask of embedded rows besides their columns.

use anyhow::Result;
use serde_json::json;

use crate::rest::world::world;

#[tokio::test]
async fn embedded_rows_are_counted() -> Result<()> {
    let world = world().await?.with_things().await?;
    assert_eq!(
        world.get("/boxes?select=name,things!things_box_id_fkey(count)&order=id").expect(200).await?,
        json!([{"name": "red", "things": [{"count": 2}]}, {"name": "blue", "things": [{"count": 0}]}])
    );
    let path = "/boxes?select=inside:things!things_box_id_fkey(n:count)&inside.fragile=is.true&id=eq.1";
    assert_eq!(world.get(path).expect(200).await?, json!([{"inside": [{"n": 1}]}]));
    assert_eq!(world.get("/things?select=count&size=gt.5").expect(200).await?, json!([{"count": 2}]));
    // A column of that name is a column.
    world.run("create table tallies (count int); insert into tallies values (7); grant select on tallies to service_role").await?;
    assert_eq!(world.get("/tallies?select=count").expect(200).await?, json!([{"count": 7}]));
    assert_eq!(world.get("/things?select=size.sum()").refused(400).await?.0, "PGRST123");
    Ok(())
}

#[tokio::test]
async fn rows_are_ordered_by_a_column_of_the_one_related_row() -> Result<()> {
    let world = world().await?.with_things().await?;
    world.run("update things set box_id = 2 where id = 1").await?;
    let ordered = |order: &str| format!("/things?select=id,boxes!box_id(name)&order={order}&id=lt.3");
    assert_eq!(world.get(&ordered("boxes(name)")).expect(200).await?[0]["id"], 1);
    assert_eq!(world.get(&ordered("boxes(name).desc,id")).expect(200).await?[0]["id"], 2);
    assert_eq!(world.get("/things?select=id,b:boxes!box_id()&order=b(name).asc.nullsfirst,id").expect(200).await?[0]["id"], 3);
    assert_eq!(world.get("/things?select=id&order=boxes(name)").refused(400).await?.0, "PGRST108");
    assert_eq!(world.get("/boxes?select=things!box_id(id)&order=things(id)").refused(400).await?.0, "PGRST118");
    assert_eq!(world.get(&ordered("boxes(nope)")).refused(400).await?.0, "42703");
    Ok(())
}

#[tokio::test]
async fn rows_are_chosen_by_whether_they_have_related_rows() -> Result<()> {
    let world = world().await?.with_things().await?;
    for (filter, ids) in [
        ("boxes=is.null", json!([{"id": 3}])),
        ("boxes=not.is.null", json!([{"id": 1}, {"id": 2}])),
        ("boxes=is.not_null", json!([{"id": 1}, {"id": 2}])),
        ("or=(boxes.is.null,size.gt.50)", json!([{"id": 1}, {"id": 3}])),
        ("and=(boxes.not.is.null,labels.is.null)", json!([{"id": 2}])),
        ("boxes=not.is.null&boxes.name=eq.blue", json!([])),
    ] {
        let path = format!("/things?select=id,boxes!box_id(),labels()&order=id&{filter}");
        assert_eq!(world.get(&path).expect(200).await?, ids, "{filter}");
    }
    // Also for writes, and within embedded resources.
    world.patch("/things?select=boxes!box_id()&boxes=is.null", json!({"size": 77})).expect(204).await?;
    assert_eq!(world.text("select string_agg(id::text, ',') from things where size = 77").await?.as_deref(), Some("3"));
    let path = "/boxes?select=name,things!things_box_id_fkey(id,labels())&things.labels=not.is.null&id=eq.1";
    assert_eq!(world.get(path).expect(200).await?, json!([{"name": "red", "things": [{"id": 1}]}]));
    assert_eq!(world.get("/things?select=id&boxes=is.null").refused(400).await?.0, "42703", "it is not embedded");
    Ok(())
}

#[tokio::test]
async fn a_foreign_keys_name_is_a_resource_on_both_sides() -> Result<()> {
    let world = world().await?.with_things().await?;
    assert_eq!(
        world.get("/things?select=id,things_box_id_fkey(name)&id=eq.1").expect(200).await?,
        json!([{"id": 1, "things_box_id_fkey": {"name": "red"}}])
    );
    assert_eq!(
        world.get("/boxes?select=name,things_spare_id_fkey(id)&order=id").expect(200).await?,
        json!([{"name": "red", "things_spare_id_fkey": []}, {"name": "blue", "things_spare_id_fkey": [{"id": 1}]}])
    );
    Ok(())
}

#[tokio::test]
async fn a_table_in_itself_by_its_own_name_is_what_refers_to_the_row() -> Result<()> {
    let world = world().await?.with_things().await?;
    assert_eq!(
        world.get("/boxes?select=name,boxes(name),up:kept_in(name)&order=id").expect(200).await?,
        json!([{"name": "red", "boxes": [{"name": "blue"}], "up": null}, {"name": "blue", "boxes": [], "up": {"name": "red"}}])
    );
    Ok(())
}

/// An embedded resource that has an alias is also filtered by the name of its table, as older programs do.
#[tokio::test]
async fn an_aliased_resource_answers_to_both_names() -> Result<()> {
    let world = world().await?.with_things().await?;
    for name in ["inside", "things"] {
        let path = format!("/boxes?select=inside:things!things_box_id_fkey(id)&{name}.order=id.desc&{name}.limit=1&id=eq.1");
        assert_eq!(world.get(&path).expect(200).await?, json!([{"inside": [{"id": 2}]}]), "{name}");
    }
    Ok(())
}

#[tokio::test]
async fn partitions_are_their_parent() -> Result<()> {
    let world = world().await?.with_things().await?;
    world
        .run(
            "create table visits (id int, box_id bigint references boxes, day date, primary key (id, day)) partition by range (day);
             create table visits_2025 partition of visits for values from ('2025-01-01') to ('2026-01-01');
             create table visits_2026 partition of visits for values from ('2026-01-01') to ('2027-01-01');
             insert into visits values (1, 1, '2025-05-05'), (2, 1, '2026-05-05');
             grant all on visits, visits_2025, visits_2026 to service_role",
        )
        .await?;
    assert_eq!(
        world.get("/boxes?select=visits(id)&id=eq.1&visits.order=id").expect(200).await?,
        json!([{"visits": [{"id": 1}, {"id": 2}]}]),
        "one relationship, not three"
    );
    assert_eq!(
        world.get("/visits?select=id,boxes(name)&day=gt.2026-01-01").expect(200).await?,
        json!([{"id": 2, "boxes": {"name": "red"}}])
    );
    assert_eq!(world.get("/visits_2025").refused(404).await?.0, "PGRST205");
    Ok(())
}

#[tokio::test]
async fn types_to_cast_to_have_the_names_of_sql() -> Result<()> {
    let world = world().await?.with_things().await?;
    for (cast, value) in [
        ("int", json!(100)),
        ("integer", json!(100)),
        ("bigint", json!(100)),
        ("decimal", json!(100)),
        ("float", json!(100.0)),
        ("double precision", json!(100.0)),
        ("char", json!("100")),
        ("character varying", json!("100")),
        ("text", json!("100")),
    ] {
        let row = world.get(&format!("/things?select=size::{cast}&id=eq.1")).expect(200).await?;
        let same = row[0]["size"].as_f64().zip(value.as_f64()).map_or(row[0]["size"] == value, |(is, should)| is == should);
        assert!(same, "{cast}: {row}");
    }
    assert_eq!(world.get("/things?select=size::nope").refused(400).await?.0, "42704");
    Ok(())
}
