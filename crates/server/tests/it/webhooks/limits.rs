//! Rate limits: clients without a valid signature are slowed and refused, authentic senders are not.

use anyhow::Result;
use futures_util::future::try_join_all;
use serde_json::json;

use crate::webhooks::sender::SECRET;
use crate::webhooks::support::{WEBHOOK_PATH, world, world_with};

/// Headers of a trusted proxy, on behalf of that client.
fn from(client: &str) -> [(&str, &str); 2] {
    [("x-forwarded-for", client), ("x-test-signature", "wrong")]
}

#[tokio::test]
async fn unauthentic_requests_are_refused_beyond_a_hundred_a_minute_and_authentic_ones_never() -> Result<()> {
    let w = world().await?;
    let channel = w.channel().await?;
    let mut answers = Vec::new();
    for _ in 0..130 {
        answers.push(w.send("POST", &channel.target(), &[("x-test-signature", "wrong")], b"{}").await?);
    }
    assert!(answers[..100].iter().all(|answer| answer.status == 401));
    let last = answers.last().expect("one");
    assert_eq!(last.status, 429, "{last:?}");
    assert!(last.header("retry-after").and_then(|wait| wait.parse::<u32>().ok()).is_some_and(|wait| (1..=60).contains(&wait)));
    // From the same address, as behind a proxy that is not configured.
    let events: Vec<_> = (0..300).map(|n| json!({"ids": [format!("event {n}")]})).collect();
    for answer in try_join_all(events.iter().map(|event| w.post(&channel, event))).await? {
        assert_eq!(answer.status, 202, "{answer:?}");
    }
    assert_eq!(w.count("select count(*) from activities").await?, 300);
    Ok(())
}

#[tokio::test]
async fn one_stranger_does_not_use_up_the_share_of_another() -> Result<()> {
    let w = world_with(|config| {
        config.limits.rejected_per_minute = 3;
        config.trusted_proxies = vec!["127.0.0.1/32".parse().expect("a network")];
    })
    .await?;
    let channel = w.channel().await?;
    for expected in [401, 401, 401, 429] {
        assert_eq!(w.send("POST", &channel.target(), &from("192.0.2.1"), b"{}").await?.status, expected);
    }
    assert_eq!(w.send("POST", &channel.target(), &from("192.0.2.2"), b"{}").await?.status, 401);
    Ok(())
}

#[tokio::test]
async fn unknown_keys_are_limited_by_client() -> Result<()> {
    let w = world_with(|config| config.limits.rejected_per_minute = 3).await?;
    for (n, expected) in [401, 401, 401, 429].into_iter().enumerate() {
        assert_eq!(w.send("POST", &format!("{WEBHOOK_PATH}?key=guess-{n}"), &[], b"{}").await?.status, expected);
    }
    // A sender with a key is accepted from there anyway.
    let channel = w.channel().await?;
    assert_eq!(w.post(&channel, &json!({"ids": ["a"]})).await?.status, 202);
    Ok(())
}

#[tokio::test]
async fn authentic_traffic_meets_only_its_ceiling() -> Result<()> {
    let w = world_with(|config| {
        config.limits.ceiling_per_minute = 5;
        config.limits.ceiling_burst_minutes = 1;
    })
    .await?;
    let (busy, calm) = (w.channel().await?, w.channel().await?);
    for n in 0..5 {
        assert_eq!(w.post(&busy, &json!({"ids": [n.to_string()]})).await?.status, 202);
    }
    let refused = w.post(&busy, &json!({"ids": ["6"]})).await?;
    assert_eq!(refused.status, 429);
    assert!(refused.header("retry-after").is_some());
    assert_eq!(w.refusals(Some(busy.id)).await?, [("ceiling".to_owned(), 1)]);
    assert_eq!(w.post(&calm, &json!({"ids": ["1"]})).await?.status, 202);
    Ok(())
}

#[tokio::test]
async fn only_trusted_proxies_say_who_the_client_is() -> Result<()> {
    let headers = [("x-test-signature", SECRET), ("x-odd", "seen"), ("x-forwarded-for", "3.134.147.250, 192.0.2.9")];
    let client = async |trusted: &str| {
        let trusted = gleaner_server::config::networks(trusted).expect("networks");
        let w = world_with(|config| config.trusted_proxies = trusted).await?;
        let channel = w.channel().await?;
        w.send("POST", &channel.target(), &headers, br#"{"ids": ["a"]}"#).await?;
        w.refusals(Some(channel.id)).await?;
        w.text("select host(last_client) || ' ' || detail from gleaner.ingest_refusal where reason = 'warning'").await
    };
    assert_eq!(client("").await?.as_deref(), Some("127.0.0.1 odd: seen, from Some(127.0.0.1)"));
    assert_eq!(client("127.0.0.1").await?.as_deref(), Some("192.0.2.9 odd: seen, from Some(192.0.2.9)"));
    assert_eq!(client("127.0.0.0/8, 192.0.2.0/24").await?.as_deref(), Some("3.134.147.250 odd: seen, from Some(3.134.147.250)"));
    Ok(())
}
