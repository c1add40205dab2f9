//! Which caller gets which file, and how.

use anyhow::Result;
use gleaner_intake::files::Files;
use serde_json::json;
use uuid::Uuid;

use crate::media::provider::{LocalProvider, RECORDING};
use crate::media::world::{World, token, world, world_with};
use crate::world::eventually;

#[tokio::test]
async fn a_recording_is_fetched_once_and_then_served_from_the_store() -> Result<()> {
    let world = world().await?;
    let activity = world.at(&world.provider.url("/recording")).await?;
    let first = world.get(activity, "0").await?;
    assert_eq!((first.status, first.text().as_str(), first.header("content-type")), (200, RECORDING, "audio/x-wav"));
    eventually("the file to be kept", async || Ok(world.files.get(&format!("activities/{activity}/fetched-0")).await?.is_some())).await?;
    let second = world.get(activity, "0").await?;
    assert_eq!((second.status, second.text().as_str(), second.header("content-type")), (200, RECORDING, "audio/x-wav"));
    assert_eq!(second.header("accept-ranges"), "bytes");
    assert_eq!(world.provider.asked().len(), 1);
    Ok(())
}

#[tokio::test]
async fn what_the_row_says_of_a_file_is_what_it_is_served_as() -> Result<()> {
    let world = world().await?;
    let raw_data = json!({"source_type": "url", "content": world.provider.url("/chunked"), "format": "audio/wav"});
    let activity = world.activity(None, raw_data, json!({})).await?;
    assert_eq!(world.get(activity, "0").await?.header("content-type"), "audio/wav");
    eventually("the file to be kept", async || Ok(world.files.get(&format!("activities/{activity}/fetched-0")).await?.is_some())).await?;
    assert_eq!(world.get(activity, "0").await?.header("content-type"), "audio/wav");
    assert_eq!(world.provider.asked().len(), 1, "a file whose length was not told is kept as well");
    Ok(())
}

#[tokio::test]
async fn nothing_is_kept_where_the_operator_says_so() -> Result<()> {
    let world = world_with(|options| options.keep = false).await?;
    let activity = world.at(&world.provider.url("/recording")).await?;
    for _ in 0..2 {
        assert_eq!(world.get(activity, "0").await?.text(), RECORDING);
    }
    assert_eq!(world.get_with(activity, "0", &world.service, Some("bytes=0-3")).await?.text(), RECORDING, "the whole, then");
    assert_eq!(world.provider.asked().len(), 3);
    Ok(())
}

#[tokio::test]
async fn a_part_is_served_also_of_what_was_not_fetched_yet() -> Result<()> {
    let world = world().await?;
    let activity = world.at(&world.provider.url("/recording")).await?;
    let size = RECORDING.len();
    for (range, expected, told) in [
        ("bytes=0-3", &RECORDING[..4], format!("bytes 0-3/{size}")),
        ("bytes=4-", &RECORDING[4..], format!("bytes 4-{}/{size}", size - 1)),
        ("bytes=-2", &RECORDING[size - 2..], format!("bytes {}-{}/{size}", size - 2, size - 1)),
        ("bytes=8-9999", &RECORDING[8..], format!("bytes 8-{}/{size}", size - 1)),
    ] {
        let answer = world.get_with(activity, "0", &world.service, Some(range)).await?;
        assert_eq!((answer.status, answer.text().as_str(), answer.header("content-range")), (206, expected, told.as_str()), "{range}");
        assert_eq!(answer.header("content-length"), expected.len().to_string());
    }
    let outside = world.get_with(activity, "0", &world.service, Some("bytes=9999-")).await?;
    assert_eq!((outside.status, outside.header("content-range")), (416, format!("bytes */{size}").as_str()));
    assert_eq!(world.provider.asked().len(), 1);
    Ok(())
}

#[tokio::test]
async fn only_those_who_may_read_the_row_get_the_file() -> Result<()> {
    let world = world().await?;
    let (owner, other) = (Uuid::now_v7(), Uuid::now_v7());
    for (name, user) in [("owner", owner), ("other", other)] {
        world
            .client
            .execute(
                "insert into sales (first_name, last_name, email, user_id, allow_remote_processing) values ($1, '', $1 || '@example.com', $2, false)",
                &[&name, &user],
            )
            .await?;
    }
    let activity = world.at(&world.provider.url("/recording")).await?;
    world
        .client
        .execute("update activities set sales_id = (select id from sales where user_id = $2) where id = $1", &[&activity, &owner])
        .await?;
    let ask = async |token: &str| anyhow::Ok(world.get_with(activity, "0", token, None).await?.status);
    assert_eq!(ask(&token("authenticated", owner)?).await?, 200, "the owner");
    assert_eq!(ask(&token("authenticated", other)?).await?, 404, "somebody else's private row");
    assert_eq!(ask(&token("anon", Uuid::nil())?).await?, 404, "nobody signed in");
    assert_eq!(ask("").await?, 401, "no token at all");
    assert_eq!(ask("forged").await?, 401);
    Ok(())
}

#[tokio::test]
async fn a_row_cannot_be_written_to_reach_another_rows_file() -> Result<()> {
    let world = world().await?;
    let private = Uuid::now_v7();
    world.files.put(&Files::of_activity(private, 0), "private").await?;
    for path in [Files::of_activity(private, 0), "master.key".into(), "../master.key".into()] {
        let activity = world.activity(None, json!({}), json!({"attachments": [{"name": "x", "file": path}]})).await?;
        assert_eq!(world.get(activity, "0").await?.status, 404, "{path}");
    }
    Ok(())
}

#[tokio::test]
async fn attachments_come_from_the_store_as_files_to_save() -> Result<()> {
    let world = world().await?;
    let activity = world.activity(None, json!({"source_type": "text", "content": "see attached"}), json!({})).await?;
    let path = Files::of_activity(activity, 0);
    world.files.put(&path, "<script>").await?;
    let metadata = json!({"attachments": [{"name": "Grüße.html", "content_type": "text/html", "file": path}, {"name": "lost"}]});
    world.client.execute("update activities set metadata = $2 where id = $1", &[&activity, &metadata]).await?;
    let answer = world.get(activity, "0").await?;
    assert_eq!((answer.status, answer.text().as_str()), (200, "<script>"));
    assert_eq!(answer.header("content-disposition"), "attachment; filename*=UTF-8''Gr%C3%BC%C3%9Fe.html");
    assert_eq!(answer.header("x-content-type-options"), "nosniff");
    assert!(answer.header("content-security-policy").contains("sandbox"));
    assert_eq!(world.get(activity, "1").await?.status, 410, "only described");
    assert_eq!(world.get(activity, "2").await?.status, 404);
    Ok(())
}

#[tokio::test]
async fn a_page_at_a_senders_address_does_not_run_at_ours() -> Result<()> {
    let world = world().await?;
    let answer = world.fetch(&world.provider.url("/page")).await?;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("content-disposition"), "attachment");
    assert!(answer.header("content-security-policy").contains("sandbox"));
    Ok(())
}

#[tokio::test]
async fn failures_say_whose_they_are() -> Result<()> {
    let world = world().await?;
    assert_eq!(world.fetch(&world.provider.url("/gone")).await?.status, 410);
    for path in ["/broken", "/locked"] {
        let answer = world.fetch(&world.provider.url(path)).await?;
        assert_eq!(answer.status, 502, "{path}");
        assert!(answer.text().contains("the provider does not hand the file out"), "{}", answer.text());
    }
    assert_eq!(world.fetch("http://127.0.0.1:1/closed").await?.status, 502);
    assert_eq!(world.fetch("not an address").await?.status, 403);
    let activity = world.at(&world.provider.url("/recording")).await?;
    for n in ["1", "-1", "x", "99999999999999999999999"] {
        assert_eq!(world.get(activity, n).await?.status, 404, "{n}");
    }
    assert_eq!(world.get(Uuid::now_v7(), "0").await?.status, 404);
    let odd = reqwest::Client::new().get(format!("{}/v1/media/not-a-uuid/0", world.base)).bearer_auth(&world.service).send().await?;
    assert_eq!(odd.status(), 404);
    Ok(())
}

#[tokio::test]
async fn whatsapp_files_are_fetched_by_id_with_the_channels_token() -> Result<()> {
    let world = bases().await?;
    let channel = world.channel("whatsapp", json!({"access_token": "wa-token"})).await?;
    let ids = [json!({"reference": "777"}), json!({"reference": "778"}), json!({"reference": "../x"})];
    let activity = world.announced(channel, &ids).await?;
    assert_eq!(world.get(activity, "0").await?.text(), RECORDING);
    // WhatsApp returns a URL that is not one of its own: the token is not sent there.
    let other = LocalProvider::start().await?;
    world.provider.redirect_to(&other.url("/recording"));
    assert_eq!(world.get(activity, "1").await?.status, 403);
    assert_eq!(other.asked(), []);
    assert_eq!(world.get(activity, "2").await?.status, 403);
    Ok(())
}

#[tokio::test]
async fn telegram_files_are_fetched_by_id_and_the_token_is_never_shown() -> Result<()> {
    let world = bases().await?;
    let channel = world.channel("telegram", json!({"bot_token": "bot-token"})).await?;
    let ids = [json!({"reference": "F1"}), json!({"reference": "F2"}), json!({"reference": "F3"})];
    let activity = world.announced(channel, &ids).await?;
    assert_eq!(world.get(activity, "0").await?.text(), RECORDING);
    for n in ["1", "2"] {
        let answer = world.get(activity, n).await?;
        assert!(answer.status == 502 || answer.status == 410, "{n}: {}", answer.status);
        assert!(!answer.text().contains("bot-token"), "{}", answer.text());
    }
    Ok(())
}

/// A world whose provider replaces WhatsApp and Telegram.
async fn bases() -> Result<World> {
    let provider = LocalProvider::start().await?;
    let base = provider.url("");
    let mut world = world_with(|options| {
        options.whatsapp_base.clone_from(&base);
        options.telegram_base = base;
        options.allow_private.clear();
    })
    .await?;
    world.provider = provider;
    Ok(world)
}
