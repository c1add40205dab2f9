//! Tables contain no secret in clear once the server has seen it, and an encrypted secret can be decrypted in its own row
//! only.

use std::time::Duration;

use anyhow::Result;
use gleaner_intake::channels::{Changes, Error};
use serde_json::json;

use crate::channels::world::{KEY_ONE, KEY_TWO, parrot, settings, world};

const CLEAR: &str = "insert into ingestion_providers (name, provider_code, ingestion_key, config)
    values ('Old', 'parrot', 'key-in-clear-0123456789', '{\"token\": \"token-in-clear\", \"webhook_secret\": \"hook-in-clear\", \"header\": \"X-Key\"}')";

#[tokio::test]
async fn a_dump_holds_no_secret() -> Result<()> {
    let world = world().await?;
    let added = world.channels.add(parrot("Support", &[("token", "polly-wants"), ("basic_auth.password", "a-cracker")])).await?;
    let first = added.key()?.to_owned();
    world.run(CLEAR).await?;
    world.channels.rotate_secret("Support", "token", String::from("polly-has").into(), Duration::from_secs(60)).await?;
    let second = world.channels.rotate_key("Support", Duration::from_secs(60)).await?.key()?.to_owned();
    world.channels.sweep().await?;

    let dump = world.dump().await?;
    assert!(dump.contains("Support") && dump.contains("X-Key") && dump.contains("********"), "it is the dump we think it is");
    for secret in [&*first, &*second, "polly-wants", "a-cracker", "polly-has", "key-in-clear", "token-in-clear", "hook-in-clear"] {
        assert!(!dump.contains(secret), "{secret} is in the dump");
    }
    Ok(())
}

#[tokio::test]
async fn what_is_written_in_clear_works_at_once_and_is_sealed_on_first_sight() -> Result<()> {
    let world = world().await?;
    world.run(CLEAR).await?;
    assert_eq!(
        world.text("select encode(key_hash, 'hex') from ingestion_providers").await?,
        world.text("select encode(sha256('key-in-clear-0123456789'), 'hex')").await?
    );
    let found = world.channels.by_key("key-in-clear-0123456789").await?.expect("the channel");
    assert_eq!(settings(&found)["token"], json!("token-in-clear"));
    let row = world.text("select concat(ingestion_key, config, sealed) from ingestion_providers").await?.unwrap_or_default();
    assert!(row.starts_with("ik_…") && !row.contains("clear") && row.ends_with('t'), "{row}");

    // The same key and the same secrets still work with the sealed row, for another program too.
    let found = world.elsewhere(KEY_ONE).by_key("key-in-clear-0123456789").await?.expect("the channel");
    assert_eq!(settings(&found), json!({"token": "token-in-clear", "webhook_secret": "hook-in-clear", "header": "X-Key"}));
    Ok(())
}

#[tokio::test]
async fn a_list_seals_and_shows_masks() -> Result<()> {
    let world = world().await?;
    world.run(CLEAR).await?;
    let list = world.channels.list().await?;
    assert_eq!(json!(list[0].settings), json!({"token": "********", "webhook_secret": "********", "header": "X-Key"}));
    assert!(list[0].ingestion_key.starts_with("ik_…"));
    assert!(list[0].cautions.iter().any(|caution| caution.contains("webhook_secret")), "{:?}", list[0].cautions);
    assert!(!world.dump().await?.contains("in-clear"));
    Ok(())
}

#[tokio::test]
async fn a_sealed_value_moved_to_another_row_does_not_open() -> Result<()> {
    let world = world().await?;
    world.channels.add(parrot("Mine", &[("token", "mine")])).await?;
    world.channels.add(parrot("Theirs", &[("token", "theirs")])).await?;
    world
        .run(
            "update ingestion_providers as mine set sealed_config = theirs.sealed_config, version = mine.version + 1
              from ingestion_providers as theirs where mine.name = 'Mine' and theirs.name = 'Theirs'",
        )
        .await?;
    let told = world.channels.get("Mine").await.unwrap_err().to_string();
    assert!(told.contains("moved here from another row") && !told.contains("theirs"), "{told}");
    Ok(())
}

#[tokio::test]
async fn a_missing_master_key_is_named_and_the_list_still_lists() -> Result<()> {
    let world = world().await?;
    let key = world.channels.add(parrot("Support", &[("token", "polly")])).await?.key()?.to_owned();
    let elsewhere = world.elsewhere(KEY_TWO);
    let Err(Error::Sealed { source, .. }) = elsewhere.by_key(&key).await else { panic!("opened with the wrong key") };
    let id = crate::channels::world::keys(KEY_ONE).current().to_owned();
    assert!(source.to_string().contains(&id), "{source}");
    let list = elsewhere.list().await?;
    assert!(list[0].problems[0].contains(&id), "{:?}", list[0].problems);
    Ok(())
}

#[tokio::test]
async fn the_master_key_changes_while_everything_works() -> Result<()> {
    let world = world().await?;
    let mut added = Vec::new();
    for n in 0..5 {
        added.push(world.channels.add(parrot(&format!("Channel {n}"), &[("token", "polly")])).await?.key()?.to_owned());
    }
    world.run(CLEAR).await?;
    let both = world.elsewhere(&format!("{KEY_TWO},{KEY_ONE}"));
    assert!(both.by_key(&added[0]).await?.is_some(), "both keys open");
    let done = both.reseal().await?;
    assert_eq!((done.resealed, done.locked.len()), (6, 0));
    assert_eq!(both.reseal().await?.resealed, 0, "nothing is left to do");

    let new = world.elsewhere(KEY_TWO);
    for key in &added {
        assert_eq!(settings(&new.by_key(key).await?.expect("the channel")), json!({"token": "polly"}));
    }
    assert!(world.elsewhere(KEY_ONE).by_key(&added[0]).await.is_err(), "the old key opens nothing any more");
    Ok(())
}

/// As after an update that treats a setting as secret which the version before did not.
#[tokio::test]
async fn a_secret_left_in_a_sealed_row_is_sealed_on_sight() -> Result<()> {
    let world = world().await?;
    world.channels.add(parrot("Support", &[("token", "polly")])).await?;
    world.run("update ingestion_providers set config = config || '{\"token_previous\": \"left-in-clear\"}', version = version + 1").await?;
    assert_eq!(world.text("select sealed::text from ingestion_providers").await?.as_deref(), Some("true"));
    assert_eq!(world.channels.get("Support").await?.channel.settings.both("token"), ["polly", "left-in-clear"]);
    assert!(!world.dump().await?.contains("left-in-clear"));
    Ok(())
}

/// A server seals while another program writes: the later write wins, and the other program's value is never lost.
#[tokio::test]
async fn sealing_never_undoes_a_plain_write() -> Result<()> {
    let world = world().await?;
    world.channels.add(parrot("Support", &[("token", "polly")])).await?;
    let writer = world.database.connect().await?;
    for n in 0..40 {
        let wanted = format!("secret-{n}");
        let write = async {
            let config = json!({"token": wanted, "header": "X"});
            writer.execute("update ingestion_providers set config = $1", &[&config]).await.map_err(anyhow::Error::from)
        };
        let sweeps =
            async { anyhow::Ok(futures_util::try_join!(world.channels.sweep(), world.channels.list(), world.channels.pause("Support"))?) };
        let (written, swept) = futures_util::join!(write, sweeps);
        written?;
        swept?;
        assert_eq!(settings(&world.channels.get("Support").await?.channel)["token"], json!(wanted));
    }
    Ok(())
}

#[tokio::test]
async fn errors_and_debug_output_hold_no_secret() -> Result<()> {
    let world = world().await?;
    let added = world.channels.add(parrot("Support", &[("token", "polly-wants")])).await?;
    let key = added.key()?.to_owned();
    let changes =
        Changes { settings: vec![("token".into(), json!("polly-wants")), ("header".into(), json!("polly wants"))], ..Changes::default() };
    let shown =
        format!("{added:?} {changes:?} {:?} {:?}", world.channels, world.channels.set("Support", changes.clone()).await.unwrap_err());
    assert!(!shown.contains("polly-wants") && !shown.contains(&key), "{shown}");
    Ok(())
}
