//! Files are deleted with the activity they belong to.

use std::time::Duration;

use anyhow::Result;
use gleaner_intake::files::Files;
use gleaner_intake::webhooks::forget_files;
use serde_json::json;

use crate::media::world::world;

#[tokio::test]
async fn the_files_of_a_deleted_activity_are_deleted_and_no_others() -> Result<()> {
    let world = world().await?;
    let listed = json!({"attachments": [{"name": "a.txt"}]});
    let text = json!({"source_type": "text", "content": "hi"});
    let gone = world.activity(None, text.clone(), listed.clone()).await?;
    let stays = world.activity(None, text.clone(), listed).await?;
    let recording = world.at("https://example.com/call.wav").await?;
    let bare = world.activity(None, text, json!({"attachments": []})).await?;
    for (activity, name) in [(gone, "0"), (gone, "fetched-1"), (gone, "fetched-1.type"), (stays, "0"), (recording, "fetched-0")] {
        world.files.put(&format!("activities/{activity}/{name}"), "bytes").await?;
    }
    world.client.execute("delete from activities where id = any ($1)", &[&vec![gone, recording, bare]]).await?;

    let pool = world.pool.clone();
    assert_eq!(forget_files(&pool, &world.files, Duration::from_secs(60)).await?, 0, "a fetch may be under way");
    assert_eq!(forget_files(&pool, &world.files, Duration::ZERO).await?, 2, "one had no files to begin with");
    for (activity, name, there) in [
        (gone, "0", false),
        (gone, "fetched-1", false),
        (gone, "fetched-1.type", false),
        (recording, "fetched-0", false),
        (stays, "0", true),
    ] {
        assert_eq!(world.files.get(&format!("activities/{activity}/{name}")).await?.is_some(), there, "{name}");
    }
    assert_eq!(Files::of_activity(stays, 0), format!("activities/{stays}/0"), "where the door puts them");
    assert_eq!(forget_files(&pool, &world.files, Duration::ZERO).await?, 0);
    Ok(())
}
