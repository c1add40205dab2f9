//! One agent: how it starts, works its queues and ends.

pub(crate) mod world;

use std::time::Duration;

use anyhow::{Context as _, Result};
use serde_json::json;

use world::{Line, World, eventually};

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_works_every_queue_of_its_work() -> Result<()> {
    let world = World::new().await?;
    let (activity, job) = (world.activity(None).await?, world.job("greet").await?);
    let (agent, mut arrivals) = world.agent(&[]).await?;
    let mut keys = [arrivals.next().await?.finish(json!({"ok": true})), arrivals.next().await?.finish(json!({"ok": true}))];
    keys.sort();
    let mut expected = [format!("activities {activity}"), format!("jobs {job}")];
    expected.sort();
    assert_eq!(keys, expected);
    eventually("both to be completed", async || {
        Ok(world.text(&format!("select processing_status from activities where id = '{activity}'")).await? == "completed"
            && world.text(&format!("select status from gleaner.jobs where id = {job}")).await? == "done")
    })
    .await?;
    let tally = agent.stop().await?;
    assert_eq!((tally.completed, tally.failed, tally.released), (2, 0, 0));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrency_is_of_the_whole_process() -> Result<()> {
    let world = World::new().await?;
    for _ in 0..3 {
        world.activity(None).await?;
        world.job("greet").await?;
    }
    let (agent, mut arrivals) = world.agent(&[("concurrency", "2")]).await?;
    let held = [arrivals.next().await?, arrivals.next().await?];
    assert!(arrivals.none_for(Duration::from_millis(600)).await, "a third is in work while two may be");
    for arrival in held {
        arrival.finish(json!({}));
    }
    for _ in 0..4 {
        arrivals.next().await?.finish(json!({}));
    }
    assert_eq!(agent.stop().await?.completed, 6);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_place_that_is_away_at_the_start_is_waited_for() -> Result<()> {
    let world = World::new().await?;
    let job = world.job("greet").await?;
    let line = Line::to(&world.url)?;
    let (agent, mut arrivals) = world.agent_at(&line.url, &[]).await?;
    eventually("the agent to say that its place is away", async || {
        let (status, body) = world::get(&agent, "health").await?;
        Ok(status == 503 && body["state"] == "offline" && body["reasons"][0].as_str().is_some_and(|why| why.contains("connect")))
    })
    .await?;
    line.open().await?;
    let arrival = arrivals.next().await?;
    assert_eq!(arrival.finish(json!({})), format!("jobs {job}"));
    eventually("health to be back", async || Ok(world::get(&agent, "health").await?.0 == 200)).await?;
    agent.stop().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_is_not_migrated_yet_is_waited_for() -> Result<()> {
    let world = World::empty().await?;
    let (agent, mut arrivals) = world.agent(&[]).await?;
    eventually("the agent to say what is missing", async || {
        let (status, body) = world::get(&agent, "health").await?;
        Ok(status == 503 && body["reasons"][0].as_str().is_some_and(|why| why.contains("gleaner migrate")))
    })
    .await?;
    gleaner::migrate::migrate(&world.url, &|_| {}).await?;
    world.job("greet").await?;
    arrivals.next().await?.finish(json!({}));
    eventually("health", async || Ok(world::get(&agent, "health").await?.0 == 200)).await?;
    agent.stop().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_permanent_error_is_reported_at_once() -> Result<()> {
    let world = World::new().await?;
    let told = |flags: &'static [(&'static str, &'static str)]| async {
        match world.agent(flags).await {
            Ok((mut agent, _)) => agent.wait().await.map(drop).expect_err("it cannot work").to_string(),
            Err(error) => error.to_string(),
        }
    };
    assert!(told(&[("queues", "nonsense")]).await.contains("no pipeline works the queue \"nonsense\""));
    assert!(told(&[("queues", "nowhere")]).await.contains("none of the queues nowhere; there are: activities"));
    assert!(told(&[("kinds", "nonsense"), ("queues", "activities")]).await.contains("nonsense"));
    let error = world.agent_at("not a url", &[]).await.map(drop).expect_err("no address").to_string();
    assert!(error.contains("postgresql://"), "{error}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn stopping_gives_unfinished_work_back_without_burning_an_attempt() -> Result<()> {
    let world = World::new().await?;
    let job = world.job("greet").await?;
    let (agent, mut arrivals) = world.agent(&[("grace", "300ms")]).await?;
    let _held = arrivals.next().await?;
    let tally = agent.stop().await?;
    assert_eq!((tally.completed, tally.released), (0, 1));
    assert_eq!(world.text(&format!("select status || ' ' || attempts from gleaner.jobs where id = {job}")).await?, "ready 0");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn releasing_at_once_does_not_wait_for_handlers() -> Result<()> {
    let world = World::new().await?;
    let job = world.job("greet").await?;
    let (agent, mut arrivals) = world.agent(&[("grace", "1h")]).await?;
    let late = arrivals.next().await?;
    agent.begin_to_stop();
    let released = tokio::time::timeout(Duration::from_secs(5), agent.release_now()).await?;
    assert_eq!(released, 1);
    assert_eq!(world.text(&format!("select status || ' ' || attempts from gleaner.jobs where id = {job}")).await?, "ready 0");
    drop(late);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_with_until_empty_ends_when_nothing_is_due() -> Result<()> {
    let world = World::new().await?;
    for _ in 0..3 {
        world.job("greet").await?;
    }
    let once = world.run_until(gleaner_agent::config::Until::Once).await?;
    assert_eq!(once.completed, 1);
    let rest = world.run_until(gleaner_agent::config::Until::Empty).await?;
    assert_eq!(rest.completed, 2);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_of_one_home_have_names_of_their_own() -> Result<()> {
    let world = World::new().await?;
    let (first, _a) = world.agent(&[]).await?;
    let (second, _b) = world.agent(&[]).await?;
    assert_eq!((first.name(), second.name()), ("agent".into(), "agent-2".into()));
    assert_ne!(first.url(), second.url());
    let taken = world.agent(&[("name", "agent")]).await.map(drop).expect_err("the name is taken").to_string();
    assert!(taken.contains("runs already") && taken.contains("--name"), "{taken}");
    first.stop().await?;
    // A stale note does not reserve its name for ever.
    let (third, _c) = world.agent(&[("name", "agent")]).await?;
    assert_eq!(third.name(), "agent");
    Ok(())
}

/// An error that only a person can fix ends an agent that is starting. A running agent reports it at once.
#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_is_not_let_in_says_so_and_does_not_only_wait() -> Result<()> {
    let world = World::new().await?;
    world.client.batch_execute("create role turned_away superuser login").await?;
    let url = world.url_of("turned_away")?;
    let (agent, mut arrivals) = world.agent_at(&url, &[("poll.max", "2s")]).await?;
    world.job("greet").await?;
    arrivals.next().await?.finish(json!({}));
    // Two separate statements: sent together they are one transaction, and a terminated client could reconnect before it
    // commits.
    world.client.batch_execute("alter role turned_away nologin").await?;
    world.client.batch_execute("select pg_terminate_backend(pid) from pg_stat_activity where usename = 'turned_away'").await?;
    let seen = std::sync::Mutex::new(serde_json::Value::Null);
    eventually("the page to say why", async || {
        let (_, view) = world::get(&agent, "status.json").await?;
        let says = |what: &serde_json::Value| what.as_str().is_some_and(|why| why.contains("not permitted to log in"));
        let since = view["trouble_since"].as_u64().unwrap_or(0);
        let told = view["state"] == "offline" && says(&view["trouble"]) && says(&view["health"]["reasons"][0]) && since > 1_700_000_000;
        *seen.lock().expect("nobody panicked") = view;
        Ok(told)
    })
    .await
    .with_context(|| format!("it says {}", seen.lock().expect("nobody panicked")))?;
    let (_, view) = world::get(&agent, "status.json").await?;
    assert!(view["polling"]["consecutive_errors"].as_u64() < Some(5), "it was not told at once: {view}");
    let refused = world.agent_at(&url, &[("name", "second")]).await?.0.wait().await.map(|_| ()).map_err(|error| error.to_string());
    assert!(refused.as_ref().is_err_and(|why| why.contains("Check the role")), "{refused:?}");
    world.client.batch_execute("alter role turned_away login").await?;
    world.job("greet").await?;
    arrivals.next().await?.finish(json!({}));
    // Each queue has a worker of its own, and each logs in again at its next poll.
    eventually("all to be well", async || Ok(world::get(&agent, "health").await?.0 == 200)).await?;
    agent.stop().await?;
    Ok(())
}
