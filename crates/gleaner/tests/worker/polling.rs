//! The adaptive poll, its documented times (docs/reference/systems/runs.md), and how notifications change it.

use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::Result;
use gleaner::worker::testing::{Memory, State};
use gleaner::worker::{Poll, Wake};
use serde_json::json;

use crate::simulation::{Simulation, exact, gaps, idle, near};

/// Seconds between polls, as docs/reference/systems/runs.md gives them.
const TABLE: [f64; 8] = [5.0, 5.0, 7.5, 11.25, 16.875, 25.3125, 30.0, 30.0];

#[tokio::test(start_paused = true)]
async fn without_push_the_poll_follows_the_documented_table() -> Result<()> {
    let memory = Memory::new("jobs");
    let sim = Simulation::start(&memory, idle(&memory));
    sim.pass(200.0).await;
    near(&gaps(&sim.looks()), &TABLE);
    sim.stop().await?;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn while_push_works_the_poll_goes_from_30_to_60_seconds() -> Result<()> {
    let memory = Memory::pushing("jobs");
    let sim = Simulation::start(&memory, idle(&memory));
    sim.pass(400.0).await;
    near(&gaps(&sim.looks()), &[30.0, 30.0, 45.0, 60.0, 60.0]);
    sim.stop().await?;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn work_resets_the_poll() -> Result<()> {
    let memory = Memory::new("jobs");
    let sim = Simulation::start(&memory, idle(&memory));
    sim.pass(120.0).await;
    memory.add("any", json!(null));
    sim.pass(60.0).await;
    assert_eq!(memory.count(State::Done), 1);
    let looks = sim.looks();
    let found = looks.iter().position(|at| *at > 120.0).unwrap_or_default();
    // The claim that finds the row, one at once for more, and then the intervals from the beginning.
    near(&gaps(&looks[found..]), &[0.0, 5.0, 5.0, 7.5]);
    sim.stop().await?;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn jitter_lengthens_waits_within_its_bound_and_never_shortens_them() -> Result<()> {
    let mut all = Vec::new();
    for seed in 0..50 {
        let memory = Memory::new("jobs");
        let sim = Simulation::start(&memory, idle(&memory).poll(Poll { jitter: 0.2, seed: Some(seed), ..exact() }));
        sim.pass(240.0).await;
        let waits = gaps(&sim.looks());
        for (wait, documented) in waits.iter().zip(TABLE) {
            assert!(*wait >= documented - 0.01 && *wait <= documented * 1.2 + 0.01, "seed {seed}: {waits:?}");
            all.push(wait / documented);
        }
        sim.stop().await?;
    }
    let spread = |from: f64, to: f64| all.iter().filter(|part| (from..to).contains(*part)).count();
    assert!(spread(1.0, 1.05) > 20 && spread(1.15, 1.21) > 20, "the waits are not spread");
    Ok(())
}

/// The limit on database load: two statements a minute with notifications, and the intervals of the table without them.
#[tokio::test(start_paused = true)]
async fn an_idle_worker_asks_at_most_twice_a_minute_when_it_has_settled() -> Result<()> {
    for (memory, first_minute) in [(Memory::pushing("jobs"), 2), (Memory::new("jobs"), 6)] {
        let sim = Simulation::start(&memory, idle(&memory).poll(Poll { jitter: Poll::default().jitter, seed: Some(3), ..exact() }));
        sim.pass(3600.0).await;
        let asked: Vec<f64> = memory.statements().iter().map(|statement| statement.at.as_secs_f64()).collect();
        let in_minute = |from: f64| asked.iter().filter(|at| (from..from + 60.0).contains(*at)).count();
        assert!(in_minute(0.0) <= first_minute, "{} in the first minute", in_minute(0.0));
        for from in (120..3540).map(f64::from) {
            let count = in_minute(from);
            assert!((0..=2).contains(&count), "{count} statements in the minute from {from} s");
        }
        assert!(asked.len() > 50, "the poll has stopped");
        sim.stop().await?;
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_push_is_answered_at_once() -> Result<()> {
    let memory = Memory::pushing("jobs");
    let sim = Simulation::start(&memory, idle(&memory));
    sim.pass(100.0).await;
    let key = memory.add("any", json!(null));
    sim.pass(0.01).await;
    assert_eq!(memory.state(&key), Some(State::Done));
    sim.stop().await?;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_lost_push_costs_time_never_work() -> Result<()> {
    let memory = Memory::pushing("jobs");
    let sim = Simulation::start(&memory, idle(&memory));
    sim.pass(200.0).await;
    let key = memory.add_silently("any", json!(null), Duration::ZERO);
    sim.pass(61.0).await;
    assert_eq!(memory.state(&key), Some(State::Done));
    sim.stop().await?;
    Ok(())
}

/// The long interval is for workers that receive notifications: one that loses its connection does not wait until its end.
#[tokio::test(start_paused = true)]
async fn a_worker_that_loses_its_push_polls_quicker_at_once() -> Result<()> {
    let memory = Memory::pushing("jobs");
    let sim = Simulation::start(&memory, idle(&memory));
    sim.pass(202.0).await;
    memory.connect(false);
    sim.pass(100.0).await;
    let looks: Vec<f64> = sim.looks().into_iter().filter(|at| *at > 202.0).collect();
    assert!(looks[0] < 208.0, "{looks:?}");
    near(&gaps(&looks), &[5.0, 5.0, 7.5, 11.25]);
    assert!(!sim.control.stats().push);
    memory.connect(true);
    sim.pass(0.01).await;
    assert!(sim.looks().iter().any(|at| *at >= 302.0), "what happened while it was cut off is unknown: it looks at once");
    sim.stop().await?;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn poll_only_listens_to_nothing() -> Result<()> {
    let memory = Memory::pushing("jobs");
    let sim = Simulation::start(&memory, idle(&memory).wake(Wake::PollOnly));
    sim.pass(100.0).await;
    memory.add("any", json!(null));
    sim.pass(0.5).await;
    assert_eq!(memory.count(State::Done), 0);
    near(&gaps(&sim.looks()), &TABLE[..5]);
    sim.pass(30.0).await;
    assert_eq!(memory.count(State::Done), 1);
    sim.stop().await?;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn push_only_does_not_poll() -> Result<()> {
    let memory = Memory::pushing("jobs");
    let sim = Simulation::start(&memory, idle(&memory).wake(Wake::PushOnly));
    sim.pass(7200.0).await;
    assert_eq!(sim.looks().len(), 1);
    memory.add("any", json!(null));
    sim.pass(0.01).await;
    assert_eq!(memory.count(State::Done), 1);
    sim.stop().await?;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn push_only_polls_after_a_new_connection_and_when_a_row_becomes_due() -> Result<()> {
    let memory = Memory::pushing("jobs");
    let sim = Simulation::start(&memory, idle(&memory).wake(Wake::PushOnly));
    sim.pass(10.0).await;
    memory.connect(false);
    let missed = memory.add("any", json!(null));
    sim.pass(1000.0).await;
    assert_eq!(memory.state(&missed), Some(State::Ready));
    memory.connect(true);
    sim.pass(0.01).await;
    assert_eq!(memory.state(&missed), Some(State::Done));
    let later = memory.add_later("any", json!(null), Duration::from_secs(900));
    sim.pass(899.0).await;
    assert_eq!(memory.state(&later), Some(State::Ready));
    sim.pass(1.5).await;
    assert_eq!(memory.state(&later), Some(State::Done));
    sim.stop().await?;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn push_only_where_nothing_is_pushed_is_an_error() {
    let memory = Memory::new("jobs");
    let sim = Simulation::start(&memory, idle(&memory).wake(Wake::PushOnly));
    let error = sim.stop().await.map_err(|error| error.to_string());
    assert!(error.as_ref().is_err_and(|error| error.contains("has no notifications")), "{error:?}");
}

#[tokio::test(start_paused = true)]
async fn what_is_scheduled_is_begun_when_it_is_due_and_not_at_the_next_poll() -> Result<()> {
    let memory = Memory::new("jobs");
    let key = memory.add_later("any", json!(null), Duration::from_millis(103_700));
    let sim = Simulation::start(&memory, idle(&memory).poll(exact()));
    sim.pass(103.6).await;
    assert_eq!(memory.state(&key), Some(State::Ready));
    sim.pass(0.2).await;
    assert_eq!(memory.state(&key), Some(State::Done));
    sim.stop().await?;
    Ok(())
}

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, text: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(text)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// The log for an operator who asks why it is slow: `RUST_LOG=gleaner::worker=debug`.
#[tokio::test(start_paused = true)]
async fn each_poll_is_one_event_with_what_it_found_and_the_next_interval() -> Result<()> {
    // Whether an event is enabled is cached for the whole process, and may be decided on another test's thread. So that thread
    // needs a subscriber that wants it, too.
    let _ = tracing::subscriber::set_global_default(
        tracing_subscriber::fmt().with_max_level(tracing::Level::DEBUG).with_writer(std::io::sink).finish(),
    );
    let log = Log::default();
    let written = log.clone();
    let subscriber =
        tracing_subscriber::fmt().with_max_level(tracing::Level::DEBUG).with_ansi(false).with_writer(move || written.clone()).finish();
    let _logging = tracing::subscriber::set_default(subscriber);
    let memory = Memory::new("jobs");
    memory.add("any", json!(null));
    let sim = Simulation::start(&memory, idle(&memory));
    sim.pass(20.0).await;
    let looks = sim.looks().len();
    sim.stop().await?;
    let log = String::from_utf8(log.0.lock().unwrap().clone())?;
    let polls: Vec<&str> = log.lines().filter(|line| line.contains("DEBUG") && line.contains("polled")).collect();
    assert_eq!(polls.len(), looks, "{log}");
    assert!(polls[0].contains("found=1 next_ms=0") && polls[3].contains("found=0 next_ms=7500"), "{log}");
    assert!(polls.iter().all(|poll| poll.contains("queue=\"jobs\"")), "{log}");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn without_a_certain_notification_a_worker_polls_every_second() -> Result<()> {
    let poll = || Poll { jitter: 0.0, seed: Some(1), ..Poll::default() };
    let silent = Memory::new("jobs");
    let sim = Simulation::start(&silent, idle(&silent).poll(poll()));
    sim.pass(10.5).await;
    near(&gaps(&sim.looks()), &[1.0; 10]);
    sim.stop().await?;

    let pushing = Memory::pushing("jobs");
    let sim = Simulation::start(&pushing, idle(&pushing).poll(poll()));
    sim.pass(100.0).await;
    near(&gaps(&sim.looks()), &[30.0, 30.0]);
    pushing.connect(false);
    let before = sim.looks().len();
    sim.pass(20.0).await;
    assert!(sim.looks().len() - before >= 14, "cut off, it looks every second: {:?}", sim.looks());
    sim.stop().await?;
    Ok(())
}
