//! The lease is a fencing token: a caller that no longer holds a row changes nothing, and the answer says so.

use std::time::Duration;

use anyhow::{Context as _, Result};
use gleaner::queue::Item;
use gleaner::{Completion, Failure, Held, Outcome, Progress, Queue};
use serde_json::json;

use crate::hands::{claim_anew, held_activity, held_job, row};
use crate::world::{World, jobs, outcomes, world};

const MINUTE: Duration = Duration::from_secs(60);

/// The answers of every holder's act to this lease, in a fixed order.
async fn every_act(queue: &Queue, item: &Item) -> Result<Vec<Outcome>> {
    let held = item.held();
    Ok(vec![
        queue.start(std::slice::from_ref(&held)).await?[0].outcome,
        queue.progress(&held, &Progress::stage("late").percent(99.0).partial(json!({"summary": "late"}))).await?.0.outcome,
        queue.fail(&held, &Failure::new("late")).await?.outcome,
        queue.release(std::slice::from_ref(&held)).await?[0].outcome,
        queue.snooze(&held, MINUTE).await?.outcome,
        queue.complete(&[Completion::new(held, Some(json!({"summary": "late"})))]).await?[0].outcome,
    ])
}

async fn stale_lease_changes_nothing(world: &World, queue: &Queue, table: &str, first: Item) -> Result<()> {
    world.age(queue.name(), "2 hours").await?;
    let second = claim_anew(world, queue, "second", None, 1).await?.pop().context("the row did not come back")?;
    assert_eq!(second.key, first.key);
    assert!(second.lease > first.lease);

    let before = row(world, table, &first.key).await?;
    assert_eq!(every_act(queue, &first).await?, [Outcome::Lost; 6]);
    assert_eq!(row(world, table, &first.key).await?, before, "a stale lease changed the row");

    let kept = world
        .text(&format!("select result ->> 'summary' from gleaner.late_result where queue = '{}' and key = '{}'", queue.name(), first.key))
        .await?;
    assert_eq!(kept.as_deref(), Some("late"), "the late result is evidence");
    let done = queue.complete(&[Completion::new(second.held(), Some(json!({"summary": "right"})))]).await?;
    assert_eq!(outcomes(&done), [Outcome::Done]);
    Ok(())
}

#[tokio::test]
async fn a_stale_lease_can_neither_complete_fail_extend_release_nor_snooze_a_job() -> Result<()> {
    let world = world().await?;
    let (queue, first) = held_job(&world, "first").await?;
    stale_lease_changes_nothing(&world, &queue, "gleaner.jobs", first).await
}

#[tokio::test]
async fn a_stale_lease_can_neither_complete_fail_extend_release_nor_snooze_an_activity() -> Result<()> {
    let world = world().await?;
    let (queue, first) = held_activity(&world, "first", "sms").await?;
    stale_lease_changes_nothing(&world, &queue, "activities", first).await
}

/// The key of no row.
const UNKNOWN: &str = "00000000-0000-0000-0000-0000000000ff";

/// Late results are kept only from callers that can have held the row; invented leases store nothing.
#[tokio::test]
async fn late_results_are_kept_once_and_made_up_ones_are_bounded() -> Result<()> {
    let world = world().await?;
    let me = world.person("me", 5, true).await?;
    let other = world.person("other", 5, true).await?;
    let (laptop, stranger) = (world.signed_in(me, "laptop").await?, world.signed_in(other, "phone").await?);
    let acts = gleaner::Acts::of(&world.client, "activities").await?;
    let queue = world.queue("activities").await?;
    let kept = "select count(*) from gleaner.late_result";
    world.activity(None, "call", 1.0).await?;
    let first = acts.claim(&laptop, &gleaner::Claim::by("laptop")).await?.items.pop().context("due")?;
    let late = |lease: i64| Completion::new(Held::new(&first.key, lease), Some(json!({"summary": "late"})));

    // A lease above that of the row, of a row that was never held, and of a row that does not exist.
    let untouched = world.activity(None, "sms", 1.0).await?;
    for n in 1..50 {
        acts.complete(
            &stranger,
            &[late(first.lease + n), Completion::new(Held::new(untouched.as_str(), n), None), Completion::new(Held::new(UNKNOWN, n), None)],
        )
        .await?;
    }
    assert_eq!(world.count(kept).await?, 0, "nobody can have held these");

    world.run(&format!("delete from activities where id = '{untouched}'")).await?;
    world.age("activities", "2 hours").await?;
    claim_anew(&world, &queue, "second", None, 1).await?.pop().context("the row did not come back")?;
    for n in 1..50 {
        acts.complete(&stranger, &[late(n), late(n + 100), late(n + 200)]).await?;
    }
    assert_eq!(world.count(kept).await?, 4, "of one sign-in a few");
    for _ in 0..3 {
        assert_eq!(outcomes(&acts.complete(&laptop, &[late(first.lease)]).await?), [Outcome::Lost]);
    }
    let of_the_holder = format!("{kept} where lease = {} and result ->> 'summary' = 'late'", first.lease);
    assert_eq!(world.count(&of_the_holder).await?, 1, "the former holder's is kept, once");

    // Operators may send any lease, also for deleted rows, and still store only so many.
    let many: Vec<_> = (1..100).map(late).collect();
    queue.complete(&many).await?;
    queue.complete(&many).await?;
    assert!((6..=32).contains(&world.count(kept).await?), "so many for a row");
    queue.complete(&[Completion::new(Held::new(UNKNOWN, 7), None)]).await?;
    assert_eq!(world.count(&format!("{kept} where key = '{UNKNOWN}'")).await?, 1);
    Ok(())
}

/// Laptops sleep: when one wakes up after its lease expired and no agent claimed the row, it can still finish the work.
#[tokio::test]
async fn an_expired_lease_that_was_not_taken_still_completes() -> Result<()> {
    let world = world().await?;
    let (queue, item) = held_job(&world, "asleep").await?;
    world.age("jobs", "3 days").await?;
    let done = queue.complete(&[Completion::new(item.held(), Some(json!({"ok": true})))]).await?;
    assert_eq!(outcomes(&done), [Outcome::Done]);
    assert!(claim_anew(&world, &queue, "other", None, 1).await?.is_empty());
    Ok(())
}

#[tokio::test]
async fn repeating_ones_own_act_answers_already() -> Result<()> {
    let world = world().await?;
    let queue = world.queue("jobs").await?;
    queue.enqueue(&jobs("default", 5)).await?;
    let items = world.claim(&queue, "a", None, 5).await?;
    let [completed, failed, dead, released, snoozed] = &items[..] else { anyhow::bail!("five jobs, not {}", items.len()) };

    for expected in [Outcome::Done, Outcome::Already, Outcome::Already] {
        let done = queue.complete(&[Completion::new(completed.held(), Some(json!({"n": 1})))]).await?;
        assert_eq!(outcomes(&done), [expected], "complete");
        assert_eq!(queue.fail(&failed.held(), &Failure::new("no")).await?.outcome, expected, "fail");
        assert_eq!(queue.fail(&dead.held(), &Failure::new("no").for_good()).await?.outcome, expected, "fail for good");
        assert_eq!(outcomes(&queue.release(&[released.held()]).await?), [expected], "release");
        assert_eq!(queue.snooze(&snoozed.held(), MINUTE).await?.outcome, expected, "snooze");
    }
    assert_eq!(world.count("select sum(attempts)::int8 from gleaner.jobs").await?, 2, "repeating counts nothing twice");
    assert_eq!(world.count("select count(*) from gleaner.late_result").await?, 0, "nothing of this was late");
    Ok(())
}

#[tokio::test]
async fn acts_on_a_deleted_row_answer_gone() -> Result<()> {
    let world = world().await?;
    let (queue, item) = held_job(&world, "a").await?;
    world.run("delete from gleaner.jobs").await?;
    assert_eq!(every_act(&queue, &item).await?, [Outcome::Gone; 6]);
    for answers in [queue.cancel(&[&item.key], None).await?, queue.requeue(&[&item.key]).await?, queue.bury(&[&item.key], None).await?] {
        assert_eq!(outcomes(&answers), [Outcome::Gone]);
    }
    Ok(())
}

/// The same natural key is deleted and inserted again: the row that was held is not the row that exists now.
#[tokio::test]
async fn a_lease_is_not_valid_for_a_row_inserted_again_under_its_key() -> Result<()> {
    let world = world().await?;
    let (queue, old) = held_job(&world, "a").await?;
    world.run(&format!("delete from gleaner.jobs; insert into gleaner.jobs (id) values ({})", old.key)).await?;
    assert_eq!(every_act(&queue, &old).await?, [Outcome::Lost; 6], "while the new row waits");

    let new = claim_anew(&world, &queue, "b", None, 1).await?.pop().context("the new row was not handed out")?;
    assert_eq!(new.key, old.key);
    assert!(new.lease > old.lease);
    assert_eq!(every_act(&queue, &old).await?, [Outcome::Lost; 6], "while the new row is held");
    assert_eq!(outcomes(&queue.complete(&[Completion::new(new.held(), None)]).await?), [Outcome::Done]);
    Ok(())
}

/// Any act that takes a row from its holder ends the lease, even if the status alone could pass for running again.
#[tokio::test]
async fn release_snooze_fail_requeue_and_cancel_end_the_lease() -> Result<()> {
    let world = world().await?;
    let queue = world.queue("jobs").await?;
    for act in ["release", "snooze", "fail", "requeue", "cancel", "bury"] {
        queue.enqueue(&jobs("default", 1)).await?;
        let item = claim_anew(&world, &queue, "a", None, 1).await?.pop().context("nothing to claim")?;
        let (held, key) = (item.held(), item.key.as_str());
        match act {
            "release" => drop(queue.release(&[item.held()]).await?),
            "snooze" => drop(queue.snooze(&held, MINUTE).await?),
            "fail" => drop(queue.fail(&held, &Failure::new("no")).await?),
            "requeue" => drop(queue.requeue(&[key]).await?),
            "cancel" => drop(queue.cancel(&[key], None).await?),
            _ => drop(queue.bury(&[key], None).await?),
        }
        let before = row(&world, "gleaner.jobs", key).await?;
        let late = queue.complete(&[Completion::new(item.held(), Some(json!({"late": true})))]).await?;
        assert_eq!(outcomes(&late), [Outcome::Lost], "complete after {act}");
        assert_eq!(queue.progress(&held, &Progress::default()).await?.0.outcome, Outcome::Lost, "progress after {act}");
        assert_eq!(row(&world, "gleaner.jobs", key).await?, before, "after {act}");
        world.run("delete from gleaner.jobs").await?;
    }
    Ok(())
}

#[tokio::test]
async fn one_stale_member_does_not_spoil_a_batch() -> Result<()> {
    let world = world().await?;
    let queue = world.queue("jobs").await?;
    queue.enqueue(&jobs("default", 4)).await?;
    let items = world.claim(&queue, "a", None, 4).await?;
    queue.complete(&[Completion::new(items[1].held(), None)]).await?;
    queue.requeue(&[&items[2].key]).await?;
    world.run(&format!("delete from gleaner.jobs where id = {}", items[3].key)).await?;

    let batch: Vec<_> = items.iter().map(|i| Completion::new(i.held(), Some(json!({"n": i.key})))).collect();
    let mut answers = queue.complete(&batch).await?;
    answers.sort_by_key(|a| a.key.parse::<i64>().unwrap_or_default());
    assert_eq!(outcomes(&answers), [Outcome::Done, Outcome::Already, Outcome::Lost, Outcome::Gone]);
    assert_eq!(row(&world, "gleaner.jobs", &items[0].key).await?["status"], "done");
    assert_eq!(row(&world, "gleaner.jobs", &items[2].key).await?["status"], "ready");
    Ok(())
}

/// A lease is not a password: another sign-in that sends it, for example after a session's state was copied to a second device,
/// is refused.
#[tokio::test]
async fn a_lease_shown_by_another_sign_in_is_lost() -> Result<()> {
    let world = world().await?;
    let me = world.person("me", 5, true).await?;
    let other = world.person("other", 5, true).await?;
    world.activity(Some(me), "sms", 0.0).await?;
    let queue = world.queue("activities").await?;
    let laptop = world.signed_in(me, "laptop").await?;
    let item = queue.acts().claim(&laptop, &gleaner::Claim::by("agent")).await?.items.pop().context("nothing to claim")?;

    for stranger in [world.signed_in(me, "phone").await?, world.signed_in(other, "laptop").await?] {
        let acts = queue.acts();
        assert_eq!(outcomes(&acts.complete(&stranger, &[Completion::new(item.held(), None)]).await?), [Outcome::Lost]);
        assert_eq!(acts.fail(&stranger, &item.held(), &Failure::new("no")).await?.outcome, Outcome::Lost);
        assert_eq!(acts.progress(&stranger, &item.held(), &Progress::default()).await?.0.outcome, Outcome::Lost);
        assert_eq!(outcomes(&acts.release(&stranger, &[item.held()]).await?), [Outcome::Lost]);
        assert_eq!(acts.snooze(&stranger, &item.held(), MINUTE).await?.outcome, Outcome::Lost);
    }
    assert_eq!(outcomes(&queue.acts().complete(&laptop, &[Completion::new(item.held(), None)]).await?), [Outcome::Done]);
    Ok(())
}

/// An answer was lost: the same request id returns the same rows, not more of them.
#[tokio::test]
async fn a_repeated_claim_request_returns_the_same_rows() -> Result<()> {
    let world = world().await?;
    let queue = world.queue("jobs").await?;
    queue.enqueue(&jobs("default", 6)).await?;
    let mut claim = gleaner::Claim::by("a").limit(3);
    claim.request = Some(uuid::Uuid::now_v7());
    let holds = |items: &[Item]| items.iter().map(|i| (i.key.clone(), i.lease)).collect::<Vec<_>>();

    let first = queue.claim(&claim).await?.items;
    assert_eq!(first.len(), 3);
    assert_eq!(holds(&queue.claim(&claim).await?.items), holds(&first));
    queue.complete(&[Completion::new(first[0].held(), None)]).await?;
    assert_eq!(holds(&queue.claim(&claim).await?.items), holds(&first[1..]), "what is finished is not handed out again");
    assert_eq!(world.count("select count(*) from gleaner.jobs where status = 'running'").await?, 2);

    world.age("jobs", "1 hour").await?;
    // The three that were never claimed are older; then come the rows that the first claim took and never started.
    let passed_on = claim_anew(&world, &queue, "b", None, 4).await?.pop().context("b takes the first of them")?;
    assert_eq!(passed_on.key, first[1].key);
    assert_eq!(holds(&queue.claim(&claim).await?.items), holds(&first[2..]), "nor is what passed to somebody else");
    assert_eq!(world.count("select sum(lost)::int8 from gleaner.jobs").await?, 0, "nobody lost a lease by repeating");
    Ok(())
}

#[tokio::test]
async fn requests_repeated_at_the_same_moment_share_one_claim() -> Result<()> {
    let world = world().await?;
    let queue = world.queue("jobs").await?;
    queue.enqueue(&jobs("default", 40)).await?;
    let mut claim = gleaner::Claim::by("a").limit(4);
    claim.request = Some(uuid::Uuid::now_v7());
    let answers = futures_util::future::try_join_all((0..10).map(|_| queue.claim(&claim))).await?;
    for answer in &answers {
        assert_eq!(crate::world::keys(&answer.items), crate::world::keys(&answers[0].items));
    }
    assert_eq!(world.count("select count(*) from gleaner.jobs where status = 'running'").await?, 4);
    Ok(())
}
