//! Insert, upsert, update, delete.

use anyhow::Result;
use http::Method;
use serde_json::{Value, json};

use crate::rest::world::world;

#[tokio::test]
async fn an_insert_answers_with_nothing_unless_asked() -> Result<()> {
    let world = world().await?.with_things().await?;
    let answer = world.post("/things", json!({"name": "cup"})).send().await?;
    assert_eq!((answer.status.as_u16(), answer.text.as_str()), (201, ""));
    let answer = world.post("/things?select=id,name,size", json!({"name": "cup"})).returning().send().await?;
    assert_eq!((answer.status.as_u16(), answer.json()), (201, json!([{"id": 5, "name": "cup", "size": null}])));
    assert_eq!(answer.header("preference-applied"), "return=representation");
    assert_eq!(world.post("/boxes?select=name", json!({"name": "b"})).returning().single().expect(201).await?, json!({"name": "b"}));
    assert_eq!(world.post("/things?select=name", json!({})).returning().expect(201).await?, json!([{"name": "nameless"}]), "all defaults");
    Ok(())
}

#[tokio::test]
async fn a_list_is_inserted_with_the_columns_it_names() -> Result<()> {
    let world = world().await?.with_things().await?;
    let path = "/things?columns=%22name%22%2C%22size%22&select=name,size";
    let rows = world.post(path, json!([{"name": "a", "size": 1}, {"name": "b", "mood": "wild"}])).returning().expect(201).await?;
    assert_eq!(rows, json!([{"name": "a", "size": 1}, {"name": "b", "size": null}]));
    let rows = world.post("/things?select=name", json!([{"name": "a"}, {"name": "b"}])).returning().expect(201).await?;
    assert_eq!(rows, json!([{"name": "a"}, {"name": "b"}]));
    // A column that is missing in a row gets null, and its default only when the request prefers that.
    let lacking = json!([{"size": 1}, {"name": "b"}, {"name": null, "size": 3}]);
    let path = "/things?columns=name,size&select=name,size";
    assert_eq!(world.post(path, lacking.clone()).returning().refused(400).await?.0, "23502");
    let lacking = json!([{"size": 1}, {"name": "b"}]);
    let answer = world.post(path, lacking).prefer("return=representation, missing=default").send().await?;
    assert_eq!(answer.json(), json!([{"name": "nameless", "size": 1}, {"name": "b", "size": null}]), "{}", answer.text);
    assert_eq!(answer.header("preference-applied"), "missing=default, return=representation");
    // The default of an identity column is its next number.
    let path = "/things?columns=id,name&select=id,name&order=id";
    let rows =
        world.post(path, json!([{"id": 1000, "name": "x"}, {"name": "y"}])).prefer("missing=default").returning().expect(201).await?;
    assert_eq!((rows[0]["name"].as_str(), rows[1]["id"].as_i64()), (Some("y"), Some(1000)));
    Ok(())
}

#[tokio::test]
async fn bodies_that_cannot_be_used_are_refused() -> Result<()> {
    let world = world().await?.with_things().await?;
    assert_eq!(
        world.post("/things", json!([{"name": "a"}, {"size": 1}])).refused(400).await?,
        ("PGRST102".into(), "All object keys must match".into())
    );
    for body in ["", "  ", "{", "3", "null", "\"x\"", "[1]", "[[]]", "{\"name\": }", "{\"name\": \"a\"} trailing"] {
        for method in [Method::POST, Method::PATCH] {
            let call = world.call(method, "/things?id=eq.1").raw(body).header("content-type", "application/json");
            assert_eq!(call.refused(400).await?, ("PGRST102".into(), "Empty or invalid json".into()), "{body}");
        }
    }
    let call = world.call(Method::POST, "/things").raw(vec![b'"', 0xff, b'"']);
    assert_eq!(call.refused(400).await?.0, "PGRST102");
    assert_eq!(world.patch("/things?id=eq.1", json!([{"name": "a"}, {"name": "b"}])).refused(400).await?.0, "PGRST102");
    assert_eq!(world.post("/things", json!([{}, {}])).refused(400).await?.0, "PGRST102");
    let call = world.call(Method::POST, "/things").raw("name=a").header("content-type", "application/x-www-form-urlencoded");
    assert_eq!(call.refused(400).await?, ("PGRST102".into(), "Content-Type not acceptable: application/x-www-form-urlencoded".into()));
    assert_eq!(world.post("/things", json!([])).returning().expect(201).await?, json!([]), "nothing was asked, nothing happens");
    assert_eq!(world.text("select count(*)::text from things").await?.as_deref(), Some("3"));
    Ok(())
}

#[tokio::test]
async fn a_body_has_a_limit() -> Result<()> {
    let settings = gleaner_supabase::rest::Settings { max_body: 1000, ..Default::default() };
    let world = crate::rest::world::world_with(settings).await?.with_things().await?;
    assert_eq!(world.post("/things", json!({"name": "x".repeat(2000)})).refused(413).await?.0, "PGRST102");
    world.post("/things", json!({"name": "x".repeat(900)})).expect(201).await?;
    Ok(())
}

/// A sender that never finishes its body does not block us forever.
#[tokio::test]
async fn a_body_has_a_time() -> Result<()> {
    let settings = gleaner_supabase::rest::Settings { body_within: std::time::Duration::from_millis(100), ..Default::default() };
    let world = crate::rest::world::world_with(settings).await?.with_things().await?;
    let (code, message) = world.call(Method::POST, "/things").endless().refused(408).await?;
    assert_eq!((code.as_str(), message.as_str()), ("PGRST102", "The body took too long to arrive"));
    Ok(())
}

#[tokio::test]
async fn a_change_answers_with_nothing_unless_asked() -> Result<()> {
    let world = world().await?.with_things().await?;
    for id in [1, 99] {
        let answer = world.patch(&format!("/things?id=eq.{id}"), json!({"size": 5})).send().await?;
        assert_eq!((answer.status.as_u16(), answer.text.as_str()), (204, ""));
    }
    let rows = world.patch("/things?id=gte.2&order=id.desc&select=id,size", json!({"size": 6})).returning().expect(200).await?;
    assert_eq!(rows, json!([{"id": 3, "size": 6}, {"id": 2, "size": 6}]));
    assert_eq!(world.patch("/things?id=eq.99", json!({"size": 6})).returning().expect(200).await?, json!([]));
    assert_eq!(world.patch("/things?id=eq.1", json!({})).expect(204).await?, Value::Null);
    let answer = world.patch("/things?id=lte.2", json!({"size": 7})).prefer("count=exact").send().await?;
    assert_eq!((answer.status.as_u16(), answer.header("content-range")), (204, "0-1/2"));
    assert_eq!(world.patch("/big_things?id=eq.1", json!({"size": 9})).expect(204).await?, Value::Null, "a view hides it");
    Ok(())
}

#[tokio::test]
async fn a_deletion_answers_with_nothing_unless_asked() -> Result<()> {
    let world = world().await?.with_things().await?;
    let answer = world.delete("/things?id=eq.3").send().await?;
    assert_eq!((answer.status.as_u16(), answer.text.as_str()), (204, ""));
    assert_eq!(world.delete("/things?id=eq.2&select=name").returning().expect(200).await?, json!([{"name": "balloon"}]));
    assert_eq!(world.delete("/things?id=eq.2").returning().expect(200).await?, json!([]));
    Ok(())
}

#[tokio::test]
async fn a_write_without_a_filter_is_refused() -> Result<()> {
    let world = world().await?.with_things().await?;
    assert_eq!(world.patch("/things", json!({"size": 5})).refused(400).await?, ("21000".into(), "UPDATE requires a WHERE clause".into()));
    assert_eq!(world.delete("/things?order=id&limit=1").refused(400).await?, ("21000".into(), "DELETE requires a WHERE clause".into()));
    world.delete("/things?or=(id.eq.2,id.eq.3)").expect(204).await?;
    assert_eq!(world.text("select count(*)::text from things").await?.as_deref(), Some("1"));
    Ok(())
}

#[tokio::test]
async fn an_upsert_merges_or_leaves_what_is_there() -> Result<()> {
    let world = world().await?.with_things().await?;
    let merge = "resolution=merge-duplicates,return=representation";
    let both = json!([{"id": 1, "name": "Anvil"}, {"id": 50, "name": "new"}]);
    let answer = world.post("/things?select=id,name,size&order=id", both).prefer(merge).send().await?;
    assert_eq!(answer.status, 201);
    assert_eq!(answer.json(), json!([{"id": 1, "name": "Anvil", "size": 100}, {"id": 50, "name": "new", "size": null}]));
    assert_eq!(answer.header("preference-applied"), "resolution=merge-duplicates, return=representation");
    // No row was inserted.
    let rows = world.post("/things?select=id,name", json!({"id": 1, "name": "ANVIL"})).prefer(merge).expect(200).await?;
    assert_eq!(rows, json!([{"id": 1, "name": "ANVIL"}]));
    world.post("/things", json!({"id": 1, "name": "anvil"})).prefer("resolution=merge-duplicates").expect(200).await?;
    assert_eq!(world.post("/labels?select=thing_id", json!({"thing_id": 1})).prefer(merge).expect(200).await?, json!([{"thing_id": 1}]));
    let ignore = "resolution=ignore-duplicates,return=representation";
    let rows =
        world.post("/things?select=id", json!([{"id": 1, "name": "no"}, {"id": 51, "name": "yes"}])).prefer(ignore).expect(201).await?;
    assert_eq!(rows, json!([{"id": 51}]));
    // By another key than the primary key.
    let code = world.text("select code::text from things where id = 2").await?.unwrap();
    let rows = world.post("/things?on_conflict=code&select=id,size", json!({"code": code, "size": 77})).prefer(merge).expect(200).await?;
    assert_eq!(rows, json!([{"id": 2, "size": 77}]));
    assert_eq!(world.post("/things?on_conflict=nope", json!({"size": 1})).prefer(merge).refused(400).await?.0, "42703");
    assert_eq!(world.post("/things?on_conflict=size", json!({"size": 1})).prefer(merge).refused(400).await?.0, "42P10");
    Ok(())
}

/// `.single()` on a write, with and without `.select()`.
#[tokio::test]
async fn a_write_that_breaks_the_one_row_rule_leaves_nothing_behind() -> Result<()> {
    let world = world().await?.with_things().await?;
    for returning in [true, false] {
        for (path, rows) in [("/things?id=lte.2", 2), ("/things?id=eq.99", 0)] {
            let patch = world.patch(path, json!({"size": 55})).single();
            let delete = world.delete(path).single();
            for call in [patch, delete] {
                let answer = if returning { call.returning() } else { call }.send().await?;
                assert_eq!((answer.status.as_u16(), &answer.error()["code"]), (406, &json!("PGRST116")));
                assert_eq!(answer.error()["details"], format!("The result contains {rows} rows"));
            }
        }
        let two = world.post("/things", json!([{"name": "a"}, {"name": "b"}])).single();
        assert_eq!(if returning { two.returning() } else { two }.refused(406).await?.0, "PGRST116");
    }
    assert_eq!(world.text("select string_agg(size::text, ',' order by id) from things").await?.as_deref(), Some("100,10"));
    let row = world.patch("/things?id=eq.1&size=eq.100&select=id,size", json!({"size": 55})).returning().single().expect(200).await?;
    assert_eq!(row, json!({"id": 1, "size": 55}));
    world.patch("/things?id=eq.1", json!({"size": 56})).single().expect(204).await?;
    Ok(())
}

#[tokio::test]
async fn a_write_of_more_rows_than_allowed_is_undone() -> Result<()> {
    let world = world().await?.with_things().await?;
    let strict = "handling=strict, max-affected=2";
    assert_eq!(world.delete("/things?id=gt.0").prefer(strict).refused(400).await?.0, "PGRST124");
    assert_eq!(world.text("select count(*)::text from things").await?.as_deref(), Some("3"));
    world.delete("/things?id=gt.1").prefer(strict).expect(204).await?;
    Ok(())
}

/// A role that may write a table but not read it can still write.
#[tokio::test]
async fn a_write_that_shows_nothing_takes_no_right_to_read() -> Result<()> {
    let world = world().await?;
    world.run("create table inbox (id int primary key, note text); grant insert on inbox to anon").await?;
    world.post("/inbox", json!({"id": 1, "note": "x"})).anon().expect(201).await?;
    assert_eq!(world.post("/inbox", json!({"id": 2, "note": "x"})).anon().returning().refused(401).await?.0, "42501");
    // Rights may differ by column.
    world.run("grant select (id) on inbox to anon").await?;
    assert_eq!(world.post("/inbox?select=id", json!({"id": 2, "note": "x"})).anon().returning().expect(201).await?, json!([{"id": 2}]));
    assert_eq!(world.get("/inbox?select=id").anon().expect(200).await?, json!([{"id": 1}, {"id": 2}]));
    Ok(())
}
