use anyhow::Result;
use gleaner::{Completion, Held};
use gleaner_agent::mcp::Settings;
use serde_json::{Value, json};

use super::stage::{Assistant, Stage, done, refused, stage};

pub(super) async fn works_one(stage: &Stage, assistant: &Assistant) -> Result<()> {
    let key = stage.job("summarise", json!({"text": "a long call"})).await?;
    let listed = done(assistant, "list", json!({"queue": "jobs"})).await?;
    assert_eq!(listed["queues"][0]["claimable"][0]["key"], key, "{listed}");

    let claimed = done(assistant, "claim", json!({"queue": "jobs"})).await?;
    let item = &claimed["items"][0];
    assert_eq!((&item["key"], &item["kind"]), (&json!(key), &json!("summarise")), "{claimed}");
    assert_eq!(stage.text("select agent from gleaner.jobs").await?, claimed["agent"].as_str().unwrap_or_default());
    assert_eq!(stage.text("select status from gleaner.jobs").await?, "running");

    let held = |more: Value| {
        let mut held = json!({"queue": "jobs", "key": item["key"], "lease": item["lease"]});
        held.as_object_mut().expect("an object").extend(more.as_object().cloned().unwrap_or_default());
        held
    };
    let shown = done(assistant, "progress", held(json!({"stage": "reading", "percent": 40, "partial": {"words": 3}}))).await?;
    assert_eq!(shown["outcome"], "done");
    assert_eq!(
        stage.text("select progress ->> 'stage' || (progress ->> 'percent')::float8 || (result ->> 'words') from gleaner.jobs").await?,
        "reading403"
    );

    let completed = done(assistant, "complete", held(json!({"result": {"summary": "they will call again"}}))).await?;
    assert_eq!((&completed["outcome"], &completed["status"]), (&json!("done"), &json!("done")));
    assert_eq!(stage.text("select status || ': ' || (result ->> 'summary') from gleaner.jobs").await?, "done: they will call again");
    // The answer was lost, and the assistant repeats the call.
    assert_eq!(done(assistant, "complete", held(json!({"result": {"summary": "they will call again"}}))).await?["outcome"], "already");
    assert_eq!(done(assistant, "list", json!({})).await?["held"], json!([]));
    Ok(())
}

#[tokio::test]
async fn an_assistant_claims_shows_progress_and_completes() -> Result<()> {
    let stage = stage().await?;
    let assistant = stage.assistant().await?;
    works_one(&stage, &assistant).await?;
    assistant.cancel().await?;
    Ok(())
}

#[tokio::test]
async fn an_assistant_without_sessions_works_by_its_leases() -> Result<()> {
    let stage = stage().await?;
    let assistant = stage.sessionless().await?;
    works_one(&stage, &assistant).await
}

#[tokio::test]
async fn failing_snoozing_and_releasing_end_the_hold_as_they_do_for_any_agent() -> Result<()> {
    let stage = stage().await?;
    let assistant = stage.assistant().await?;
    let take = async |kind: &str| -> Result<Value> {
        stage.job(kind, json!({})).await?;
        let claimed = done(&assistant, "claim", json!({"queue": "jobs", "kinds": [kind]})).await?;
        Ok(json!({"queue": "jobs", "key": claimed["items"][0]["key"], "lease": claimed["items"][0]["lease"]}))
    };
    let state = async |kind: &str| {
        stage.text(&format!("select status || ' ' || attempts || ' ' || (due_at > now()) from gleaner.jobs where kind = '{kind}'")).await
    };

    let mut failing = take("failing").await?;
    failing["message"] = "the recording is silent".into();
    failing["category"] = "ValidationError".into();
    failing["retryable"] = false.into();
    done(&assistant, "fail", failing).await?;
    assert_eq!(
        stage.text("select status || ' ' || attempts || ' ' || (due_at is null) || ' ' || (error ->> 'type') from gleaner.jobs").await?,
        "failed 1 true ValidationError"
    );

    let mut snoozed = take("snoozed").await?;
    snoozed["seconds"] = 3600.into();
    done(&assistant, "snooze", snoozed).await?;
    assert_eq!(state("snoozed").await?, "ready 0 true");

    done(&assistant, "release", take("released").await?).await?;
    assert_eq!(state("released").await?, "ready 0 false");
    assert_eq!(done(&assistant, "list", json!({})).await?["held"], json!([]));
    Ok(())
}

#[tokio::test]
async fn a_stale_lease_is_refused_and_the_row_is_left_alone() -> Result<()> {
    let stage = stage().await?;
    let assistant = stage.assistant().await?;
    let key = stage.job("mail", json!({})).await?;
    let claimed = done(&assistant, "claim", json!({"queue": "jobs"})).await?;
    stage.age("6 minutes").await?;
    let taken = stage.other_agent().await?;
    assert_eq!(taken[0].key, key);
    let before = stage.text("select to_jsonb(j) from gleaner.jobs as j").await?;

    let stale = json!({"queue": "jobs", "key": key, "lease": claimed["items"][0]["lease"], "result": {"by": "the assistant"}});
    let (code, says) = refused(&assistant, "complete", stale.clone()).await?;
    assert_eq!(code, "lost");
    assert!(says.contains("no longer yours") && says.contains("Drop this result"), "{says}");
    assert_eq!(stage.text("select to_jsonb(j) from gleaner.jobs as j").await?, before);
    for act in ["progress", "release"] {
        let held = json!({"queue": "jobs", "key": key, "lease": claimed["items"][0]["lease"]});
        assert_eq!(refused(&assistant, act, held).await?.0, "lost", "{act}");
    }
    assert_eq!(stage.text("select to_jsonb(j) from gleaner.jobs as j").await?, before);

    stage.jobs().complete(&[Completion::new(Held::new(&key, taken[0].lease), Some(json!({"by": "the other"})))]).await?;
    assert_eq!(refused(&assistant, "complete", stale).await?.0, "lost");
    assert_eq!(stage.text("select result ->> 'by' from gleaner.jobs").await?, "the other");
    Ok(())
}

#[tokio::test]
async fn what_people_cancelled_is_lost_to_the_assistant() -> Result<()> {
    let stage = stage().await?;
    let assistant = stage.assistant().await?;
    let key = stage.job("mail", json!({})).await?;
    let claimed = done(&assistant, "claim", json!({"queue": "jobs"})).await?;
    stage.jobs().cancel(&[&key], Some("not wanted any more")).await?;
    let held = json!({"queue": "jobs", "key": key, "lease": claimed["items"][0]["lease"]});
    assert_eq!(refused(&assistant, "complete", held).await?.0, "lost");
    assert_eq!(stage.text("select status from gleaner.jobs").await?, "cancelled");
    Ok(())
}

#[tokio::test]
async fn errors_say_what_to_do() -> Result<()> {
    let stage = stage().await?;
    let assistant = stage.assistant().await?;
    let (code, says) = refused(&assistant, "claim", json!({"queue": "job"})).await?;
    assert_eq!(code, "no_such_queue");
    assert!(says.contains("activities, ") && says.contains("jobs"), "{says}");
    let (code, says) = refused(&assistant, "claim", json!({"queues": "jobs"})).await?;
    assert!(code == "invalid" && says.contains("unknown field `queues`") && says.contains("call again"), "{code} {says}");
    let (code, says) = refused(&assistant, "complete", json!({"queue": "jobs", "key": "one", "lease": 1})).await?;
    assert!(code == "invalid" && says.contains("one"), "{code} {says}");
    let (code, says) = refused(&assistant, "complete", json!({"queue": "jobs", "key": "999", "lease": 1})).await?;
    assert!(code == "gone" && says.contains("no item 999"), "{code} {says}");
    let (code, _) = refused(&assistant, "claim", json!({"queue": "jobs", "limit": 1000})).await?;
    assert_eq!(code, "invalid");
    Ok(())
}

#[tokio::test]
async fn the_list_has_what_this_agent_could_claim_and_no_more() -> Result<()> {
    let queues = Some(vec!["activities".into(), "jobs".into()]);
    let stage = Stage::with(Settings { queues, owner: Some("1".into()), ..Settings::default() }).await?;
    stage
        .run(
            "insert into sales (id, first_name, last_name, email, user_id, stale_threshold_minutes) overriding system value
             values (1, 'Ada', '', 'ada@example.com', gen_random_uuid(), 15), (2, 'Grace', '', 'grace@example.com', gen_random_uuid(), 15);
             insert into activities (sales_id, type, raw_data) values
                 (1, 'note', '{\"content\": \"own\"}'), (2, 'note', '{\"content\": \"hers for now\"}'), (null, 'note', '{\"content\": \"nobodys\"}');
             insert into gleaner.jobs (kind, payload, due_at) values ('later', '{}', now() + interval '1 hour')",
        )
        .await?;
    for n in 0..12 {
        stage.job("many", json!({"n": n})).await?;
    }
    let assistant = stage.assistant().await?;
    let listed = done(&assistant, "list", json!({"limit": 5})).await?;
    let queues: Vec<&str> = listed["queues"].as_array().expect("queues").iter().filter_map(|queue| queue["queue"].as_str()).collect();
    assert_eq!(queues, ["activities", "jobs"]);
    let excerpts = listed["queues"][0]["claimable"].to_string();
    assert!(excerpts.contains("own") && excerpts.contains("nobodys") && !excerpts.contains("hers for now"), "{excerpts}");
    let jobs = listed["queues"][1]["claimable"].as_array().expect("jobs");
    assert!(jobs.len() == 5 && jobs.iter().all(|job| job["kind"] == "many"), "{jobs:?}");
    assert_eq!(refused(&assistant, "claim", json!({"queue": "runs"})).await?.0, "no_such_queue");
    let explained = done(&assistant, "explain", json!({"queue": "jobs", "key": jobs[0]["key"]})).await?;
    assert_eq!((&explained["claimable"], &explained["reason"]), (&json!(true), &json!("its time has come")));
    Ok(())
}
