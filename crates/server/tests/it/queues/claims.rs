//! Claims: single, batched, empty and waiting.

use std::collections::HashSet;
use std::time::Duration;

use anyhow::Result;
use futures_util::future::try_join_all;
use gleaner_http::Role;
use serde_json::json;

use crate::queues::stage::stage;

#[tokio::test]
async fn two_hundred_claims_at_once_share_statements_and_never_a_row() -> Result<()> {
    let stage = stage().await?;
    let items: Vec<_> = (0..150).map(|n| json!({"payload": {"n": n}})).collect();
    stage.ask("jobs/enqueue", json!({"items": items})).await?;
    let claims = (0..200).map(|agent| stage.ask("jobs/claim", json!({"agent": format!("agent-{agent}")})));
    let claimed = try_join_all(claims).await?;
    let keys: Vec<_> = claimed
        .iter()
        .flat_map(|answer| answer["items"].as_array().cloned().unwrap_or_default())
        .map(|item| item["key"].to_string())
        .collect();
    assert_eq!(keys.len(), 150, "each finds a row while there are any");
    assert_eq!(keys.iter().collect::<HashSet<_>>().len(), 150, "and nobody else's");
    let (_, statements) = stage.queues.tally();
    assert!(statements < 100, "{statements} statements for 200 claims");
    let agents: i64 = stage.client.query_one("select count(distinct agent) from gleaner.jobs where status = 'running'", &[]).await?.get(0);
    assert_eq!(agents, 150, "each row knows its own agent");
    Ok(())
}

#[tokio::test]
async fn claims_that_must_be_empty_do_not_ask_the_database() -> Result<()> {
    let stage = stage().await?;
    // The listening connection counts as a notification when it connects.
    while stage.ask("jobs/claim", json!({"agent": "first"})).await?["items"] == json!([]) && stage.queues.tally().0 == 0 {}
    let before = stage.queues.tally();
    for agent in 0..50 {
        let answer = stage.ask("jobs/claim", json!({"agent": format!("agent-{agent}")})).await?;
        assert_eq!(answer, json!({"items": [], "next_due_seconds": null}));
    }
    let after = stage.queues.tally();
    // An empty result is cached for some seconds; on a slow machine it may expire during the test.
    assert!(after.1 - before.1 <= 5 && after.0 - before.0 >= 45, "{before:?} {after:?}");

    stage.ask("jobs/enqueue", json!({"items": [{"payload": 1}]})).await?;
    assert_eq!(stage.ask("jobs/claim", json!({"agent": "x"})).await?["items"][0]["payload"], 1, "our own act opens the gate at once");
    Ok(())
}

#[tokio::test]
async fn a_request_that_is_sent_for_the_first_time_need_not_ask_the_database_and_a_repeated_one_does() -> Result<()> {
    let stage = stage().await?;
    while stage.ask("jobs/claim", json!({"agent": "first"})).await?["items"] == json!([]) && stage.queues.tally().0 == 0 {}
    let ask = async |first: bool| {
        let before = stage.queues.tally().1;
        stage.ask("jobs/claim", json!({"agent": "a", "request": uuid::Uuid::new_v4(), "first": first})).await?;
        anyhow::Ok(stage.queues.tally().1 - before)
    };
    let (mut first, mut repeated) = (0, 0);
    for _ in 0..20 {
        first += ask(true).await?;
        repeated += ask(false).await?;
    }
    // A queue that is known to be empty is queried again after some seconds.
    assert!(first <= 2 && repeated == 20, "{first} {repeated}");
    Ok(())
}

#[tokio::test]
async fn a_waiting_claim_is_answered_when_work_arrives_by_another_process() -> Result<()> {
    let stage = stage().await?;
    let waiting = stage.ask("jobs/claim", json!({"agent": "patient", "wait_seconds": 30}));
    let arriving = async {
        // Wait until the claim has found nothing and waits.
        while stage.queues.tally().1 == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        stage.client.batch_execute("insert into gleaner.jobs (payload) values ('\"late\"')").await?;
        stage.client.batch_execute("notify gleaner, 'jobs'").await?;
        anyhow::Ok(std::time::Instant::now())
    };
    let (answer, arrived) = tokio::try_join!(waiting, arriving)?;
    assert_eq!(answer["items"][0]["payload"], "late");
    assert!(arrived.elapsed() < Duration::from_secs(4), "woken, not found by the next look");
    Ok(())
}

#[tokio::test]
async fn a_waiting_claim_gets_a_row_when_it_comes_due_and_an_empty_answer_when_none_does() -> Result<()> {
    let stage = stage().await?;
    stage.ask("jobs/enqueue", json!({"items": [{"payload": 1, "due_at": "2999-01-01T00:00:00Z"}]})).await?;
    let answer = stage.ask("jobs/claim", json!({"agent": "a", "wait_seconds": 0.2})).await?;
    assert_eq!(answer["items"], json!([]));
    assert!(answer["next_due_seconds"].as_f64().is_some_and(|wait| wait > 1e9), "{answer}");
    stage
        .client
        .batch_execute("insert into gleaner.jobs (kind, payload, due_at) values ('soon', '2', clock_timestamp() + interval '1 second')")
        .await?;
    let answer = stage.ask("jobs/claim", json!({"agent": "a", "kinds": ["soon"], "wait_seconds": 4})).await?;
    assert_eq!(answer["items"][0]["payload"], 2);
    Ok(())
}

#[tokio::test]
async fn a_client_that_left_holds_nothing() -> Result<()> {
    let stage = stage().await?;
    let waiting =
        tokio::time::timeout(Duration::from_millis(300), stage.ask("jobs/claim", json!({"agent": "gone", "wait_seconds": 30}))).await;
    assert!(waiting.is_err(), "the client hangs up");
    stage.ask("jobs/enqueue", json!({"items": [{"payload": 1}]})).await?;
    let answer = stage.ask("jobs/claim", json!({"agent": "here", "wait_seconds": 10})).await?;
    assert_eq!(answer["items"][0]["payload"], 1);
    Ok(())
}

#[tokio::test]
async fn a_repeated_request_gets_its_rows_again_however_empty_the_queue_is() -> Result<()> {
    let stage = stage().await?;
    stage.ask("jobs/enqueue", json!({"items": [{"payload": 1}]})).await?;
    let asked = json!({"agent": "a", "request": "1f0c7a52-0000-4000-8000-000000000001"});
    let first = stage.ask("jobs/claim", asked.clone()).await?;
    // Other claims find nothing, until the gate has stored that.
    let spared = stage.queues.tally().0;
    while stage.queues.tally().0 == spared {
        assert_eq!(stage.ask("jobs/claim", json!({"agent": "b"})).await?["items"], json!([]));
    }
    let again = stage.ask("jobs/claim", asked).await?;
    assert_eq!((&again["items"][0]["key"], &again["items"][0]["lease"]), (&first["items"][0]["key"], &first["items"][0]["lease"]));
    Ok(())
}

#[tokio::test]
async fn a_row_that_is_due_but_locked_is_not_asked_for_without_a_pause() -> Result<()> {
    let mut stage = stage().await?;
    stage.ask("jobs/enqueue", json!({"items": [{"payload": 1}]})).await?;
    let before = stage.queues.tally().1;
    let transaction = stage.client.transaction().await?;
    transaction.execute("select from gleaner.jobs for update", &[]).await?;
    let request = stage.http.post(format!("{}/v1/queues/jobs/claim", stage.base)).bearer_auth(stage.access.project_key(Role::Service));
    let answer = request.json(&json!({"agent": "a", "wait_seconds": 2})).send().await?.text().await?;
    assert!(answer.contains("\"items\":[]"), "{answer}");
    transaction.rollback().await?;
    let looks = stage.queues.tally().1 - before;
    assert!(looks < 20, "{looks} looks in two seconds");
    assert_eq!(stage.ask("jobs/claim", json!({"agent": "a", "wait_seconds": 5})).await?["items"][0]["payload"], 1, "free again, and found");
    Ok(())
}

#[tokio::test]
async fn a_claim_takes_no_more_rows_than_fit_an_answer() -> Result<()> {
    let stage = stage().await?;
    for limit in [0, -1, 1001, i32::MAX] {
        let (status, answer) = stage.post(&stage.service(), "jobs/claim", json!({"agent": "a", "limit": limit})).await?;
        assert_eq!(status, 400, "{answer}");
    }
    Ok(())
}
