//! What happens to held items: limits of time and number, cancelling, stopping.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use anyhow::Result;
use gleaner::Failure;
use gleaner::worker::testing::{Memory, State, Trouble};
use gleaner::worker::{Job, Tally};
use serde_json::{Value, json};

use crate::simulation::{Simulation, idle};

fn fill(memory: &Memory, n: usize) -> Vec<String> {
    (0..n).map(|_| memory.add("any", json!(null))).collect()
}

/// Decrements the counter when it is dropped.
struct Alive(Arc<AtomicUsize>);

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[tokio::test(start_paused = true)]
async fn a_handler_beyond_its_time_limit_is_ended_and_its_item_failed() -> Result<()> {
    let memory = Memory::new("jobs");
    let keys = ["slow", "slower", "other"].map(|kind| memory.add(kind, json!(null)));
    let alive = Arc::new(AtomicUsize::new(0));
    let seen = alive.clone();
    let worker = idle(&memory)
        .time_limit("slow", Duration::from_secs(10))
        .time_limit("slower", Duration::from_secs(100))
        .time_limit_default(Duration::from_secs(1000))
        .otherwise(move |_: Job<Value>| {
            alive.fetch_add(1, Ordering::Relaxed);
            let alive = Alive(alive.clone());
            async move {
                std::future::pending::<()>().await;
                drop(alive);
                Ok(())
            }
        });
    let sim = Simulation::start(&memory, worker);
    for (at, left) in [(9.0, 3), (2.0, 2), (90.0, 1)] {
        sim.pass(at).await;
        sim.control.pause();
        assert_eq!(seen.load(Ordering::Relaxed), left);
    }
    sim.pass(900.0).await;
    let failed: Vec<f64> = sim.acts("fail").iter().map(|fail| fail.at.as_secs_f64().round()).collect();
    assert_eq!(failed, [10.0, 100.0, 1000.0]);
    assert_eq!(keys.map(|key| memory.attempts(&key)), [Some(1); 3]);
    assert!(sim.control.stats().errors.iter().all(|error| error.category == "Timeout"));
    sim.stop().await?;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_cancel_reaches_the_running_handler() -> Result<()> {
    let memory = Memory::new("jobs");
    let key = fill(&memory, 1).remove(0);
    let ended = Arc::new(AtomicUsize::new(0));
    let seen = ended.clone();
    let sim = Simulation::start(
        &memory,
        idle(&memory).otherwise(move |job: Job<Value>| {
            let ended = ended.clone();
            async move {
                job.ended().await;
                assert!(job.context.is_ended());
                ended.fetch_add(1, Ordering::Relaxed);
                Ok(())
            }
        }),
    );
    sim.pass(30.0).await;
    memory.call_off(&key);
    sim.pass(6.0).await;
    assert_eq!(seen.load(Ordering::Relaxed), 1);
    assert_eq!(memory.state(&key), Some(State::Cancelled));
    assert_eq!(sim.stop().await?, Tally { lost: 1, ..Tally::default() });
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_panics_before_it_waits_for_anything_is_a_failed_item() -> Result<()> {
    let memory = Memory::new("jobs");
    fill(&memory, 3);
    let sim = Simulation::start(
        &memory,
        idle(&memory).take(3).otherwise(|job: Job<Value>| {
            assert!(job.key() != "2", "not this one");
            async { Ok(()) }
        }),
    );
    sim.pass(1.0).await;
    let stats = sim.control.stats();
    assert_eq!((stats.errors[0].category.as_str(), stats.errors[0].message.as_str()), ("Panic", "not this one"));
    assert_eq!(sim.stop().await?, Tally { completed: 2, failed: 1, ..Tally::default() });
    Ok(())
}

/// Each of two handlers blocks its thread until the other has begun.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn handlers_that_block_their_thread_run_beside_each_other() -> Result<()> {
    let memory = Memory::new("jobs");
    fill(&memory, 2);
    let begun = Arc::new((Mutex::new(0), Condvar::new()));
    let worker = idle(&memory).take(2).otherwise(move |_: Job<Value>| {
        let begun = begun.clone();
        async move {
            let mut count = begun.0.lock().map_err(|_| Failure::new("poisoned"))?;
            *count += 1;
            begun.1.notify_all();
            let waited = begun.1.wait_timeout_while(count, Duration::from_secs(30), |count| *count < 2);
            let alone = waited.is_ok_and(|(_, waited)| waited.timed_out());
            if alone { Err(Failure::new("the other did not begin")) } else { Ok(()) }
        }
    });
    let sim = Simulation::start(&memory, worker);
    assert_eq!(sim.run.await??, Tally { completed: 2, ..Tally::default() });
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn results_are_written_in_batches() -> Result<()> {
    let memory = Memory::new("jobs");
    fill(&memory, 100);
    memory.latency(Duration::from_millis(50));
    let sim = Simulation::start(&memory, idle(&memory).concurrency(10).prefetch(90));
    sim.pass(60.0).await;
    let writes = sim.acts("complete");
    assert!(writes.len() <= 20 && writes.iter().map(|write| write.keys.len()).sum::<usize>() == 100, "{} writes", writes.len());
    assert_eq!(sim.stop().await?.completed, 100);
    Ok(())
}

/// A worker that cannot write results does not claim either: this limits what a crash can lose.
#[tokio::test(start_paused = true)]
async fn results_that_cannot_be_written_stop_the_claiming() -> Result<()> {
    let memory = Memory::new("jobs");
    fill(&memory, 1000);
    memory.slow("complete", Duration::from_secs(500));
    let sim = Simulation::start(&memory, idle(&memory).concurrency(2).unwritten(5));
    sim.pass(490.0).await;
    assert_eq!(memory.count(State::Running), 2 + 5, "two have no room for their results, five wait to be written");
    memory.slow("complete", Duration::ZERO);
    sim.pass(60.0).await;
    assert_eq!(sim.stop().await?.completed, 1000);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn prefetched_items_begin_when_a_handler_is_free() -> Result<()> {
    let memory = Memory::new("jobs");
    fill(&memory, 6);
    let worker = idle(&memory).concurrency(2).prefetch(4).otherwise(|_: Job<Value>| async {
        tokio::time::sleep(Duration::from_secs(10)).await;
        Ok(())
    });
    let sim = Simulation::start(&memory, worker);
    sim.pass(1.0).await;
    assert_eq!((memory.count(State::Running), sim.control.stats().running.len(), sim.looks().len()), (6, 2, 1));
    sim.pass(30.0).await;
    assert_eq!(memory.count(State::Done), 6);
    sim.stop().await?;
    Ok(())
}

/// Prefetching is for handlers that take time. For those that do not, it costs no additional statement.
#[tokio::test(start_paused = true)]
async fn quick_handlers_with_a_backlog_are_claimed_for_as_begun() -> Result<()> {
    let memory = Memory::new("jobs");
    fill(&memory, 1000);
    memory.latency(Duration::from_millis(5));
    let sim = Simulation::start(&memory, idle(&memory).concurrency(10).prefetch(40));
    sim.pass(60.0).await;
    let started: usize = sim.acts("start").iter().map(|start| start.keys.len()).sum();
    assert!(started <= 50, "{started} were claimed ahead, and then said to have begun");
    assert_eq!(sim.stop().await?.completed, 1000);
    Ok(())
}

/// Handlers that finish within the grace period are completed; the others are released, and no row loses an attempt.
#[tokio::test(start_paused = true)]
async fn a_stopping_worker_finishes_or_gives_back_within_its_grace() -> Result<()> {
    let memory = Memory::new("jobs");
    let keys: Vec<String> = [5, 50].iter().map(|seconds| memory.add("any", json!(seconds))).collect();
    let worker = idle(&memory).grace(Duration::from_secs(20)).handle("any", |job: Job<u64>| async move {
        tokio::time::sleep(Duration::from_secs(job.payload)).await;
        Ok(())
    });
    let sim = Simulation::start(&memory, worker);
    sim.pass(1.0).await;
    let begun = tokio::time::Instant::now();
    assert_eq!(sim.stop().await?, Tally { completed: 1, released: 1, ..Tally::default() });
    assert!(begun.elapsed() <= Duration::from_secs(21), "{:?}", begun.elapsed());
    assert_eq!((memory.state(&keys[1]), memory.attempts(&keys[1])), (Some(State::Ready), Some(0)));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_worker_without_a_network_stops_all_the_same() -> Result<()> {
    let memory = Memory::new("jobs");
    fill(&memory, 2);
    let broken = memory.clone();
    let worker = idle(&memory).concurrency(2).grace(Duration::from_secs(20)).otherwise(move |job: Job<Value>| {
        broken.trouble(Some(Trouble::Passing));
        async move { if job.key() == "1" { Ok(()) } else { std::future::pending().await } }
    });
    let sim = Simulation::start(&memory, worker);
    sim.pass(10.0).await;
    let begun = tokio::time::Instant::now();
    assert_eq!(sim.stop().await?, Tally::default());
    assert!(begun.elapsed() <= Duration::from_secs(25), "{:?}", begun.elapsed());
    Ok(())
}

/// A crash then counts against started items, and not against those that only waited.
#[tokio::test(start_paused = true)]
async fn a_prefetched_item_is_said_to_have_begun_before_its_handler_runs() -> Result<()> {
    let memory = Memory::new("jobs");
    fill(&memory, 30);
    let (seen, begun) = (memory.clone(), Arc::new(AtomicUsize::new(0)));
    let counted = begun.clone();
    let worker = idle(&memory).concurrency(10).prefetch(20).otherwise(move |job: Job<Value>| {
        let said = seen.statements().iter().any(|statement| statement.act == "start" && statement.keys.iter().any(|key| key == job.key()));
        begun.fetch_add(usize::from(said), Ordering::Relaxed);
        async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            Ok(())
        }
    });
    let sim = Simulation::start(&memory, worker);
    sim.pass(0.5).await;
    let said: usize = sim.acts("start").iter().map(|start| start.keys.len()).sum();
    assert_eq!((said, memory.count(State::Running)), (10, 30), "those that wait have not begun");
    sim.pass(10.0).await;
    assert_eq!(counted.load(Ordering::Relaxed), 30);
    assert!(sim.acts("start").len() <= 6, "{} statements", sim.acts("start").len());
    sim.stop().await?;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn without_prefetch_the_claim_itself_says_that_work_begins() -> Result<()> {
    let memory = Memory::new("jobs");
    fill(&memory, 10);
    let sim = Simulation::start(&memory, idle(&memory));
    sim.pass(10.0).await;
    assert_eq!((memory.count(State::Done), sim.acts("start")), (10, vec![]));
    sim.stop().await?;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_prefetched_item_that_was_taken_meanwhile_is_not_begun() -> Result<()> {
    let memory = Memory::new("jobs");
    let keys = fill(&memory, 2);
    let runs = Arc::new(AtomicUsize::new(0));
    let seen = runs.clone();
    let worker = idle(&memory).concurrency(1).prefetch(1).otherwise(move |_: Job<Value>| {
        runs.fetch_add(1, Ordering::Relaxed);
        async {
            tokio::time::sleep(Duration::from_secs(10)).await;
            Ok(())
        }
    });
    let sim = Simulation::start(&memory, worker);
    sim.pass(1.0).await;
    memory.steal(&keys[1]);
    sim.pass(60.0).await;
    assert_eq!((seen.load(Ordering::Relaxed), memory.state(&keys[1])), (1, Some(State::Running)));
    sim.stop().await?;
    Ok(())
}

/// As when its future loses a `select!`: leases of rows that are no longer worked on are not renewed, and others can claim them in time.
#[tokio::test(start_paused = true)]
async fn a_worker_that_is_dropped_leaves_nothing_running() -> Result<()> {
    let memory = Memory::new("jobs");
    fill(&memory, 2);
    memory.lasting(Duration::from_secs(60));
    let alive = Arc::new(AtomicUsize::new(0));
    let (seen, token) = (alive.clone(), Arc::new(()));
    let handlers = token.clone();
    let worker = idle(&memory).otherwise(move |_: Job<Value>| {
        let _handlers = &handlers;
        alive.fetch_add(1, Ordering::Relaxed);
        let alive = Alive(alive.clone());
        async move {
            std::future::pending::<()>().await;
            drop(alive);
            Ok(())
        }
    });
    let sim = Simulation::start(&memory, worker);
    sim.pass(100.0).await;
    assert!(seen.load(Ordering::Relaxed) == 2 && !sim.acts("progress").is_empty());
    sim.run.abort();
    sim.pass(1.0).await;
    let statements = memory.statements().len();
    sim.pass(1000.0).await;
    assert_eq!((seen.load(Ordering::Relaxed), memory.statements().len()), (0, statements));
    assert!(sim.control.stats().running.is_empty());
    assert_eq!(Arc::strong_count(&token), 1, "a task has its handlers yet");
    Ok(())
}
