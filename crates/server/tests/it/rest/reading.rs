//! Lists, single rows, pages and counts.

use anyhow::Result;
use http::Method;
use serde_json::json;

use crate::rest::world::world;

#[tokio::test]
async fn rows_come_as_a_list() -> Result<()> {
    let world = world().await?.with_things().await?;
    let answer = world.get("/things?select=id,name&order=id.asc&limit=2").header("accept", "*/*").send().await?;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("content-type"), "application/json; charset=utf-8");
    assert_eq!(answer.header("content-range"), "0-1/*");
    assert_eq!(answer.header("content-profile"), "public");
    assert_eq!(answer.json(), json!([{"id": 1, "name": "anvil"}, {"id": 2, "name": "balloon"}]));
    let all = world.get("/things").expect(200).await?;
    assert_eq!(all.as_array().map(Vec::len), Some(3));
    assert_eq!(all[0].as_object().map(|row| row.len()), Some(14), "columns are never left out: {}", all[0]);
    Ok(())
}

#[tokio::test]
async fn one_row_comes_as_an_object_and_any_other_number_is_refused() -> Result<()> {
    let world = world().await?.with_things().await?;
    let answer = world.get("/things?select=id&name=eq.anvil").single().send().await?;
    assert_eq!((answer.status.as_u16(), answer.text.as_str()), (200, r#"{"id":1}"#));
    assert_eq!(answer.header("content-type"), "application/vnd.pgrst.object+json; charset=utf-8");
    for (path, rows) in [("/things?name=eq.nobody", 0), ("/things?id=lt.3", 2)] {
        let answer = world.get(path).single().send().await?;
        assert_eq!(answer.status, 406);
        let expected = json!({"code": "PGRST116", "message": "Cannot coerce the result to a single JSON object",
            "details": format!("The result contains {rows} rows"), "hint": null});
        assert_eq!(answer.error(), expected);
    }
    Ok(())
}

#[tokio::test]
async fn a_count_is_given_on_request_and_a_part_is_marked_as_one() -> Result<()> {
    let world = world().await?.with_things().await?;
    for (path, status, range) in [
        ("/things?order=id", 200, "0-2/3"),
        ("/things?order=id&limit=2", 206, "0-1/3"),
        ("/things?order=id&offset=1&limit=1", 206, "1-1/3"),
        ("/things?id=gt.1&limit=5", 200, "0-1/2"),
        ("/things?id=eq.99", 200, "*/0"),
        ("/things?limit=0", 206, "*/3"),
    ] {
        for count in ["exact", "planned", "estimated"] {
            let answer = world.get(path).prefer(&format!("count={count}")).send().await?;
            assert_eq!((answer.status.as_u16(), answer.header("content-range")), (status, range), "{path}");
            assert_eq!(answer.header("preference-applied"), format!("count={count}"));
        }
    }
    assert_eq!(world.get("/things?id=eq.99").send().await?.header("content-range"), "*/*");
    Ok(())
}

#[tokio::test]
async fn a_page_beyond_the_end_and_a_negative_limit_cannot_be_had() -> Result<()> {
    let world = world().await?.with_things().await?;
    assert_eq!(world.get("/things?offset=10").prefer("count=exact").refused(416).await?.0, "PGRST103");
    assert_eq!(world.get("/things?limit=-1").refused(416).await?.0, "PGRST103");
    assert_eq!(world.get("/things?offset=10").expect(200).await?, json!([]), "nobody counted");
    assert_eq!(world.get("/things?limit=0").expect(200).await?, json!([]));
    assert_eq!(world.get("/things?limit=many").refused(400).await?.0, "PGRST100");
    Ok(())
}

#[tokio::test]
async fn a_head_has_the_headers_of_the_page_and_no_body() -> Result<()> {
    let world = world().await?.with_things().await?;
    let answer = world.call(Method::HEAD, "/things?limit=2").prefer("count=exact").send().await?;
    assert_eq!((answer.status.as_u16(), answer.header("content-range"), answer.text.as_str()), (206, "0-1/3", ""));
    // The connection is still in sync.
    let answer = world.call(Method::HEAD, "/things?nope=eq.1").send().await?;
    assert_eq!((answer.status.as_u16(), answer.text.as_str()), (400, ""));
    assert_eq!(world.get("/things?id=eq.1&select=name").expect(200).await?, json!([{"name": "anvil"}]));
    Ok(())
}

#[tokio::test]
async fn no_caller_gets_more_rows_than_its_role_may() -> Result<()> {
    let mut settings = gleaner_supabase::rest::Settings::default();
    settings.anon.max_rows = Some(2);
    let world = crate::rest::world::world_with(settings).await?.with_things().await?;
    let answer = world.get("/things?limit=100").anon().prefer("count=exact").send().await?;
    assert_eq!((answer.status.as_u16(), answer.header("content-range")), (206, "0-1/3"));
    assert_eq!(world.get("/things").expect(200).await?.as_array().map(Vec::len), Some(3));
    Ok(())
}

#[tokio::test]
async fn order_places_nulls_as_asked() -> Result<()> {
    let world = world().await?.with_things().await?;
    for (order, ids) in [
        ("size", [2, 1, 3]),
        ("size.asc", [2, 1, 3]),
        ("size.desc", [3, 1, 2]),
        ("size.asc.nullsfirst", [3, 2, 1]),
        ("size.desc.nullslast", [1, 2, 3]),
        ("fragile.desc.nullslast,id.asc", [2, 1, 3]),
        ("data->a->>b.desc.nullslast,id", [2, 1, 3]),
        ("data->list->0,id.desc", [1, 3, 2]),
    ] {
        let rows = world.get(&format!("/things?select=id&order={order}")).expect(200).await?;
        let found: Vec<_> = rows.as_array().unwrap().iter().map(|row| row["id"].as_i64().unwrap()).collect();
        assert_eq!(found, ids, "{order}");
    }
    Ok(())
}

#[tokio::test]
async fn select_renames_casts_and_reaches_into_json() -> Result<()> {
    let world = world().await?.with_things().await?;
    for (select, row) in [
        ("name", json!({"name": "anvil"})),
        (" title : name ,\n\tid ", json!({"title": "anvil", "id": 1})),
        ("title:name,id", json!({"title": "anvil", "id": 1})),
        ("data->a", json!({"a": {"b": 1}})),
        ("data->a->>b", json!({"b": "1"})),
        ("deep:data->a->b", json!({"deep": 1})),
        ("data->list->1", json!({"list": 20})),
        ("tags->>0", json!({"tags": "heavy"})),
        ("size::text", json!({"size": "100"})),
        ("s:size::float8,w:weight::text", json!({"s": 100, "w": "12345678901234567890.123"})),
        ("\"name\",\"odd one\":odd", json!({"name": "anvil", "odd one": "ANVIL"})),
        ("it's \"; drop table x--:name", json!(null)),
    ] {
        let path = format!("/things?id=eq.1&select={}", url(select));
        if row.is_null() {
            assert_eq!(world.get(&path).refused(400).await?.0, "PGRST100", "{select}");
        } else {
            assert_eq!(world.get(&path).expect(200).await?, json!([row]), "{select}");
        }
    }
    Ok(())
}

/// More columns than PostgreSQL's functions take arguments.
#[tokio::test]
async fn a_wide_table_can_be_renamed_too() -> Result<()> {
    let world = world().await?;
    let columns: Vec<_> = (0..120).map(|n| format!("c{n} int default {n}")).collect();
    world
        .run(&format!("create table wide ({}); insert into wide default values; grant all on wide to service_role", columns.join(", ")))
        .await?;
    let row = &world.get("/wide?select=*,again:c7").expect(200).await?[0];
    assert_eq!((row.as_object().map(|row| row.len()), &row["c119"], &row["again"]), (Some(121), &json!(119), &json!(7)));
    Ok(())
}

fn url(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}
