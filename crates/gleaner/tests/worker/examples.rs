//! Runs the examples exactly as they are published.

use std::time::Duration;

use anyhow::{Context as _, Result, anyhow};
use gleaner::worker::Tally;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::world::{World, world};

#[allow(dead_code)] // Their `main`.
#[path = "../../examples/transaction.rs"]
mod transaction;
#[allow(dead_code)]
#[path = "../../examples/typed.rs"]
mod typed;
#[allow(dead_code)]
#[path = "../../examples/worker.rs"]
mod worker;

async fn ends(w: &World) -> Result<Value> {
    let ends = "select coalesce(jsonb_agg(jsonb_build_array(kind, status, coalesce(result, to_jsonb(error ->> 'type'))) order by id), '[]')::text from gleaner.jobs";
    Ok(serde_json::from_str(&w.text(ends).await?.unwrap_or_default())?)
}

#[tokio::test]
async fn the_example_worker_writes_its_letters() -> Result<()> {
    let w = world().await?;
    let worker = worker::prepare(w.url()).await.map_err(|error| anyhow!(error.to_string()))?;
    let (stop, stopped) = watch::channel(false);
    let control = worker.control().clone();
    let running = tokio::spawn(worker.run_until(stopped));
    let both = async {
        while control.stats().completed < 2 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), both).await.context("the letters are not written")?;
    stop.send_replace(true);
    assert_eq!(running.await??, Tally { completed: 2, ..Tally::default() });
    assert_eq!(ends(&w).await?, json!([["letter", "done", "Dear Ada, …"], ["letter", "done", "Dear Grace, …"]]));
    Ok(())
}

#[tokio::test]
async fn the_example_with_types_works_what_fits_and_fails_what_does_not() -> Result<()> {
    let w = world().await?;
    let tally = typed::run(w.url()).await.map_err(|error| anyhow!(error.to_string()))?;
    assert_eq!(tally, Tally { completed: 2, failed: 1, ..Tally::default() });
    let expected = json!([["letter", "done", {"text": "Dear ada, …"}], ["sum", "done", 10], ["sum", "failed", "ValidationError"]]);
    assert_eq!(ends(&w).await?, expected);
    Ok(())
}

#[tokio::test]
async fn the_example_with_transactions_moves_money_once_or_not_at_all() -> Result<()> {
    let w = world().await?;
    let tally = transaction::run(w.url()).await.map_err(|error| anyhow!(error.to_string()))?;
    assert_eq!(tally, Tally { completed: 2, failed: 1, ..Tally::default() });
    let moved = w.count("select sum((result ->> 'moved')::bigint)::bigint from gleaner.jobs where status = 'done'").await?;
    assert_eq!(w.count("select balance from account where name = 'bob'").await?, moved);
    assert_eq!(w.count("select sum(balance)::bigint from account").await?, 100);
    Ok(())
}

/// docs/how-to/embed-a-worker.md
#[tokio::test]
async fn the_manual_says_how_to_embed_a_worker() -> Result<()> {
    use gleaner::worker::testing;
    use gleaner::{Direct, Failure, Job, Payload};
    use serde::{Deserialize, Serialize};

    #[derive(Serialize, Deserialize)]
    struct Letter {
        to: String,
    }

    impl Payload for Letter {
        const KIND: &'static str = "letter";
    }

    async fn write(job: Job<Letter>) -> std::result::Result<String, Failure> {
        Ok(format!("Dear {}", job.payload.to))
    }

    let w = world().await?;
    let database = Direct::new(w.url(), 4)?;
    let queue = database.queue("jobs").await?;
    queue.enqueue_job(&Letter { to: "Ada".into() }).await?;
    let worker = database.worker("jobs").await?.concurrency(8).handle_job(write).until_empty().build();
    let trial = testing::run_one(&worker, testing::job(&Letter { to: "Ada".into() })?).await;
    assert_eq!(trial.result(), Ok(Some(json!("Dear Ada"))));
    let (_stop, stopped) = watch::channel(false);
    worker.run_until(stopped).await?;
    assert_eq!(ends(&w).await?, json!([["letter", "done", "Dear Ada"]]));
    Ok(())
}
