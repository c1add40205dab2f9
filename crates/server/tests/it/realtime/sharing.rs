//! Broadcast and presence.

use anyhow::Result;
use serde_json::json;

use crate::realtime::client::{anon, stage};

#[tokio::test]
async fn a_broadcast_reaches_the_others_and_oneself_only_if_asked() -> Result<()> {
    let stage = stage().await?;
    let mut speaker = stage.connect(&anon()).await?;
    let mut listener = stage.connect_as(&anon(), "1.0.0").await?;
    speaker.send("realtime:room", "phx_join", json!({"config": {"broadcast": {"self": true, "ack": true}}})).await?;
    speaker.expect("phx_reply").await?;
    listener.send("realtime:room", "phx_join", json!({"config": {"broadcast": {"self": false}}})).await?;
    listener.expect("phx_reply").await?;

    let said = json!({"type": "broadcast", "event": "hello", "payload": {"n": 1}});
    speaker.send("realtime:room", "broadcast", said.clone()).await?;
    assert_eq!(speaker.expect("broadcast").await?.payload, said);
    assert_eq!(speaker.expect("phx_reply").await?.payload["status"], "ok");
    assert_eq!(listener.expect("broadcast").await?.payload, said);

    let mut binary = vec![3, 1, 0, 13, 5, 0, 1];
    binary.extend(b"1realtime:roomhello{\"n\":1}");
    speaker.send_binary(binary).await?;
    assert_eq!(listener.expect("broadcast").await?.payload, said);

    listener.send("realtime:room", "broadcast", said.clone()).await?;
    listener.expect("phx_reply").await?;
    listener.expect_nothing().await
}

#[tokio::test]
async fn presence_shows_who_joins_and_who_leaves() -> Result<()> {
    let stage = stage().await?;
    let mut first = stage.connect(&anon()).await?;
    first.send("realtime:room", "phx_join", json!({"config": {"presence": {"key": "ada", "enabled": true}}})).await?;
    first.expect("phx_reply").await?;
    assert_eq!(first.expect("presence_state").await?.payload, json!({}));
    first.send("realtime:room", "presence", json!({"type": "presence", "event": "track", "payload": {"mood": "fine"}})).await?;
    let diff = first.expect("presence_diff").await?.payload;
    assert_eq!(diff["joins"]["ada"]["metas"][0]["mood"], "fine");
    assert!(diff["joins"]["ada"]["metas"][0]["phx_ref"].is_string());
    first.expect("phx_reply").await?;

    let mut second = stage.connect(&anon()).await?;
    second.send("realtime:room", "phx_join", json!({"config": {"presence": {"key": "bob", "enabled": true}}})).await?;
    second.expect("phx_reply").await?;
    assert_eq!(second.expect("presence_state").await?.payload["ada"]["metas"][0]["mood"], "fine");
    drop(first);
    let diff = second.expect("presence_diff").await?.payload;
    assert_eq!(diff["leaves"]["ada"]["metas"][0]["mood"], "fine");
    Ok(())
}

#[tokio::test]
async fn a_socket_broadcasts_so_many_messages_and_so_many_bytes() -> Result<()> {
    let stage = stage().await?;
    let mut speaker = stage.connect(&anon()).await?;
    speaker.send("realtime:room", "phx_join", json!({"config": {}})).await?;
    speaker.expect("phx_reply").await?;
    speaker.send("realtime:room", "broadcast", json!({"event": "x", "payload": "x".repeat(300_000)})).await?;
    let large = speaker.expect("phx_reply").await?.payload;
    assert!(large["response"]["reason"].as_str().is_some_and(|reason| reason.contains("256 KiB")), "{large}");
    for _ in 0..600 {
        speaker.send("realtime:room", "broadcast", json!({"event": "x", "payload": {}})).await?;
    }
    let mut refused = 0;
    for _ in 0..600 {
        refused += usize::from(speaker.expect("phx_reply").await?.payload["status"] == "error");
    }
    assert!(refused > 0, "all were sent on");
    Ok(())
}

#[tokio::test]
async fn a_broadcast_over_http_reaches_all_who_have_joined() -> Result<()> {
    let stage = stage().await?;
    let mut listener = stage.connect(&anon()).await?;
    listener.send("realtime:a room", "phx_join", json!({"config": {}})).await?;
    listener.expect("phx_reply").await?;
    drop(rustls::crypto::ring::default_provider().install_default());
    let http = reqwest::Client::new();
    let url = format!("http://{}/realtime/v1/api/broadcast", stage.address);
    // `channel.httpSend`.
    let one = http.post(format!("{url}/a%20room/events/hello")).header("apikey", anon()).json(&json!({"n": 1}));
    assert_eq!(one.send().await?.status(), 202);
    let said = json!({"type": "broadcast", "event": "hello", "payload": {"n": 1}});
    assert_eq!(listener.expect("broadcast").await?.payload, said);
    // `channel.send` of a channel that is not joined.
    let messages = json!({"messages": [{"topic": "a room", "event": "hello", "payload": {"n": 1}, "private": false}]});
    assert_eq!(http.post(&url).header("apikey", anon()).json(&messages).send().await?.status(), 202);
    assert_eq!(listener.expect("broadcast").await?.payload, said);
    assert_eq!(http.post(&url).json(&messages).send().await?.status(), 401, "without a key");
    let private = http.post(format!("{url}/a%20room/events/hello?private=true")).header("apikey", anon()).json(&json!({}));
    assert_eq!(private.send().await?.status(), 403);
    let large =
        http.post(&url).header("apikey", anon()).json(&json!({"messages": [{"topic": "t", "event": "e", "payload": "x".repeat(300_000)}]}));
    assert_eq!(large.send().await?.status(), 429);
    listener.expect_nothing().await
}
