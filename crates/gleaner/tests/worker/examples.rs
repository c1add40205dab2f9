//! The examples are run as they are read.

use anyhow::{Result, anyhow};
use gleaner::worker::Tally;
use serde_json::{Value, json};

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
async fn the_example_worker_writes_its_letter() -> Result<()> {
    let w = world().await?;
    let tally = worker::run(w.url()).await.map_err(|error| anyhow!(error.to_string()))?;
    assert_eq!(tally, Tally { completed: 1, ..Tally::default() });
    assert_eq!(ends(&w).await?, json!([["letter", "done", {"text": "Dear ada, …"}]]));
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
