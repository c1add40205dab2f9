//! Which messages are read from a mailbox, how far, and how often.

use anyhow::Result;
use serde_json::json;

use crate::gmail::google::{letter, quota};
use crate::gmail::world::{idle_world, world};

#[tokio::test]
async fn the_first_poll_reads_the_inbox_and_stores_where_it_ended() -> Result<()> {
    let world = world().await?;
    world.google.deliver("m1", "one");
    world.google.deliver("m2", "two");
    world.google.deliver_as({
        let mut sent = letter("m3", "ours");
        sent["labelIds"] = json!(["INBOX", "SENT"]);
        sent
    });
    let channel = world.channel(json!({})).await?;
    world.look().await?;
    assert_eq!(world.activities().await?, 2);
    assert_eq!(world.history_id().await?.as_deref(), Some("1030"));
    let row = world
        .client
        .query_one(
            "select type, direction, raw_data, metadata, external_id, sender_address, provider_id, processing_status
             from activities where external_id = 'm1'",
            &[],
        )
        .await?;
    let (raw_data, metadata): (serde_json::Value, serde_json::Value) = (row.get(2), row.get(3));
    assert_eq!((row.get::<_, &str>(0), row.get::<_, &str>(1), row.get::<_, &str>(7)), ("email", "inbound", "raw"));
    assert_eq!(raw_data, json!({"source_type": "text", "content": "one", "subject": "Grüße", "sender": "joerg@example.com"}));
    assert_eq!(metadata["message_id"], "m1");
    assert_eq!(metadata["rfc_message_id"], "<m1@example.com>");
    assert_eq!(metadata["thread_id"], "t-m1");
    assert_eq!(metadata["labels"], json!(["INBOX", "UNREAD"]));
    assert_eq!(row.get::<_, &str>(5), "joerg@example.com");
    assert_eq!(row.get::<_, uuid::Uuid>(6), channel);
    Ok(())
}

#[tokio::test]
async fn a_later_poll_reads_the_history_and_fetches_only_what_is_new() -> Result<()> {
    let world = world().await?;
    world.google.deliver("m1", "one");
    world.channel(json!({})).await?;
    world.look().await?;
    let before = world.google.count("messages/");
    world.google.mailbox().page_size = 2;
    for n in 2..=6 {
        world.google.deliver(&format!("m{n}"), "more");
    }
    assert_eq!(world.stored().await?, 5, "three pages of two");
    assert_eq!(world.google.count("messages/") - before, 5);
    assert_eq!(world.google.count("messages?"), 1, "the mailbox is listed once only");
    assert_eq!(world.history_id().await?.as_deref(), Some("1060"));
    assert_eq!(world.stored().await?, 0);
    assert_eq!(world.google.count("messages/") - before, 5, "nothing new, nothing fetched");
    Ok(())
}

#[tokio::test]
async fn a_message_in_several_records_is_fetched_and_stored_once() -> Result<()> {
    let world = world().await?;
    world.channel(json!({})).await?;
    world.look().await?;
    world.google.deliver("m1", "one");
    {
        let mut mailbox = world.google.mailbox();
        mailbox.history_id += 10;
        let at = mailbox.history_id;
        mailbox.history.push((at, vec!["m1".into(), "m1".into()]));
        mailbox.page_size = 1;
    }
    assert_eq!(world.stored().await?, 1);
    assert_eq!(world.google.count("messages/m1"), 1);
    assert_eq!(world.activities().await?, 1);
    Ok(())
}

#[tokio::test]
async fn a_message_deleted_meanwhile_is_skipped() -> Result<()> {
    let world = world().await?;
    world.channel(json!({})).await?;
    world.look().await?;
    world.google.deliver("m1", "one");
    world.google.deliver("m2", "two");
    world.google.mailbox().messages.remove("m1");
    assert_eq!(world.stored().await?, 1);
    assert_eq!(world.history_id().await?.as_deref(), Some("1020"));
    Ok(())
}

#[tokio::test]
async fn a_history_that_google_forgot_is_replaced_by_a_full_read_without_duplicates() -> Result<()> {
    let world = world().await?;
    world.google.deliver("m1", "one");
    world.channel(json!({})).await?;
    world.look().await?;
    world.google.deliver("m2", "two");
    world.google.mailbox().oldest = 5000;
    world.google.mailbox().history_id = 6000;
    assert_eq!(world.stored().await?, 1, "only what was not there yet");
    assert_eq!(world.google.count("messages/m1"), 1, "what is stored is not fetched again");
    assert_eq!(world.activities().await?, 2);
    assert_eq!(world.history_id().await?.as_deref(), Some("6000"));
    Ok(())
}

#[tokio::test]
async fn history_is_remembered_only_after_everything_is_stored() -> Result<()> {
    let world = world().await?;
    world.channel(json!({})).await?;
    world.look().await?;
    assert_eq!(world.history_id().await?.as_deref(), Some("1000"));
    world.google.deliver("m1", "one");
    world.google.deliver("m2", "two");
    world.google.mailbox().instead.push_back(("messages/m2", 400, json!({"error": {"errors": [{"reason": "badRequest"}]}})));
    let report = world.look().await?;
    assert_eq!(report.outcome, "failed", "{report:?}");
    assert_eq!(world.activities().await?, 1);
    assert_eq!(world.history_id().await?.as_deref(), Some("1000"), "m2 would be lost");
    assert_eq!(world.stored().await?, 1);
    assert_eq!(world.activities().await?, 2);
    assert_eq!(world.history_id().await?.as_deref(), Some("1020"));
    Ok(())
}

#[tokio::test]
async fn a_used_up_quota_is_waited_out_longer_each_time() -> Result<()> {
    let world = world().await?;
    world.channel(json!({})).await?;
    world.look().await?;
    world.google.deliver("m1", "one");
    for (status, reason) in [(403, "userRateLimitExceeded"), (429, "rateLimitExceeded"), (403, "rateLimitExceeded")] {
        world.google.mailbox().instead.push_back(("messages/m1", status, quota(reason)));
    }
    assert_eq!(world.stored().await?, 1);
    let times: Vec<_> = world.google.mailbox().calls.iter().filter(|(call, _)| call == "messages/m1").map(|(_, at)| *at).collect();
    let waits: Vec<_> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!(waits.len(), 3);
    // 40, 80, 160 ms, and at least half of each.
    for (wait, least) in waits.iter().zip([20, 40, 80]) {
        assert!(wait.as_millis() >= least, "{waits:?}");
    }
    Ok(())
}

#[tokio::test]
async fn a_quota_that_stays_exhausted_ends_the_poll_and_is_shown() -> Result<()> {
    let world = world().await?;
    world.channel(json!({})).await?;
    world.look().await?;
    for _ in 0..5 {
        world.google.mailbox().instead.push_back(("history", 429, quota("rateLimitExceeded")));
    }
    let report = world.look().await?;
    assert_eq!(report.outcome, "failed");
    assert!(report.error.as_deref().is_some_and(|error| error.contains("quota")), "{report:?}");
    assert_eq!(world.stored().await?, 0, "the next look is as good as any");
    assert_eq!(world.text("select last_error from gleaner.polls").await?, None);
    Ok(())
}

#[tokio::test]
async fn a_refusal_that_is_no_quota_is_not_repeated() -> Result<()> {
    let world = world().await?;
    world.channel(json!({})).await?;
    world.look().await?;
    let before = world.google.count("history");
    world.google.mailbox().instead.push_back(("history", 403, quota("accessNotConfigured")));
    let report = world.look().await?;
    assert!(report.error.as_deref().is_some_and(|error| error.contains("accessNotConfigured")), "{report:?}");
    assert_eq!(world.google.count("history") - before, 1);
    Ok(())
}

#[tokio::test]
async fn the_channels_search_applies_to_later_polls_too() -> Result<()> {
    let world = world().await?;
    world.channel(json!({"query": "in:inbox from:boss"})).await?;
    world.look().await?;
    world.google.deliver("m1", "one");
    let mut boss = letter("m2", "raise");
    boss["boss"] = json!(true);
    world.google.deliver_as(boss);
    assert_eq!(world.stored().await?, 1);
    assert_eq!(world.text("select external_id from activities").await?.as_deref(), Some("m2"));
    Ok(())
}

#[tokio::test]
async fn the_first_poll_keeps_to_its_window() -> Result<()> {
    let world = world().await?;
    for n in 1..=9 {
        world.google.deliver(&format!("m{n}"), "text");
    }
    world.google.mailbox().page_size = 4;
    world.channel(json!({"first_sync_messages": 5, "first_sync_days": 3})).await?;
    world.look().await?;
    assert_eq!(world.activities().await?, 5);
    assert_eq!(world.text("select min(external_id) from activities").await?.as_deref(), Some("m5"), "the newest");
    let asked = world.google.mailbox().calls.iter().find(|(call, _)| call.starts_with("messages?")).map(|(call, _)| call.clone());
    assert!(asked.as_deref().is_some_and(|call| call.contains("newer_than%3A3d") && call.contains("in%3Ainbox")), "{asked:?}");
    Ok(())
}

#[tokio::test]
async fn a_message_the_database_rejects_does_not_hold_up_others() -> Result<()> {
    let world = world().await?;
    world.client.batch_execute("alter table activities add constraint no_devil check (raw_data ->> 'content' <> 'devil')").await?;
    world.channel(json!({})).await?;
    world.look().await?;
    world.google.deliver("m1", "devil");
    world.google.deliver("m2", "two");
    assert_eq!(world.stored().await?, 1);
    assert_eq!(world.history_id().await?.as_deref(), Some("1020"));
    Ok(())
}

#[tokio::test]
async fn several_servers_read_a_mailbox_one_at_a_time() -> Result<()> {
    let world = idle_world().await?;
    for n in 0..30 {
        world.google.deliver(&format!("m{n}"), "text");
    }
    world.channel(json!({})).await?;
    let servers = [world.another()?, world.another()?, world.another()?];
    for server in &servers {
        world.read_mailboxes(server);
    }
    let asked = servers[0].ask(&gleaner_http::Caller::Ourselves, None).await?;
    servers[0].wait_for(&asked, std::time::Duration::from_secs(30)).await?;
    assert_eq!(world.activities().await?, 30);
    assert_eq!(world.google.count("messages/"), 30, "each message was fetched once");
    Ok(())
}

#[tokio::test]
async fn a_poll_asked_for_while_one_runs_follows_it() -> Result<()> {
    let world = idle_world().await?;
    world.google.mailbox().token_delay = std::time::Duration::from_millis(700);
    world.channel(json!({})).await?;
    world.read_mailboxes(&world.gmail);
    world.wait_until("select status = 'running' and look_began_at is not null from gleaner.polls").await?;
    let report = world.look().await?;
    assert_eq!(report.outcome, "read", "{report:?}");
    assert_eq!((world.google.count("messages?"), world.google.count("history")), (1, 1), "the first look, and the one that was asked for");
    Ok(())
}

#[tokio::test]
async fn a_paused_channel_is_not_read() -> Result<()> {
    let world = world().await?;
    let channel = world.channel(json!({})).await?;
    world.look().await?;
    world.client.execute("update ingestion_providers set is_active = false where id = $1", &[&channel]).await?;
    let before = world.google.calls();
    world.google.deliver("m1", "one");
    world.gmail.request(channel).await?;
    world.wait_until("select exists (select from gleaner.polls where status = 'ready' and look_began_at > wanted_at)").await?;
    assert_eq!(world.google.calls(), before);
    assert_eq!(world.activities().await?, 0);
    world.client.execute("update ingestion_providers set is_active = true where id = $1", &[&channel]).await?;
    world.wait_until("select count(*) = 1 from activities").await
}
