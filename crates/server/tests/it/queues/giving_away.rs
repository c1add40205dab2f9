//! What the acts reveal to other callers.

use std::time::Duration;

use anyhow::Result;
use serde_json::{Value, json};

use super::stage::{Stage, stage};

/// Two people, each with a sign-in. Returns their tokens.
async fn two_people(stage: &Stage) -> Result<(String, String)> {
    let sql = "insert into sales (id, first_name, user_id) values (1, 'ada', gen_random_uuid()), (2, 'bob', gen_random_uuid())
               returning user_id::text";
    let people = stage.client.query(sql, &[]).await?;
    Ok((stage.user(people[0].get(0)), stage.user(people[1].get(0))))
}

fn worker(stage: &Stage, more: &Value) -> String {
    let id = "00000000-0000-0000-0000-000000000007";
    let mut claims = json!({"role": "authenticated", "sub": id, "session_id": id, "worker": true});
    let claims = claims.as_object_mut().expect("an object");
    claims.extend(more.as_object().cloned().unwrap_or_default());
    stage.access.sign(claims)
}

#[tokio::test]
async fn a_caller_that_knows_anothers_request_is_not_given_its_rows() -> Result<()> {
    let stage = stage().await?;
    let (ada, bob) = two_people(&stage).await?;
    let sql = "insert into activities (type, sales_id, raw_data) values ('sms', 1, '{\"content\": \"between us\"}')";
    stage.client.batch_execute(sql).await?;
    let asked = json!({"agent": "a", "request": "1f0c7a52-0000-4000-8000-000000000002"});
    let (_, given) = stage.post(&ada, "activities/claim", asked.clone()).await?;
    assert_eq!(given["items"][0]["payload"]["content"], "between us");
    let (status, answer) = stage.post(&bob, "activities/claim", asked.clone()).await?;
    assert_eq!((status, &answer["items"]), (200, &json!([])), "neither the row nor its lease");
    let (_, again) = stage.post(&ada, "activities/claim", asked.clone()).await?;
    assert_eq!(again["items"][0]["lease"], given["items"][0]["lease"], "to the one who asked it is given again");
    assert_eq!(stage.ask("activities/claim", asked).await?["items"][0]["lease"], given["items"][0]["lease"], "the service may know");
    Ok(())
}

#[tokio::test]
async fn a_key_for_some_kinds_is_not_given_others_by_a_request_it_knows() -> Result<()> {
    let stage = stage().await?;
    let (ada, _) = two_people(&stage).await?;
    stage.client.batch_execute("insert into activities (type, sales_id) values ('call', 1)").await?;
    let asked = json!({"agent": "a", "request": "1f0c7a52-0000-4000-8000-000000000004"});
    let (_, given) = stage.post(&ada, "activities/claim", asked.clone()).await?;
    let worker = worker(&stage, &json!({"kinds": ["sms"]}));
    let stolen = json!({"key": given["items"][0]["key"], "lease": given["items"][0]["lease"]});
    assert_eq!(stage.post(&worker, "activities/complete", stolen).await?.0, 409, "the lease alone does not let it act");
    let (status, answer) = stage.post(&worker, "activities/claim", asked).await?;
    assert_eq!((status, &answer["items"]), (200, &json!([])));
    Ok(())
}

#[tokio::test]
async fn an_act_reveals_nothing_of_a_row_to_a_key_that_never_held_it() -> Result<()> {
    let stage = stage().await?;
    let (ada, _) = two_people(&stage).await?;
    let sql = "insert into activities (type, sales_id) values ('sms', 1) returning id::text";
    let key: String = stage.client.query_one(sql, &[]).await?.get(0);
    let (_, given) = stage.post(&ada, "activities/claim", json!({"agent": "a"})).await?;
    let worker = worker(&stage, &json!({}));
    for (act, more) in [
        ("complete", json!({})),
        ("progress", json!({})),
        ("start", json!({})),
        ("release", json!({})),
        ("fail", json!({"message": "m"})),
        ("snooze", json!({"seconds": 1})),
    ] {
        for lease in [json!(1), given["items"][0]["lease"].clone()] {
            let mut body = json!({"key": key, "lease": lease});
            body.as_object_mut().expect("an object").extend(more.as_object().cloned().unwrap_or_default());
            let (status, answer) = stage.post(&worker, &format!("activities/{act}"), body).await?;
            assert_eq!((status, &answer["outcome"], &answer["status"]), (409, &json!("lost"), &Value::Null), "{act}");
        }
    }
    let (_, answer) = stage.post(&ada, "activities/complete", json!({"key": key, "lease": 1})).await?;
    assert_eq!((&answer["outcome"], &answer["status"]), (&json!("lost"), &json!("processing")), "its holder is told");
    Ok(())
}

#[tokio::test]
async fn a_waiting_claim_with_a_request_is_given_what_comes_later_and_again_when_it_asks_again() -> Result<()> {
    let stage = stage().await?;
    let asked = json!({"agent": "a", "wait_seconds": 10, "request": "1f0c7a52-0000-4000-8000-000000000003"});
    let arriving = async {
        // Wait until the claim has found nothing.
        while stage.queues.tally().1 < 2 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        stage.client.batch_execute("insert into gleaner.jobs (payload) values ('1'), ('2'); notify gleaner, 'jobs'").await?;
        anyhow::Ok(())
    };
    let ((_, given), ()) = tokio::try_join!(stage.call("jobs/claim", asked.clone()), arriving)?;
    assert_eq!(given["items"][0]["payload"], 1);
    let (_, again) = stage.call("jobs/claim", asked).await?;
    assert_eq!(again["items"][0]["lease"], given["items"][0]["lease"], "the same row, and no other");
    Ok(())
}
