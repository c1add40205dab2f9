//! Unreliable networks and busy servers.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use gleaner::transport::Endpoint as _;
use gleaner::{Claim, Completion, Error, Outcome, Progress};
use gleaner_agent::wire::{Protocol, Settings, Wire};
use gleaner_server::Server;
use serde_json::json;

use super::front::{Front, Trick};
use crate::conformance::stage::{Over, Stage, stage, take};

/// The real server behind a misbehaving proxy.
async fn fronted(protocol: Protocol) -> Result<(Stage, Front, Wire)> {
    let stage = stage(if protocol == Protocol::Rpc { Over::Rpc } else { Over::Native }).await?;
    let served = stage.served.as_ref().context("served")?;
    let front = Front::before(&served.url()).await?;
    let wire = Wire::connect_by(Settings { url: front.url.clone(), ..served.settings() }, protocol)?;
    Ok((stage, front, wire))
}

fn claim_path(protocol: Protocol) -> &'static str {
    if protocol == Protocol::Rpc { "/rpc/claim_jobs" } else { "/jobs/claim" }
}

#[tokio::test]
async fn a_lost_answer_to_a_claim_is_asked_for_again() -> Result<()> {
    for protocol in [Protocol::Native, Protocol::Rpc] {
        let (stage, front, wire) = fronted(protocol).await?;
        let jobs = wire.open("jobs").await?;
        for n in 0..4 {
            stage.job("mail", json!({"n": n})).await?;
        }
        front.play(claim_path(protocol), [Trick::Lose]);
        let items = jobs.claim(&Claim::by("agent").limit(2)).await?.items;
        assert_eq!(items.len(), 2, "{protocol:?}");
        assert_eq!(
            stage.world.count("select count(*) from gleaner.jobs where status = 'running'").await?,
            2,
            "{protocol:?}: nothing was taken twice"
        );
    }
    Ok(())
}

#[tokio::test]
async fn a_claim_that_was_never_answered_is_asked_for_by_the_next_and_its_surplus_goes_back() -> Result<()> {
    for protocol in [Protocol::Native, Protocol::Rpc] {
        let (stage, front, wire) = fronted(protocol).await?;
        let jobs = wire.open("jobs").await?;
        for n in 0..5 {
            stage.job("mail", json!({"n": n})).await?;
        }
        front.play(claim_path(protocol), [Trick::Lose, Trick::Answer(502, None), Trick::Answer(504, None)]);
        let error = jobs.claim(&Claim::by("agent").limit(3)).await.unwrap_err();
        assert!(error.is_transient(), "{error}");
        let held = stage.text("select string_agg(id::text, ' ' order by id) from gleaner.jobs where status = 'running'").await?;
        let items = jobs.claim(&Claim::by("agent").limit(2)).await?.items;
        assert_eq!(
            items.iter().map(|item| item.key.as_str()).collect::<Vec<_>>(),
            held.split(' ').take(2).collect::<Vec<_>>(),
            "{protocol:?}"
        );
        assert_eq!(
            stage.world.count("select count(*) from gleaner.jobs where status = 'running'").await?,
            2,
            "{protocol:?}: the third went back"
        );
        assert_eq!(stage.world.count("select max(attempts)::bigint from gleaner.jobs").await?, 0);
    }
    Ok(())
}

#[tokio::test]
async fn a_lost_answer_to_a_completion_is_found_out_at_once() -> Result<()> {
    for protocol in [Protocol::Native, Protocol::Rpc] {
        let (stage, front, wire) = fronted(protocol).await?;
        let jobs = wire.open("jobs").await?;
        let item = stage.held(&*jobs, "mail").await?;
        front.play(if protocol == Protocol::Rpc { "/rpc/complete_jobs_many" } else { "/jobs/complete" }, [Trick::Lose]);
        let answers = jobs.complete(&[Completion::new(item.held(), Some(json!({"sent": true})))]).await?;
        assert_eq!(answers[0].outcome, Outcome::Already, "{protocol:?}: the first one had arrived");
    }
    Ok(())
}

#[tokio::test]
async fn a_server_that_asks_to_be_left_alone_is_left_alone() -> Result<()> {
    let (stage, front, wire) = fronted(Protocol::Native).await?;
    let jobs = wire.open("jobs").await?;
    stage.job("mail", json!({})).await?;
    front.play("/jobs/claim", [Trick::Answer(429, Some("2"))]);
    let error = jobs.claim(&Claim::by("agent")).await.unwrap_err();
    assert!(matches!(error, Error::Remote { status: Some(429), transient: true, .. }), "{error}");
    let before = (front.count("/v1/queues/jobs/claim"), Instant::now());
    assert_eq!(take(&*jobs, "mail").await?.kind.as_deref(), Some("mail"), "then it is asked again");
    assert!(before.1.elapsed() > Duration::from_millis(1800), "{:?}", before.1.elapsed());
    assert_eq!((before.0, front.count("/v1/queues/jobs/claim")), (1, 2));
    Ok(())
}

#[tokio::test]
async fn trouble_of_the_server_passes_and_costs_nothing() -> Result<()> {
    let (stage, front, wire) = fronted(Protocol::Native).await?;
    let jobs = wire.open("jobs").await?;
    let item = stage.held(&*jobs, "mail").await?;
    for status in [500, 502, 503, 504, 522] {
        front.play("/jobs/progress", [Trick::Answer(status, None)]);
        let error = jobs.progress(&item.held(), &Progress::default()).await.unwrap_err();
        assert!(error.is_transient(), "{status}: {error}");
        assert!(!error.to_string().contains("html"), "what a gateway says is no message: {error}");
    }
    assert_eq!(jobs.progress(&item.held(), &Progress::default()).await?.0.outcome, Outcome::Done);
    Ok(())
}

#[tokio::test]
async fn a_lost_serialization_race_is_retried_silently() -> Result<()> {
    let stage = stage(Over::Rpc).await?;
    let jobs = stage.open("jobs").await?;
    let item = stage.held(&*jobs, "mail").await?;
    // Fails twice, as PostgreSQL does on a deadlock.
    stage
        .world
        .run(
            "create sequence tries;
             grant usage on sequence tries to public;
             create function deadlock() returns trigger language plpgsql as $$ begin
                 if nextval('public.tries') <= 2 then raise exception 'deadlock detected' using errcode = '40P01'; end if;
                 return new;
             end $$;
             create trigger deadlock before update on gleaner.jobs for each row execute function deadlock()",
        )
        .await?;
    assert_eq!(jobs.complete(&[Completion::new(item.held(), None)]).await?[0].outcome, Outcome::Done);
    assert_eq!(stage.world.count("select last_value from tries").await?, 3);
    Ok(())
}

#[tokio::test]
async fn an_unreachable_server_is_a_transient_error() -> Result<()> {
    for url in ["http://127.0.0.1:9", "http://no-such-host.invalid"] {
        let wire = Wire::connect(Settings { url: url.into(), anon_key: "key".into(), ..Settings::default() })?;
        let error = wire.queues().await.unwrap_err();
        assert!(error.is_transient(), "{url}: {error}");
    }
    Ok(())
}

#[tokio::test]
async fn a_bad_key_is_a_mistake_that_stays_and_says_what_to_do() -> Result<()> {
    let stage = stage(Over::Native).await?;
    let served = stage.served.as_ref().context("served")?;
    let with = |settings: Settings, protocol| Wire::connect_by(settings, protocol);
    for (key, protocol, says) in [
        ("not a key", Protocol::Native, "SUPABASE_ANON_KEY"),
        ("not a key", Protocol::Rpc, "SUPABASE_ANON_KEY"),
        (served.anon.as_str(), Protocol::Native, "42501"),
        (served.anon.as_str(), Protocol::Rpc, "permission denied"),
    ] {
        let wire = with(Settings { service_key: Some(key.into()), ..served.settings() }, protocol)?;
        let error = wire.queues().await.unwrap_err();
        assert!(!error.is_transient() && error.to_string().contains(says), "{protocol:?}: {error}");
        assert!(!error.to_string().contains(key), "a key is not for logs: {error}");
    }
    assert!(Wire::connect(Settings { url: served.url(), ..Settings::default() }).unwrap_err().to_string().contains("SUPABASE_ANON_KEY"));
    assert!(Wire::connect(Settings { url: "supabase.co".into(), ..served.settings() }).unwrap_err().to_string().contains("https://"));
    Ok(())
}

#[tokio::test]
async fn a_server_that_is_not_ours_is_asked_once_and_spoken_to_by_its_functions() -> Result<()> {
    let (stage, front, _) = fronted(Protocol::Native).await?;
    let served = stage.served.as_ref().context("served")?;
    front.close("/v1/");
    let wire = Wire::connect(Settings { url: front.url.clone(), ..served.settings() })?;
    let jobs = wire.open("jobs").await?;
    stage.held(&*jobs, "mail").await?;
    wire.open("activities").await?;
    assert_eq!((wire.protocol().await?, front.count("/v1/queues")), (Protocol::Rpc, 1));
    let ours = Wire::connect(served.settings())?;
    assert_eq!(ours.protocol().await?, Protocol::Native);
    Ok(())
}

#[tokio::test]
async fn idle_agents_ask_the_server_and_the_server_does_not_ask_the_database() -> Result<()> {
    let world = crate::world::world().await?;
    let home = crate::conformance::stage::Home::new()?;
    let mut config = gleaner_server::Config::new(&home.0);
    config.listen = ([127, 0, 0, 1], 0).into();
    let server = Server::start(config, world.url(), gleaner::pool(world.url(), 4)?).await?;
    let key = gleaner_server::load_access(&home.0)?.project_key(gleaner_http::Role::Service);
    let settings = Settings { url: format!("http://{}", server.local_addr()), service_key: Some(key), ..Settings::default() };
    let jobs = Wire::connect(settings)?.open("jobs").await?;
    // An empty result found right after a notification is cached only for a moment.
    while server.state().queues.tally().0 == 0 {
        jobs.claim(&Claim::by("agent")).await?;
    }
    let (spared, asked) = server.state().queues.tally();
    for _ in 0..50 {
        assert!(jobs.claim(&Claim::by("agent")).await?.items.is_empty());
    }
    let (spared_now, asked_now) = server.state().queues.tally();
    // A cached empty result is checked again after five seconds.
    assert!(spared_now - spared >= 48 && asked_now - asked <= 2, "{} spared, {} asked", spared_now - spared, asked_now - asked);
    server.stop().await;
    Ok(())
}
