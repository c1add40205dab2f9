//! Recurring follow-ups: each occurrence becomes one follow-up, whatever happens.

use anyhow::Result;
use serde_json::json;

use super::world::{World, eventually};

const QUEUES: (&str, &str) = ("queues", "followups,schedules");

async fn schedule(world: &World, cron: &str, options: serde_json::Value) -> Result<String> {
    let sql = "select id::text from schedule_recurring_followup('ada@example.com', $1, 'UTC', '{\"text\": \"Hello\"}', $2)";
    Ok(world.client.query_one(sql, &[&cron, &options]).await?.get(0))
}

/// As if the schedule had been looked at last at that time.
async fn forget_since(world: &World, id: &str, since: &str) -> Result<()> {
    world
        .client
        .batch_execute(&format!(
            "begin; set local role gleaner_engine;
             update followup_schedules set seen_until = {since}, next_at = {since}, due_at = {since}, status = 'active' where id = '{id}'; commit"
        ))
        .await?;
    Ok(())
}

async fn occurrences(world: &World) -> Result<String> {
    world.text("select string_agg(to_char(occurrence at time zone 'UTC', 'HH24:MI'), ' ' order by occurrence) from scheduled_actions").await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_occurrence_is_sent_at_its_time_and_the_next_is_appointed() -> Result<()> {
    let world = World::new().await?;
    let id = schedule(&world, "* * * * *", json!({})).await?;
    // The minute that has just begun is late by less than the tolerance.
    forget_since(&world, &id, "date_trunc('minute', clock_timestamp()) - interval '30 seconds'").await?;
    let agent = world.agent(&[QUEUES]).await?;
    let got = world.received(1).await?;
    assert_eq!(got[0].body["text"], "Hello");
    eventually("the next to be appointed", async || {
        Ok(world
            .text(&format!(
                "select status from followup_schedules where id = '{id}' and next_at > clock_timestamp() and next_at = date_trunc('minute', next_at)"
            ))
            .await?
            == "active")
    })
    .await?;
    agent.stop().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn missed_occurrences_are_skipped_or_made_up_for_as_the_schedule_says() -> Result<()> {
    for (options, expected, missed) in [
        (json!({"missed": "skip"}), "", "3"),
        (json!({"missed": "latest"}), "-1", "2"),
        (json!({"missed": "all"}), "-3 -2 -1", "0"),
        (json!({"missed": "all", "missed_limit": 2}), "-2 -1", "1"),
    ] {
        let world = World::new().await?;
        // The hour changes in half an hour, whenever this runs.
        let minute = world.text("select to_char((clock_timestamp() at time zone 'UTC') + interval '30 minutes', 'FMMI')").await?;
        let id = schedule(&world, &format!("{minute} * * * *"), options.clone()).await?;
        let agent = world.agent(&[QUEUES, ("followups.dry_run", "true")]).await?;
        forget_since(&world, &id, "clock_timestamp() - interval '3 hours'").await?;
        eventually("the schedule to be looked at", async || {
            Ok(world.text(&format!("select missed_count::text from followup_schedules where id = '{id}' and next_at > clock_timestamp() and last_occurrence is not null or missed_count > 0")).await? == missed)
        })
        .await?;
        let ago = world
            .text("select string_agg(ceil(extract(epoch from occurrence - clock_timestamp()) / 3600 - 0.9)::text, ' ' order by occurrence) from scheduled_actions")
            .await?;
        assert_eq!(ago, expected, "{options}");
        agent.stop().await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_occurrence_happens_once_however_many_agents_run() -> Result<()> {
    let world = World::new().await?;
    let mut agents = Vec::new();
    for name in ["one", "two", "three"] {
        agents.push(world.agent(&[QUEUES, ("name", name), ("followups.dry_run", "true")]).await?);
    }
    for _ in 0..20 {
        schedule(&world, "* * * * *", json!({"missed": "all"})).await?;
    }
    world
        .client
        .batch_execute(
            "begin; set local role gleaner_engine;
             update followup_schedules set seen_until = date_trunc('minute', clock_timestamp()) - interval '3 minutes',
                                           next_at = clock_timestamp(), due_at = clock_timestamp(); commit;
             notify gleaner, 'schedules'",
        )
        .await?;
    eventually("all to be looked at", async || {
        Ok(world.text("select count(*)::text from followup_schedules where last_occurrence is not null and status = 'active'").await?
            == "20")
    })
    .await?;
    let counts = world
        .text("select string_agg(distinct n::text, ' ') from (select count(*) as n from scheduled_actions where occurrence < clock_timestamp() group by schedule_id) as c")
        .await?;
    assert!(counts == "3" || counts == "4" || counts == "3 4", "{counts}");
    assert_eq!(
        world
            .text(
                "select count(*)::text from (select schedule_id, occurrence from scheduled_actions group by 1, 2 having count(*) > 1) as d"
            )
            .await?,
        "0"
    );
    for agent in agents {
        agent.stop().await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_lease_adds_no_occurrence_and_a_repeated_one_none_twice() -> Result<()> {
    let world = World::new().await?;
    let id = schedule(&world, "@daily", json!({})).await?;
    let claim = "select lease::text from gleaner.claim_schedules('test', p_started => true)";
    let first = world.text(claim).await?;
    let advance = async |lease: &str| {
        world
            .text(&format!(
                "select gleaner.advance_schedule(jsonb_build_object('id', id, 'lease', {lease}, 'seen_from', seen_until, 'seen_until', seen_until,
                    'missed', 0, 'occurrences', '[\"2026-11-18T00:00:00Z\"]'::jsonb, 'next', '2030-01-01T00:00:00Z')) ->> 'outcome' from followup_schedules"
            ))
            .await
    };
    // Its lease ends and another agent takes it.
    world
        .client
        .batch_execute("begin; set local role gleaner_engine; update followup_schedules set due_at = now() - interval '1 second'; commit")
        .await?;
    let second = world.text(claim).await?;
    assert_eq!(advance(&first).await?, "lost");
    assert_eq!(occurrences(&world).await?, "");
    assert_eq!(advance(&second).await?, "done");
    assert_eq!(advance(&second).await?, "lost", "the schedule waits for the next");
    forget_since(&world, &id, "clock_timestamp()").await?;
    let third = world.text(claim).await?;
    assert_eq!(advance(&third).await?, "done");
    assert_eq!(occurrences(&world).await?, "00:00", "the occurrence is there once");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reply_pauses_a_schedule_until_reply_and_no_other() -> Result<()> {
    let world = World::new().await?;
    let until = schedule(&world, "@daily", json!({"until_reply": true})).await?;
    let other = schedule(&world, "@daily", json!({})).await?;
    world.reply("ada@example.com", "I am here").await?;
    let status = async |id: &str| {
        world.text(&format!("select concat_ws(' ', status, paused_reason) from followup_schedules where id = '{id}'")).await
    };
    assert_eq!((status(&until).await?.as_str(), status(&other).await?.as_str()), ("paused the prospect replied", "active"));
    world.client.execute("select gleaner.requeue_schedules(array[$1::text::uuid])", &[&until]).await?;
    assert_eq!(status(&until).await?, "active");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_expression_that_cannot_be_read_fails_with_the_reason_and_goes_on_when_mended() -> Result<()> {
    let world = World::new().await?;
    let agent = world.agent(&[QUEUES]).await?;
    let id = schedule(&world, "every morning", json!({})).await?;
    eventually("it to fail", async || {
        Ok(world
            .text(&format!("select error_message from followup_schedules where id = '{id}' and status = 'failed'"))
            .await?
            .contains("MON-FRI"))
    })
    .await?;
    world.client.execute("update followup_schedules set cron = '0 9 * * *' where id = $1::text::uuid", &[&id]).await?;
    eventually("it to go on", async || {
        Ok(world.text(&format!("select to_char(next_at at time zone 'UTC', 'HH24:MI') from followup_schedules where id = '{id}' and status = 'active' and next_at > clock_timestamp()")).await? == "09:00")
    })
    .await?;
    agent.stop().await?;
    Ok(())
}
