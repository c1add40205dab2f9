//! Pipelines on claimed rows: what is stored and when, and how a second agent resumes.

pub(crate) mod world;

use std::sync::Arc;

use anyhow::Result;
use gleaner_agent::pipeline::{Pipelines, fetch};
use serde_json::json;

use self::world::world;

#[tokio::test]
async fn without_a_file_messages_are_read_offline_and_dates_are_counted_from_their_writing() -> Result<()> {
    let world = world().await?;
    let text = "Hi Bob,\n\ncan you call me back tomorrow at 3 pm? My number is +49 30 23125 111.\n\nOn Mon, Nov 2, Bob wrote:\n> Hello";
    let raw_data = json!({"source_type": "text", "content": text, "subject": "Re: Pumps"});
    let id = world.activity_at("email", raw_data, Some("2026-11-02 09:00:00+00")).await?;
    let tally = world.work("activities", &Pipelines::load(None)?).await?;
    assert_eq!((tally.completed, tally.failed), (1, 0), "{:?}", world.row(id).await?);
    let row = world.row(id).await?;
    assert_eq!(row.status, "completed");
    let result = &row.result;
    assert_eq!(result["transcript"], "Hi Bob,\n\ncan you call me back tomorrow at 3 pm? My number is +49 30 23125 111.");
    assert_eq!(result["entities"]["dates"][0]["date"], "2026-11-03");
    assert_eq!(result["entities"]["dates"][0]["counted_from"], "2026-11-02");
    assert_eq!(result["entities"]["phones"][0]["number"], "+493023125111");
    assert_eq!(result["next_steps"][0]["due"], "2026-11-03");
    assert_eq!(result["gleaner"]["models_used"], false);
    Ok(())
}

#[tokio::test]
async fn calls_wait_for_an_agent_that_can_listen() -> Result<()> {
    let world = world().await?;
    let call = world.activity("call", json!({"source_type": "url", "content": "https://a/RE1", "format": "audio/wav"})).await?;
    let note = world.text("note", "Buy milk.").await?;
    assert_eq!(world.work("activities", &Pipelines::load(None)?).await?.completed, 1);
    assert_eq!((world.row(call).await?.status.as_str(), world.row(note).await?.status.as_str()), ("raw", "completed"));
    Ok(())
}

/// The first stage is done and the second one waits: the result of the first is already visible, and the row shows the progress.
#[tokio::test]
async fn partial_results_reach_the_row_before_the_next_stage_ends() -> Result<()> {
    let world = world().await?;
    let pipelines = world.pipelines(
        "[stages.slow]\ncommand = \"echo 'progress: 50 thinking' >&2; while [ ! -e go ]; do sleep 0.05; done; echo done\"\n\
         [queues.activities.kinds]\nsms = [\"clean\", \"summary\", \"slow\", \"keywords\"]\n",
    )?;
    let id = world.text("sms", "Please  call me.").await?;
    let agent = world.agent("activities", &pipelines, world.direct()?).await?;
    let early = world.until(id, |row| row.progress["stage"] == "slow: thinking").await?;
    assert_eq!((early.status.as_str(), &early.result["summary"]), ("processing", &json!("Please call me.")));
    assert_eq!(early.progress["percent"], json!(62.5), "two of four, and half of the third");
    assert!(early.result["slow"].is_null() && early.result["gleaner"]["stages"]["summary"]["fingerprint"].is_string(), "{early:?}");
    world.folder.write("go", "")?;
    assert_eq!(agent.task.await??.completed, 1);
    let late = world.row(id).await?;
    assert_eq!(
        (late.status.as_str(), &late.result["slow"], &late.result["summary"]),
        ("completed", &json!("done"), &json!("Please call me."))
    );
    Ok(())
}

#[tokio::test]
async fn a_second_agent_resumes_behind_finished_stages_and_repeats_those_whose_prompt_changed() -> Result<()> {
    let world = world().await?;
    let file = |command: &str| {
        format!(
            "[stages.first]\ncommand = \"echo first >> ran; echo 1\"\n[stages.second]\ncommand = \"{command}\"\n\
             [queues.activities.kinds]\nsms = [\"first\", \"second\"]\n"
        )
    };
    let id = world.text("sms", "hello").await?;
    let hangs = world.pipelines(&file("echo second >> ran; sleep 600"))?;
    let agent = world.mortal("activities", &hangs, Arc::new(fetch::Nothing))?;
    world.until(id, |row| row.result["first"] == json!(1) && row.progress["stage"] == "second").await?;
    world.kill(agent).await?;
    world.let_leases_lapse().await?;
    let works = world.pipelines(&file("echo second >> ran; echo 2"))?;
    assert_eq!(world.work("activities", &works).await?.completed, 1);
    let row = world.row(id).await?;
    assert_eq!((&row.result["first"], &row.result["second"]), (&json!(1), &json!(2)));
    assert_eq!(world.folder.read("ran").matches("first").count(), 1, "the finished stage ran once");
    Ok(())
}

#[tokio::test]
async fn failures_are_stored_with_the_documented_categories() -> Result<()> {
    let world = world().await?;
    let pipelines = world.pipelines(
        "[stages.transcript]\ncommand = \"cat > /dev/null\"\naudio = true\n[stages.bad]\ncommand = \"echo 'it is broken' >&2; exit 65\"\n\
         [stages.worse]\ncommand = \"echo 'not now' >&2; exit 1\"\ncategory = \"LLMError\"\n\
         [queues.activities.kinds]\ncall = [\"transcript\"]\nnote = [\"bad\"]\ntask = [\"worse\"]\nsms = [\"clean\"]\n",
    )?;
    let nowhere =
        world.activity("call", json!({"source_type": "url", "content": "https://elsewhere.example/RE1", "format": "audio/wav"})).await?;
    let file = world.folder.write("noise.wav", "this is no sound")?;
    let noise = json!({"source_type": "url", "content": format!("file://{}", file.display()), "format": "audio/wav"});
    let noise = world.activity("call", noise).await?;
    let (bad, worse) = (world.text("note", "x").await?, world.text("task", "x").await?);
    let empty = world.activity("sms", json!({"source_type": "text"})).await?;
    let tally = world.work("activities", &pipelines).await?;
    assert_eq!((tally.completed, tally.failed), (0, 5));
    for (id, category, is_dead, message) in [
        (nowhere, "DownloadError", true, "recordings are not fetched from https://elsewhere.example"),
        (noise, "TranscriptionError", true, "the recording is of no format we know"),
        (bad, "StageError", true, "stage bad: it is broken (the command ended with exit status 65)"),
        (empty, "ValidationError", true, "neither text (in content) nor a recording"),
        // This one is retried.
        (worse, "LLMError", false, "stage worse: not now"),
    ] {
        let row = world.row(id).await?;
        assert_eq!((&row.error["type"], row.is_dead), (&json!(category), is_dead), "{row:?}");
        assert!(row.error["message"].as_str().is_some_and(|told| told.contains(message)), "{message}: {row:?}");
    }
    Ok(())
}
