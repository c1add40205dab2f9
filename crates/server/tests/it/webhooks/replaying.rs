//! Stored requests are replayed, and are stored no longer than they should be.

use std::time::Duration;

use anyhow::{Context as _, Result};
use gleaner_intake::webhooks::Raw;
use gleaner_intake::webhooks::prune;
use gleaner_intake::webhooks::replay::{How, Outcome, Replayed, Replayer, Which};
use serde_json::json;
use uuid::Uuid;

use crate::webhooks::sender::SECRET;
use crate::webhooks::support::{World, world};

fn replayer(w: &World) -> Replayer {
    let state = w.server.state();
    Replayer { pool: w.pool.clone(), channels: state.channels.clone(), files: state.files.clone() }
}

/// Replays every stored request.
async fn replay(w: &World, how: How) -> Result<Vec<Replayed>> {
    let replayer = replayer(w);
    let mut all = Vec::new();
    for id in replayer.find(&Which::default(), None, 100).await? {
        all.push(replayer.replay(id, how).await?.context("kept")?);
    }
    Ok(all)
}

#[tokio::test]
async fn what_was_not_understood_at_the_time_is_stored_by_a_replay() -> Result<()> {
    let w = world().await?;
    let channel = w.channel().await?;
    w.send("POST", &channel.target(), &[("x-test-signature", SECRET)], b"not json").await?;
    let failed = replay(&w, How::default()).await?;
    assert!(failed[0].failed && failed[0].note.as_deref().is_some_and(|note| note.contains("not JSON")), "{failed:?}");
    // The bug is fixed: now the request would be understood.
    let body = json!({"ids": ["late"], "attachments": ["file"]}).to_string();
    w.client.execute("update gleaner.raw_request set body = $1", &[&body.as_bytes()]).await?;

    let dry = replay(&w, How { dry_run: true, update: false }).await?;
    assert_eq!((dry[0].events[0].outcome, w.count("select count(*) from activities").await?), (Outcome::WouldStore, 0));
    let done = replay(&w, How::default()).await?;
    assert_eq!((done[0].events[0].outcome, done[0].events[0].external_id.as_str()), (Outcome::Stored, "late"));
    assert_eq!(w.count("select count(*) from activities").await?, 1);
    // Again: there is still one activity, and the stored request refers to it.
    let again = replay(&w, How::default()).await?;
    assert_eq!((again[0].events[0].outcome, again[0].events[0].activity), (Outcome::Unchanged, done[0].events[0].activity));
    let known: Uuid = w.client.query_one("select activity_ids[1] from gleaner.raw_request", &[]).await?.get(0);
    assert_eq!(Some(known), done[0].events[0].activity);
    Ok(())
}

#[tokio::test]
async fn update_rewrites_what_waits_and_leaves_what_was_begun() -> Result<()> {
    let w = world().await?;
    let channel = w.channel().await?;
    let waiting = w.post(&channel, &json!({"ids": ["waits"], "text": "before"})).await?.id()?;
    let begun = w.post(&channel, &json!({"ids": ["begun"], "text": "before"})).await?.id()?;
    w.client.execute("update activities set metadata = metadata || '{\"match\": 1}'", &[]).await?;
    w.client
        .execute("update activities set processing_status = 'processing', locked_by = gen_random_uuid() where id = $1", &[&begun])
        .await?;
    w.client
        .batch_execute("update gleaner.raw_request set body = convert_to(replace(convert_from(body, 'utf8'), 'before', 'after'), 'utf8')")
        .await?;

    let untouched = replay(&w, How::default()).await?;
    assert!(untouched.iter().all(|one| one.events[0].outcome == Outcome::Unchanged), "{untouched:?}");
    let done = replay(&w, How { dry_run: false, update: true }).await?;
    let outcomes: Vec<_> = done.iter().map(|one| (one.events[0].activity, one.events[0].outcome)).collect();
    assert_eq!(outcomes, [(Some(waiting), Outcome::Updated), (Some(begun), Outcome::Begun)]);
    let text = async |id: Uuid| {
        w.text(&format!("select raw_data ->> 'content' || ' ' || (metadata ->> 'match') from activities where id = '{id}'")).await
    };
    assert_eq!((text(waiting).await?.as_deref(), text(begun).await?.as_deref()), (Some("after 1"), Some("before 1")));
    Ok(())
}

#[tokio::test]
async fn requests_are_found_by_channel_time_and_what_they_brought() -> Result<()> {
    let w = world().await?;
    let (one, other) = (w.channel().await?, w.channel().await?);
    w.post(&one, &json!({"ids": ["a"]})).await?;
    w.post(&other, &json!({"ids": ["b"]})).await?;
    w.post(&other, &json!({"do": "nothing"})).await?;
    let replayer = replayer(&w);
    let found = async |which: Which| Ok::<_, anyhow::Error>(replayer.find(&which, None, 100).await?.len());
    assert_eq!(found(Which::default()).await?, 3);
    assert_eq!(found(Which { channel: Some(other.id), ..Which::default() }).await?, 2);
    assert_eq!(found(Which { without_activity: true, ..Which::default() }).await?, 1);
    assert_eq!(found(Which { since: Some("tomorrow".into()), ..Which::default() }).await?, 0);
    assert_eq!(found(Which { until: Some("yesterday".into()), ..Which::default() }).await?, 0);
    assert_eq!(found(Which { since: Some("yesterday".into()), until: Some("tomorrow".into()), ..Which::default() }).await?, 3);
    // In several calls, oldest first, each request once.
    let first = replayer.find(&Which::default(), None, 2).await?;
    let rest = replayer.find(&Which::default(), first.last().copied(), 2).await?;
    assert_eq!((first.len(), rest.len()), (2, 1));
    Ok(())
}

#[tokio::test]
async fn kept_requests_go_by_age_and_when_there_is_too_much_and_take_their_files_along() -> Result<()> {
    let w = world().await?;
    let channel = w.channel().await?;
    let files = &w.server.state().files;
    for n in 0..4 {
        w.post(&channel, &json!({"ids": [format!("large {n}")], "text": "x".repeat(300 * 1024)})).await?;
    }
    w.post(&channel, &json!({"ids": ["small"]})).await?;
    let paths: Vec<String> = w
        .client
        .query("select body_file from gleaner.raw_request where body_file is not null order by received_at", &[])
        .await?
        .iter()
        .map(|row| row.get(0))
        .collect();
    assert_eq!((paths.len(), prune(&w.pool, files, &Raw::default()).await?), (4, 0));

    // Space for two large requests and the small one: the two oldest are deleted.
    let tight = Raw { max_bytes: 700 * 1024, ..Raw::default() };
    assert_eq!(prune(&w.pool, files, &tight).await?, 2);
    for (n, path) in paths.iter().enumerate() {
        assert_eq!(files.get(path).await?.is_some(), n >= 2, "{path}");
    }
    w.client.batch_execute("update gleaner.raw_request set received_at = received_at - interval '8 days' where body_file is null").await?;
    assert_eq!(prune(&w.pool, files, &Raw::default()).await?, 1);
    assert_eq!(prune(&w.pool, files, &Raw { keep: Duration::ZERO, ..Raw::default() }).await?, 2);
    assert_eq!(w.count("select count(*) from activities").await?, 5);
    Ok(())
}
