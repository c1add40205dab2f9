//! A real recording, spoken by a synthesizer: webhook, recording fetched through the server, transcript, summary, facts.
//! Offline.

mod speech;
mod telephone;

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use gleaner_agent::pipeline::{Fetch, Pipelines, fetch};
use gleaner_http::Role;
use gleaner_server::{Config, Server};
use serde_json::json;

use self::telephone::Telephone;
use crate::pipelines::world::{World, world};

const SENTENCE: &str = "please send the contract to the office on friday. we need the money for the new house.";

/// A running Gleaner server, a fake Twilio, and an agent's access to the recordings.
struct Stage {
    world: World,
    server: Server,
    telephone: Telephone,
}

impl Stage {
    async fn new() -> Result<Self> {
        let world = world().await?;
        let telephone = Telephone::start(speech::say(SENTENCE, world.folder.path())?).await?;
        let mut config = Config::new(world.folder.path());
        config.listen = ([127, 0, 0, 1], 0).into();
        config.realtime = false;
        config.public_base = Some("https://hooks.acme.example".into());
        config.media.twilio_base = Some(telephone.base());
        let server = Server::start(config, &world.url, gleaner::pool(&world.url, 8)?).await?;
        Ok(Self { world, server, telephone })
    }

    /// A call is recorded: Twilio sends a signed webhook, and the server writes the row.
    async fn call(&self) -> Result<uuid::Uuid> {
        self.telephone.tell(&self.world.client, &format!("http://{}", self.server.local_addr())).await
    }

    /// Through the server, which has the provider's credentials and does not pass them to the agent.
    fn fetch(&self) -> Result<Arc<dyn Fetch>> {
        let access = &self.server.state().access;
        let (key, token) = (access.project_key(Role::Anon), access.project_key(Role::Service));
        Ok(Arc::new(fetch::Server::new(&format!("http://{}", self.server.local_addr()), &key, move || token.clone())?))
    }
}

#[tokio::test]
async fn a_spoken_call_becomes_transcript_summary_and_facts_without_a_network() -> Result<()> {
    let example = speech::example()?;
    let stage = Stage::new().await?;
    let id = stage.call().await?;
    let pipelines = Pipelines::load(Some(&example.join("pipelines.toml")))?;
    assert_eq!(pipelines.missing(), []);
    let tally = stage.world.work_with("activities", &pipelines, stage.fetch()?).await?;
    let row = stage.world.row(id).await?;
    assert_eq!((tally.completed, row.status.as_str()), (1, "completed"), "{row:?}");
    let transcript = row.result["transcript"].as_str().context("a transcript")?;
    // The recognizer makes mistakes, but not with these words.
    for word in ["contract", "office", "friday", "money", "house"] {
        assert!(transcript.contains(word), "{word} is not in {transcript:?}");
    }
    assert!(row.result["summary"].as_str().is_some_and(|summary| summary.contains("contract")), "{row:?}");
    assert_eq!(row.result["language"]["code"], "en");
    let facts = row.result["facts"].as_array().context("facts")?;
    let has = |start: &str| facts.iter().any(|fact| fact.as_str().is_some_and(|fact| fact.starts_with(start)));
    assert!(has("Date: ") && has("Next step: "), "{facts:?}");
    assert!(row.result["gleaner"]["stages"]["transcript"]["by"].as_str().is_some_and(|by| by.contains("transcribe.py")));
    assert_eq!(row.result["gleaner"]["models_used"], false);
    // The server sent the account's credentials. The agent never saw them.
    let asked = stage.telephone.asked();
    assert_eq!(asked.len(), 1, "{asked:?}");
    assert_eq!(asked[0].1.as_deref(), Some(telephone::credentials().as_str()));
    assert_eq!(std::fs::read_dir(stage.world.folder.path().join("recordings"))?.count(), 0, "nothing is left lying about");
    stage.server.stop().await;
    Ok(())
}

/// The first agent is killed once the transcript is stored. The second one resumes after it: it neither fetches nor transcribes.
#[tokio::test]
async fn an_agent_killed_after_the_transcription_does_not_cost_a_second_one() -> Result<()> {
    let example = speech::example()?;
    let stage = Stage::new().await?;
    let id = stage.call().await?;
    // The example's transcriber, which writes a line each time it runs.
    let file = |after: &str| {
        format!(
            "[stages.transcript]\ncommand = \"echo ran >> ran; exec '{0}/.venv/bin/python' '{0}/transcribe.py'\"\naudio = true\n\
             [stages.pause]\ncommand = \"{after}\"\nkeep = false\n\
             [queues.activities]\nrecord = {{ table = \"activities\" }}\n\
             [queues.activities.kinds]\ncall = [\"transcript\", \"pause\", \"summary\", \"facts\"]\n",
            example.display()
        )
    };
    let world = &stage.world;
    let hangs = world.pipelines(&file("sleep 600"))?;
    let agent = world.mortal("activities", &hangs, stage.fetch()?)?;
    let early = world.until(id, |row| row.progress["stage"] == "pause").await?;
    world.kill(agent).await?;
    let transcript = early.result["transcript"].clone();
    assert!(transcript.as_str().is_some_and(|text| text.contains("contract")), "people see it already: {early:?}");
    world.let_leases_lapse().await?;
    let tally = world.work_with("activities", &world.pipelines(&file("true"))?, stage.fetch()?).await?;
    let row = world.row(id).await?;
    assert_eq!((tally.completed, row.status.as_str(), &row.result["transcript"]), (1, "completed", &transcript), "{row:?}");
    assert!(row.result["facts"].is_array(), "{row:?}");
    assert_eq!(world.folder.read("ran").lines().count(), 1, "it was listened to once");
    assert_eq!(stage.telephone.asked().len(), 1, "and fetched once");
    assert_eq!(row.result["gleaner"]["stages"]["transcript"], early.result["gleaner"]["stages"]["transcript"]);
    stage.server.stop().await;
    Ok(())
}

#[tokio::test]
async fn a_recording_that_is_gone_or_too_large_is_a_download_error() -> Result<()> {
    let stage = Stage::new().await?;
    let id = stage.call().await?;
    let file = "recordings = { limit_mib = 0 }\n[stages.transcript]\ncommand = \"true\"\naudio = true\n[queues.activities.kinds]\ncall = [\"transcript\"]\n";
    let small = stage.world.pipelines(file)?;
    stage.world.work_with("activities", &small, stage.fetch()?).await?;
    let row = stage.world.row(id).await?;
    assert_eq!((&row.error["type"], row.is_dead), (&json!("DownloadError"), true));
    assert!(row.error["message"].as_str().is_some_and(|told| told.contains("`recordings.limit_mib` in the pipeline file")), "{row:?}");
    stage.telephone.forget();
    let gone = stage.call().await?;
    stage.world.work_with("activities", &stage.world.pipelines(&file.replace("limit_mib = 0", "limit_mib = 9"))?, stage.fetch()?).await?;
    let row = stage.world.row(gone).await?;
    assert_eq!((&row.error["type"], row.is_dead), (&json!("DownloadError"), true), "{row:?}");
    assert!(row.error["message"].as_str().is_some_and(|told| told.contains("410 Gone")), "{row:?}");
    stage.server.stop().await;
    Ok(())
}

/// The path of the example's directory.
fn example_folder() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/agent")
}
