//! Clients that disconnect while they wait, or while they are served.

use std::time::{Duration, Instant};

use anyhow::Result;

use super::stage::{Stage, stage};
use super::waiting::{HeldUp, insert, patient};
use crate::world::eventually;

/// A client disconnects when a row has been claimed for it: before it gets the response, or while the response is being
/// sent.
async fn leave(answered: bool) -> Result<()> {
    let stage = stage().await?;
    stage.settle().await?;
    // The claims of this agent finish only when the lock is released.
    let sql =
        "create function held_up() returns trigger language plpgsql as 'begin perform pg_advisory_xact_lock_shared(7); return null; end';
               create constraint trigger held_up after update on gleaner.jobs deferrable initially deferred
               for each row when (new.agent = 'leaves') execute function held_up()";
    stage.client.batch_execute(sql).await?;
    let held_up = HeldUp::new(&stage).await?;
    let mut leaves = Box::pin(stage.call("jobs/claim", patient("leaves")));
    let spared = stage.queues.tally().0;
    tokio::select! {
        answer = &mut leaves => anyhow::bail!("{answer:?} too early"),
        () = spare(&stage, spared + 1) => {}
    }
    let stays = stage.call("jobs/claim", patient("stays"));
    let leaving = async {
        spare(&stage, spared + 2).await;
        insert(&stage, 1).await?;
        held_up.wait().await?;
        let leaves = Some(leaves).filter(|_| answered);
        held_up.keeper.batch_execute("select pg_advisory_unlock(7)").await?;
        if leaves.is_some() {
            // The client does not read the response. It leaves at about the time at which it gets it: whichever comes first,
            // the row must go to the other.
            while stage.client.query_one("select status from gleaner.jobs", &[]).await?.get::<_, &str>(0) != "running" {}
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        anyhow::Ok(Instant::now())
    };
    let ((_, answer), left) = tokio::try_join!(stays, leaving)?;
    assert_eq!(answer["items"][0]["payload"], 1);
    assert!(left.elapsed() < Duration::from_secs(3), "neither when the lease ends nor by the next query in five seconds");
    Ok(())
}

/// Returns when that many claims were answered without a query.
async fn spare(stage: &Stage, claims: u64) {
    while stage.queues.tally().0 < claims {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

#[tokio::test]
async fn what_was_taken_for_a_client_that_left_goes_to_the_next_at_once() -> Result<()> {
    tokio::try_join!(leave(false), leave(true)).map(drop)
}

#[tokio::test]
async fn no_query_runs_for_claims_whose_clients_have_left() -> Result<()> {
    let stage = stage().await?;
    stage.settle().await?;
    let held_up = HeldUp::new(&stage).await?;
    stage.queues.record("jobs");
    let mut leaves = Box::pin(stage.call("jobs/claim", patient("leaves")));
    tokio::select! {
        answer = &mut leaves => anyhow::bail!("{answer:?} too early"),
        waited = held_up.wait() => waited?,
    }
    let queries = stage.queues.tally().1;
    drop(leaves);
    held_up.keeper.batch_execute("select pg_advisory_unlock(7)").await?;
    // A task that stayed would query again when the five seconds of the cache are over.
    eventually("the task to end", async || Ok(stage.queues.claim_groups() == (0, 0))).await?;
    assert_eq!(stage.queues.tally().1, queries, "no query after the one that was running");
    Ok(())
}
