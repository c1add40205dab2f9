//! A cancelled row stays cancelled, even if another session is claiming, holding or finishing it.

use anyhow::{Context as _, Result};
use futures_util::future::{join, try_join_all};
use gleaner::{Claim, Completion, Outcome, Progress, Queue};
use serde_json::json;

use crate::hands::{claim_anew, held_activity, held_job, row};
use crate::world::{jobs, outcomes, world};

#[tokio::test]
async fn cancel_beats_a_running_holder() -> Result<()> {
    let world = world().await?;
    for (table, (queue, item)) in
        [("gleaner.jobs", held_job(&world, "a").await?), ("activities", held_activity(&world, "a", "call").await?)]
    {
        let answers = queue.cancel(&[&item.key], Some("the customer called back")).await?;
        assert_eq!((answers[0].outcome, answers[0].status.as_deref()), (Outcome::Done, Some("cancelled")));
        assert_eq!(outcomes(&queue.cancel(&[&item.key], None).await?), [Outcome::Already]);
        assert_eq!(queue.progress(&item.held(), &Progress::stage("x")).await?.0.outcome, Outcome::Lost, "the holder learns it");
        let late = queue.complete(&[Completion::new(item.held(), Some(json!({"late": true})))]).await?;
        assert_eq!((late[0].outcome, late[0].status.as_deref()), (Outcome::Lost, Some("cancelled")));
        world.age(queue.name(), "1 day").await?;
        assert!(claim_anew(&world, &queue, "b", None, 1).await?.is_empty());
        let row = row(&world, table, &item.key).await?;
        let error = if table == "activities" { &row["metadata"]["error"] } else { &row["error"] };
        assert_eq!(error["message"], "the customer called back");
    }
    Ok(())
}

/// Fifty agents claim rows while they are cancelled by filter: an agent cannot finish a row that it got.
#[tokio::test]
async fn cancel_by_filter_against_fifty_racing_claims_leaves_nothing_to_complete() -> Result<()> {
    let world = world().await?;
    let pool = gleaner::pool(world.url(), 30)?;
    let queue = Queue::open(&pool, "jobs").await?;
    for round in 0..3 {
        queue.enqueue(&jobs("doomed", 50)).await?;
        queue.enqueue(&jobs("spared", 5)).await?;
        let claims = (0..50).map(|n| {
            let claim = Claim::by(format!("agent {n}")).kinds(["doomed"]).started();
            let queue = &queue;
            async move { queue.claim(&claim).await }
        });
        let filter = json!({"kind": "doomed"});
        let (claimed, cancelled) = join(try_join_all(claims), queue.cancel_matching(&filter, Some("called off"))).await;
        assert_eq!(cancelled?.len(), 50, "round {round}: every unfinished row, moving or not");

        for item in claimed?.into_iter().flat_map(|c| c.items) {
            let late = queue.complete(&[Completion::new(item.held(), None)]).await?;
            assert_eq!(late[0].outcome, Outcome::Lost, "round {round}");
        }
        assert_eq!(world.count("select count(*) from gleaner.jobs where kind = 'doomed' and status <> 'cancelled'").await?, 0);
        world.run("delete from gleaner.jobs where kind = 'doomed'").await?;
    }
    assert_eq!(world.count("select count(*) from gleaner.jobs where status = 'ready'").await?, 15, "others are left alone");
    Ok(())
}

/// The prospect replied: cancels waiting rows, rows that back off and rows that are being sent right now.
#[tokio::test]
async fn a_reply_calls_off_every_unfinished_follow_up_of_the_prospect() -> Result<()> {
    let world = world().await?;
    world
        .run(
            "insert into scheduled_actions (prospect_id, scheduled_for)
             select p, now() + n * interval '1 hour' from unnest(array['ann', 'bob']) as p, generate_series(0, 3) as n",
        )
        .await?;
    let queue = world.queue("followups").await?;
    let service = world.service().await?;
    let due = queue.claim(&Claim::by("daemon").limit(2).started()).await?.items;
    assert_eq!(due.len(), 2);

    let cancelled: i32 = service.query_one("select cancel_pending_for_prospect('ann', 'she replied')", &[]).await?.get(0);
    assert_eq!(cancelled, 4);
    for item in &due {
        let anns = item.payload == json!({}) && row(&world, "scheduled_actions", &item.key).await?["prospect_id"] == "ann";
        let late = queue.complete(&[Completion::new(item.held(), None)]).await?;
        assert_eq!(late[0].outcome, if anns { Outcome::Lost } else { Outcome::Done });
    }
    let ann = "select count(*) from scheduled_actions where prospect_id = 'ann'";
    assert_eq!(
        world.count(&format!("{ann} and status = 'cancelled' and cancelled_reason = 'she replied' and executed_at is null")).await?,
        4
    );
    world.age("followups", "1 day").await?;
    let rest = claim_anew(&world, &queue, "daemon", None, 10).await?;
    assert_eq!(rest.len(), 3, "Bob's are untouched");
    Ok(())
}

/// Plain writers send no lease. Their late completion of a cancelled row still changes nothing.
#[tokio::test]
async fn cancel_beats_a_plain_holder_too() -> Result<()> {
    let world = world().await?;
    let me = world.person("me", 5, true).await?;
    let key = world.activity(Some(me), "call", 0.0).await?;
    let agent = world.signed_in(me, "laptop").await?;
    assert_eq!(crate::hands::claim_by_function(&agent, me).await?.as_deref(), Some(key.as_str()));
    let queue = world.queue("activities").await?;
    queue.cancel(&[&key], None).await?;
    assert_eq!(crate::hands::complete_plainly(&agent, &key, "late").await?, 0);
    assert_eq!(crate::hands::fail_plainly(&agent, &key).await?, 0);
    let row = row(&world, "activities", &key).await?;
    assert_eq!((&row["processing_status"], &row["processed_data"]), (&"cancelled".into(), &json!(null)));

    // The same for the daemon of the follow-ups, which shares the service key with the caller that cancelled.
    let service = world.service().await?;
    world.run("insert into scheduled_actions (prospect_id, scheduled_for) values ('ann', now())").await?;
    let id: String = service.query_one("select id::text from claim_due_actions()", &[]).await?.get(0);
    service.query_one("select cancel_pending_for_prospect('ann')", &[]).await?;
    let late = service.execute(&format!("update scheduled_actions set status = 'executed' where id = '{id}'"), &[]).await?;
    assert_eq!(late, 0);
    assert_eq!(crate::hands::row(&world, "scheduled_actions", &id).await?["status"], "cancelled");
    Ok(())
}

#[tokio::test]
async fn a_filter_that_names_no_column_is_refused() -> Result<()> {
    let world = world().await?;
    let queue = world.queue("jobs").await?;
    queue.enqueue(&jobs("default", 1)).await?;
    let nothing = queue.cancel_matching(&json!({}), None).await.err().context("an empty filter would cancel everything")?;
    assert_eq!(nothing.code().map(|c| c.code()), Some("GL002"));
    let unknown = queue.cancel_matching(&json!({"colour": "red"}), None).await.err().context("no such column")?;
    assert_eq!(unknown.code().map(|c| c.code()), Some("42703"));
    Ok(())
}
