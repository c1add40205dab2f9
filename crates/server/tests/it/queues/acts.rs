//! The responses of the acts, for different callers.

use std::time::Instant;

use anyhow::Result;
use serde_json::{Value, json};

use crate::queues::stage::{Stage, stage};

async fn claimed(stage: &Stage, agent: &str) -> Result<(Value, Value)> {
    let answer = stage.ask("jobs/claim", json!({"agent": agent})).await?;
    Ok((answer["items"][0]["key"].clone(), answer["items"][0]["lease"].clone()))
}

#[tokio::test]
async fn work_passes_from_enqueue_to_completion() -> Result<()> {
    let stage = stage().await?;
    let put = stage.ask("jobs/enqueue", json!({"items": [{"kind": "mail", "payload": {"to": "ada"}}]})).await?;
    assert_eq!(put["items"][0]["outcome"], "enqueued");
    let answer = stage.ask("jobs/claim", json!({"agent": "a", "kinds": ["mail"]})).await?;
    let item = &answer["items"][0];
    assert_eq!((&item["payload"], &item["kind"]), (&json!({"to": "ada"}), &json!("mail")));
    let shown = stage.ask("jobs/progress", json!({"key": item["key"], "lease": item["lease"], "stage": "writing", "percent": 50})).await?;
    assert_eq!(shown["outcome"], "done");
    assert!(shown["lease_seconds"].as_f64().is_some_and(|left| left > 200.0), "{shown}");
    let done = stage.ask("jobs/complete", json!({"key": item["key"], "lease": item["lease"], "result": {"sent": true}})).await?;
    assert_eq!(done, json!({"key": item["key"], "outcome": "done", "status": "done"}));
    let result: Value = stage.client.query_one("select result from gleaner.jobs", &[]).await?.get(0);
    assert_eq!(result["sent"], true);
    Ok(())
}

#[tokio::test]
async fn a_stale_lease_is_refused_with_409_and_a_missing_row_with_410() -> Result<()> {
    let stage = stage().await?;
    stage.ask("jobs/enqueue", json!({"items": [{"payload": 1}, {"payload": 2}]})).await?;
    let (key, lease) = claimed(&stage, "a").await?;
    stage.ask("jobs/release", json!({"key": key, "lease": lease})).await?;
    // Another agent holds it now.
    let others = stage.ask("jobs/claim", json!({"agent": "b", "limit": 2})).await?;
    let service = stage.service();
    for act in ["complete", "progress", "start", "release"] {
        let (status, answer) = stage.post(&service, &format!("jobs/{act}"), json!({"key": key, "lease": lease})).await?;
        assert_eq!((status, &answer["outcome"]), (409, &json!("lost")), "{act}");
    }
    let (status, _) = stage.post(&service, "jobs/fail", json!({"key": key, "lease": lease, "message": "late"})).await?;
    assert_eq!(status, 409);
    let (status, _) = stage.post(&service, "jobs/snooze", json!({"key": key, "lease": lease, "seconds": 5})).await?;
    assert_eq!(status, 409);
    let (status, answer) = stage.post(&service, "jobs/complete", json!({"key": 999_999, "lease": 1})).await?;
    assert_eq!((status, &answer["outcome"]), (410, &json!("gone")));

    let good = &others["items"][0];
    let batch = json!({"items": [{"key": good["key"], "lease": good["lease"]}, {"key": "999999", "lease": 1}]});
    let (status, answer) = stage.post(&service, "jobs/complete", batch).await?;
    let mut outcomes: Vec<_> = answer["items"].as_array().into_iter().flatten().map(|one| one["outcome"].clone()).collect();
    outcomes.sort_by_key(ToString::to_string);
    assert_eq!((status, outcomes), (200, vec![json!("done"), json!("gone")]), "one stale member does not spoil a batch");
    Ok(())
}

/// What only an administrator may do, a member cannot, over HTTP as by SQL.
#[tokio::test]
async fn a_member_is_refused_what_only_an_administrator_may_do() -> Result<()> {
    let stage = stage().await?;
    let users =
        "insert into sales (first_name, user_id, administrator) values ('ada', gen_random_uuid(), true), ('bob', gen_random_uuid(), false)
                 returning user_id::text, id";
    let rows = stage.client.query(users, &[]).await?;
    let (ada, bob): (String, String) = (rows[0].get(0), rows[1].get(0));
    let theirs = "insert into activities (type, sales_id) values ('sms', $1) returning id::text";
    let key: String = stage.client.query_one(theirs, &[&rows[0].get::<_, i64>(1)]).await?.get(0);
    stage.ask("jobs/enqueue", json!({"items": [{"kind": "mail"}]})).await?;
    let job: i64 = stage.client.query_one("select id from gleaner.jobs", &[]).await?.get(0);
    let requests = [
        ("activities/requeue", json!({"keys": [key]})),
        ("activities/reschedule", json!({"keys": [key], "due": "2026-05-04T09:00:00Z"})),
        ("activities/assign", json!({"keys": [key], "owner": null})),
        ("activities/bury", json!({"keys": [key]})),
        ("activities/cancel", json!({"matching": {"type": "sms"}})),
        ("activities/cancel", json!({"keys": [key]})),
        ("jobs/requeue", json!({"keys": [job]})),
        ("jobs/bury", json!({"keys": [job]})),
        ("jobs/cancel", json!({"keys": [job]})),
    ];
    let me = async |user: &str| -> Result<Value> {
        let asked = stage.http.get(format!("{}/v1/me", stage.base)).bearer_auth(stage.user(user)).send().await?;
        Ok(serde_json::from_str(&asked.text().await?)?)
    };
    let (of_ada, of_bob) = (me(&ada).await?, me(&bob).await?);
    assert_eq!((&of_ada["role"], &of_ada["queues"]["jobs"]), (&json!("administrator"), &json!("all")), "{of_ada}");
    assert_eq!((&of_bob["role"], &of_bob["queues"]["jobs"]), (&json!("member"), &json!("none")), "{of_bob}");
    assert_eq!((&of_bob["queues"]["activities"], &of_bob["person"]["first_name"]), (&json!("own"), &json!("bob")), "{of_bob}");
    for (path, body) in &requests {
        let (status, told) = stage.post(&stage.user(&bob), path, body.clone()).await?;
        assert_eq!(status, 403, "a member: {path}: {told}");
        assert!(told["message"].as_str().is_some_and(|message| message.contains("administrators")), "{told}");
    }
    // Unowned from the second on: an administrator's acts go through all the same.
    for (path, body) in requests {
        let (status, told) = stage.post(&stage.user(&ada), path, body).await?;
        assert_eq!(status, 200, "an administrator: {path}: {told}");
    }
    Ok(())
}

#[tokio::test]
async fn the_database_decides_who_may_do_what() -> Result<()> {
    let stage = stage().await?;
    let ada: String = stage
        .client
        .query_one("insert into sales (first_name, user_id) values ('ada', gen_random_uuid()) returning user_id::text", &[])
        .await?
        .get(0);
    stage.client.batch_execute("insert into activities (type) values ('sms')").await?;
    let anon = stage.access.project_key(gleaner_http::Role::Anon);
    let user = stage.user(&ada);
    assert_eq!(stage.post(&anon, "activities/claim", json!({"agent": "x"})).await?.0, 401);
    assert_eq!(stage.post(&user, "jobs/claim", json!({"agent": "x"})).await?.0, 403, "jobs are the service's");
    let (status, answer) = stage.post(&user, "activities/claim", json!({"agent": "x"})).await?;
    assert_eq!((status, answer["items"].as_array().map(Vec::len)), (200, Some(1)));
    assert_eq!(stage.post(&user, "activities/requeue", json!({"keys": [answer["items"][0]["key"]]})).await?.0, 200, "it has no owner");
    let without = stage.http.post(format!("{}/v1/queues/jobs/claim", stage.base)).json(&json!({"agent": "x"})).send().await?;
    assert_eq!(without.status(), 401);
    Ok(())
}

#[tokio::test]
async fn invalid_requests_are_reported_and_never_a_500() -> Result<()> {
    let stage = stage().await?;
    let service = stage.service();
    for (path, body, status) in [
        ("nosuch/claim", json!({"agent": "x"}), 404),
        ("jobs/claim", json!({}), 400),
        ("jobs/claim", json!({"agent": ""}), 400),
        ("jobs/claim", json!({"agent": "x", "limit": 0}), 400),
        ("jobs/claim", json!({"agent": "x", "colour": 1}), 400),
        ("jobs/claim", json!({"agent": "x", "wait_seconds": -1}), 400),
        ("jobs/claim", json!({"agent": "x", "owner": 7}), 400),
        ("jobs/claim", json!({"agent": "x", "tenant": 7}), 400),
        ("jobs/complete", json!({"key": "no number", "lease": 1}), 400),
        ("jobs/enqueue", json!({"items": [{"nosuch": 1}]}), 400),
        ("jobs/cancel", json!({}), 400),
        ("jobs/cancel", json!({"matching": {"nosuch": 1}}), 400),
    ] {
        let (got, answer) = stage.post(&service, path, body.clone()).await?;
        assert_eq!(got, status, "{path} {body}: {answer}");
        assert!(answer["message"].as_str().is_some_and(|message| !message.is_empty()), "{answer}");
    }
    Ok(())
}

#[tokio::test]
async fn operators_cancel_requeue_bury_assign_and_ask_why() -> Result<()> {
    let stage = stage().await?;
    stage
        .client
        .batch_execute("insert into sales (id, first_name) values (7, 'ada'); insert into activities (type) values ('sms'), ('call')")
        .await?;
    let key: String = stage.client.query_one("select id::text from activities where type = 'sms'", &[]).await?.get(0);
    assert_eq!(stage.ask("activities/assign", json!({"keys": [key], "owner": 7})).await?["items"][0]["outcome"], "done");
    let url = format!("{}/v1/queues/activities/items/{key}/explain", stage.base);
    let told: Value = stage.http.get(&url).bearer_auth(stage.service()).send().await?.json().await?;
    assert!(told.is_object(), "{told}");
    assert_eq!(stage.ask("activities/bury", json!({"keys": [key], "reason": "noise"})).await?["items"][0]["outcome"], "done");
    assert_eq!(stage.ask("activities/requeue", json!({"keys": [key]})).await?["items"][0]["outcome"], "done");
    let cancelled = stage.ask("activities/cancel", json!({"matching": {"type": "call"}})).await?;
    assert_eq!(cancelled["items"].as_array().map(Vec::len), Some(1));
    let missing = stage.http.get(url.replace(&key, "00000000-0000-0000-0000-000000000000")).bearer_auth(stage.service()).send().await?;
    assert_eq!(missing.status(), 404);
    Ok(())
}

#[tokio::test]
async fn an_error_names_the_field_that_does_not_fit() -> Result<()> {
    let stage = stage().await?;
    for (act, body, word) in [
        ("complete", json!({"key": 1}), "lease"),
        ("complete", json!({"key": 1, "lease": 1, "reslt": 1}), "reslt"),
        ("complete", json!({"items": [{"key": 1}]}), "lease"),
        ("complete", json!({"items": [], "lease": 1}), "lease"),
        ("start", json!({"key": 1, "lease": 1, "result": 1}), "result"),
        ("requeue", json!({}), "keys"),
        ("cancel", json!({"keys": [], "matching": {}}), "matching"),
        ("enqueue", json!({"items": [{"nosuch": 1}]}), "nosuch"),
        ("enqueue", json!({"items": [{"due_at": "tomorrow-ish"}]}), "tomorrow-ish"),
    ] {
        let (status, answer) = stage.post(&stage.service(), &format!("jobs/{act}"), body.clone()).await?;
        let message = answer["message"].as_str().unwrap_or_default();
        assert!(status == 400 && message.contains(word), "{act} {body}: {status} {answer}");
    }
    Ok(())
}

#[tokio::test]
async fn a_holder_learns_which_rows_it_no_longer_holds() -> Result<()> {
    let stage = stage().await?;
    stage.ask("jobs/enqueue", json!({"items": [{"payload": 1}, {"payload": 2}]})).await?;
    let ((one, first), (other, second)) = (claimed(&stage, "a").await?, claimed(&stage, "a").await?);
    let held = json!({"items": [{"key": one, "lease": first}, {"key": other, "lease": second}, {"key": "999", "lease": 1}]});
    assert_eq!(stage.ask("jobs/ended", held.clone()).await?, json!({"items": []}));
    stage.ask("jobs/cancel", json!({"keys": [other]})).await?;
    assert_eq!(stage.ask("jobs/ended", held).await?, json!({"items": [{"key": other, "lease": second}]}));
    let one_row = json!({"key": one, "lease": 7});
    assert_eq!(stage.ask("jobs/ended", one_row.clone()).await?, json!({"items": [one_row]}), "a lease of somebody else's");
    let (status, _) = stage.post(&stage.user("00000000-0000-0000-0000-000000000001"), "jobs/ended", json!({"items": []})).await?;
    assert_eq!(status, 403, "who may not read the table learns nothing of it");
    Ok(())
}

/// Pages and Prometheus ask as often as they like, for any number of agents.
#[tokio::test]
async fn waiting_rows_are_shown_to_those_who_may_claim_and_counted_seldom() -> Result<()> {
    let stage = stage().await?;
    let items: Vec<Value> = (0..5).map(|n| json!({"kind": if n < 2 { "a" } else { "b" }, "payload": n})).collect();
    stage.ask("jobs/enqueue", json!({"items": items})).await?;
    let nobody = stage.post(&stage.user("00000000-0000-0000-0000-000000000001"), "jobs/waiting", json!({})).await?;
    assert_eq!(nobody.0, 403, "{nobody:?}");
    // Null while the pause between two counts lasts.
    let counted = async |body: Value| loop {
        let told = stage.ask("jobs/waiting", body.clone()).await?;
        if !told["count"].is_null() {
            return anyhow::Ok(told);
        }
    };
    assert_eq!(counted(json!({"kinds": ["b"]})).await?, json!({"count": 3, "capped": false}));
    assert_eq!(counted(json!({})).await?, json!({"count": 5, "capped": false}));
    let (before, began) = (stage.queues.counted(), Instant::now());
    let told = futures_util::future::try_join_all((0..100).map(|_| stage.ask("jobs/waiting", json!({})))).await?;
    assert!(told.iter().all(|told| told["count"] == 5), "{told:?}");
    let most = began.elapsed().as_secs() / 5;
    assert!(stage.queues.counted() - before <= most, "the same question was counted again within five seconds");
    // A thousand agents of a thousand owners send a thousand requests.
    counted(json!({"kinds": ["kind"]})).await?;
    let (before, began) = (stage.queues.counted(), Instant::now());
    let ask = |n: usize| stage.ask("jobs/waiting", json!({"kinds": [format!("kind {n}")]}));
    let told = futures_util::future::try_join_all((0..100).map(ask)).await?;
    let most = began.elapsed().as_millis() as u64 / 200 + 1;
    let counted = stage.queues.counted() - before;
    assert!(counted <= most, "{counted} counts in {:?}", began.elapsed());
    assert!(told.iter().all(|told| told["count"] == 0 || told["count"].is_null()), "{told:?}");
    Ok(())
}

#[tokio::test]
async fn a_queue_whose_table_is_gone_is_listed_as_broken_and_hides_no_other() -> Result<()> {
    let stage = stage().await?;
    stage
        .client
        .batch_execute("drop table execution_jobs cascade; update gleaner.queue set declaration = '{\"table\": 5}' where name = 'dumps'")
        .await?;
    let listed: Value = stage.http.get(format!("{}/v1/queues", stage.base)).bearer_auth(stage.service()).send().await?.json().await?;
    let broken = |name: &str| {
        let queue = listed.as_array().into_iter().flatten().find(|queue| queue["name"] == name);
        queue.map(|queue| queue["broken"].as_str().unwrap_or("no").to_owned()).unwrap_or_default()
    };
    assert_eq!(broken("jobs"), "no");
    assert!(broken("runs").contains("its table public.execution_jobs is gone"), "{listed}");
    assert!(broken("dumps").contains("cannot be read"), "{listed}");
    stage.ask("jobs/enqueue", json!({"items": [{"kind": "a"}]})).await?;
    Ok(())
}
