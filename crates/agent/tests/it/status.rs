//! The page, the metrics, and which callers may send commands.

mod browser;
mod orders;

use std::collections::HashMap;
use std::os::unix::fs::PermissionsExt as _;

use anyhow::{Context as _, Result};
use gleaner::Failure;
use gleaner::transport::{Direct, Endpoint as _};
use gleaner_agent::agent::Agent;
use gleaner_agent::status::client::Remote;
use serde_json::{Value, json};

use crate::agent::world::{Line, World, client, eventually, get};

#[tokio::test(flavor = "multi_thread")]
async fn the_view_shows_what_runs_what_waits_and_what_went_wrong() -> Result<()> {
    let world = World::new().await?;
    for _ in 0..3 {
        world.job("greet").await?;
    }
    let (agent, mut arrivals) = world.agent(&[("concurrency", "1"), ("owner", "7")]).await?;
    let first = arrivals.next().await?;
    first.context.progress("transcribe", Some(40.0), None).await?;
    eventually("the view to show stage and percent", async || {
        let (_, view) = get(&agent, "status.json").await?;
        let running = &view["running"][0];
        Ok(view["state"] == "processing" && running["stage"] == "transcribe" && running["percent"] == 40.0 && running["queue"] == "jobs")
    })
    .await?;
    eventually("what waits to be counted", async || {
        let (_, view) = get(&agent, "status.json").await?;
        let queue =
            |name: &str| view["queues"].as_array().and_then(|all| all.iter().find(|q| q["queue"] == name)).cloned().unwrap_or_default();
        Ok(queue("jobs")["pending"] == 2 && queue("activities")["pending"] == 0)
    })
    .await?;
    first.fail(Failure::new("no such voice").category("TranscriptionError").for_good());
    arrivals.next().await?.finish(json!({}));
    arrivals.next().await?.finish(json!({}));
    eventually("the view to be idle again", async || {
        let (_, view) = get(&agent, "status.json").await?;
        let error = &view["errors"][0];
        Ok(view["state"] == "idle"
            && (&view["completed"], &view["failed"]) == (&json!(2), &json!(1))
            && error["category"] == "TranscriptionError"
            && error["message"] == "no such voice")
    })
    .await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_agent_takes_nothing_and_is_healthy() -> Result<()> {
    let world = World::new().await?;
    let (agent, mut arrivals) = world.agent(&[]).await?;
    let remote = Remote::find(&world.home, None).await?;
    assert_eq!(remote.pause().await?["state"], "paused");
    world.job("greet").await?;
    assert!(arrivals.none_for(std::time::Duration::from_millis(1500)).await, "a paused agent took work");
    let (status, health) = get(&agent, "health").await?;
    assert_eq!((status, &health["state"]), (200, &json!("paused")), "{health}");
    remote.resume().await?;
    arrivals.next().await?.finish(json!({}));
    assert_eq!(remote.set_concurrency(7).await?["concurrency"], 7);
    assert_eq!(agent.control().concurrency(), 7);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_goes_away_makes_it_unhealthy_until_it_is_back() -> Result<()> {
    let world = World::new().await?;
    let line = Line::to(&world.url)?;
    line.open().await?;
    let (agent, mut arrivals) = world.agent_at(&line.url, &[]).await?;
    eventually("it to be well", async || Ok(get(&agent, "health").await?.0 == 200)).await?;
    line.cut();
    eventually("503", async || {
        let (status, health) = get(&agent, "health").await?;
        Ok(status == 503
            && health["status"] == "unhealthy"
            && health["state"] == "offline"
            && health["metrics"]["consecutive_errors"].as_u64() >= Some(5))
    })
    .await?;
    assert_eq!(samples(&agent).await?["gleaner_agent_healthy"], 0.0);
    line.open().await?;
    eventually("200", async || Ok(get(&agent, "health").await?.0 == 200)).await?;
    world.job("greet").await?;
    arrivals.next().await?.finish(json!({}));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn only_those_who_address_this_machine_as_itself_are_answered() -> Result<()> {
    let world = World::new().await?;
    let (agent, _arrivals) = world.agent(&[]).await?;
    let url = agent.url().context("a page")?;
    for path in ["", "health", "metrics", "status.json", "nowhere"] {
        let rebound = client().get(format!("{url}{path}")).header("host", "rebound.example").send().await?;
        assert_eq!(rebound.status().as_u16(), 421, "/{path}");
        assert!(!rebound.text().await?.contains(&world.url));
    }
    let page = client().get(url).header("host", "localhost:7433").send().await?;
    let header = |name: &str| page.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned();
    assert_eq!(page.status().as_u16(), 200);
    assert!(header("content-security-policy").contains("frame-ancestors 'none'") && header("x-frame-options") == "DENY");
    assert!(header("access-control-allow-origin").is_empty());
    let page = page.text().await?;
    assert!(!page.contains("{{nonce}}") && !page.contains("http://") && !page.contains("https://"), "something from elsewhere");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_note_with_the_token_is_only_for_its_owner_and_goes_with_the_agent() -> Result<()> {
    let world = World::new().await?;
    let (agent, _arrivals) = world.agent(&[("name", "laptop")]).await?;
    let note = world.home.join("agents/laptop.json");
    assert_eq!(note.metadata()?.permissions().mode() & 0o777, 0o600);
    assert_eq!(world.home.join("agents").metadata()?.permissions().mode() & 0o777, 0o700);
    assert_eq!(Remote::find(&world.home, Some("laptop")).await?.url(), agent.url().unwrap_or_default());
    agent.stop().await?;
    assert!(!note.exists());
    assert!(Remote::find(&world.home, None).await.is_err());
    Ok(())
}

/// Two done, one failed, one released, one lost, one running and two waiting.
#[tokio::test(flavor = "multi_thread")]
async fn metrics_are_well_formed_and_add_up() -> Result<()> {
    let world = World::new().await?;
    let (agent, mut arrivals) = world.agent(&[("concurrency", "1"), ("grace", "100ms")]).await?;
    for _ in 0..7 {
        world.job("greet").await?;
    }
    arrivals.next().await?.finish(json!({}));
    arrivals.next().await?.finish(json!({}));
    arrivals.next().await?.fail(Failure::new("no").for_good());
    let lost = arrivals.next().await?;
    let key = lost.name.split(' ').nth(1).context("a key")?.to_owned();
    Direct::new(&world.url, 1)?.open("jobs").await?.cancel(&[&key], None).await?;
    lost.finish(json!({}));
    let _in_work = arrivals.next().await?;
    let jobs = |name: &str| format!("gleaner_agent_{name}{{queue=\"jobs\"}}");
    eventually("what was lost and what waits to be counted, and the listener to be connected", async || {
        let samples = samples(&agent).await?;
        let counted = samples[&jobs("items_lost_total")] == 1.0 && samples.get(&jobs("pending_items")) == Some(&2.0);
        Ok(counted && samples["gleaner_agent_push_connected"] == 1.0)
    })
    .await?;
    let now = samples(&agent).await?;
    let value = |name: &str| now.get(name).copied().with_context(|| format!("{name} in {now:?}"));
    for (name, expected) in [("completed", 2.0), ("failed", 1.0), ("lost", 1.0), ("claimed", 5.0), ("released", 0.0)] {
        assert_eq!(value(&jobs(&format!("items_{name}_total")))?, expected, "{name}");
    }
    assert_eq!(value("gleaner_agent_items_completed_total{queue=\"activities\"}")?, 0.0);
    for (name, expected) in [("healthy", 1.0), ("paused", 0.0), ("concurrency", 1.0), ("running", 1.0), ("consecutive_errors", 0.0)] {
        assert_eq!(value(&format!("gleaner_agent_{name}"))?, expected, "{name}");
    }
    assert!(value("gleaner_agent_polls_per_minute")? > 0.0 && value("gleaner_agent_uptime_seconds")? > 0.0);
    let found = value("gleaner_agent_jobs_found_per_poll")?;
    assert!(found > 0.0 && found <= 1.0 && value("gleaner_agent_claim_success_rate")? > 0.0, "{found}");
    assert!(value("gleaner_agent_claim_latency_seconds")? > 0.0);
    let polls = value(&jobs("poll_duration_seconds_count"))?;
    assert!(polls >= 5.0);
    assert_eq!(value(&jobs("polls_total"))?, polls);
    assert_eq!(value("gleaner_agent_poll_duration_seconds_bucket{queue=\"jobs\",le=\"+Inf\"}")?, polls);
    let within = value("gleaner_agent_poll_duration_seconds_bucket{queue=\"jobs\",le=\"5\"}")?;
    assert!(within > 0.0 && within <= polls, "{within} of {polls}");
    let length = value(&jobs("poll_duration_seconds_sum"))?;
    assert!(length > 0.0 && length < 60.0, "{length}");
    // It does not work follow-ups: it executed none, and does not know how many wait.
    assert_eq!(value("followup_actions_executed_total")?, 0.0);
    assert!(!now.contains_key("followup_pending_actions_count"), "{now:?}");

    agent.control().pause();
    assert_eq!(samples(&agent).await?["gleaner_agent_paused"], 1.0);
    let url = agent.url().context("a page")?;
    let answer = client().get(format!("{url}metrics")).send().await?;
    let kind = answer.headers().get("content-type").and_then(|kind| kind.to_str().ok()).unwrap_or_default().to_owned();
    assert!(kind.starts_with("text/plain; version=0.0.4"), "{kind}");
    Ok(())
}

/// The follow-up daemon's dashboards read the same page under their own metric names.
#[tokio::test(flavor = "multi_thread")]
async fn follow_ups_are_counted_by_the_names_of_the_follow_up_daemon() -> Result<()> {
    let world = World::new().await?;
    let (agent, mut arrivals) = world.agent_for(&["followups"], &[("concurrency", "1")]).await?;
    let schedule = "select create_scheduled_action('p-1', 'email', now() - interval '1 minute') from generate_series(1, 4)";
    world.client.batch_execute(schedule).await?;
    arrivals.next().await?.finish(json!({}));
    let _in_work = arrivals.next().await?;
    eventually("follow-ups to be counted", async || {
        let now = samples(&agent).await?;
        Ok(now["followup_actions_executed_total"] == 1.0 && now.get("followup_pending_actions_count") == Some(&2.0))
    })
    .await?;
    let now = samples(&agent).await?;
    let polls = now["followup_poll_cycle_duration_seconds_count"];
    assert!(polls >= 2.0 && now["followup_poll_cycle_duration_seconds_sum"] > 0.0, "{now:?}");
    assert_eq!(now["followup_poll_cycle_duration_seconds_bucket{le=\"+Inf\"}"], polls);
    Ok(())
}

async fn samples(agent: &Agent) -> Result<HashMap<String, f64>> {
    parse(&client().get(format!("{}metrics", agent.url().context("a page")?)).send().await?.text().await?)
}

/// The text format, strictly: every sample belongs to a family with help and type, buckets only grow.
fn parse(text: &str) -> Result<HashMap<String, f64>> {
    let (mut kinds, mut helps, mut samples) = (HashMap::new(), HashMap::new(), HashMap::new());
    let mut grown: HashMap<String, f64> = HashMap::new();
    assert!(text.ends_with('\n'));
    for line in text.lines() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            let (name, words) = help.split_once(' ').context(line.to_owned())?;
            anyhow::ensure!(helps.insert(name, words).is_none(), "{name} is described twice");
        } else if let Some(kind) = line.strip_prefix("# TYPE ") {
            let (name, kind) = kind.split_once(' ').context(line.to_owned())?;
            anyhow::ensure!(["counter", "gauge", "histogram"].contains(&kind) && helps.contains_key(name), "{line}");
            anyhow::ensure!(kinds.insert(name, kind).is_none(), "{name} has two types");
        } else {
            let (series, value) = line.rsplit_once(' ').context(line.to_owned())?;
            let value: f64 = value.parse()?;
            let name = series.split('{').next().unwrap_or_default();
            let family = ["_bucket", "_sum", "_count"]
                .iter()
                .find_map(|end| name.strip_suffix(end).filter(|family| kinds.get(family) == Some(&"histogram")));
            anyhow::ensure!(family.is_some() || kinds.get(name).is_some_and(|kind| *kind != "histogram"), "{line} has no type");
            if let Some((bucket, _)) = series.split_once("le=") {
                let before = grown.insert(bucket.to_owned(), value).unwrap_or(0.0);
                anyhow::ensure!(value >= before, "{line}: buckets are cumulative");
            }
            anyhow::ensure!(samples.insert(series.to_owned(), value).is_none(), "{series} is there twice");
        }
    }
    Ok(samples)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stale_record_is_no_agent() -> Result<()> {
    let world = World::new().await?;
    let (agent, _arrivals) = world.agent(&[]).await?;
    let note = world.home.join("agents/agent.json");
    let mut copy: Value = serde_json::from_slice(&std::fs::read(&note)?)?;
    // Another process has the port by now: the one that answers is not the one that wrote the note.
    (copy["name"], copy["pid"]) = (json!("ghost"), json!(1));
    std::fs::write(world.home.join("agents/ghost.json"), copy.to_string())?;
    let all = Remote::all(&world.home).await;
    assert_eq!(all.iter().map(|(remote, _)| remote.name()).collect::<Vec<_>>(), [agent.name()]);
    Ok(())
}
