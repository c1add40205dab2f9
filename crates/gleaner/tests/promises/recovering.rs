//! After all agents died, after a backup was restored, and while another session changes the same rows.

use std::time::Duration;

use anyhow::Result;
use gleaner::{Claim, Completion, Held, Outcome};

use crate::orders::{bare_orders, numbers};
use crate::world::{jobs, outcomes, world};

#[tokio::test]
async fn rows_never_begun_come_back_in_full_batches_after_their_holders_died() -> Result<()> {
    let world = bare_orders().await?;
    world
        .run("insert into orders select from generate_series(1, 200); insert into gleaner.jobs select from generate_series(1, 200)")
        .await?;
    for (queue, expire) in [
        ("orders", "update orders set due_at = due_at - interval '1 hour'"),
        (
            "jobs",
            "update gleaner.batch_lease set due_at = due_at - interval '1 hour'; update gleaner.jobs set due_at = due_at - interval '1 hour'",
        ),
    ] {
        for agent in ["a", "b", "c", "d"] {
            assert_eq!(numbers(&world.client, &format!("select id from gleaner.claim_{queue}('{agent}', 50)")).await?.len(), 50);
        }
        world.run(&format!("begin; set local role gleaner_engine; {expire}; commit")).await?;
        for agent in ["e", "f", "g", "h"] {
            let back = numbers(&world.client, &format!("select id from gleaner.claim_{queue}('{agent}', 50)")).await?;
            assert_eq!(back.len(), 50, "{queue} {agent}");
        }
    }
    assert_eq!(
        world.count("select sum(lost)::bigint from (select lost from orders union all select lost from gleaner.jobs) as q").await?,
        0
    );
    Ok(())
}

/// The sequence is as it was when the backup was made, and so are the rows.
#[tokio::test]
async fn a_batch_lease_of_a_restored_database_is_never_one_from_before() -> Result<()> {
    let world = world().await?;
    let queue = world.queue("jobs").await?;
    queue.enqueue(&jobs("default", 100)).await?;
    let claim = Claim::by("a").limit(100);
    let before = queue.acts().claim(&world.connect().await?, &claim).await?.items;
    world.run("delete from gleaner.batch_lease; alter sequence gleaner.batch_lease_seq restart").await?;
    let after = queue.acts().claim(&world.connect().await?, &claim).await?.items;
    assert!(before[0].lease < 0 && after[0].lease < 0 && after[0].lease != before[0].lease);
    let late = queue.complete(&[Completion::new(Held::new(&before[0].key, before[0].lease), None)]).await?;
    assert_eq!(outcomes(&late), [Outcome::Lost]);
    assert_eq!(outcomes(&queue.complete(&[Completion::new(after[0].held(), None)]).await?), [Outcome::Done]);
    Ok(())
}

#[tokio::test]
async fn an_empty_answer_while_another_session_holds_the_bulk_range_says_to_come_again_at_once() -> Result<()> {
    let world = world().await?;
    let queue = world.queue("jobs").await?;
    queue.enqueue_copy(&jobs("default", 500)).await?;
    assert_eq!(world.count("select count(*) from gleaner.bulk_range").await?, 1);
    let mut other = world.connect().await?;
    let tx = other.transaction().await?;
    assert_eq!(queue.acts().claim(&tx, &Claim::by("a").limit(100)).await?.items.len(), 100);
    for limit in [1, 100] {
        let answer = queue.claim(&Claim::by("b").limit(limit)).await?;
        assert_eq!((answer.items.len(), answer.next_due_in), (0, Some(Duration::ZERO)), "{limit}");
    }
    tx.commit().await?;
    assert_eq!(queue.claim(&Claim::by("b").limit(100)).await?.items.len(), 100);
    Ok(())
}

/// The delete is not committed when the range is claimed: the claim returns the row, and its holder must not end the row that is
/// inserted later.
#[tokio::test]
async fn a_key_deleted_while_its_range_was_claimed_and_inserted_again_is_not_its_former_holders() -> Result<()> {
    for again in ["inside the transaction", "afterwards"] {
        let world = world().await?;
        let queue = world.queue("jobs").await?;
        queue.enqueue_copy(&jobs("default", 100)).await?;
        let mut other = world.connect().await?;
        let tx = other.transaction().await?;
        tx.execute("delete from gleaner.jobs where id = 3", &[]).await?;
        let insert = "insert into gleaner.jobs (id, kind) values (3, 'anew')";
        if again == "inside the transaction" {
            tx.execute(insert, &[]).await?;
        }
        let held = world.claim(&queue, "a", None, 100).await?;
        let lease = held[0].lease;
        tx.commit().await?;
        if again == "afterwards" {
            world.run(insert).await?;
        }
        let ended = queue.complete(&[Completion::new(Held::new("3", lease), None)]).await?;
        assert_eq!(outcomes(&ended), [Outcome::Lost], "{again}");
        assert_eq!(world.count("select count(*) from gleaner.jobs where id = 3 and status = 'ready'").await?, 1, "{again}");
        let rest: Vec<_> = held.iter().filter(|i| i.key != "3").map(|i| Completion::new(i.held(), None)).collect();
        assert!(queue.complete(&rest).await?.iter().all(|a| a.outcome == Outcome::Done), "{again}");
        assert_eq!(numbers(&world.client, "select id from gleaner.claim_jobs('b', 100)").await?, [3], "{again}: it is work like any other");
    }
    Ok(())
}
