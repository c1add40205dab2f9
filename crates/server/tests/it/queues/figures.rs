//! How the queues do: measured once, for the team, and for Prometheus.

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use crate::queues::stage::{Stage, stage};

async fn get(stage: &Stage, token: &str, path: &str) -> Result<(u16, String)> {
    let response = stage.http.get(format!("{}{path}", stage.base)).bearer_auth(token).send().await?;
    Ok((response.status().as_u16(), response.text().await?))
}

#[tokio::test]
async fn figures_are_measured_on_real_rows_and_bounded_to_what_the_caller_may_see() -> Result<()> {
    let stage = stage().await?;
    let users =
        "insert into sales (first_name, user_id, administrator) values ('ada', gen_random_uuid(), true), ('bob', gen_random_uuid(), false)
                 returning user_id::text, id";
    let rows = stage.client.query(users, &[]).await?;
    let (ada, bob): (String, String) = (rows[0].get(0), rows[1].get(0));
    stage
        .client
        .batch_execute(
            "insert into gleaner.jobs (status, due_at, created_at, finished_at)
                 select 'done', null, now() - interval '10 minutes', now() - interval '10 minutes' + n * interval '1 second' from generate_series(1, 100) n;
             insert into gleaner.jobs (status, due_at, created_at) select 'failed', null, now() - interval '2 minutes' from generate_series(1, 25);
             insert into gleaner.jobs (status, due_at, created_at, finished_at) values ('done', null, now() - interval '3 hours', now())",
        )
        .await?;
    // One activity of ada's is done by bob.
    let old = "insert into activities (type, sales_id, created_at) values ('sms', $1, now() - interval '40 minutes')";
    stage.client.execute(old, &[&rows[0].get::<_, i64>(1)]).await?;
    let token = stage.user(&bob);
    let (_, claimed) = stage.post(&token, "activities/claim", json!({"agent": "b"})).await?;
    let item = &claimed["items"][0];
    stage.post(&token, "activities/complete", json!({"key": item["key"], "lease": item["lease"]})).await?;

    let (status, text) = get(&stage, &stage.user(&ada), "/v1/figures?range=1h").await?;
    let figures: Value = serde_json::from_str(&text).context(text)?;
    assert_eq!(status, 200, "{figures}");
    let jobs = &figures["queues"]["jobs"];
    assert_eq!(
        (&jobs["sampled"], &jobs["done"], &jobs["dead"]),
        (&json!(125), &json!(100), &json!(25)),
        "without the one of three hours ago: {jobs}"
    );
    assert_eq!((&jobs["timed"], &jobs["within_30s"], &jobs["measures"]), (&json!(100), &json!(30), &json!("finished")), "{jobs}");
    assert!(jobs["p50"].as_f64().is_some_and(|p50| (p50 - 50.5).abs() < 0.1), "{jobs}");
    assert!(
        jobs["slices"]
            .as_array()
            .is_some_and(|slices| slices.iter().map(|slice| slice[1].as_i64().unwrap_or_default()).sum::<i64>() == 125)
    );
    let activities = &figures["queues"]["activities"];
    assert_eq!(
        (&activities["owned"], &activities["stolen"], &activities["measures"]),
        (&json!(1), &json!(1), &json!("taken")),
        "{activities}"
    );
    assert!(activities["p95"].as_f64().is_some_and(|waited| (2400.0..2700.0).contains(&waited)), "{activities}");

    let (_, text) = get(&stage, &token, "/v1/figures").await?;
    let seen: Value = serde_json::from_str(&text)?;
    assert!(seen["queues"]["jobs"].is_null() && seen["queues"]["activities"].is_object(), "a member does not see jobs: {seen}");
    let outsider = stage.user("00000000-0000-0000-0000-00000000000e");
    assert_eq!(get(&stage, &outsider, "/v1/figures").await?.0, 403);

    assert_eq!(get(&stage, &token, "/metrics").await?.0, 403);
    let (status, text) = get(&stage, &stage.service(), "/metrics").await?;
    assert_eq!(status, 200, "{text}");
    for line in [
        r#"gleaner_queue_items{queue="jobs",state="dead"} 25"#,
        r#"gleaner_queue_within_30s_ratio{queue="jobs"} 0.3"#,
        r#"gleaner_queue_stolen_ratio{queue="activities"} 1"#,
    ] {
        assert!(text.lines().any(|one| one == line), "{line} in\n{text}");
    }
    Ok(())
}

#[tokio::test]
async fn figures_are_computed_once_however_many_ask() -> Result<()> {
    let stage = stage().await?;
    let looks = (0..50).map(|_| async { get(&stage, &stage.service(), "/v1/figures").await });
    let mut answers = Vec::new();
    for look in futures_util::future::join_all(looks).await {
        let (status, text) = look?;
        assert_eq!(status, 200, "{text}");
        answers.push(serde_json::from_str::<Value>(&text)?["at"].to_string());
    }
    answers.dedup();
    assert_eq!(answers.len(), 1, "{answers:?}");
    Ok(())
}
