//! Runs in a real browser, on a page that the test serves: once for each line of the data, with results, pictures and refusals.

mod breaking;
mod guarding;
mod page;
mod recorder;
mod world;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use self::world::{World, order};

/// Three lines, of which the second fails its assertion and has a picture.
#[tokio::test(flavor = "multi_thread")]
async fn three_lines_are_replayed_and_the_one_that_fails_has_its_screenshot() -> Result<()> {
    let world = World::new().await?;
    let agent = world.agent(&[]).await?;
    let run = world
        .submit(order(&world.site()), Some("name,expected\nAda,\"Thank you, Ada\"\nBob,\"Thank you, Grace\"\nÜnlü 🎉,Ünlü 🎉\n"))
        .await?;
    let row = world.until_ended(&run).await?;
    assert_eq!((&row["status"], &row["result"]["outcome"]), (&json!("completed"), &json!("failed")), "{row}");
    assert_eq!(row["result"]["message"], "2 of 3 rows passed");
    assert_eq!(row["progress"]["percent"], 100.0, "{row}");
    let rows = world.rows(&run).await?;
    let status: Vec<&str> = rows.iter().filter_map(|row| row["status"].as_str()).collect();
    assert_eq!(status, ["passed", "failed", "passed"], "{rows:?}");
    assert_eq!(rows[1]["error"], "step 5 (assert): #thanks says \"Thank you, Bob\", not \"Thank you, Grace\"");
    assert_eq!(rows[1]["failed_step"], 5);
    let steps = rows[0]["steps"].as_array().context("a trace")?;
    assert_eq!(steps.len(), 6, "{steps:?}");
    assert_eq!((&steps[1]["do"], &steps[1]["selector"], &steps[1]["tries"]), (&json!("type"), &json!("#name"), &json!(1)));
    // The third line screenshots its end, the second its failure; the first one as well its end.
    let pictures = world.pictures(&run).await?;
    let names: Vec<(i32, &str)> = pictures.iter().map(|(row, name, _)| (*row, name.as_str())).collect();
    assert_eq!(names, [(1, "6-done.png"), (2, "5-failed.png"), (3, "6-done.png")]);
    for (_, name, bytes) in &pictures {
        assert!(bytes.starts_with(b"\x89PNG") && bytes.len() > 2000, "{name} has {} bytes", bytes.len());
    }
    if let Ok(folder) = std::env::var("GLEANER_TEST_PICTURES") {
        pictures.iter().try_for_each(|(row, name, bytes)| std::fs::write(format!("{folder}/row-{row}-{name}"), bytes))?;
    }
    agent.stop().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flaky_step_is_tried_again_as_often_as_it_says() -> Result<()> {
    let world = World::new().await?;
    let agent = world.agent(&[]).await?;
    let step = |retries: u32| json!({"do": "assert", "text": "third look", "timeout": 300, "retries": retries});
    let open = json!({"do": "open", "url": format!("{}/flaky", world.site())});
    // The page says it only 700 ms after it was opened.
    let patient = world.submit(json!({"name": "patient", "steps": [open, step(5)]}), None).await?;
    let row = world.until_ended(&patient).await?;
    assert_eq!(row["result"]["outcome"], "passed", "{:?}", world.rows(&patient).await?);
    let tries = world.rows(&patient).await?[0]["steps"][1]["tries"].as_u64();
    assert!(tries.is_some_and(|tries| tries > 1), "{tries:?}");
    let hasty = world.submit(json!({"name": "hasty", "steps": [open, step(0)]}), None).await?;
    assert_eq!(world.until_ended(&hasty).await?["result"]["outcome"], "failed");
    agent.stop().await?;
    Ok(())
}

/// A recording that does not fit its data, or data that is none, fails at once and for good; no browser is started for it.
#[tokio::test(flavor = "multi_thread")]
async fn a_recording_that_does_not_fit_its_data_fails_for_good_and_says_why() -> Result<()> {
    let world = World::new().await?;
    let agent = world.agent(&[]).await?;
    for (csv, why) in [("mail\nx\n", "uses {{name}}"), ("name,expected\nAda\n", "not CSV"), ("name,expected\n", "no line")] {
        let run = world.submit(order(&world.site()), Some(csv)).await?;
        let row = world.until_ended(&run).await?;
        assert_eq!((&row["status"], &row["due_at"]), (&json!("failed"), &Value::Null), "{row}");
        assert!(row["error"].as_str().is_some_and(|error| error.contains(why)), "{row}");
    }
    agent.stop().await?;
    Ok(())
}

/// Runs without a recording of ours are for runners of one's own; those with a label for machines that have it.
#[tokio::test(flavor = "multi_thread")]
async fn an_agent_takes_only_what_it_can_replay() -> Result<()> {
    let world = World::new().await?;
    let recording = json!({"name": "labelled", "steps": [{"do": "open", "url": world.site()}]});
    let foreign = world.insert("another-system-7", None, json!({})).await?;
    let labelled = world.submit_with(recording.clone(), None, json!({"label": "vpn"})).await?;
    let agent = world.agent(&[]).await?;
    let plain = world.submit(recording, None).await?;
    world.until_ended(&plain).await?;
    assert_eq!(world.run(&labelled).await?["status"], "queued");
    agent.stop().await?;
    let agent = world.agent(&[("runs.labels", "vpn")]).await?;
    assert_eq!(world.until_ended(&labelled).await?["status"], "completed");
    assert_eq!(world.run(&foreign).await?["status"], "queued");
    agent.stop().await?;
    // Without a browser it does not even ask.
    let error = world.agent(&[("runs.chromium", "/nowhere/chromium")]).await.expect_err("no browser");
    assert!(error.to_string().contains("apt-get install chromium chromium-driver"), "{error}");
    Ok(())
}
