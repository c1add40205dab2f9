//! A person consents: the browser goes to Google and returns.

use anyhow::{Context as _, Result};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use reqwest::Url;
use serde_json::json;
use sha2::{Digest as _, Sha256};

use crate::gmail::world::{App, app, world};

fn parameter(url: &str, name: &str) -> Option<String> {
    Url::parse(url).ok()?.query_pairs().find(|(known, _)| known == name).map(|(_, value)| value.into_owned())
}

#[tokio::test]
async fn consent_becomes_a_sealed_grant_and_the_mailbox_is_read() -> Result<()> {
    let world = world().await?;
    let App { base, .. } = app(&world).await?;
    world.channel(json!({"oauth_token": ""})).await?;
    world.google.deliver("m1", "one");
    let channel = world.channels.get("mail").await?.channel;
    let consent = world.gmail.ask_consent(&channel, &format!("{base}/oauth/google/callback"))?;
    world.gmail.expect(&consent).await?;
    let asked = |name: &str| parameter(&consent.url, name).unwrap_or_default();
    assert_eq!((asked("access_type").as_str(), asked("prompt").as_str(), asked("response_type").as_str()), ("offline", "consent", "code"));
    assert_eq!(asked("code_challenge_method"), "S256");
    assert_eq!(asked("scope"), "https://www.googleapis.com/auth/gmail.readonly");

    let back = format!("{base}/oauth/google/callback?state={}&code=4/code", consent.state);
    let answer = reqwest::get(&back).await?;
    assert_eq!(answer.status(), 200, "{}", answer.text().await?);
    let form = world.google.mailbox().last_form.clone();
    assert_eq!(form["grant_type"], "authorization_code");
    assert_eq!(form["code"], "4/code");
    assert_eq!(form["redirect_uri"], format!("{base}/oauth/google/callback"));
    let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(form["code_verifier"].as_bytes()));
    assert_eq!(challenge, asked("code_challenge"), "the verifier belongs to the challenge");
    let stored = world.channels.get("mail").await?.channel;
    assert_eq!(stored.settings.text("oauth_token.refresh_token"), Some("1//from-consent"));
    world.wait_until("select count(*) = 1 from activities").await?;
    assert!(
        !world
            .text("select config::text || coalesce(sealed_config, '') from ingestion_providers")
            .await?
            .context("row")?
            .contains("from-consent")
    );

    let again = reqwest::get(&back).await?;
    assert_eq!(again.status(), 400, "a state is used once");
    Ok(())
}

#[tokio::test]
async fn a_callback_without_a_pending_consent_gets_nothing() -> Result<()> {
    let world = world().await?;
    let App { base, .. } = app(&world).await?;
    world.channel(json!({"oauth_token": ""})).await?;
    let channel = world.channels.get("mail").await?.channel;
    let consent = world.gmail.ask_consent(&channel, "https://x/oauth/google/callback")?;
    world.gmail.expect(&consent).await?;
    for query in ["", "?code=4/x", "?state=&code=4/x", "?state=guess&code=4/x"] {
        assert_eq!(reqwest::get(format!("{base}/oauth/google/callback{query}")).await?.status(), 400, "{query}");
    }
    world.client.batch_execute("update gleaner.ingest_memory set expires_at = now() - interval '1 second'").await?;
    let late = reqwest::get(format!("{base}/oauth/google/callback?state={}&code=4/x", consent.state)).await?;
    assert_eq!(late.status(), 400, "too late");
    assert_eq!(world.google.count("token"), 0);
    Ok(())
}

#[tokio::test]
async fn a_person_who_says_no_changes_nothing() -> Result<()> {
    let world = world().await?;
    let App { base, .. } = app(&world).await?;
    world.channel(json!({})).await?;
    world.look().await?;
    let channel = world.channels.get("mail").await?.channel;
    let consent = world.gmail.ask_consent(&channel, "https://x/oauth/google/callback")?;
    world.gmail.expect(&consent).await?;
    let answer = reqwest::get(format!("{base}/oauth/google/callback?state={}&error=access_denied", consent.state)).await?;
    assert_eq!(answer.status(), 403);
    assert_eq!(world.channels.get("mail").await?.channel.settings.text("oauth_token.refresh_token"), Some("1//refresh-secret"));
    Ok(())
}

#[tokio::test]
async fn a_code_that_google_rejects_is_reported_and_stores_nothing() -> Result<()> {
    let world = world().await?;
    let App { base, .. } = app(&world).await?;
    world.channel(json!({"oauth_token": ""})).await?;
    let channel = world.channels.get("mail").await?.channel;
    let consent = world.gmail.ask_consent(&channel, "https://x/oauth/google/callback")?;
    world.gmail.expect(&consent).await?;
    world.google.mailbox().revoked = true;
    let answer = reqwest::get(format!("{base}/oauth/google/callback?state={}&code=4/old", consent.state)).await?;
    assert_eq!(answer.status(), 502);
    assert!(world.channels.get("mail").await?.channel.settings.get("oauth_token.refresh_token").is_none());
    Ok(())
}

#[tokio::test]
async fn consent_is_not_asked_for_without_a_client() -> Result<()> {
    let world = world().await?;
    world.channel(json!({"client_secret": ""})).await?;
    let channel = world.channels.get("mail").await?.channel;
    let refused = world.gmail.ask_consent(&channel, "https://x/oauth/google/callback");
    assert!(refused.is_err_and(|error| error.to_string().contains("client_secret")));
    Ok(())
}
