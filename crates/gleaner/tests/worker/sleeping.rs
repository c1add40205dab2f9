//! Laptops sleep. Rows held before may be held by another agent after, so the worker checks its leases before it sends any result.

use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use anyhow::Result;
use gleaner::worker::testing::{Memory, State};
use gleaner::worker::{Builder, Job, Tally};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::simulation::{Simulation, idle};

/// A worker whose handlers end when the gate opens, or when they are notified that their item is lost.
fn gated(memory: &Memory, gate: &Arc<Semaphore>) -> Builder {
    let gate = gate.clone();
    idle(memory).watch(Duration::from_secs(100_000)).otherwise(move |job: Job<Value>| {
        let gate = gate.clone();
        async move {
            tokio::select! { () = job.ended() => {}, _ = gate.acquire() => {} }
            Ok(json!({"by": "us"}))
        }
    })
}

/// Every waiting task wakes up late, as after SIGSTOP or in a virtual machine that was paused.
async fn stand_still(time: Duration) {
    tokio::time::advance(time).await;
}

#[tokio::test(start_paused = true)]
async fn after_a_sleep_leases_are_checked_before_any_result_is_sent() -> Result<()> {
    let (memory, gate) = (Memory::new("jobs"), Arc::new(Semaphore::new(0)));
    memory.lasting(Duration::from_secs(1_000_000));
    let (kept, lost) = (memory.add("any", json!(null)), memory.add("any", json!(null)));
    let sim = Simulation::start(&memory, gated(&memory, &gate));
    sim.pass(10.0).await;
    memory.steal(&lost);
    // The answer takes some time, and results wait for it.
    memory.slow("ended", Duration::from_secs(1));
    // Both results are ready at the moment of waking.
    gate.add_permits(2);
    stand_still(Duration::from_secs(3600)).await;
    sim.pass(2.0).await;
    let after: Vec<_> = memory.statements().into_iter().filter(|statement| statement.at > Duration::from_secs(60)).collect();
    let order: Vec<&str> = after.iter().map(|statement| statement.act).filter(|act| ["ended", "complete"].contains(act)).collect();
    assert_eq!(order, ["ended", "complete"], "{after:?}");
    assert_eq!(sim.acts("complete")[0].keys, [kept.as_str()], "the lost result is not sent");
    assert_eq!((memory.state(&kept), memory.state(&lost)), (Some(State::Done), Some(State::Running)));
    assert_eq!(sim.stop().await?, Tally { completed: 1, lost: 1, ..Tally::default() });
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_handler_learns_on_waking_that_its_item_was_taken() -> Result<()> {
    let (memory, gate) = (Memory::new("jobs"), Arc::new(Semaphore::new(0)));
    memory.lasting(Duration::from_secs(1_000_000));
    let lost = memory.add("any", json!(null));
    let sim = Simulation::start(&memory, gated(&memory, &gate));
    sim.pass(10.0).await;
    memory.steal(&lost);
    sim.pass(30.0).await;
    assert_eq!(sim.control.stats().running.len(), 1, "it does not know yet");
    stand_still(Duration::from_secs(600)).await;
    sim.pass(1.0).await;
    assert_eq!((sim.control.stats().running.len(), sim.control.stats().lost), (0, 1));
    assert_eq!(sim.acts("complete"), []);
    sim.stop().await?;
    Ok(())
}

/// A suspended machine's monotonic clock stands still; only the wall clock shows how long it was.
#[tokio::test(start_paused = true)]
async fn a_suspended_machine_checks_its_leases_renews_them_and_polls() -> Result<()> {
    let (memory, gate) = (Memory::new("jobs"), Arc::new(Semaphore::new(0)));
    memory.lasting(Duration::from_secs(1_000_000));
    memory.add("any", json!(null));
    let wall = Arc::new(Mutex::new(SystemTime::now()));
    let read = wall.clone();
    let sim = Simulation::start(&memory, gated(&memory, &gate).wall_clock(move || *read.lock().unwrap()));
    sim.pass(120.0).await;
    let before = sim.looks().len();
    assert_eq!((sim.acts("ended").len(), sim.acts("progress").len()), (0, 0));
    *wall.lock().unwrap() += Duration::from_secs(8 * 3600);
    sim.pass(2.1).await;
    assert_eq!((sim.acts("ended").len(), sim.looks().len()), (1, before + 1));
    sim.pass(1.0).await;
    assert_eq!(sim.acts("progress").len(), 1, "a lease that is still ours is extended at once");
    gate.add_permits(1);
    assert_eq!(sim.stop().await?.completed, 1);
    Ok(())
}
