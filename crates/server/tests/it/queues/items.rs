//! Rows for people to see, and acts on all that match.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use crate::queues::stage::{Stage, stage};
use crate::queues::waiting::come;

async fn get(stage: &Stage, token: &str, path: &str) -> Result<(u16, Value)> {
    let response = stage.http.get(format!("{}/v1/queues/{path}", stage.base).trim_end_matches('/')).bearer_auth(token).send().await?;
    let (status, text) = (response.status().as_u16(), response.text().await?);
    Ok((status, serde_json::from_str(&text).with_context(|| text.clone())?))
}

/// An administrator and a member, as tokens, and the member's owner id.
async fn people(stage: &Stage) -> Result<(String, String, i64)> {
    let users =
        "insert into sales (first_name, user_id, administrator) values ('ada', gen_random_uuid(), true), ('bob', gen_random_uuid(), false)
                 returning user_id::text, id";
    let rows = stage.client.query(users, &[]).await?;
    Ok((stage.user(rows[0].get(0)), stage.user(rows[1].get(0)), rows[1].get(1)))
}

fn encoded(text: &str) -> String {
    form_urlencoded::byte_serialize(text.as_bytes()).collect()
}

/// All keys of a list, page by page.
async fn walked(stage: &Stage, token: &str, path: &str) -> Result<Vec<String>> {
    let (mut keys, mut after) = (Vec::new(), String::new());
    loop {
        let (status, page) = get(stage, token, &format!("{path}limit=7{after}")).await?;
        anyhow::ensure!(status == 200, "{path}: {status} {page}");
        keys.extend(page["items"].as_array().into_iter().flatten().map(|item| item["id"].as_str().unwrap_or_default().to_owned()));
        let Some(next) = page["next"].as_str() else { return Ok(keys) };
        after = format!("&after={}", encoded(next));
    }
}

async fn ended(stage: &Stage, token: &str, queue: &str, id: &Value) -> Result<Value> {
    let id = id.as_str().context("an id")?;
    loop {
        let (_, bulk) = get(stage, token, &format!("{queue}/bulk/{id}")).await?;
        if bulk["state"] != "running" {
            return Ok(bulk);
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a_list_shows_every_row_once_whatever_page_it_is_on() -> Result<()> {
    let stage = stage().await?;
    let service = stage.service();
    stage
        .client
        .batch_execute(
            "insert into gleaner.jobs (kind, due_at) select case when n % 2 = 0 then 'mail' else 'print' end, now() - interval '1 hour' from generate_series(1, 20) n;
             insert into gleaner.jobs (kind, due_at) select 'mail', now() + n * interval '1 hour' from generate_series(1, 9) n;
             insert into activities (type, processing_status, created_at) select 'sms', 'completed', now() - (n / 3) * interval '1 minute' from generate_series(1, 20) n;
             insert into activities (type) select 'call' from generate_series(1, 8) n",
        )
        .await?;
    for (path, expected) in [
        ("jobs/items?", 29),
        ("jobs/items?state=ready&", 20),
        ("jobs/items?state=ready&kind=mail&", 10),
        ("jobs/items?state=scheduled&", 9),
        ("jobs/items?state=done&", 0),
        ("activities/items?", 28),
        ("activities/items?state=done&", 20),
        ("activities/items?state=ready&owner=none&", 8),
    ] {
        let keys = walked(&stage, &service, path).await?;
        assert_eq!((keys.len(), keys.iter().collect::<BTreeSet<_>>().len()), (expected, expected), "{path}");
    }
    let (_, counted) = get(&stage, &service, "jobs/count?kind=mail").await?;
    assert_eq!(counted, json!({"count": 19, "capped": false, "states": {"ready": 10, "scheduled": 9}}));

    let key: String = stage.client.query_one("select id::text from activities limit 1", &[]).await?.get(0);
    let found = walked(&stage, &service, &format!("activities/items?key={}&", &key[..9])).await?;
    assert_eq!(found, std::slice::from_ref(&key));
    let (status, shown) = get(&stage, &service, &format!("activities/items/{key}")).await?;
    assert_eq!((status, &shown["row"]["id"], &shown["audit"]), (200, &json!(key), &json!([])), "{shown}");
    for (path, status) in [
        ("activities/items/nonsense", 404),
        ("jobs/items/999", 404),
        ("nosuch/items", 404),
        ("jobs/items?owner=7", 400),
        ("jobs/items?after=x", 400),
        ("jobs/items?state=odd", 400),
        ("jobs/bulk/00000000-0000-0000-0000-000000000000", 404),
    ] {
        assert_eq!(get(&stage, &service, path).await?.0, status, "{path}");
    }
    Ok(())
}

#[tokio::test]
async fn a_member_sees_what_row_security_shows_and_an_administrator_every_queue() -> Result<()> {
    let stage = stage().await?;
    let (ada, bob, _) = people(&stage).await?;
    stage
        .client
        .batch_execute(
            "insert into sales (first_name, user_id, allow_remote_processing) values ('eve', gen_random_uuid(), false);
             insert into activities (type, sales_id) select 'sms', id from sales;
             insert into gleaner.jobs default values",
        )
        .await?;
    assert_eq!(walked(&stage, &ada, "activities/items?").await?.len(), 3);
    assert_eq!(walked(&stage, &bob, "activities/items?").await?.len(), 2, "not the private row");
    let private: String = stage
        .client
        .query_one("select a.id::text from activities a join sales s on s.id = a.sales_id where s.first_name = 'eve'", &[])
        .await?
        .get(0);
    assert_eq!(get(&stage, &bob, &format!("activities/items/{private}")).await?.0, 404);
    for path in ["jobs/items", "jobs/items/1", "jobs/count", "jobs/causes", "jobs/stats"] {
        assert_eq!(get(&stage, &bob, path).await?.0, 403, "{path}");
        assert_eq!(get(&stage, &ada, path).await?.0, 200, "{path}");
    }
    let outsider = stage.user("00000000-0000-0000-0000-00000000000e");
    let (status, page) = get(&stage, &outsider, "activities/items").await?;
    assert!(status == 403 || page["items"] == json!([]), "{status} {page}");
    Ok(())
}

#[tokio::test]
async fn dead_rows_are_grouped_by_cause_and_requeued_by_group() -> Result<()> {
    let stage = stage().await?;
    let (ada, bob, _) = people(&stage).await?;
    stage
        .client
        .batch_execute(
            r#"insert into gleaner.jobs (status, due_at, error)
               select 'failed', null, jsonb_build_object('type', 'Timeout', 'message', format('no answer from "host-%s" within %s s', n, n)) from generate_series(1, 1200) n;
               insert into gleaner.jobs (status, due_at, error) values ('failed', null, '{"type": "Refused", "message": "wrong key"}'), ('failed', null, null)"#,
        )
        .await?;
    let (_, found) = get(&stage, &ada, "jobs/causes").await?;
    let causes = found["causes"].as_array().context("causes")?;
    let brief: Vec<_> =
        causes.iter().map(|one| (one["cause"].as_str().unwrap_or_default(), one["count"].as_i64().unwrap_or_default())).collect();
    assert_eq!(brief, [("Timeout: no answer from … within … s", 1200), ("Refused: wrong key", 1), ("no reason given", 1)]);

    let request = json!({"act": "requeue", "filter": {"state": "dead", "cause": "Timeout: no answer from … within … s"}});
    let (status, refused) = stage.post(&bob, "jobs/bulk", request.clone()).await?;
    assert_eq!(status, 403, "{refused}");
    let (status, bulk) = stage.post(&ada, "jobs/bulk", request).await?;
    assert_eq!((status, &bulk["total"]), (202, &json!(1200)), "{bulk}");
    let end = ended(&stage, &ada, "jobs", &bulk["id"]).await?;
    assert_eq!(
        (&end["state"], &end["done"], &end["already"], &end["failed"]),
        (&json!("done"), &json!(1200), &json!(0), &json!(0)),
        "{end}"
    );
    let row = stage
        .client
        .query_one("select count(*) filter (where status = 'ready'), count(*) filter (where status = 'failed') from gleaner.jobs", &[])
        .await?;
    assert_eq!((row.get::<_, i64>(0), row.get::<_, i64>(1)), (1200, 2));
    let noted: i64 =
        stage.client.query_one("select count(*) from gleaner.audit where queue = 'jobs' and act = 'requeue'", &[]).await?.get(0);
    assert_eq!(noted, 1200, "every row is in the audit");
    Ok(())
}

#[tokio::test]
async fn a_bulk_act_leaves_changed_rows_alone_and_can_be_stopped() -> Result<()> {
    let stage = stage().await?;
    let service = stage.service();
    stage.client.batch_execute("insert into gleaner.jobs (kind) select 'mail' from generate_series(1, 3000)").await?;
    // Batches wait for this row, and meanwhile a row of a later batch is finished by its worker.
    let mut other = gleaner::connect(&stage.database.url).await?;
    let held = other.transaction().await?;
    held.batch_execute("select from gleaner.jobs order by id limit 1 for update").await?;
    let (status, bulk) =
        stage.post(&service, "jobs/bulk", json!({"act": "cancel", "filter": {"state": "ready"}, "reason": "a test"})).await?;
    assert_eq!((status, &bulk["total"]), (202, &json!(3000)), "{bulk}");
    let (status, refused) = stage.post(&service, "jobs/bulk", json!({"act": "requeue"})).await?;
    assert_eq!(status, 409, "one at a time: {refused}");
    let first = stage.ask("jobs/claim", json!({"agent": "a", "limit": 1})).await?["items"][0].clone();
    stage.ask("jobs/complete", json!({"key": first["key"], "lease": first["lease"]})).await?;
    let id = bulk["id"].as_str().context("an id")?;
    let told = stage.http.delete(format!("{}/v1/queues/jobs/bulk/{id}", stage.base)).bearer_auth(&service).send().await?;
    assert_eq!(told.status(), 200);
    held.commit().await?;
    let end = ended(&stage, &service, "jobs", &bulk["id"]).await?;
    assert_eq!(end["state"], "stopped", "{end}");
    let changed = end["done"].as_i64().unwrap_or_default() + end["already"].as_i64().unwrap_or_default();
    assert_eq!(changed, 500, "the batch at hand and no more: {end}");
    let row = stage
        .client
        .query_one("select count(*) filter (where status = 'cancelled'), count(*) filter (where status = 'done') from gleaner.jobs", &[])
        .await?;
    assert_eq!((row.get::<_, i64>(0), row.get::<_, i64>(1)), (end["done"].as_i64().unwrap_or_default(), 1), "{end}");
    Ok(())
}

#[tokio::test]
async fn a_member_acts_in_bulk_on_its_own_rows_only() -> Result<()> {
    let stage = stage().await?;
    let (ada, bob, own) = people(&stage).await?;
    stage.client.batch_execute("insert into activities (type, sales_id) select 'sms', id from sales, generate_series(1, 5)").await?;
    let (_, bulk) = stage.post(&bob, "activities/bulk", json!({"act": "cancel", "filter": {"owner": own.to_string()}})).await?;
    let end = ended(&stage, &bob, "activities", &bulk["id"]).await?;
    assert_eq!((&end["state"], &end["done"]), (&json!("done"), &json!(5)), "{end}");
    let (_, bulk) = stage.post(&bob, "activities/bulk", json!({"act": "cancel", "filter": {"state": "ready"}})).await?;
    let end = ended(&stage, &bob, "activities", &bulk["id"]).await?;
    assert_eq!((&end["state"], &end["done"]), (&json!("failed"), &json!(0)), "{end}");
    let waiting: i64 = stage.client.query_one("select count(*) from activities where processing_status = 'raw'", &[]).await?.get(0);
    assert_eq!(waiting, 5, "the administrator's rows");
    let (_, seen) = get(&stage, &ada, "activities/bulk").await?;
    assert_eq!(seen.as_array().map(Vec::len), Some(2), "an administrator sees the acts of all: {seen}");
    Ok(())
}

#[tokio::test]
async fn a_paused_queue_hands_out_nothing_and_says_why() -> Result<()> {
    let stage = stage().await?;
    let (ada, bob, own) = people(&stage).await?;
    stage.ask("jobs/enqueue", json!({"items": [{"kind": "mail"}, {"kind": "mail"}]})).await?;
    stage.client.execute("insert into activities (type, sales_id) values ('sms', $1)", &[&own]).await?;
    let held = stage.ask("jobs/claim", json!({"agent": "a"})).await?["items"][0].clone();
    for queue in ["jobs", "activities"] {
        assert_eq!(stage.post(&bob, &format!("{queue}/pause"), json!({})).await?.0, 403, "only administrators pause {queue}");
        let (status, paused) = stage.post(&ada, &format!("{queue}/pause"), json!({"reason": "the provider is down"})).await?;
        assert_eq!((status, paused), (200, json!({"outcome": "done"})));
        assert_eq!(stage.post(&ada, &format!("{queue}/pause"), json!({})).await?.1, json!({"outcome": "already"}));
        let (_, nothing) = stage.post(&stage.service(), &format!("{queue}/claim"), json!({"agent": "b", "limit": 100})).await?;
        assert_eq!((&nothing["items"], &nothing["next_due_seconds"]), (&json!([]), &Value::Null), "{queue}");
        let waiting = get(&stage, &ada, &format!("{queue}/items?state=ready")).await?.1["items"][0]["id"].clone();
        let (_, why) = get(&stage, &ada, &format!("{queue}/items/{}/explain", waiting.as_str().context("a row")?)).await?;
        assert_eq!((&why["claimable"], &why["paused"]["reason"]), (&json!(false), &json!("the provider is down")), "{why}");
        assert!(why["reason"].as_str().is_some_and(|reason| reason.contains("paused") && reason.contains("the provider is down")), "{why}");
    }
    let (_, listed) = get(&stage, &ada, "").await?;
    assert!(
        listed
            .as_array()
            .into_iter()
            .flatten()
            .all(|one| one["paused"].is_null() != matches!(one["name"].as_str(), Some("jobs" | "activities"))),
        "{listed}"
    );
    let done = stage.ask("jobs/complete", json!({"key": held["key"], "lease": held["lease"]})).await?;
    assert_eq!(done["outcome"], "done", "what is held may be completed");
    // A claim that waits gets the row as soon as the queue is resumed.
    let (claimed, resumed) = tokio::join!(stage.ask("jobs/claim", json!({"agent": "c", "wait_seconds": 30})), async {
        come(&stage, 1).await;
        stage.post(&ada, "jobs/resume", json!({})).await
    });
    assert_eq!(resumed?.1, json!({"outcome": "done"}));
    assert_eq!(claimed?["items"].as_array().map(Vec::len), Some(1));
    let acts: Vec<String> = stage
        .client
        .query("select act from gleaner.audit where queue = 'jobs' order by id", &[])
        .await?
        .iter()
        .map(|row| row.get(0))
        .collect();
    assert_eq!(acts, ["pause", "resume"]);
    Ok(())
}
