//! The same hostile input as in the property test of the compiler, now sent to PostgreSQL: it never reports an error in our
//! SQL, only in values.

use anyhow::Result;
use serde_json::json;

use crate::rest::world::world;

const PIECES: [&str; 12] =
    ["'", "\"", "'; drop table things; --", "\\", "$1", "$$", "/*", ") or 1=1 --", "{\"", "%", "a,b)(", "\u{1F980}\u{202E}\n\t"];

const PLACES: [&str; 16] = [
    "name=eq.{}",
    "name=in.({})",
    "name=ilike.{}",
    "data->>{}=eq.{}",
    "data->a->{}=eq.{}",
    "tags=cs.{}",
    "data=cs.{}",
    "or=(name.eq.{},data->>{}.eq.{})",
    "select={}:name",
    "select=data->>{}",
    "select=name::{}",
    "select=boxes!{}(name)",
    "order={}",
    "order=data->>{}",
    "{}=eq.1",
    "code=eq.{}",
];

fn encode(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

#[tokio::test]
async fn hostile_requests_are_answered_or_refused_and_change_nothing() -> Result<()> {
    let world = world().await?.with_things().await?;
    let before = world.text("select string_agg(things::text, '|' order by id) from things").await?;
    for place in PLACES {
        for piece in PIECES {
            let quoted = format!("\"{}\"", piece.replace('\\', "\\\\").replace('"', "\\\""));
            for piece in [piece, &quoted] {
                let path = format!("/things?{}", place.replace("{}", &encode(piece)));
                let answer = world.get(&path).send().await?;
                assert!(answer.status.as_u16() < 500, "{path}: {}", answer.text);
                if answer.status != 200 {
                    let code = answer.error()["code"].clone();
                    assert!(!["42601", "42P02", "42P18"].contains(&code.as_str().unwrap_or_default()), "{path}: {}", answer.text);
                }
            }
        }
    }
    for piece in PIECES {
        let row = world.post("/things?select=name", json!({"name": piece})).returning().single().expect(201).await?;
        assert_eq!(row, json!({"name": piece}), "values come back as they went in");
        let found = world.get(&format!("/things?select=name&name=eq.{}", encode(piece))).expect(200).await?;
        assert_eq!(found, json!([{"name": piece}]));
        world.delete(&format!("/things?name=eq.{}", encode(piece))).expect(204).await?;
        assert_eq!(world.post("/things", json!({piece: 1})).refused(400).await?.0, "PGRST204");
        assert_eq!(world.post("/rpc/claim_stale_activity", json!({piece: 1})).refused(404).await?.0, "PGRST202");
    }
    assert_eq!(world.text("select string_agg(things::text, '|' order by id) from things").await?, before);
    Ok(())
}
