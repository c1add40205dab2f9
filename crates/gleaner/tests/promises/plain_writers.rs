//! Programs that do not know Gleaner: their plain inserts and updates work as acts, and leases are checked for them too.

use anyhow::{Context as _, Result};
use gleaner::{Claim, Completion, Outcome};
use serde_json::json;

use crate::hands::{activity, claim_anew, claim_by_function, claimable_by, complete_plainly, fail_plainly, row, seconds_until};
use crate::world::{World, keys, world};

/// The plain claim in `docs/reference/systems/runs.md`.
const CLAIM_RUN: &str = "update execution_jobs set status = 'running', started_at = now(), worker_id = 'worker-1' where status = 'queued'";

#[tokio::test]
async fn a_plain_claim_is_a_claim() -> Result<()> {
    let world = world().await?;
    world.run("insert into execution_jobs (config) values ('{\"n\": 1}')").await?;
    let service = world.service().await?;
    let queue = world.queue("runs").await?;
    assert_eq!(service.execute(CLAIM_RUN, &[]).await?, 1);
    assert_eq!(service.execute(CLAIM_RUN, &[]).await?, 0, "the next worker finds nothing");
    assert!(claim_anew(&world, &queue, "engine", None, 10).await?.is_empty(), "nor does the engine hand it out");

    world.age("runs", "29 minutes").await?;
    assert!(claim_anew(&world, &queue, "engine", None, 10).await?.is_empty());
    world.age("runs", "2 minutes").await?;
    let item = claim_anew(&world, &queue, "engine", None, 10).await?.pop().context("its worker died: it comes back by itself")?;
    assert_eq!(row(&world, "execution_jobs", &item.key).await?["lost"], 1, "a plain claim counts as begun");
    Ok(())
}

/// The two optimistic plain claims, by version and by time, lose against the engine.
#[tokio::test]
async fn a_plain_claim_by_version_fails_when_the_engine_was_quicker() -> Result<()> {
    let world = world().await?;
    world.run("insert into execution_jobs (config) values ('{}')").await?;
    let read = world.client.query_one("select id::text, version, updated_at::text from execution_jobs", &[]).await?;
    let (id, version, updated_at): (String, i32, String) = (read.get(0), read.get(1), read.get(2));
    let queue = world.queue("runs").await?;
    assert_eq!(claim_anew(&world, &queue, "engine", None, 1).await?.len(), 1);
    let service = world.service().await?;
    for sql in [
        format!("update execution_jobs set status = 'running', version = {version} + 1 where id = '{id}' and version = {version}"),
        format!("update execution_jobs set status = 'running', updated_at = now() where id = '{id}' and updated_at = '{updated_at}'"),
    ] {
        assert_eq!(service.execute(&sql, &[]).await?, 0, "{sql}");
    }
    Ok(())
}

/// The status decides whether, timestamps decide when: long after every lease, exactly the unfinished rows are claimable.
#[tokio::test]
async fn past_the_lease_a_row_is_claimable_exactly_when_its_status_says_so() -> Result<()> {
    let world = world().await?;
    let queue = world.queue("activities").await?;
    let service = world.service().await?;
    let mut expected = Vec::new();
    for (what, claimable) in [
        ("completed", false),
        ("failed", true),
        ("reset", true),
        ("claimed and forgotten", true),
        ("cancelled", false),
        ("inserted as finished", false),
        ("inserted as failed", false),
        ("finished without a claim", false),
        ("inserted as running", true),
    ] {
        let status = match what {
            "inserted as finished" => "completed",
            "inserted as failed" => "failed",
            "inserted as running" => "processing",
            _ => "raw",
        };
        let sql = format!(
            "insert into activities (type, processing_status, raw_data) values ('note', '{status}', '{{\"what\": \"{what}\"}}') returning id::text"
        );
        let key: String = service.query_one(&sql, &[]).await?.get(0);
        let write = async |status: &str| {
            let sql = format!("update activities set processing_status = '{status}' where id = '{key}'");
            anyhow::ensure!(service.execute(&sql, &[]).await? == 1, "{what}: {status} changed nothing");
            Ok(())
        };
        if status == "raw" && what != "finished without a claim" {
            write("processing").await?;
        }
        match what {
            "completed" | "finished without a claim" => write("completed").await?,
            "failed" => write("failed").await?,
            "reset" => write("raw").await?,
            "cancelled" => write("cancelled").await?,
            _ => {}
        }
        if claimable {
            expected.push(what);
        }
    }
    world.age("activities", "3 hours").await?;
    let mut got = Vec::new();
    for _ in 0..20 {
        for item in claim_anew(&world, &queue, "a", None, 10).await? {
            got.push(item.payload["what"].as_str().unwrap_or_default().to_owned());
        }
    }
    got.sort_unstable();
    expected.sort_unstable();
    assert_eq!(got, expected);
    Ok(())
}

struct Desk {
    world: World,
    me: i64,
    other: i64,
    key: String,
    laptop: tokio_postgres::Client,
}

/// My activity, claimed by my laptop with `claim_next_pending_activity`.
async fn desk() -> Result<Desk> {
    let world = world().await?;
    let (me, other) = (world.person("me", 5, true).await?, world.person("other", 5, true).await?);
    let key = world.activity(Some(me), "call", 6.0).await?;
    let laptop = world.signed_in(me, "laptop").await?;
    assert_eq!(claim_by_function(&laptop, me).await?.as_deref(), Some(key.as_str()));
    Ok(Desk { world, me, other, key, laptop })
}

#[tokio::test]
async fn the_holders_plain_completion_works() -> Result<()> {
    let desk = desk().await?;
    assert_eq!(complete_plainly(&desk.laptop, &desk.key, "mine").await?, 1);
    let row = activity(&desk.world, &desk.key).await?;
    assert_eq!((&row["processing_status"], &row["processed_data"]["summary"]), (&"completed".into(), &"mine".into()));
    assert_eq!((&row["locked_by"], &row["locked_at"]), (&json!(null), &json!(null)));
    assert_eq!(complete_plainly(&desk.laptop, &desk.key, "mine").await?, 1, "and again, when the answer was lost");
    Ok(())
}

#[tokio::test]
async fn the_holders_plain_completion_works_after_its_lease_ran_out_if_the_row_was_not_taken() -> Result<()> {
    let desk = desk().await?;
    desk.world.age("activities", "1 hour").await?;
    assert_eq!(complete_plainly(&desk.laptop, &desk.key, "slept").await?, 1);
    Ok(())
}

/// Another user, and another sign-in of the same user, while the row is held: nothing changes.
#[tokio::test]
async fn a_plain_end_by_another_than_the_holder_changes_nothing() -> Result<()> {
    let desk = desk().await?;
    let before = activity(&desk.world, &desk.key).await?;
    for stranger in
        [desk.world.signed_in(desk.me, "phone").await?, desk.world.signed_in(desk.other, "laptop").await?, desk.world.service().await?]
    {
        assert_eq!(complete_plainly(&stranger, &desk.key, "not mine").await?, 0);
        assert_eq!(fail_plainly(&stranger, &desk.key).await?, 0);
        assert_eq!(activity(&desk.world, &desk.key).await?, before);
    }
    assert_eq!(complete_plainly(&desk.laptop, &desk.key, "mine").await?, 1);
    Ok(())
}

/// The lease expired and another agent claimed the row. Before and after the new holder finishes, the former one changes nothing.
#[tokio::test]
async fn a_former_holders_plain_end_changes_nothing() -> Result<()> {
    for heir_is_me in [true, false] {
        let desk = desk().await?;
        desk.world.age("activities", "6 minutes").await?;
        let (heir, owner) = if heir_is_me { ("phone", desk.me) } else { ("laptop", desk.other) };
        let heir = desk.world.signed_in(owner, heir).await?;
        assert_eq!(claim_by_function(&heir, owner).await?.as_deref(), Some(desk.key.as_str()));
        for state in ["held by the heir", "completed by the heir"] {
            let before = activity(&desk.world, &desk.key).await?;
            assert_eq!(complete_plainly(&desk.laptop, &desk.key, "late").await?, 0, "{state}");
            assert_eq!(activity(&desk.world, &desk.key).await?, before, "complete, {state}");
            assert_eq!(fail_plainly(&desk.laptop, &desk.key).await?, 0, "{state}");
            assert_eq!(activity(&desk.world, &desk.key).await?, before, "fail, {state}");
            if state == "held by the heir" {
                assert_eq!(complete_plainly(&heir, &desk.key, "right").await?, 1);
            }
        }
        assert_eq!(activity(&desk.world, &desk.key).await?["processed_data"]["summary"], "right");
    }
    Ok(())
}

/// The row was taken back and waits for the next agent.
#[tokio::test]
async fn a_former_holders_plain_end_of_a_row_that_waits_again_changes_nothing() -> Result<()> {
    let desk = desk().await?;
    desk.world.age("activities", "6 minutes").await?;
    let queue = desk.world.queue("activities").await?;
    assert_eq!(queue.recover().await?, 1);
    let before = activity(&desk.world, &desk.key).await?;
    assert_eq!(complete_plainly(&desk.laptop, &desk.key, "late").await?, 0);
    assert_eq!(fail_plainly(&desk.laptop, &desk.key).await?, 0);
    assert_eq!(activity(&desk.world, &desk.key).await?, before);
    Ok(())
}

/// A worker starts the last of its ten rows after its lease expired: the work was done meanwhile, and stays done.
#[tokio::test]
async fn a_plain_start_of_finished_work_changes_nothing() -> Result<()> {
    let world = world().await?;
    let service = world.service().await?;
    let queue = world.queue("dumps").await?;
    for end in ["completed", "cancelled", "dead"] {
        world
            .run(
                "with w as (insert into workspaces (name) values ('w') returning id),
                      b as (insert into baskets (workspace_id) select id from w returning id)
                 insert into raw_dumps (basket_id, body_md) select id, 'text' from b",
            )
            .await?;
        let id: String = service.query_one("select id::text from fn_claim_next_dumps('slow')", &[]).await?.get(0);
        match end {
            "completed" => {
                world.age("dumps", "6 minutes").await?;
                let heir = claim_anew(&world, &queue, "heir", None, 1).await?.pop().context("it came back")?;
                queue.complete(&[Completion::new(heir.held(), Some(json!({"by": "heir"})))]).await?;
            }
            "cancelled" => drop(queue.cancel(&[&id], None).await?),
            _ => drop(queue.bury(&[&id], None).await?),
        }
        let before = row(&world, "agent_processing_queue", &id).await?;
        for state in ["processing", "failed"] {
            let sql = format!("update agent_processing_queue set processing_state = '{state}' where id = '{id}'");
            service.execute(&sql, &[]).await?;
            assert_eq!(row(&world, "agent_processing_queue", &id).await?, before, "{state} after {end}");
        }
    }
    Ok(())
}

/// Agents that share the service key cannot be distinguished: plain writers may end each other's work.
#[tokio::test]
async fn a_plain_worker_with_the_service_key_works() -> Result<()> {
    let world = world().await?;
    let key = world.activity(None, "call", 1.0).await?;
    let service = world.service().await?;
    let id: String = service.query_one("select id::text from claim_next_pending_activity(null)", &[]).await?.get(0);
    assert_eq!(id, key);
    assert_eq!(complete_plainly(&service, &key, "by service").await?, 1);

    // A row claimed by an act names its agent, and a plain writer may not end it, even with the same service key.
    let key = world.activity(None, "call", 1.0).await?;
    let queue = world.queue("activities").await?;
    let item = queue.acts().claim(&service, &Claim::by("agent 7")).await?.items.pop().context("due")?;
    assert_eq!(complete_plainly(&service, &key, "by another").await?, 0);
    let done = queue.acts().complete(&service, &[Completion::new(item.held(), None)]).await?;
    assert_eq!(done[0].outcome, Outcome::Done);
    Ok(())
}

/// Clients write whole rows back. The engine's columns stay; the columns they meant to change are stored.
#[tokio::test]
async fn a_whole_row_written_back_changes_only_what_is_the_writers_to_change() -> Result<()> {
    let desk = desk().await?;
    let contact: i64 = desk.world.client.query_one("insert into contacts (first_name) values ('Ann') returning id", &[]).await?.get(0);
    let before = activity(&desk.world, &desk.key).await?;
    let write_back = format!(
        "update activities set lease = 3, due_at = '2020-01-01', open_at = '2020-01-01', deadline_at = '2020-01-01', attempts = 7, lost = 7,
         started = 0, agent = 'x', session = 'x', processing_status = processing_status, contact_id = {contact} where id = '{}'",
        desk.key
    );
    for writer in [&desk.world.client, &desk.laptop, &desk.world.signed_in(desk.other, "laptop").await?, &desk.world.service().await?] {
        assert_eq!(writer.execute(&write_back, &[]).await?, 1);
        let mut expected = before.clone();
        expected["contact_id"] = contact.into();
        assert_eq!(activity(&desk.world, &desk.key).await?, expected);
        desk.world.run("update activities set contact_id = null").await?;
    }
    // The same on a row that is not held.
    let unheld = desk.world.activity(Some(desk.other), "sms", 1.0).await?;
    let mut expected = activity(&desk.world, &unheld).await?;
    expected["contact_id"] = contact.into();
    assert_eq!(desk.laptop.execute(&write_back.replace(&desk.key, &unheld), &[]).await?, 1);
    assert_eq!(activity(&desk.world, &unheld).await?, expected);
    Ok(())
}

/// Any user may link a contact, whether the row is held or not, and it does not disturb the holder.
#[tokio::test]
async fn a_contact_may_be_linked_while_the_row_is_held() -> Result<()> {
    let desk = desk().await?;
    let contact: i64 = desk.world.client.query_one("insert into contacts (first_name) values ('Ann') returning id", &[]).await?.get(0);
    let unheld = desk.world.activity(None, "sms", 1.0).await?;
    let colleague = desk.world.signed_in(desk.other, "laptop").await?;
    for key in [&desk.key, &unheld] {
        assert_eq!(colleague.execute(&format!("update activities set contact_id = {contact} where id = '{key}'"), &[]).await?, 1);
        assert_eq!(activity(&desk.world, key).await?["contact_id"], contact);
    }
    assert_eq!(complete_plainly(&desk.laptop, &desk.key, "mine").await?, 1);
    Ok(())
}

/// A colleague corrects a summary: an edit, which does not end the work.
#[tokio::test]
async fn a_finished_result_may_be_corrected_by_hand() -> Result<()> {
    let desk = desk().await?;
    complete_plainly(&desk.laptop, &desk.key, "rwong").await?;
    let colleague = desk.world.signed_in(desk.other, "laptop").await?;
    let sql = format!("update activities set processed_data = '{{\"summary\": \"right\"}}' where id = '{}'", desk.key);
    assert_eq!(colleague.execute(&sql, &[]).await?, 1);
    assert_eq!(activity(&desk.world, &desk.key).await?["processed_data"]["summary"], "right");
    Ok(())
}

/// Early results written by a plain update extend the lease, and only if the holder writes them.
#[tokio::test]
async fn plain_partial_results_keep_the_row_for_its_holder() -> Result<()> {
    let desk = desk().await?;
    let write = |n: i32| format!("update activities set processed_data = '{{\"stage\": {n}}}' where id = '{}'", desk.key);
    for n in 0..5 {
        desk.world.age("activities", "4 minutes").await?;
        assert_eq!(desk.laptop.execute(&write(n), &[]).await?, 1);
        assert!(seconds_until(&desk.world, "activities", &desk.key, "due_at").await? > 250.0, "stage {n}");
    }
    desk.world.age("activities", "4 minutes").await?;
    let colleague = desk.world.signed_in(desk.other, "laptop").await?;
    colleague.execute(&write(99), &[]).await?;
    assert_eq!(activity(&desk.world, &desk.key).await?["processed_data"], json!({"stage": 4}));
    assert!(seconds_until(&desk.world, "activities", &desk.key, "due_at").await? < 70.0);
    Ok(())
}

#[tokio::test]
async fn a_plain_failure_counts_backs_off_and_dead_letters() -> Result<()> {
    let desk = desk().await?;
    desk.world.run("set role gleaner_engine; update activities set metadata = '{\"from\": \"+14158675309\"}'; reset role").await?;
    for attempt in 1..=3 {
        assert_eq!(fail_plainly(&desk.laptop, &desk.key).await?, 1);
        fail_plainly(&desk.laptop, &desk.key).await?; // Again, as when the answer was lost: no other failure.
        let row = activity(&desk.world, &desk.key).await?;
        assert_eq!((&row["processing_status"], &row["attempts"]), (&"failed".into(), &attempt.into()));
        assert_eq!(row["metadata"]["from"], "+14158675309");
        assert_eq!(row["metadata"]["error"]["retry_count"], attempt);
        if attempt < 3 {
            let wait = seconds_until(&desk.world, "activities", &desk.key, "due_at").await?;
            let first = 30.0 * f64::from(1 << (attempt - 1));
            assert!(wait > first - 10.0 && wait <= first * 1.2, "{wait}");
            assert_eq!(claim_by_function(&desk.laptop, desk.me).await?, None);
            desk.world.age("activities", "2 minutes").await?;
            assert_eq!(claim_by_function(&desk.laptop, desk.me).await?.as_deref(), Some(desk.key.as_str()));
        }
    }
    desk.world.age("activities", "1 day").await?;
    assert_eq!(claim_by_function(&desk.laptop, desk.me).await?, None);
    let letters = desk.world.client.query("select original_activity_id::text, raw_data from activity_failures", &[]).await?;
    assert_eq!(letters.len(), 1);
    assert_eq!(letters[0].get::<_, String>(0), desk.key);
    assert_eq!(letters[0].get::<_, serde_json::Value>(1), activity(&desk.world, &desk.key).await?["raw_data"]);
    Ok(())
}

/// The error that a writer gives is kept, and a stale error of an earlier attempt is not mistaken for it.
#[tokio::test]
async fn a_plain_failure_keeps_the_error_its_writer_gives() -> Result<()> {
    let desk = desk().await?;
    let fail =
        |metadata: &str| format!("update activities set processing_status = 'failed', metadata = {metadata} where id = '{}'", desk.key);
    desk.laptop.execute(&fail("'{\"error\": {\"type\": \"TranscriptionError\", \"message\": \"no audio\"}}'"), &[]).await?;
    assert_eq!(activity(&desk.world, &desk.key).await?["metadata"]["error"]["message"], "no audio");
    desk.world.age("activities", "2 minutes").await?;
    claim_by_function(&desk.laptop, desk.me).await?;
    desk.laptop.execute(&fail("metadata || '{\"seen\": true}'"), &[]).await?;
    let row = activity(&desk.world, &desk.key).await?;
    assert_eq!(row["metadata"]["seen"], true);
    assert_eq!(row["metadata"]["error"]["retry_count"], 2, "{}", row["metadata"]);
    Ok(())
}

/// The "Retry" button of a feed writes the ready status.
#[tokio::test]
async fn a_plain_reset_is_a_requeue() -> Result<()> {
    let desk = desk().await?;
    let queue = desk.world.queue("activities").await?;
    queue.bury(&[&desk.key], None).await?;
    let reset = format!("update activities set processing_status = 'raw', locked_by = null, locked_at = null where id = '{}'", desk.key);
    assert_eq!(desk.laptop.execute(&reset, &[]).await?, 1);
    let row = activity(&desk.world, &desk.key).await?;
    assert_eq!((&row["attempts"], &row["lost"], &row["started"]), (&0.into(), &0.into(), &0.into()));
    assert_eq!(claimable_by(&desk.world, &queue, Some(desk.me)).await?, [desk.key.as_str()]);
    // The holder's own reset is a release: its counters are kept.
    claim_by_function(&desk.laptop, desk.me).await?;
    fail_plainly(&desk.laptop, &desk.key).await?;
    desk.world.age("activities", "1 minute").await?;
    claim_by_function(&desk.laptop, desk.me).await?;
    assert_eq!(desk.laptop.execute(&reset, &[]).await?, 1);
    assert_eq!(activity(&desk.world, &desk.key).await?["attempts"], 1);
    // No other user can take running work away by resetting it while its lease is valid.
    claim_by_function(&desk.laptop, desk.me).await?;
    let colleague = desk.world.signed_in(desk.other, "laptop").await?;
    assert_eq!(colleague.execute(&reset, &[]).await?, 0);
    Ok(())
}

#[tokio::test]
async fn an_old_created_at_in_a_plain_insert_is_stale_at_once() -> Result<()> {
    let world = world().await?;
    let (me, other) = (world.person("me", 5, true).await?, world.person("other", 5, true).await?);
    let old = world.activity(Some(other), "call", 5.1).await?;
    world.activity(Some(other), "call", 4.5).await?;
    let queue = world.queue("activities").await?;
    assert_eq!(claimable_by(&world, &queue, Some(me)).await?, [old]);
    Ok(())
}

/// Written by a program that claimed its work itself and died: the lease counts from the time at which it says it claimed it.
#[tokio::test]
async fn a_row_inserted_as_running_with_an_old_lock_is_recovered() -> Result<()> {
    let world = world().await?;
    let insert = |minutes: i32| {
        format!(
            "insert into activities (type, processing_status, locked_by, locked_at, created_at)
             values ('call', 'processing', gen_random_uuid(), now() - interval '{minutes} minutes', now() - interval '1 hour') returning id::text"
        )
    };
    let old = world.text(&insert(6)).await?.context("a row")?;
    world.text(&insert(4)).await?;
    let queue = world.queue("activities").await?;
    assert_eq!(keys(&claim_anew(&world, &queue, "heir", None, 10).await?), [old]);
    world.age("activities", "2 minutes").await?;
    assert_eq!(claim_anew(&world, &queue, "heir", None, 10).await?.len(), 1, "and the other in its time");
    Ok(())
}

/// A plain claim obeys the owner's policy as every other claim does.
#[tokio::test]
async fn a_plain_claim_cannot_steal_fresh_work() -> Result<()> {
    let world = world().await?;
    let (me, other) = (world.person("me", 5, true).await?, world.person("other", 5, true).await?);
    let fresh = world.activity(Some(other), "call", 1.0).await?;
    let stale = world.activity(Some(other), "call", 6.0).await?;
    let agent = world.signed_in(me, "laptop").await?;
    let claim = |key: &str| {
        format!("update activities set processing_status = 'processing', locked_by = auth.uid(), locked_at = now() where id = '{key}'")
    };
    assert_eq!(agent.execute(&claim(&fresh), &[]).await?, 0);
    assert_eq!(agent.execute(&claim(&stale), &[]).await?, 1);
    assert_eq!(complete_plainly(&agent, &stale, "gleaned").await?, 1);
    Ok(())
}

/// No plain write may disturb a holder that claimed by an act, and its acts succeed whatever was written meanwhile.
#[tokio::test]
async fn acts_and_plain_writes_on_one_row_do_not_disturb_each_other() -> Result<()> {
    let world = world().await?;
    let key = world.activity(None, "call", 1.0).await?;
    let queue = world.queue("activities").await?;
    let item = claim_anew(&world, &queue, "a", None, 1).await?.pop().context("due")?;
    world
        .run(&format!(
            "update activities set direction = 'outbound', processing_status = 'processing', locked_by = null where id = '{key}'"
        ))
        .await?;
    let row = activity(&world, &key).await?;
    assert_eq!((&row["direction"], &row["lease"]), (&"outbound".into(), &item.lease.into()));
    assert_eq!(queue.start(&[item.held()]).await?[0].outcome, Outcome::Done);
    assert_eq!(queue.complete(&[Completion::new(item.held(), Some(json!({"ok": true})))]).await?[0].outcome, Outcome::Done);
    Ok(())
}
