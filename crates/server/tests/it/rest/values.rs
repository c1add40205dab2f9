//! What values look like in JSON, in both directions.

use anyhow::Result;
use serde_json::json;

use crate::rest::world::world;

#[tokio::test]
async fn values_have_the_forms_of_the_contract() -> Result<()> {
    let world = world().await?.with_things().await?;
    // Independent of the database's own time zone.
    world.run(&format!("alter database {} set timezone = 'Asia/Tokyo'", world.database.name)).await?;
    let answer = world.get("/things?id=eq.1&select=id,size,weight,fragile,mood,tags,data,made_at,local_at").send().await?;
    let expected = concat!(
        r#"[{"id":1,"size":100,"weight":12345678901234567890.123,"fragile":false,"mood":"calm","tags":["heavy","iron"],"#,
        r#""data":{"a": {"b": 1}, "list": [10, 20], "word": "x"},"#,
        r#""made_at":"2025-01-15T10:30:00.123456+00:00","local_at":"2025-01-15T10:30:00.5"}]"#
    );
    assert_eq!(answer.text, expected);
    let row = world.get("/things?id=eq.3&select=size,weight,fragile,tags,data").expect(200).await?;
    assert_eq!(row, json!([{"size": null, "weight": null, "fragile": null, "tags": null, "data": null}]));
    Ok(())
}

/// The renamed form is built differently; values look the same.
#[tokio::test]
async fn values_have_the_same_forms_under_other_names() -> Result<()> {
    let world = world().await?.with_things().await?;
    let row = world.get("/things?id=eq.1&select=m:made_at,l:local_at,t:tags,d:data,w:weight").send().await?;
    let expected = concat!(
        r#"[{"m" : "2025-01-15T10:30:00.123456+00:00", "l" : "2025-01-15T10:30:00.5", "t" : ["heavy","iron"], "#,
        r#""d" : {"a": {"b": 1}, "list": [10, 20], "word": "x"}, "w" : 12345678901234567890.123}]"#
    );
    assert_eq!(row.text, expected);
    Ok(())
}

#[tokio::test]
async fn values_are_taken_in_the_forms_they_are_given_in() -> Result<()> {
    let world = world().await?.with_things().await?;
    let sent = r#"{"name": "ünï \"q\" \\ 'x'", "size": 7, "weight": 0.1234567890123456789, "fragile": true, "mood": "wild",
        "tags": ["a,b", "\"", "{}"], "data": {"x": [1, null, {"y": "z"}]}, "made_at": "2025-03-01T12:00:00.123Z", "local_at": null}"#;
    let select = "select=name,size,weight,fragile,mood,tags,data,made_at,local_at";
    let call = world.call(http::Method::POST, &format!("/things?{select}")).raw(sent).header("content-type", "application/json");
    let answer = call.returning().send().await?;
    assert_eq!(answer.status, 201, "{}", answer.text);
    assert!(answer.text.contains("\"weight\":0.1234567890123456789"), "{}", answer.text);
    let row = &answer.json()[0];
    assert_eq!(row["name"], "ünï \"q\" \\ 'x'");
    assert_eq!(row["tags"], json!(["a,b", "\"", "{}"]));
    assert_eq!(row["data"], json!({"x": [1, null, {"y": "z"}]}));
    assert_eq!(row["made_at"], "2025-03-01T12:00:00.123+00:00");
    // Any kind of JSON.
    for data in [json!("text"), json!(3.5), json!([]), json!(true)] {
        let row = world.patch("/things?id=eq.1&select=data", json!({"data": data})).returning().single().expect(200).await?;
        assert_eq!(row["data"], data);
    }
    Ok(())
}
