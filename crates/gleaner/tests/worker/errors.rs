//! What happens when claims fail: temporary errors are retried, the others are reported.

use anyhow::Result;
use gleaner::worker::testing::{Memory, State, Trouble};
use gleaner::worker::{Backoff, Job};
use serde_json::{Value, json};

use crate::simulation::{Simulation, gaps, idle, near};

fn exact() -> Backoff {
    Backoff { jitter: 0.0, ..Backoff::default() }
}

/// Delays after transient errors, as docs/reference/systems/runs.md gives them: min(1000 · 2^n, 10000) ms.
#[tokio::test(start_paused = true)]
async fn passing_errors_are_waited_out_2_4_8_and_then_10_seconds_each() -> Result<()> {
    let memory = Memory::new("jobs");
    memory.trouble(Some(Trouble::Passing));
    memory.add("any", json!(null));
    let sim = Simulation::start(&memory, idle(&memory).backoff(exact()));
    sim.pass(60.0).await;
    near(&gaps(&sim.looks()), &[2.0, 4.0, 8.0, 10.0, 10.0, 10.0]);
    let stats = sim.control.stats();
    assert_eq!((stats.consecutive_errors, stats.is_healthy()), (8, false));
    assert!(stats.errors.iter().all(|error| error.category == "Transient" && error.message.contains("connection refused")));
    memory.trouble(None);
    sim.pass(10.0).await;
    assert_eq!(memory.count(State::Done), 1);
    assert_eq!((sim.control.stats().consecutive_errors, sim.control.stats().is_healthy()), (0, true));
    sim.stop().await?;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn the_wait_after_an_error_is_jittered_within_its_bound() -> Result<()> {
    let memory = Memory::new("jobs");
    memory.trouble(Some(Trouble::Passing));
    let sim = Simulation::start(&memory, idle(&memory));
    sim.pass(2000.0).await;
    let waits = gaps(&sim.looks());
    for (wait, documented) in waits.iter().zip([2.0, 4.0, 8.0].into_iter().chain(std::iter::repeat(10.0))) {
        assert!(*wait >= documented - 0.01 && *wait <= documented * 1.25 + 0.01, "{waits:?}");
    }
    assert!(waits.iter().any(|wait| *wait > 11.0), "no jitter at all");
    sim.stop().await?;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_refusal_before_the_first_answer_ends_the_worker_with_the_error() {
    let memory = Memory::new("jobs");
    memory.trouble(Some(Trouble::Refusal));
    let sim = Simulation::start(&memory, idle(&memory));
    sim.pass(1.0).await;
    assert!(sim.run.is_finished());
    let error = sim.stop().await.map_err(|error| error.to_string());
    assert!(error.as_ref().is_err_and(|error| error.contains("permission denied")), "{error:?}");
}

/// Queues are migrated and rights corrected while agents run.
#[tokio::test(start_paused = true)]
async fn a_worker_that_had_answers_survives_four_refusals_and_ends_with_the_fifth() -> Result<()> {
    let memory = Memory::new("jobs");
    let sim = Simulation::start(&memory, idle(&memory));
    sim.pass(4.0).await;
    memory.trouble(Some(Trouble::Refusal));
    sim.pass(100.0).await;
    assert_eq!(sim.control.stats().consecutive_errors, 4);
    memory.trouble(None);
    sim.pass(40.0).await;
    assert!(!sim.run.is_finished() && sim.control.stats().is_healthy());
    memory.trouble(Some(Trouble::Refusal));
    sim.pass(400.0).await;
    assert!(sim.run.is_finished());
    assert!(sim.stop().await.is_err());
    Ok(())
}

/// A laptop whose network is down for an hour does not throw its results away: a lease stays valid until another agent takes the row.
#[tokio::test(start_paused = true)]
async fn a_finished_result_outlives_a_long_outage() -> Result<()> {
    let memory = Memory::new("jobs");
    let key = memory.add("any", json!(null));
    let broken = memory.clone();
    let worker = idle(&memory).otherwise(move |_: Job<Value>| {
        broken.trouble(Some(Trouble::Passing));
        async { Ok(json!({"kept": true})) }
    });
    let sim = Simulation::start(&memory, worker);
    sim.pass(3600.0).await;
    memory.trouble(None);
    sim.pass(11.0).await;
    assert_eq!((memory.state(&key), memory.result(&key)), (Some(State::Done), Some(json!({"kept": true}))));
    assert_eq!(sim.stop().await?.completed, 1);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_claim_whose_answer_was_lost_gets_its_items_with_the_next_try() -> Result<()> {
    let memory = Memory::new("jobs");
    let keys = [memory.add("any", json!(null)), memory.add("any", json!(null))];
    memory.trouble(Some(Trouble::AnswerLost));
    let sim = Simulation::start(&memory, idle(&memory).backoff(exact()));
    sim.pass(1.0).await;
    assert_eq!(memory.count(State::Running), 2);
    memory.trouble(None);
    sim.pass(1.5).await;
    assert_eq!(keys.map(|key| memory.state(&key)), [Some(State::Done); 2], "not only after their lease has lapsed");
    sim.stop().await?;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_completion_whose_answer_was_lost_is_repeated_and_counts_once() -> Result<()> {
    let memory = Memory::new("jobs");
    memory.add("any", json!(null));
    let broken = memory.clone();
    let worker = idle(&memory).otherwise(move |_: Job<Value>| {
        broken.trouble(Some(Trouble::AnswerLost));
        async { Ok(()) }
    });
    let sim = Simulation::start(&memory, worker);
    sim.pass(1.0).await;
    assert_eq!(memory.count(State::Done), 1);
    memory.trouble(None);
    sim.pass(10.0).await;
    let tally = sim.stop().await?;
    assert_eq!((tally.completed, tally.lost), (1, 0));
    Ok(())
}
