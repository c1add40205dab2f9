//! Secrets stay secret, and pages reach only what they may.

use anyhow::{Context as _, Result};
use serde_json::json;

use super::world::World;

const SECRET: &str = "p4ss w\"ö<r>d&/";

/// The page shows the secret in its field, its text, its title and its address; nothing that is stored has it in any form.
#[tokio::test(flavor = "multi_thread")]
async fn a_secret_is_in_no_result_trace_error_picture_or_name() -> Result<()> {
    let world = World::new().await?;
    let agent = world.agent_with(&[], &[("runs.allow", "127.0.0.1")], &[("GLEANER_RUN_SECRET_SHOP", SECRET)]).await?;
    let recording = json!({"name": "Log in", "secrets": ["pin"], "steps": [
        {"do": "open", "url": format!("{}/login", world.site())},
        {"do": "type", "selector": "#user", "text": "{{pin}}"},
        {"do": "type", "selector": "#pass", "text": "{{secret.SHOP}}"},
        {"do": "click", "selector": "#go"},
        {"do": "screenshot", "name": "shown {{secret.SHOP}} {{pin}}"},
        {"do": "assert", "selector": "#out", "text": "{{pin}}", "timeout": 300},
    ]});
    let run = world.submit(recording, Some("pin\n739184\n")).await?;
    let row = world.until_ended(&run).await?;
    assert_eq!(row["result"]["outcome"], "failed", "{row}");
    let sql = "select (to_jsonb(r) - 'csv_data')::text || (select jsonb_agg(to_jsonb(n))::text from run_rows as n where n.run_id = r.id)
                      || (select jsonb_agg(to_jsonb(a))::text from run_artefacts as a where a.run_id = r.id)
               from execution_jobs as r where r.id::text = $1";
    let stored: String = world.client.query_one(sql, &[&run]).await?.get(0);
    assert!(stored.contains("Welcome, your password is •••") && stored.contains("?p=•••"), "{stored}");
    let encoded = ["p4ss", "w%22", "&lt;r", "739184", "cDRzcyB3"];
    assert!(!encoded.iter().any(|form| stored.contains(form)), "{stored}");
    let pictures = world.pictures(&run).await?;
    assert_eq!(pictures.len(), 2, "the step's own, and that of the failure");
    if let Ok(folder) = std::env::var("GLEANER_TEST_PICTURES") {
        pictures.iter().try_for_each(|(_, name, bytes)| std::fs::write(format!("{folder}/secret-{name}"), bytes))?;
    }
    agent.stop().await?;
    // An agent without the secret says which one it lacks.
    let agent = world.agent(&[]).await?;
    let again = world.insert(row["recording_id"].as_str().context("an id")?, Some("pin\n1\n"), json!({})).await?;
    let row = world.until_ended(&again).await?;
    assert!(row["error"].as_str().is_some_and(|error| error.contains("GLEANER_RUN_SECRET_SHOP")), "{row}");
    agent.stop().await?;
    Ok(())
}

/// A page of an allowed site tries another port of this machine by image, fetch and WebSocket. Nothing arrives there.
#[tokio::test(flavor = "multi_thread")]
async fn a_page_reaches_its_own_site_and_nothing_else() -> Result<()> {
    let world = World::new().await?;
    let agent = world.agent(&[]).await?;
    let other = world.other_site().await?;
    let url = |path: &str| format!("{}{path}", world.site());
    let recording = json!({"name": "Reach", "steps": [
        {"do": "open", "url": url(&format!("/reach?to={other}"))},
        {"do": "wait", "text": "socket no", "selector": "#out"},
        {"do": "assert", "selector": "#out", "text": "peers undefined"},
    ]});
    let run = world.submit(recording, None).await?;
    let row = world.until_ended(&run).await?;
    let rows = world.rows(&run).await?;
    assert_eq!(row["result"]["outcome"], "passed", "{rows:?}");
    assert_eq!(*world.seen.lock().expect("not poisoned"), Vec::<String>::new(), "a refused request arrived");
    let trace = rows[0]["steps"].to_string();
    assert!(trace.contains(&format!("{other} is none of the recording's sites")), "{trace}");
    // Listed in the recording, it may.
    let recording = json!({"name": "Reach", "sites": [other], "steps": [
        {"do": "open", "url": url(&format!("/reach?to={other}"))}, {"do": "wait", "text": "fetch answered", "selector": "#out"}]});
    let run = world.submit(recording, None).await?;
    assert_eq!(world.until_ended(&run).await?["result"]["outcome"], "passed", "{:?}", world.rows(&run).await?);
    assert!(world.seen.lock().expect("not poisoned").iter().any(|uri| uri.contains("fetch")));
    agent.stop().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_private_address_is_refused_unless_the_machine_allows_it() -> Result<()> {
    let world = World::new().await?;
    let agent = world.agent_with(&[], &[], &[]).await?;
    let run = world.submit(json!({"name": "Private", "sites": ["*"], "steps": [{"do": "open", "url": world.site()}]}), None).await?;
    world.until_ended(&run).await?;
    let error = world.rows(&run).await?[0]["error"].as_str().unwrap_or_default().to_owned();
    assert!(error.contains("a private address") && error.contains("GLEANER_RUN_ALLOW=127.0.0.1"), "{error}");
    agent.stop().await?;
    Ok(())
}

/// A picture belongs to those who may read the run; its file goes with its row.
#[tokio::test(flavor = "multi_thread")]
async fn a_picture_is_for_those_who_may_read_the_run_and_goes_when_its_time_is_over() -> Result<()> {
    let world = World::new().await?;
    let agent = world.agent(&[]).await?;
    let recording = json!({"name": "Picture", "steps": [{"do": "open", "url": world.site()}, {"do": "screenshot"}]});
    let run = world.submit_with(recording, None, json!({"keep_days": 7})).await?;
    world.until_ended(&run).await?;
    let row = world
        .client
        .query_one("select id::text, round(extract(epoch from expires_at - now()) / 86400)::int from run_artefacts", &[])
        .await?;
    let (artefact, days): (String, i32) = (row.get(0), row.get(1));
    assert_eq!(days, 7);
    assert_eq!(world.pictures(&run).await?.len(), 1);
    let refused = world.picture(&run, &artefact, world.anon_key()).await.expect_err("not signed in");
    assert!(refused.to_string().contains("401") || refused.to_string().contains("404"), "{refused}");
    let files = || std::fs::read_dir(world.files().join(format!("runs/{run}"))).map_or(0, Iterator::count);
    assert_eq!(files(), 1);
    world.client.batch_execute("update run_artefacts set expires_at = now() - interval '1 second'").await?;
    world.forget().await?;
    assert_eq!(files(), 0, "the file is deleted");
    assert!(world.pictures(&run).await?.is_empty(), "and its row");
    agent.stop().await?;
    Ok(())
}
