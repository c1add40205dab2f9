//! The page as a person sees it, in a real browser.

use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, Result};
use gleaner::Failure;
use gleaner_agent::agent::Agent;
use tokio::process::Command;

use crate::agent::world::{World, eventually, get};

/// The content of the page after some seconds.
async fn seen(agent: &Agent, world: &World) -> Result<String> {
    let mut browser = Command::new("chromium");
    browser.args([
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--no-first-run",
        "--virtual-time-budget=3000",
    ]);
    browser.arg(format!("--user-data-dir={}", world.home.join("browser").display()));
    browser.arg("--dump-dom").arg(agent.url().context("a page")?);
    let run = browser.stdin(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true).output();
    let ran = tokio::time::timeout(Duration::from_secs(120), run).await.context("the browser takes too long")?;
    Ok(String::from_utf8(ran.context("run chromium; scripts/install installs it")?.stdout)?)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_sees_what_runs_and_a_row_cannot_put_anything_on_the_page() -> Result<()> {
    let world = World::new().await?;
    world.job("greet").await?;
    world.job("greet").await?;
    let (agent, mut arrivals) = world.agent(&[("concurrency", "1")]).await?;
    let hostile = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>";
    arrivals.next().await?.fail(Failure::new(hostile).category("LLMError").for_good());
    let running = arrivals.next().await?;
    running.context.progress("summarise", Some(40.0), None).await?;
    eventually("the failure to be told", async || Ok(get(&agent, "status.json").await?.1["errors"][0]["category"] == "LLMError")).await?;
    let page = seen(&agent, &world).await?;
    for part in ["<title>Processing 1 · agent</title>", "summarise · 40 %", "width: 40%", "LLMError", "&lt;img src=x"] {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert!(!page.contains("<img"), "{page}");
    running.finish(serde_json::json!({}));
    agent.control().pause();
    let page = seen(&agent, &world).await?;
    assert!(page.contains("<title>Paused · agent</title>") && page.contains(">Resume</button>"), "{page}");
    Ok(())
}
