//! Other writers: a value written in clear replaces the secret, and a mask that is written back keeps it.

use anyhow::Result;
use serde_json::json;

use crate::channels::world::{parrot, settings, world};

#[tokio::test]
async fn a_mask_written_back_keeps_the_secret() -> Result<()> {
    let world = world().await?;
    let added = world.channels.add(parrot("Support", &[("token", "polly"), ("basic_auth.password", "p")])).await?;
    // A form that reads the row, changes one field and writes the whole row back.
    world
        .run("update ingestion_providers set name = 'Help', ingestion_key = ingestion_key, config = config || '{\"header\": \"X-New\"}'")
        .await?;
    let found = world.channels.get("Help").await?;
    assert_eq!(found.key()?, added.key()?);
    assert_eq!(settings(&found.channel), json!({"token": "polly", "basic_auth": {"password": "p"}, "header": "X-New"}));
    Ok(())
}

#[tokio::test]
async fn a_value_written_in_clear_replaces_the_secret_beside_kept_ones() -> Result<()> {
    let world = world().await?;
    world.channels.add(parrot("Support", &[("token", "polly"), ("basic_auth.password", "p")])).await?;
    world.run("update ingestion_providers set config = jsonb_set(config, '{token}', '\"brand-new-token\"')").await?;
    let found = world.channels.get("Support").await?.channel;
    assert_eq!(settings(&found), json!({"token": "brand-new-token", "basic_auth": {"password": "p"}}));
    // A setting that is left out is removed.
    world.run("update ingestion_providers set config = config - 'basic_auth'").await?;
    assert_eq!(settings(&world.channels.get("Support").await?.channel), json!({"token": "brand-new-token"}));
    assert!(!world.dump().await?.contains("brand-new-token"));
    Ok(())
}

#[tokio::test]
async fn a_key_written_in_clear_replaces_the_key_at_once() -> Result<()> {
    let world = world().await?;
    let old = world.channels.add(parrot("Support", &[("token", "polly")])).await?.key()?.to_owned();
    world.run("update ingestion_providers set ingestion_key = 'another-key-0123456789'").await?;
    assert!(world.channels.by_key("another-key-0123456789").await?.is_some());
    assert!(world.channels.by_key(&old).await?.is_none());
    assert_eq!(world.channels.reveal_key("Support").await?.as_str(), "another-key-0123456789");
    Ok(())
}

/// A whole row that was read yesterday and is sent back today restores neither yesterday's key nor yesterday's secret.
#[tokio::test]
async fn an_outdated_row_sent_back_whole_keeps_what_there_is_now() -> Result<()> {
    let world = world().await?;
    let old = world.channels.add(parrot("Support", &[("token", "polly")])).await?.key()?.to_owned();
    world.run("create table yesterday as table ingestion_providers").await?;
    let new = world.channels.rotate_key("Support", std::time::Duration::ZERO).await?.key()?.to_owned();
    world.channels.rotate_secret("Support", "token", String::from("fresh").into(), std::time::Duration::ZERO).await?;
    world
        .run("update ingestion_providers as now set (name, config, ingestion_key, key_hash, sealed_key, sealed_config, sealed, version, secrets_expire)
              = (y.name, y.config, y.ingestion_key, y.key_hash, y.sealed_key, y.sealed_config, y.sealed, y.version, y.secrets_expire)
              from yesterday as y where y.id = now.id")
        .await?;
    assert!(world.channels.by_key(&old).await?.is_none());
    assert_eq!(settings(&world.channels.by_key(&new).await?.expect("the channel")), json!({"token": "fresh"}));
    Ok(())
}

#[tokio::test]
async fn a_row_inserted_with_a_mask_has_no_key_until_it_is_rotated() -> Result<()> {
    let world = world().await?;
    world
        .run(
            "insert into ingestion_providers (name, provider_code, ingestion_key, config)
              values ('Copy', 'parrot', 'ik_…0123456789ab', '{\"token\": \"********\"}')",
        )
        .await?;
    assert!(world.channels.by_key("ik_…0123456789ab").await?.is_none());
    let shown = &world.channels.list().await?[0];
    assert!(shown.problems.iter().any(|problem| problem.contains("token is missing")), "{:?}", shown.problems);
    assert!(shown.problems.iter().any(|problem| problem.contains("no ingestion key")), "{:?}", shown.problems);
    let rotated = world.channels.rotate_key("Copy", std::time::Duration::ZERO).await?;
    assert!(world.channels.by_key(rotated.key()?).await?.is_some());
    Ok(())
}

#[tokio::test]
async fn the_flag_written_among_the_settings_moves_to_its_column() -> Result<()> {
    let world = world().await?;
    world
        .run(
            "insert into ingestion_providers (name, provider_code, config)
              values ('Old', 'parrot', '{\"token\": \"t\", \"auto_create_contacts\": true}')",
        )
        .await?;
    world.channels.sweep().await?;
    assert_eq!(
        world.text("select concat(auto_create_contacts, config) from ingestion_providers").await?.as_deref(),
        Some("t{\"token\": \"********\"}")
    );
    Ok(())
}

/// Other programs may store their own settings in the row, as long as the ones we read are right.
#[tokio::test]
async fn an_unknown_setting_is_reported_and_breaks_nothing() -> Result<()> {
    let world = world().await?;
    let config = json!({"token": "polly", "webhook_secret": "hush"});
    world.run(&format!("insert into ingestion_providers (name, provider_code, ingestion_key, config) values ('Theirs', 'parrot', 'a-key-of-their-own-making', '{config}')")).await?;
    let listed = world.channels.list().await?;
    assert_eq!(listed[0].problems, Vec::<String>::new());
    let [caution] = &listed[0].cautions[..] else { panic!("{listed:?}") };
    assert!(caution.contains("webhook_secret is no setting") && !caution.contains("hush"), "{caution}");
    Ok(())
}
