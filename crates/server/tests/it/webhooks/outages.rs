//! The database becomes unreachable and comes back.

use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::json;

use crate::webhooks::support::world_on;
use crate::world::private_server;

#[tokio::test]
async fn without_a_database_senders_get_retry_after_and_the_server_recovers_by_itself() -> Result<()> {
    let mut server = private_server(&[]).await?;
    let url = server.url().to_owned();
    let mut w = world_on(&url, |config| config.commit_within = Duration::from_secs(1)).await?;
    let channel = w.channel().await?;
    ensure!(w.post(&channel, &json!({"ids": ["before"]})).await?.status == 202);

    server.crash().await?;
    for key in [channel.key.as_str(), "nobody"] {
        let answer = w
            .send(
                "POST",
                &format!("{}?key={key}", crate::webhooks::support::WEBHOOK_PATH),
                &[("x-test-signature", crate::webhooks::sender::SECRET)],
                br#"{"ids": ["during"]}"#,
            )
            .await?;
        assert_eq!((answer.status, answer.header("retry-after")), (503, Some("5")), "{answer:?}");
    }
    assert_eq!(w.send("GET", "/ready", &[], b"").await?.status, 503);
    assert_eq!(w.send("GET", "/health", &[], b"").await?.status, 200);

    server.restart().await?;
    // The next request succeeds: nothing has to be restarted, and no broken connection is left in the pool.
    let answer = w.post(&channel, &json!({"ids": ["during"]})).await?;
    assert_eq!(answer.status, 202, "{answer:?}");
    assert_eq!(w.send("GET", "/ready", &[], b"").await?.status, 200);
    w.client = gleaner::connect(&url).await?;
    assert_eq!(w.count("select count(*) from activities").await?, 2);
    // The refusals that could not be written at the time are written now.
    assert_eq!(w.refusals(Some(channel.id)).await?, [("unavailable".to_owned(), 1)]);
    Ok(())
}

#[tokio::test]
async fn a_short_outage_is_not_even_noticed() -> Result<()> {
    let mut server = private_server(&[]).await?;
    let url = server.url().to_owned();
    let w = world_on(&url, |_| {}).await?;
    let channel = w.channel().await?;
    ensure!(w.post(&channel, &json!({"ids": ["before"]})).await?.status == 202);
    server.crash().await?;
    let during = json!({"ids": ["during"]});
    let (answer, restarted) = tokio::join!(w.post(&channel, &during), server.restart());
    restarted?;
    assert_eq!(answer?.status, 202);
    Ok(())
}
