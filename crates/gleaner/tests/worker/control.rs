//! Pause, concurrency and statistics, while workers run.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::Result;
use gleaner::Failure;
use gleaner::worker::testing::{Memory, State};
use gleaner::worker::{Builder, Control, Job};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::simulation::{Simulation, idle};

/// A worker whose handlers run until the gate opens.
fn gated(memory: &Memory, gate: &Arc<Semaphore>) -> Builder {
    let gate = gate.clone();
    idle(memory).otherwise(move |job: Job<Value>| {
        let gate = gate.clone();
        async move {
            job.progress("waiting", Some(12.5), None).await?;
            gate.acquire().await.map_err(|_| Failure::new("closed"))?.forget();
            Ok(())
        }
    })
}

fn fill(memory: &Memory, n: usize) {
    for _ in 0..n {
        memory.add("any", json!(null));
    }
}

#[tokio::test(start_paused = true)]
async fn a_paused_worker_claims_nothing_new_and_finishes_what_runs() -> Result<()> {
    let (memory, gate) = (Memory::pushing("jobs"), Arc::new(Semaphore::new(0)));
    fill(&memory, 3);
    let sim = Simulation::start(&memory, gated(&memory, &gate).concurrency(2));
    sim.pass(1.0).await;
    assert_eq!(memory.count(State::Running), 2);
    sim.control.pause();
    gate.add_permits(3);
    sim.pass(3600.0).await;
    assert_eq!((memory.count(State::Done), memory.count(State::Ready)), (2, 1));
    fill(&memory, 1);
    let looks = sim.looks().len();
    sim.pass(3600.0).await;
    assert_eq!(sim.looks().len(), looks);
    assert!(sim.control.is_paused() && sim.control.stats().is_healthy(), "paused is healthy");
    gate.add_permits(1);
    sim.control.resume();
    sim.pass(0.1).await;
    assert_eq!(memory.count(State::Done), 4, "it looks at once");
    sim.stop().await?;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_pause_gives_back_what_waits_for_a_handler() -> Result<()> {
    let (memory, gate) = (Memory::new("jobs"), Arc::new(Semaphore::new(0)));
    fill(&memory, 5);
    let sim = Simulation::start(&memory, gated(&memory, &gate).concurrency(1).prefetch(3));
    sim.pass(1.0).await;
    assert_eq!((memory.count(State::Running), sim.control.stats().running.len()), (4, 1));
    sim.control.pause();
    sim.pass(1.0).await;
    assert_eq!((memory.count(State::Running), memory.count(State::Ready)), (1, 4));
    gate.add_permits(5);
    assert_eq!(sim.stop().await?.released, 3);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_paused_worker_stops_when_asked() -> Result<()> {
    let memory = Memory::new("jobs");
    let sim = Simulation::start(&memory, idle(&memory));
    sim.pass(1.0).await;
    sim.control.pause();
    sim.pass(1.0).await;
    sim.stop().await?;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn concurrency_can_be_changed_while_it_runs() -> Result<()> {
    let (memory, gate) = (Memory::new("jobs"), Arc::new(Semaphore::new(0)));
    fill(&memory, 20);
    let sim = Simulation::start(&memory, gated(&memory, &gate).concurrency(2));
    let running = async |seconds: f64| {
        sim.pass(seconds).await;
        memory.count(State::Running)
    };
    assert_eq!(running(1.0).await, 2);
    sim.control.set_concurrency(5);
    assert_eq!(running(1.0).await, 5);
    sim.control.set_concurrency(1);
    gate.add_permits(3);
    assert_eq!(running(1.0).await, 2, "those beyond end in their own time");
    gate.add_permits(3);
    assert_eq!(running(1.0).await, 1);
    gate.add_permits(20);
    sim.pass(60.0).await;
    assert_eq!(sim.stop().await?.completed, 20);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn several_workers_share_one_limit_and_one_pause() -> Result<()> {
    let control = Control::new(3);
    let most = Arc::new(AtomicUsize::new(0));
    let now = Arc::new(AtomicUsize::new(0));
    let mut sims = Vec::new();
    for name in ["jobs", "dumps", "runs"] {
        let memory = Memory::new(name);
        fill(&memory, 10);
        let (most, now) = (most.clone(), now.clone());
        let worker = idle(&memory).control(control.clone()).concurrency(50).otherwise(move |_: Job<Value>| {
            let (most, now) = (most.clone(), now.clone());
            async move {
                most.fetch_max(now.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
                tokio::time::sleep(Duration::from_secs(10)).await;
                now.fetch_sub(1, Ordering::Relaxed);
                Ok(())
            }
        });
        sims.push(Simulation::start(&memory, worker));
    }
    sims[0].pass(35.0).await;
    let done: Vec<usize> = sims.iter().map(|sim| sim.memory.count(State::Done)).collect();
    assert!(done.iter().all(|done| *done > 0), "one queue had all the handlers: {done:?}");
    control.pause();
    sims[0].pass(1000.0).await;
    let total = |sims: &[Simulation]| sims.iter().map(|sim| sim.memory.count(State::Done)).sum::<usize>();
    assert_eq!(total(&sims), 12);
    control.resume();
    sims[0].pass(200.0).await;
    assert_eq!((total(&sims), most.load(Ordering::Relaxed), control.stats().completed), (30, 3, 30));
    for sim in sims {
        sim.stop().await?;
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn the_figures_show_what_was_done_and_what_runs() -> Result<()> {
    let (memory, gate) = (Memory::pushing("jobs"), Arc::new(Semaphore::new(0)));
    memory.latency(Duration::from_millis(40));
    fill(&memory, 3);
    let sim = Simulation::start(&memory, gated(&memory, &gate).concurrency(2));
    sim.pass(1.0).await;
    let stats = sim.control.stats();
    assert_eq!((stats.polls, stats.found, stats.running.len(), stats.concurrency), (1, 2, 2, 2));
    let running = &stats.running[0];
    assert_eq!(
        (running.queue.as_str(), running.kind.as_deref(), running.stage.as_deref(), running.percent),
        ("jobs", Some("any"), Some("waiting"), Some(12.5))
    );
    assert!(running.seconds > 0.8, "{}", running.seconds);
    assert!(stats.is_healthy() && stats.next_poll_seconds.is_none(), "its hands are full");
    gate.add_permits(3);
    sim.pass(9.0).await;
    let stats = sim.control.stats();
    assert_eq!((stats.completed, stats.failed, stats.running.len(), stats.push), (3, 0, 0, true));
    assert!((stats.claim_latency - 0.04).abs() < 0.001 && stats.claim_success_rate > 0.99, "{stats:?}");
    assert!(stats.next_poll_seconds.is_some_and(|next| next > 10.0 && next < 31.0), "{stats:?}");
    sim.pass(600.0).await;
    let stats = sim.control.stats();
    assert!(stats.polls_per_minute > 0.9 && stats.polls_per_minute <= 2.0, "{}", stats.polls_per_minute);
    sim.stop().await?;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn the_last_errors_are_kept_for_people() -> Result<()> {
    let memory = Memory::new("jobs");
    let key = memory.add("any", json!(null));
    let sim = Simulation::start(
        &memory,
        idle(&memory).otherwise(|_: Job<Value>| async { Err::<(), _>(Failure::new("no such file").category("DownloadError").for_good()) }),
    );
    sim.pass(1.0).await;
    let stats = sim.control.stats();
    assert_eq!((stats.failed, stats.errors.len()), (1, 1));
    let error = &stats.errors[0];
    assert_eq!(
        (error.key.as_deref(), error.category.as_str(), error.message.as_str()),
        (Some(key.as_str()), "DownloadError", "no such file")
    );
    assert!(serde_json::to_value(&stats)?["errors"][0]["at"].as_u64().is_some_and(|at| at > 1_600_000_000));
    sim.stop().await?;
    Ok(())
}

/// A claim that is empty while a row is due lost a race; a claim that found no due row did not.
#[tokio::test(start_paused = true)]
async fn the_claim_success_rate_counts_only_claims_that_could_have_succeeded() -> Result<()> {
    let memory = Memory::new("jobs");
    let sim = Simulation::start(&memory, idle(&memory));
    sim.pass(300.0).await;
    fill(&memory, 1);
    sim.pass(60.0).await;
    let stats = sim.control.stats();
    assert!(stats.polls > 10 && (stats.claim_success_rate - 1.0).abs() < f64::EPSILON, "{stats:?}");
    sim.stop().await?;
    Ok(())
}

/// No errors, and no answers either.
#[tokio::test(start_paused = true)]
async fn a_worker_whose_claim_hangs_is_not_healthy() -> Result<()> {
    let memory = Memory::new("jobs");
    let sim = Simulation::start(&memory, idle(&memory));
    sim.pass(300.0).await;
    assert!(sim.control.stats().is_healthy());
    memory.slow("claim", Duration::from_secs(400));
    sim.pass(100.0).await;
    assert!(sim.control.stats().overdue && !sim.control.stats().is_healthy());
    memory.slow("claim", Duration::ZERO);
    sim.pass(400.0).await;
    assert!(sim.control.stats().is_healthy());
    sim.stop().await?;
    Ok(())
}
