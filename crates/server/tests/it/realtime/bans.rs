//! A socket is closed when its user is banned.

use std::time::{Duration, Instant};

use anyhow::Result;
use serde_json::json;

use super::client::{Stage, service, stage, user};

/// Creates a person who can sign in. Returns the id.
async fn person(stage: &Stage, name: &str) -> Result<String> {
    let id = stage.person(name, true).await?;
    stage.run(&format!("insert into auth.users (id, email) values ('{id}', '{name}@example.com')")).await?;
    Ok(id)
}

fn activities() -> serde_json::Value {
    json!([{"event": "*", "schema": "public", "table": "activities"}])
}

#[tokio::test]
async fn a_ban_closes_the_sockets_of_that_user_at_once_and_no_others() -> Result<()> {
    let stage = stage().await?;
    let (ada, bob) = (person(&stage, "ada").await?, person(&stage, "bob").await?);
    let mut banned = stage.connect(&user(&ada)).await?;
    banned.follow("hers", activities()).await?;
    // Also a socket that follows no table, and so causes no query.
    let mut talking = stage.connect(&user(&ada)).await?;
    talking.send("realtime:room", "phx_join", json!({"config": {}})).await?;
    talking.expect("phx_reply").await?;
    let mut other = stage.connect(&user(&bob)).await?;
    other.follow("his", activities()).await?;

    let began = Instant::now();
    stage.run(&format!("select gleaner.change_user('{ada}', '{{\"ban\": \"forever\"}}', null)")).await?;
    assert!(banned.is_closed().await && talking.is_closed().await);
    assert!(began.elapsed() < Duration::from_secs(8), "by the bell, and not by the look every ten seconds: {:?}", began.elapsed());
    stage.run("insert into activities (type) values ('note')").await?;
    assert_eq!(other.change().await?["type"], "INSERT");
    Ok(())
}

#[tokio::test]
async fn no_row_is_sent_after_a_ban_without_a_notification_and_the_socket_is_closed_soon() -> Result<()> {
    let stage = stage().await?;
    let ada = person(&stage, "ada").await?;
    let (mut banned, mut witness) = (stage.connect(&user(&ada)).await?, stage.connect(&service()).await?);
    banned.follow("hers", activities()).await?;
    witness.follow("all", activities()).await?;
    stage.run("insert into activities (type) values ('note')").await?;
    banned.change().await?;
    witness.change().await?;
    stage.run(&format!("update auth.users set banned_until = 'infinity' where id = '{ada}'")).await?;
    // Changes are sent in order: when the second arrives, every subscriber that may see the first has received it.
    for _ in 0..2 {
        stage.run("insert into activities (type) values ('note')").await?;
        witness.change().await?;
    }
    assert!(banned.closes_silently().await?);
    Ok(())
}

#[tokio::test]
async fn who_is_banned_cannot_join() -> Result<()> {
    let stage = stage().await?;
    let ada = person(&stage, "ada").await?;
    stage.run(&format!("update auth.users set banned_until = 'infinity' where id = '{ada}'")).await?;
    let mut socket = stage.connect(&user(&ada)).await?;
    socket.send("realtime:room", "phx_join", json!({"config": {}})).await?;
    let reply = socket.expect("phx_reply").await?;
    assert_eq!(
        (&reply.payload["status"], &reply.payload["response"]["reason"]),
        (&json!("error"), &json!("InvalidJWTToken: User is banned"))
    );
    Ok(())
}
