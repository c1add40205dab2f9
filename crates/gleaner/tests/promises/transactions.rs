//! Acts take part in the caller's transaction, and return an error if they cannot.

use anyhow::{Context as _, Result};
use gleaner::queue::OnDuplicate;
use gleaner::{Acts, Claim, Completion, Failure, Outcome};
use serde_json::json;

use crate::hands::{claim_anew, held_job, row};
use crate::world::{jobs, outcomes, world};

#[tokio::test]
async fn enqueue_commits_with_the_data_it_belongs_to() -> Result<()> {
    let world = world().await?;
    world.run("create table public.orders (id bigint primary key)").await?;
    let queue = world.queue("jobs").await?;
    let mut client = world.connect().await?;
    let acts = Acts::of(&client, "jobs").await?;
    for (commit, rows) in [(false, 0), (true, 1)] {
        let tx = client.transaction().await?;
        tx.execute("insert into public.orders values (1)", &[]).await?;
        let put = acts.enqueue(&tx, &[json!({"kind": "invoice", "payload": {"order": 1}})], OnDuplicate::Skip).await?;
        assert_eq!(put[0].outcome, "enqueued");
        assert!(claim_anew(&world, &queue, "a", None, 1).await?.is_empty(), "nobody sees it before the commit");
        if commit {
            tx.commit().await?
        } else {
            tx.rollback().await?
        }
        assert_eq!(world.count("select count(*) from public.orders").await?, rows);
        assert_eq!(claim_anew(&world, &queue, "a", None, 1).await?.len() as i64, rows);
    }
    Ok(())
}

#[tokio::test]
async fn thousands_put_in_by_copy_take_part_in_the_transaction_too() -> Result<()> {
    let world = world().await?;
    let mut client = world.connect().await?;
    let acts = Acts::of(&client, "jobs").await?;
    for (commit, rows) in [(false, 0), (true, 3000)] {
        let tx = client.transaction().await?;
        assert_eq!(acts.enqueue_copy(&tx, &jobs("bulk", 3000)).await?, 3000);
        if commit {
            tx.commit().await?
        } else {
            tx.rollback().await?
        }
        assert_eq!(world.count("select count(*) from gleaner.jobs where due_at <= now() and status = 'ready'").await?, rows);
    }
    let queue = world.queue("jobs").await?;
    assert_eq!(claim_anew(&world, &queue, "a", None, 5000).await?.len(), 3000);
    Ok(())
}

#[tokio::test]
async fn complete_commits_with_the_data_it_belongs_to() -> Result<()> {
    let world = world().await?;
    world.run("create table public.invoices (id bigint primary key)").await?;
    let (queue, item) = held_job(&world, "a").await?;
    let mut client = world.connect().await?;
    for (commit, status) in [(false, "running"), (true, "done")] {
        let tx = client.transaction().await?;
        tx.execute("insert into public.invoices values (1)", &[]).await?;
        let done = queue.acts().complete(&tx, &[Completion::new(item.held(), Some(json!({"invoice": 1})))]).await?;
        assert_eq!(outcomes(&done), [Outcome::Done]);
        if commit {
            tx.commit().await?
        } else {
            tx.rollback().await?
        }
        assert_eq!(row(&world, "gleaner.jobs", &item.key).await?["status"], status);
    }
    assert_eq!(world.count("select count(*) from public.invoices").await?, 1);
    Ok(())
}

#[tokio::test]
async fn a_rolled_back_failure_counts_nothing_and_a_rolled_back_claim_hands_out_nothing() -> Result<()> {
    let world = world().await?;
    let (queue, item) = held_job(&world, "a").await?;
    let before = row(&world, "gleaner.jobs", &item.key).await?;
    let mut client = world.connect().await?;
    let tx = client.transaction().await?;
    queue.acts().fail(&tx, &item.held(), &Failure::new("no")).await?;
    queue.acts().enqueue(&tx, &jobs("default", 2), OnDuplicate::Skip).await?;
    assert_eq!(queue.acts().claim(&tx, &Claim::by("b").limit(5)).await?.items.len(), 2, "it sees its own");
    tx.rollback().await?;
    assert_eq!(row(&world, "gleaner.jobs", &item.key).await?, before);
    assert_eq!(world.count("select count(*) from gleaner.jobs").await?, 1);
    Ok(())
}

#[tokio::test]
async fn a_claim_under_repeatable_read_is_refused_with_a_sentence() -> Result<()> {
    let world = world().await?;
    world.activity(None, "call", 1.0).await?;
    let queue = world.queue("activities").await?;
    for level in ["repeatable read", "serializable"] {
        let client = world.connect().await?;
        client.batch_execute(&format!("begin isolation level {level}")).await?;
        let error = queue.acts().claim(&client, &Claim::by("a")).await.err().context("a claim needs read committed")?;
        assert_eq!(error.code().map(|c| c.code()), Some("GL001"));
        let sentence = error.to_string();
        assert!(sentence.contains(level) && sentence.contains("begin isolation level read committed"), "what to do is said: {sentence}");
        client.batch_execute("rollback").await?;
    }
    assert_eq!(claim_anew(&world, &queue, "a", None, 1).await?.len(), 1);
    Ok(())
}

/// now() is the start of the transaction. A lease counted from there could expire before the commit.
#[tokio::test]
async fn a_lease_taken_in_a_long_transaction_is_counted_from_the_claim() -> Result<()> {
    let world = world().await?;
    let queue = world.queue("jobs").await?;
    let mut client = world.connect().await?;
    let tx = client.transaction().await?;
    tx.batch_execute("select pg_sleep(0.3)").await?;
    // Enqueued by others after this transaction began, and due now: an old transaction must see them too.
    queue.enqueue(&jobs("default", 1)).await?;
    let mut claim = Claim::by("a");
    claim.hold = Some(std::time::Duration::from_millis(250));
    let item = queue.acts().claim(&tx, &claim).await?.items.pop().context("due by the clock, if not by now()")?;
    let late: bool =
        tx.query_one("select due_at > now() + interval '0.5 seconds' from gleaner.jobs where id::text = $1", &[&item.key]).await?.get(0);
    assert!(late, "the lease was counted from the start of the transaction");
    tx.commit().await?;
    Ok(())
}
