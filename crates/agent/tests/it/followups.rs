//! Follow-ups: sent at their time, once, and not after a reply.

mod mail;
mod recurring;
mod sinks;
mod world;

use std::time::Duration;

use anyhow::Result;
use serde_json::json;

use self::world::{World, eventually};

#[tokio::test(flavor = "multi_thread")]
async fn a_follow_up_is_sent_at_its_time_and_never_earlier() -> Result<()> {
    let world = World::new().await?;
    let agent = world.agent(&[]).await?;
    let id = world.plan("ada@example.com", "1.5 seconds", json!({"text": "Did you get my offer?"})).await?;
    let got = world.received(1).await?;
    assert_eq!(got[0].body["text"], "Did you get my offer?");
    assert_eq!(got[0].key, format!("\"{id}\""));
    world.until(&id, "executed").await?;
    let late = world
        .number(&format!("select extract(epoch from sending_at - scheduled_for)::float8 from scheduled_actions where id = '{id}'"))
        .await?;
    assert!((0.0..1.0).contains(&late), "sent {late} s after its time");
    let result = world.json(&format!("select result from scheduled_actions where id = '{id}'")).await?;
    assert_eq!((&result["sink"], &result["message_id"]), (&json!("http"), &json!("m-1")));
    agent.stop().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reply_calls_off_what_waits_in_the_transaction_that_stores_it() -> Result<()> {
    let world = World::new().await?;
    let id = world.plan("ada@example.com", "1 hour", json!({"text": "Hello"})).await?;
    let other = world.plan("bob@example.com", "1 hour", json!({"text": "Hello"})).await?;
    world.client.batch_execute("begin").await?;
    world.reply("ada@example.com", "yes, thank you").await?;
    assert_eq!(world.status(&id).await?, "cancelled", "in the same transaction");
    world.client.batch_execute("rollback").await?;
    assert_eq!(world.status(&id).await?, "pending", "a reply that was not stored cancels nothing");
    world.reply("ada@example.com", "yes, thank you").await?;
    assert_eq!(world.status(&id).await?, "cancelled");
    assert_eq!(world.text(&format!("select cancelled_reason from scheduled_actions where id = '{id}'")).await?, "the prospect replied");
    assert_eq!(world.status(&other).await?, "pending", "others are not concerned");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reply_while_it_is_processed_and_not_yet_sent_calls_it_off() -> Result<()> {
    let world = World::new().await?;
    let agent = world.agent(&[]).await?;
    // Claimed within the window, composed, and waiting for its time.
    let id = world.plan("ada@example.com", "3 seconds", json!({"text": "Hello"})).await?;
    world.until(&id, "processing").await?;
    world.reply("ada@example.com", "stop writing, I am here").await?;
    assert_eq!(world.status(&id).await?, "cancelled");
    // A later one for somebody else passes: the first would have been sent before it.
    world.plan("bob@example.com", "3.5 seconds", json!({"text": "For Bob"})).await?;
    let got = world.received(1).await?;
    assert_eq!(got[0].body["text"], "For Bob");
    agent.stop().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_sending_step_checks_for_a_reply_once_more() -> Result<()> {
    let world = World::new().await?;
    let id = world.plan("ada@example.com", "0 seconds", json!({"text": "Hello"})).await?;
    let lease = world.claim(&id).await?;
    // A reply that called nothing off: it came while the action's trigger could not see it.
    world.quietly_reply("ada@example.com").await?;
    let begun = world.begin(&id, lease).await?;
    assert_eq!((&begun["outcome"], &begun["reason"]), (&json!("cancelled"), &json!("the prospect replied")));
    assert_eq!(world.status(&id).await?, "cancelled");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_follow_up_that_is_being_sent_is_not_cancelled_by_a_reply() -> Result<()> {
    let world = World::new().await?;
    let id = world.plan("ada@example.com", "0 seconds", json!({"text": "Hello"})).await?;
    let lease = world.claim(&id).await?;
    assert_eq!(world.begin(&id, lease).await?["outcome"], "send");
    world.reply("ada@example.com", "hello").await?;
    assert_eq!(world.status(&id).await?, "processing", "it may be on its way");
    world.client.execute("select gleaner.complete_followups($1::text::uuid, $2, '{\"sink\": \"http\"}')", &[&id, &lease]).await?;
    assert_eq!(world.status(&id).await?, "executed");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prospect_id_of_another_system_finds_its_contact() -> Result<()> {
    let world = World::new().await?;
    let contact = world.contact("Ada", "ada@example.com").await?;
    world
        .client
        .execute("insert into contact_identities (contact_id, kind, value) values ($1, 'telegram', '7836623698')", &[&contact])
        .await?;
    let id = world.plan("7836623698", "1 hour", json!({"text": "Hello"})).await?;
    assert_eq!(world.text(&format!("select contact_id::text from scheduled_actions where id = '{id}'")).await?, contact.to_string());
    // She answers by mail what was to be sent by Telegram.
    world.reply("ada@example.com", "hello").await?;
    assert_eq!(world.status(&id).await?, "cancelled");
    // And a message from that chat is hers.
    world.reply_as("other", "telegram:7836623698", "hi", "other").await?;
    assert_eq!(
        world.text("select contact_id::text from activities where sender_address = 'telegram:7836623698'").await?,
        contact.to_string()
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn two_daemons_and_ten_actions_send_each_once() -> Result<()> {
    let world = World::new().await?;
    let agents = [world.agent(&[]).await?, world.agent(&[("name", "second")]).await?];
    for n in 0..10 {
        world.plan(&format!("person{n}@example.com"), "0.5 seconds", json!({"text": format!("Hello {n}")})).await?;
    }
    eventually("all to be executed", async || {
        Ok(world.text("select count(*)::text from scheduled_actions where status = 'executed'").await? == "10")
    })
    .await?;
    let mut texts: Vec<String> = world.received(10).await?.iter().map(|got| got.body["text"].to_string()).collect();
    texts.sort();
    texts.dedup();
    assert_eq!((texts.len(), world.count()), (10, 10));
    for agent in agents {
        agent.stop().await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_sent_is_in_the_timeline_of_the_contact() -> Result<()> {
    let world = World::new().await?;
    let contact = world.contact("Ada", "ada@example.com").await?;
    let agent = world.agent(&[]).await?;
    let id = world.plan("ada@example.com", "0 seconds", json!({"follow_up_intent": "Did the offer arrive?"})).await?;
    world.until(&id, "executed").await?;
    let told = world
        .text(&format!(
            "select direction || ' ' || processing_status || ' ' || (raw_data ->> 'content') from activities where contact_id = {contact}"
        ))
        .await?;
    assert_eq!(told, "outbound completed Hi Ada,\n\nDid the offer arrive?");
    assert_eq!(world.received(1).await?[0].body["text"], "Hi Ada,\n\nDid the offer arrive?");
    agent.stop().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn quiet_hours_the_daily_limit_and_approval_make_it_wait_and_say_why() -> Result<()> {
    let world = World::new().await?;
    let contact = world.contact("Ada", "ada@example.com").await?;
    let rules = |sql: &str| format!("delete from contact_preferences; insert into contact_preferences (contact_id, time_zone, {sql}");
    // Quiet from an hour ago until in an hour, in a zone far away.
    let quiet = rules(&format!(
        "quiet_from, quiet_until) select {contact}, 'Pacific/Auckland', (now() at time zone 'Pacific/Auckland')::time - interval '1 hour',
         (now() at time zone 'Pacific/Auckland')::time + interval '1 hour'"
    ));
    world.client.batch_execute(&quiet).await?;
    let agent = world.agent(&[]).await?;
    let id = world.plan("ada@example.com", "0 seconds", json!({"text": "Hello"})).await?;
    eventually("it to wait", async || {
        Ok(world
            .text(&format!("select deferred_reason from scheduled_actions where id = '{id}' and status = 'pending'"))
            .await?
            .starts_with("quiet hours until"))
    })
    .await?;
    let waits =
        world.number(&format!("select extract(epoch from due_at - now())::float8 from scheduled_actions where id = '{id}'")).await?;
    assert!((3400.0..3800.0).contains(&waits), "{waits} s");
    let urgent = world.plan("ada@example.com", "0 seconds", json!({"text": "Urgent", "ignore_quiet_hours": true})).await?;
    world.until(&urgent, "executed").await?;
    // One a day: the second waits for tomorrow.
    world.client.batch_execute(&rules(&format!("daily_limit) values ({contact}, 'UTC', 1)"))).await?;
    let second = world.plan("ada@example.com", "0 seconds", json!({"text": "Again"})).await?;
    eventually("the limit", async || {
        Ok(world.text(&format!("select deferred_reason from scheduled_actions where id = '{second}' and status = 'pending'")).await?
            == "daily limit of 1 reached")
    })
    .await?;
    // Approval.
    world.client.batch_execute(&rules(&format!("approval) values ({contact}, 'UTC', true)"))).await?;
    let third = world.plan("ada@example.com", "0 seconds", json!({"text": "May I?"})).await?;
    eventually("approval to be waited for", async || {
        Ok(world.text(&format!("select deferred_reason from scheduled_actions where id = '{third}' and status = 'pending'")).await?
            == "waits for approval")
    })
    .await?;
    world.client.execute("select public.approve_scheduled_actions(array[$1::text::uuid])", &[&third]).await?;
    world.until(&third, "executed").await?;
    assert_eq!(world.count(), 2);
    agent.stop().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn stop_puts_a_person_on_the_list_and_start_takes_them_off_it() -> Result<()> {
    let world = World::new().await?;
    for (word, kind, expected) in [
        ("Stop!", "sms", "1"),
        ("START", "sms", "0"),
        ("désabonner", "email", "1"),
        ("стоп", "sms", "1"),
        ("stop by tomorrow", "sms", "1"),
        ("end", "email", "1"),
    ] {
        world.reply_as("phone", "+4915112345678", word, kind).await?;
        assert_eq!(world.text("select count(*)::text from do_not_contact").await?, expected, "{word}");
    }
    let id = world.plan("+4915112345678", "0 seconds", json!({"text": "Hello"})).await?;
    let lease = world.claim(&id).await?;
    assert_eq!(world.begin(&id, lease).await?["reason"], "the prospect is not to be written to");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_automatic_answer_is_no_reply() -> Result<()> {
    let world = World::new().await?;
    let id = world.plan("ada@example.com", "1 hour", json!({"text": "Hello"})).await?;
    world
        .client
        .batch_execute("insert into activities (type, raw_data, metadata) values ('email', '{\"content\": \"I am away\", \"sender\": \"ada@example.com\"}', '{\"automatic\": true}')")
        .await?;
    assert_eq!(world.status(&id).await?, "pending");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_is_retried_and_an_exhausted_action_is_visible_as_such() -> Result<()> {
    let world = World::new().await?;
    world.answer_with(503);
    let agent = world.agent(&[("followup_polling.max_retries", "1"), ("followup_polling.retry_delay_seconds", "0.2")]).await?;
    let id = world.plan("ada@example.com", "0 seconds", json!({"text": "Hello"})).await?;
    eventually("it to be given up", async || {
        Ok(world
            .text(&format!("select status || ' ' || (due_at is null) || ' ' || attempts from scheduled_actions where id = '{id}'"))
            .await?
            == "failed true 2")
    })
    .await?;
    let error = world.text(&format!("select error_message from scheduled_actions where id = '{id}'")).await?;
    assert!(error.contains("503") && error.contains("given up after 1 retries"), "{error}");
    let keys: Vec<String> = world.received(2).await?.into_iter().map(|got| got.key).collect();
    assert_eq!(keys[0], keys[1], "each try carries the same key");
    agent.stop().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_outcome_asks_a_person_or_resends_with_the_same_key() -> Result<()> {
    let world = World::new().await?;
    world.answer_with(502);
    let agent = world.agent(&[("followup_polling.retry_delay_seconds", "0.3"), ("followup_polling.max_retries", "19")]).await?;
    let asks = world.plan("ada@example.com", "0 seconds", json!({"text": "Hello", "on_unknown": "ask"})).await?;
    eventually("a person to be asked", async || {
        Ok(world
            .text(&format!("select error_message from scheduled_actions where id = '{asks}' and due_at is null"))
            .await?
            .starts_with("outcome unknown"))
    })
    .await?;
    world.answer_with(200);
    let before = world.count();
    assert_eq!(before, 1, "it is not sent again");
    world.answer_with(502);
    let resends = world.plan("bob@example.com", "0 seconds", json!({"text": "Hello"})).await?;
    eventually("the first try", async || Ok(world.count() > before)).await?;
    world.answer_with(200);
    world.until(&resends, "executed").await?;
    let got = world.received(before + 2).await?;
    assert_eq!(got[before].key, got[before + 1].key);
    assert_eq!(got[before].body, got[before + 1].body);
    agent.stop().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_does_everything_but_send() -> Result<()> {
    let world = World::new().await?;
    let agent = world.agent(&[("followups.dry_run", "true")]).await?;
    let id = world.plan("ada@example.com", "0 seconds", json!({"text": "Hello"})).await?;
    world.until(&id, "executed").await?;
    assert_eq!(world.text(&format!("select result ->> 'dry_run' from scheduled_actions where id = '{id}'")).await?, "true");
    assert_eq!((world.count(), world.text("select count(*)::text from activities").await?.as_str()), (0, "0"));
    agent.stop().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_requeued_action_is_not_called_off_by_the_reply_that_called_it_off() -> Result<()> {
    let world = World::new().await?;
    let agent = world.agent(&[]).await?;
    let id = world.plan("ada@example.com", "1 hour", json!({"text": "Hello"})).await?;
    world.reply("ada@example.com", "hello").await?;
    assert_eq!(world.status(&id).await?, "cancelled");
    world.client.execute("update scheduled_actions set scheduled_for = now() where id = $1::text::uuid", &[&id]).await?;
    world.client.execute("select gleaner.requeue_followups(array[$1::text::uuid])", &[&id]).await?;
    world.until(&id, "executed").await?;
    agent.stop().await?;
    Ok(())
}

/// Bounded by the clock, and far below what a machine with two cores can do.
#[tokio::test(flavor = "multi_thread")]
async fn many_actions_over_a_few_seconds_are_sent_within_a_second_of_their_time() -> Result<()> {
    let world = World::new().await?;
    let agent = world.agent(&[("followup_polling.batch_size", "32")]).await?;
    let (count, over) = if std::env::var_os("GLEANER_TEST_FULL").is_some() { (10_000, 60) } else { (500, 5) };
    world
        .client
        .execute(
            "insert into scheduled_actions (prospect_id, scheduled_for, payload)
             select 'p' || n, clock_timestamp() + interval '3 seconds' + n * $2::float8 * interval '1 second', '{\"text\": \"Hello\"}'
             from generate_series(1, $1::int) as n",
            &[&count, &(f64::from(over) / f64::from(count))],
        )
        .await?;
    let patience = Duration::from_secs(u64::try_from(over).unwrap_or(60) + 60);
    tokio::time::timeout(
        patience,
        eventually("all to be executed", async || {
            Ok(world.text("select count(*)::text from scheduled_actions where status <> 'executed'").await? == "0")
        }),
    )
    .await??;
    let late = world
        .text(
            "select concat_ws(' ', percentile_disc(0.5) within group (order by l), percentile_disc(0.99) within group (order by l), max(l))
        from (select round(extract(epoch from sending_at - scheduled_for), 3) as l from scheduled_actions) as s",
        )
        .await?;
    println!("lateness of {count} over {over} s: p50 p99 max {late}");
    let p99: f64 = late.split(' ').nth(1).unwrap_or_default().parse()?;
    assert!(p99 < 1.0 && world.count() == count as usize, "{late}, {} sent", world.count());
    agent.stop().await?;
    Ok(())
}
