//! Lists, single rows, pages and counts.

use anyhow::Result;
use http::Method;
use serde_json::json;

use crate::world::world;

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
