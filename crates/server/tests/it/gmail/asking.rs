//! A poll on request, over HTTP.

use anyhow::Result;
use serde_json::{Value, json};

use crate::gmail::world::{App, app, world};

#[tokio::test]
async fn the_service_key_asks_for_a_poll_and_gets_its_result() -> Result<()> {
    let world = world().await?;
    let app = app(&world).await?;
    let channel = world.channel(json!({})).await?;
    world.look().await?;
    world.google.deliver("m1", "one");
    for body in ["", "{}", "{\"channel\": \"mail\"}", &format!("{{\"channel\": \"{channel}\"}}")] {
        let answer = app.fetch(&app.service, body).await?;
        assert_eq!(answer.0, 200, "{body}: {}", answer.1);
        assert_eq!(answer.1["success"], true);
        assert_eq!(answer.1["channels"][0]["outcome"], "read");
    }
    assert_eq!(world.activities().await?, 1);
    Ok(())
}

#[tokio::test]
async fn a_poll_may_be_asked_for_without_waiting() -> Result<()> {
    let world = crate::gmail::world::idle_world().await?;
    let app = app(&world).await?;
    world.channel(json!({})).await?;
    let (status, body) = app.fetch(&app.service, "{\"wait\": 0}").await?;
    assert_eq!((status, body["channels"][0]["outcome"].as_str()), (202, Some("waiting")));
    Ok(())
}

#[tokio::test]
async fn other_keys_may_not_ask() -> Result<()> {
    let world = world().await?;
    let app = app(&world).await?;
    world.channel(json!({})).await?;
    world.look().await?;
    let wanted = world.text("select wanted_at::text from gleaner.polls").await?;
    let App { anon, signed_in, .. } = &app;
    for (token, expected) in [(anon.as_str(), 403), (signed_in.as_str(), 403), ("nonsense", 401)] {
        let (status, body) = app.fetch(token, "").await?;
        // A caller that sees no channels has requested no poll.
        let nothing = status == 200 && body["channels"] == json!([]);
        assert!(status == expected || nothing, "{status} {body}");
    }
    assert_eq!(app.fetch("", "").await?.0, 401);
    assert_eq!(world.text("select wanted_at::text from gleaner.polls").await?, wanted, "nobody was heard");
    Ok(())
}

#[tokio::test]
async fn bad_questions_get_clear_answers() -> Result<()> {
    let world = world().await?;
    let app = app(&world).await?;
    for (body, status) in [("{", 400), ("[]", 400), ("{\"channel\": 7}", 400), ("{\"channel\": \"none\"}", 404), ("\u{0}", 400)] {
        let answer = app.fetch(&app.service, body).await?;
        assert_eq!(answer.0, status, "{body}: {}", answer.1);
        assert!(answer.1["message"].is_string(), "{}", answer.1);
    }
    let none: Value = app.fetch(&app.service, "").await?.1;
    assert_eq!(none["channels"], json!([]));
    Ok(())
}
