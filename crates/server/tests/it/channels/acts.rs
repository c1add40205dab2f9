//! The acts on channels.

use anyhow::Result;
use gleaner_intake::channels::{Changes, Error, NewChannel};
use serde_json::{Value, json};

use crate::channels::world::{parrot, settings, settings_of, world};

#[tokio::test]
async fn a_channel_is_found_by_its_key_name_and_id() -> Result<()> {
    let world = world().await?;
    let ada = world.person("ada@example.com", false).await?;
    let new =
        NewChannel { owner: Some("Ada@Example.com".into()), ..parrot("Support", &[("token", "polly"), ("auto_create_contacts", "true")]) };
    let added = world.channels.add(new).await?;
    assert_eq!(added.key()?.len(), 43, "32 bytes in base64");

    let by_key = world.channels.by_key(added.key()?).await?.expect("the channel");
    assert_eq!((by_key.id, by_key.sales_id, by_key.auto_create_contacts), (added.channel.id, Some(ada), true));
    assert_eq!(settings(&by_key), json!({"token": "polly"}));
    assert_eq!(world.channels.get("Support").await?.channel.id, added.channel.id);
    assert_eq!(world.channels.get(&added.channel.id.to_string()).await?.owner.as_deref(), Some("ada@example.com"));
    for nobody in ["", "x", &added.key_mask()] {
        assert!(world.channels.by_key(nobody).await?.is_none(), "{nobody:?}");
    }
    Ok(())
}

#[tokio::test]
async fn every_mistake_is_reported_at_once_and_nothing_is_stored() -> Result<()> {
    let world = world().await?;
    world.person("ada@example.com", false).await?;
    let new = NewChannel {
        name: " ".into(),
        owner: Some("adda@example.com".into()),
        ingestion_key: Some(String::from("short").into()),
        ..parrot("", &[("header", "two words"), ("colour", "green")])
    };
    let told = world.channels.add(new).await.unwrap_err().to_string();
    for part in ["needs a name", "16 to 256", "ada@example.com", "colour is no setting", "token is missing", "one word"] {
        assert!(told.contains(part), "{part}: {told}");
    }
    let told = world.channels.add(NewChannel { provider_code: "pigeon".into(), ..parrot("Pigeons", &[]) }).await.unwrap_err().to_string();
    assert!(told.contains("pigeon") && told.contains("parrot"), "{told}");
    assert_eq!(world.text("select count(*)::text from ingestion_providers").await?.as_deref(), Some("0"));
    Ok(())
}

#[tokio::test]
async fn channels_are_found_by_name_and_namesakes_by_id() -> Result<()> {
    let world = world().await?;
    let first = world.channels.add(parrot("Support", &[("token", "one")])).await?.channel.id;
    assert!(matches!(world.channels.add(parrot("Support", &[("token", "two")])).await, Err(Error::Taken { id, .. }) if id == first));
    world.run("insert into ingestion_providers (name, provider_code, config) values ('Support', 'parrot', '{\"token\": \"x\"}')").await?;
    let told = world.channels.get("Support").await.unwrap_err().to_string();
    assert!(told.contains(&first.to_string()) && told.contains("id"), "{told}");
    assert!(matches!(world.channels.get("Suport").await, Err(Error::Unknown(_))));
    assert_eq!(world.channels.get(&first.to_string()).await?.channel.id, first);
    Ok(())
}

#[tokio::test]
async fn what_is_set_changes_and_the_rest_stays() -> Result<()> {
    let world = world().await?;
    world.person("ada@example.com", false).await?;
    let added = world.channels.add(parrot("Support", &[("token", "polly"), ("basic_auth.password", "p"), ("header", "X-Old")])).await?;
    let changes = Changes {
        name: Some("Help".into()),
        owner: Some(Some("ada@example.com".into())),
        settings: vec![("header".into(), Value::Null), ("basic_auth.username".into(), json!("ada")), ("token".into(), json!("********"))],
        ..Changes::default()
    };
    let set = world.channels.set("Support", changes).await?;
    assert_eq!(settings(&set.channel), json!({"token": "polly", "basic_auth": {"username": "ada", "password": "p"}}));
    assert_eq!((set.channel.name.as_str(), set.owner.as_deref()), ("Help", Some("ada@example.com")));
    assert_eq!(set.key()?, added.key()?);

    let wrong = Changes { settings: vec![("token".into(), Value::Null), ("colour".into(), json!(1))], ..Changes::default() };
    let told = world.channels.set("Help", wrong).await.unwrap_err().to_string();
    assert!(told.contains("token is missing") && told.contains("colour"), "{told}");
    let set = world.channels.set("Help", Changes { owner: Some(None), ..Changes::default() }).await?;
    assert_eq!((set.channel.sales_id, settings(&set.channel)["token"].clone()), (None, json!("polly")));
    Ok(())
}

#[tokio::test]
async fn a_change_takes_effect_at_the_webhook_endpoint_at_once() -> Result<()> {
    let world = world().await?;
    let added = world.channels.add(parrot("Support", &[("token", "polly")])).await?;
    let key = added.key()?;
    let is_active = async || anyhow::Ok(world.channels.by_key(key).await?.map(|channel| channel.is_active));
    assert_eq!(is_active().await?, Some(true));
    world.channels.pause("Support").await?;
    assert_eq!(is_active().await?, Some(false));
    world.channels.resume("Support").await?;
    assert_eq!(is_active().await?, Some(true));
    world.channels.delete("Support").await?;
    assert_eq!(is_active().await?, None);
    assert!(matches!(world.channels.delete("Support").await, Err(Error::Unknown(_))));
    Ok(())
}

/// Two programs make four changes at the same time, each to another setting. No change undoes another.
#[tokio::test]
async fn changes_at_the_same_moment_are_all_kept() -> Result<()> {
    let world = world().await?;
    world.channels.add(parrot("Support", &[("token", "polly")])).await?;
    let change = |name: &'static str, value: &'static str| {
        let (one, other) = (world.channels.clone(), world.elsewhere(crate::channels::world::KEY_ONE));
        async move {
            let channels = if name == "header" { one } else { other };
            channels.set("Support", Changes { settings: vec![(name.into(), json!(value))], ..Changes::default() }).await
        }
    };
    let names = [("header", "X-A"), ("basic_auth.username", "ada"), ("basic_auth.password", "p"), ("default_region", "DE")];
    for changed in futures_util::future::join_all(names.map(|(name, value)| change(name, value))).await {
        changed?;
    }
    let whole = world.channels.get("Support").await?.channel;
    assert_eq!(settings(&whole), Value::from(settings_of(&[&[("token", "polly")], &names[..]].concat()).as_map().clone()));
    Ok(())
}
