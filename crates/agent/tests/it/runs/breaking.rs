//! Browsers and agents that die, runs that are cancelled, sites with a limit.

use std::time::Instant;

use anyhow::{Context as _, Result};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use super::world::{World, eventually};

/// A page on which a run stays for a minute, after a first step that ends at once on the first line only.
fn long(site: &str) -> Value {
    json!({"name": "Long", "steps": [
        {"do": "open", "url": format!("{site}/slow")},
        {"do": "wait", "selector": "{{wait}}", "timeout": 60000},
    ]})
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_browser_is_a_failure_that_is_tried_again_after_the_last_finished_line() -> Result<()> {
    let world = World::new().await?;
    let agent = world.agent(&[]).await?;
    let run = world.submit(long(&world.site()), Some("wait\n#b\n#never\n")).await?;
    eventually("the first line to be stored", async || Ok(world.rows(&run).await?.len() == 1)).await?;
    let first = world.rows(&run).await?;
    let began = Instant::now();
    for browser in world.browsers() {
        kill(Pid::from_raw(browser), Signal::SIGKILL)?;
    }
    eventually("the failure", async || Ok(world.run(&run).await?["status"] == "failed")).await?;
    assert!(began.elapsed().as_secs() < 10, "noticed after {:?}", began.elapsed());
    let row = world.run(&run).await?;
    assert!(row["error"].as_str().is_some_and(|error| error.contains("row 2")) && row["attempts"] == 1, "{row}");
    assert!(!row["due_at"].is_null(), "it is tried again: {row}");
    // The element that was waited for is there now; the finished line is not replayed.
    world.client.execute("update execution_jobs set csv_data = E'wait\\n#b\\n#b\\n'", &[]).await?;
    world.lapse().await?;
    assert_eq!(world.until_ended(&run).await?["result"]["message"], "2 of 2 rows passed");
    assert_eq!(world.rows(&run).await?[0], first[0], "the first line was not replayed again");
    agent.stop().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelling_a_run_ends_its_browser() -> Result<()> {
    let world = World::new().await?;
    let agent = world.agent(&[]).await?;
    let run = world.submit(long(&world.site()), Some("wait\n#b\n#never\n")).await?;
    eventually("the first line to be stored", async || Ok(world.rows(&run).await?.len() == 1)).await?;
    assert_eq!(world.browsers().len(), 1);
    let outcome: String = world.client.query_one("select outcome from gleaner.cancel_runs(array[$1::text::uuid])", &[&run]).await?.get(0);
    assert_eq!(outcome, "done");
    eventually("the browser to end", async || Ok(world.browsers().is_empty())).await?;
    let row = world.run(&run).await?;
    assert_eq!((&row["status"], world.rows(&run).await?.len()), (&json!("cancelled"), 1));
    agent.stop().await?;
    Ok(())
}

/// By all agents together, and not by one alone.
#[tokio::test(flavor = "multi_thread")]
async fn a_site_is_used_by_no_more_runs_at_once_than_it_allows() -> Result<()> {
    let world = World::new().await?;
    let site = world.site().trim_start_matches("http://").to_owned();
    world.client.execute("insert into run_sites values ($1, 1)", &[&site]).await?;
    let recording = json!({"name": "Limited", "steps": [{"do": "open", "url": world.site()}]});
    let mut begun = Vec::new();
    for _ in 0..2 {
        world.submit(recording.clone(), None).await?;
        let row = world
            .client
            .query_one("select id::text, lease from gleaner.claim_runs('test', p_kinds => '{browser}', p_started => true)", &[])
            .await?;
        let (id, lease): (String, i64) = (row.get(0), row.get(1));
        let request = json!({"id": id, "lease": lease, "slots": 5});
        let answer: Value = world.client.query_one("select gleaner.begin_run($1)", &[&request]).await?.get(0);
        begun.push((id, lease, answer["outcome"].as_str().context("an outcome")?.to_owned()));
    }
    assert_eq!((begun[0].2.as_str(), begun[1].2.as_str()), ("ready", "deferred"));
    world.client.execute("select from gleaner.complete_runs($1::text::uuid, $2)", &[&begun[0].0, &begun[0].1]).await?;
    let request = json!({"id": begun[1].0, "lease": begun[1].1, "slots": 5});
    let answer: Value = world.client.query_one("select gleaner.begin_run($1)", &[&request]).await?.get(0);
    assert_eq!(answer["outcome"], "ready", "the first has ended");
    // A stale lease neither begins nor stores anything.
    let stale = json!({"id": begun[1].0, "lease": begun[1].1 - 1, "row": 1, "of": 1, "status": "passed", "steps": [], "duration_ms": 1, "hold_seconds": 30});
    for function in ["begin_run", "record_row"] {
        let answer: Value = world.client.query_one(&format!("select gleaner.{function}($1)"), &[&stale]).await?.get(0);
        assert_eq!(answer["outcome"], "lost", "{function}");
    }
    assert!(world.rows(&begun[1].0).await?.is_empty());
    Ok(())
}
