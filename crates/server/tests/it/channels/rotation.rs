//! Two valid secrets at a time, and the expiry of the older one.

use std::time::Duration;

use anyhow::Result;
use gleaner_intake::channels::Changes;
use serde_json::json;

use crate::channels::world::{KEY_ONE, parrot, settings, world};

const DAY: Duration = Duration::from_secs(86_400);

#[tokio::test]
async fn both_secrets_are_good_until_the_previous_one_ends() -> Result<()> {
    let world = world().await?;
    let added = world.channels.add(parrot("Support", &[("token", "old")])).await?;
    let rotated = world.channels.rotate_secret("Support", "token", String::from("new").into(), DAY).await?;
    assert_eq!(rotated.channel.settings.both("token"), ["new", "old"]);
    assert!(rotated.expires.contains_key("token_previous"));

    // The previous secret expires.
    world.run("update ingestion_providers set secrets_expire = jsonb_build_object('token_previous', now()), version = version + 1").await?;
    let found = world.elsewhere(KEY_ONE).by_key(added.key()?).await?.expect("the channel");
    assert_eq!(found.settings.both("token"), ["new"]);
    assert_eq!(
        world.text("select concat(config, secrets_expire) from ingestion_providers").await?.as_deref(),
        Some("{\"token\": \"********\"}{}")
    );
    Ok(())
}

/// The webhook endpoint does not accept an expired secret, although it queries the database only every few seconds.
#[tokio::test]
async fn a_remembered_channel_forgets_a_secret_when_it_ends() -> Result<()> {
    let world = world().await?;
    let key = world.channels.add(parrot("Support", &[("token", "old")])).await?.key()?.to_owned();
    world.channels.rotate_secret("Support", "token", String::from("new").into(), Duration::from_millis(300)).await?;
    let seen = async || anyhow::Ok(world.channels.by_key(&key).await?.expect("the channel").settings.both("token").len());
    let began = std::time::Instant::now();
    while seen().await? == 2 {
        assert!(began.elapsed() < Duration::from_secs(3), "still believed");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok(())
}

#[tokio::test]
async fn the_end_of_a_secret_is_not_the_end_of_one_written_over_it() -> Result<()> {
    let world = world().await?;
    world.channels.add(parrot("Support", &[("token", "old")])).await?;
    world.channels.rotate_secret("Support", "token", String::from("new").into(), DAY).await?;
    world.run("update ingestion_providers set secrets_expire = jsonb_build_object('token_previous', now()), version = version + 1").await?;
    world.run("update ingestion_providers set config = config || '{\"token_previous\": \"theirs\"}'").await?;
    let found = world.channels.get("Support").await?;
    assert_eq!(settings(&found.channel), json!({"token": "new", "token_previous": "theirs"}));
    assert!(found.expires.is_empty());
    Ok(())
}

#[tokio::test]
async fn an_old_key_is_good_for_as_long_as_asked() -> Result<()> {
    let world = world().await?;
    let first = world.channels.add(parrot("Support", &[("token", "polly")])).await?.key()?.to_owned();
    let second = world.channels.rotate_key("Support", DAY).await?.key()?.to_owned();
    assert!(world.channels.by_key(&first).await?.is_some() && world.channels.by_key(&second).await?.is_some());
    let third = world.channels.rotate_key("Support", Duration::ZERO).await?.key()?.to_owned();
    for (key, good) in [(&first, false), (&second, false), (&third, true)] {
        assert_eq!(world.channels.by_key(key).await?.is_some(), good);
    }
    Ok(())
}

#[tokio::test]
async fn only_secrets_are_rotated_and_only_to_something_new() -> Result<()> {
    let world = world().await?;
    world.channels.add(parrot("Support", &[("token", "polly"), ("header", "X")])).await?;
    for (setting, new, told) in
        [("header", "Y", "no secret"), ("token", "", "empty"), ("token", "********", "mask"), ("token", "polly", "the one there is")]
    {
        let error = world.channels.rotate_secret("Support", setting, new.to_owned().into(), DAY).await.unwrap_err().to_string();
        assert!(error.contains(told), "{setting}={new}: {error}");
    }
    Ok(())
}

/// A previous secret without an expiry would be a second password for ever.
#[tokio::test]
async fn a_previous_secret_written_by_hand_ends_after_a_day_or_the_given_time() -> Result<()> {
    let world = world().await?;
    let hours = async || {
        let end = "select round(extract(epoch from (secrets_expire ->> 'token_previous')::timestamptz - now()) / 3600)::text from ingestion_providers";
        anyhow::Ok(world.text(end).await?.unwrap_or_default())
    };
    // Written when the channel is added,
    world.channels.add(parrot("Support", &[("token", "new"), ("token_previous", "old")])).await?;
    assert_eq!(hours().await?, "24");
    // when it is changed,
    let set = |keep_for| {
        let settings = vec![("token_previous".into(), json!("older"))];
        world.channels.set("Support", Changes { settings, keep_for, ..Changes::default() })
    };
    let told = set(Some(2 * DAY)).await?;
    assert_eq!((hours().await?.as_str(), told.expires.contains_key("token_previous")), ("48", true));
    set(None).await?;
    assert_eq!(hours().await?, "24");
    // and by another program, counted from when we see it.
    world.run("update ingestion_providers set secrets_expire = '{}', version = version + 1").await?;
    world.run("update ingestion_providers set config = config || '{\"token_previous\": \"theirs\"}'").await?;
    world.channels.sweep().await?;
    assert_eq!(hours().await?, "24");
    assert_eq!(world.channels.get("Support").await?.channel.settings.both("token"), ["new", "theirs"]);
    // A change of another setting does not extend it.
    world.run("update ingestion_providers set secrets_expire = jsonb_build_object('token_previous', now() + interval '5 hours'), version = version + 1").await?;
    world.channels.set("Support", Changes { name: Some("Help".into()), ..Changes::default() }).await?;
    assert_eq!(hours().await?, "5");
    Ok(())
}
