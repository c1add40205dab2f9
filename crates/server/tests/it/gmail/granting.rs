//! Grants: refreshed in time and once, stored encrypted, and given up when they are revoked.

use std::time::Duration;

use anyhow::{Context as _, Result};
use gleaner_intake::channels::Changes;
use serde_json::json;

use crate::gmail::world::{idle_world, world};

#[tokio::test]
async fn a_withdrawn_grant_is_reported_once_and_google_is_not_called_again() -> Result<()> {
    let (log, _until) = crate::log::here();
    let world = world().await?;
    world.google.mailbox().revoked = true;
    let channel = world.channel(json!({})).await?;
    let report = world.look().await?;
    assert_eq!(report.outcome, "needs_reauth", "{report:?}");
    assert!(report.error.as_deref().is_some_and(|error| error.contains("gleaner channels authorize")), "{report:?}");
    let asked = world.google.count("token");
    assert_eq!(asked, 1);
    let opened = world.channels.get("mail").await?;
    assert_eq!(opened.state, "needs_reauth");
    assert!(opened.state_detail.as_deref().is_some_and(|detail| detail.contains("expired or revoked")), "{:?}", opened.state_detail);

    // Again, by this server and by one that does not know of it yet.
    world.look().await?;
    let another = world.another()?;
    world.read_mailboxes(&another);
    another.request(channel).await?;
    world.look().await?;
    assert_eq!(world.google.count("token"), asked, "a withdrawn grant is not tried again");
    assert_eq!(world.google.calls(), asked, "and nothing else is");
    assert_eq!(log.lines_with("refuses the grant"), 1, "people are told once");
    Ok(())
}

#[tokio::test]
async fn a_new_grant_ends_the_wait() -> Result<()> {
    let world = world().await?;
    world.google.mailbox().revoked = true;
    world.google.deliver("m1", "one");
    world.channel(json!({})).await?;
    world.look().await?;
    world.google.mailbox().revoked = false;
    let new = Changes { settings: vec![("oauth_token".into(), json!("1//another"))], ..Changes::default() };
    world.channels.set("mail", new).await?;
    assert_eq!(world.stored().await?, 1);
    let opened = world.channels.get("mail").await?;
    assert_eq!((opened.state.as_str(), opened.state_detail), ("ready", None));
    Ok(())
}

#[tokio::test]
async fn many_calls_at_once_refresh_the_token_once() -> Result<()> {
    let world = world().await?;
    for n in 0..20 {
        world.google.deliver(&format!("m{n}"), "text");
    }
    world.google.mailbox().token_delay = Duration::from_millis(200);
    let channel = world.channel(json!({})).await?;
    let attachments = (0..10).map(|_| {
        let (gmail, channels) = (world.gmail.clone(), world.channels.clone());
        async move {
            let opened = channels.get(&channel.to_string()).await?;
            anyhow::Ok(gmail.attachment(opened.channel.into(), "m1", "a1").await?)
        }
    });
    let fetched = futures_util::future::try_join_all(attachments).await?;
    assert!(fetched.iter().all(|bytes| bytes == b"file"));
    world.look().await?;
    assert_eq!(world.activities().await?, 20);
    assert_eq!(world.google.mailbox().refreshes, 1);
    Ok(())
}

#[tokio::test]
async fn a_token_is_refreshed_before_it_ends_and_the_refresh_token_stays() -> Result<()> {
    let world = world().await?;
    world.channel(json!({})).await?;
    world.look().await?;
    assert_eq!(world.google.mailbox().refreshes, 1);
    // Four fifths of its life are over, and the token itself is still valid. A server that starts now reads that.
    let mut token = world.channels.get("mail").await?.channel.settings.get("oauth_token").cloned().context("stored")?;
    token["refresh_at"] = json!(1);
    world.channels.set("mail", Changes { settings: vec![("oauth_token".into(), token)], ..Changes::default() }).await?;
    let another = world.another()?;
    another.attachment(world.channels.get("mail").await?.channel.into(), "m1", "a1").await?;
    assert_eq!(world.google.mailbox().refreshes, 2);
    assert_eq!(world.google.mailbox().last_form.get("refresh_token").map(String::as_str), Some("1//refresh-secret"));
    let token = world.channels.get("mail").await?.channel.settings.get("oauth_token.refresh_token").cloned();
    assert_eq!(token, Some(json!("1//refresh-secret")));
    Ok(())
}

#[tokio::test]
async fn a_token_refused_before_its_time_is_replaced_at_once() -> Result<()> {
    let world = world().await?;
    world.channel(json!({})).await?;
    world.look().await?;
    world.google.deliver("m1", "one");
    world.google.mailbox().valid_tokens.clear();
    assert_eq!(world.stored().await?, 1);
    assert_eq!(world.google.mailbox().refreshes, 2);
    Ok(())
}

#[tokio::test]
async fn another_server_uses_the_stored_token() -> Result<()> {
    let world = world().await?;
    world.channel(json!({})).await?;
    world.look().await?;
    let another = world.another()?;
    let opened = world.channels.get("mail").await?;
    another.attachment(opened.channel.into(), "m1", "a1").await?;
    assert_eq!(world.google.mailbox().refreshes, 1);
    Ok(())
}

#[tokio::test]
async fn tokens_are_stored_sealed_and_never_logged() -> Result<()> {
    let (log, _until) = crate::log::here();
    let world = world().await?;
    world.google.deliver("m1", "one");
    world.channel(json!({})).await?;
    world.look().await?;
    world.google.mailbox().revoked = true;
    world.google.mailbox().valid_tokens.clear();
    world.look().await?;
    let dump = world
        .text(
            "select concat((select string_agg(p::text, ' ') from ingestion_providers p), (select string_agg(p::text, ' ') from gleaner.polls p),
                    (select string_agg(m::text, ' ') from gleaner.ingest_memory m), (select string_agg(a::text, ' ') from activities a))",
        )
        .await?
        .unwrap_or_default();
    assert!(dump.contains("mail"), "the dump is one");
    for secret in ["refresh-secret", "ya29.", "shh-client"] {
        assert!(!dump.contains(secret), "{secret} is in the tables");
        assert_eq!(log.lines_with(secret), 0, "{secret} is in the log");
    }
    Ok(())
}

#[tokio::test]
async fn a_channel_without_a_grant_says_what_to_do() -> Result<()> {
    let world = world().await?;
    world.channel(json!({"oauth_token": ""})).await?;
    let report = world.look().await?;
    assert!(report.error.as_deref().is_some_and(|error| error.contains("gleaner channels authorize mail")), "{report:?}");
    assert_eq!(world.google.calls(), 0);
    Ok(())
}

#[tokio::test]
async fn push_is_asked_for_where_there_is_a_topic_and_renewed_before_it_ends() -> Result<()> {
    let world = world().await?;
    world.channel(json!({"topic": "projects/p/topics/t"})).await?;
    world.look().await?;
    assert_eq!(world.google.count("watch projects/p/topics/t"), 1);
    world.look().await?;
    assert_eq!(world.google.count("watch"), 1, "it lasts a week");
    world.client.batch_execute("update gleaner.polls set watch_expires_at = now() + interval '5 days'").await?;
    world.look().await?;
    assert_eq!(world.google.count("watch"), 2);
    world.client.batch_execute("update gleaner.polls set watch_expires_at = null").await?;
    world.google.mailbox().instead.push_back(("watch", 403, json!({})));
    world.google.deliver("m1", "one");
    assert_eq!(world.stored().await?, 1, "without push the mailbox is still read");
    Ok(())
}

#[tokio::test]
async fn a_reader_that_stops_gives_its_mailbox_back() -> Result<()> {
    let world = idle_world().await?;
    world.google.mailbox().token_delay = Duration::from_secs(30);
    world.channel(json!({})).await?;
    let first = world.another()?;
    let stop = world.read_until_stopped(&first);
    world.wait_until("select status = 'running' from gleaner.polls").await?;
    stop.send_replace(true);
    world.wait_until("select status = 'ready' and due_at <= now() from gleaner.polls").await
}
