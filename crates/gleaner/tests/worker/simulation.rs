//! A worker on a queue in memory.

use std::time::Duration;

use anyhow::{Context as _, Result};
use gleaner::worker::testing::{Memory, Statement};
use gleaner::worker::{Builder, Control, Job, Poll, Tally, Worker};
use serde_json::Value;
use tokio::sync::watch;
use tokio::task::JoinHandle;

pub(crate) struct Simulation {
    pub memory: Memory,
    pub control: Control,
    stop: watch::Sender<bool>,
    pub run: JoinHandle<gleaner::Result<Tally>>,
}

/// Reproducible intervals, without jitter.
pub(crate) fn exact() -> Poll {
    Poll { jitter: 0.0, seed: Some(1), unnotified: Duration::MAX, ..Poll::default() }
}

/// A worker whose handlers do nothing, with exact poll intervals.
pub(crate) fn idle(memory: &Memory) -> Builder {
    Worker::builder(memory.transport()).poll(exact()).otherwise(|_: Job<Value>| async { Ok(()) })
}

impl Simulation {
    pub(crate) fn start(memory: &Memory, worker: Builder) -> Self {
        let worker = worker.build();
        let (stop, stopped) = watch::channel(false);
        Self { memory: memory.clone(), control: worker.control().clone(), stop, run: tokio::spawn(worker.run_until(stopped)) }
    }

    /// Lets time pass while all tasks only wait.
    pub(crate) async fn pass(&self, seconds: f64) {
        tokio::time::sleep(Duration::from_secs_f64(seconds)).await;
    }

    pub(crate) async fn stop(self) -> Result<Tally> {
        self.stop.send_replace(true);
        Ok(tokio::time::timeout(Duration::from_secs(3600), self.run).await.context("the worker does not end")???)
    }

    /// The time of each claim, in seconds.
    pub(crate) fn looks(&self) -> Vec<f64> {
        self.acts("claim").iter().map(|look| look.at.as_secs_f64()).collect()
    }

    pub(crate) fn acts(&self, act: &str) -> Vec<Statement> {
        self.memory.statements().into_iter().filter(|statement| statement.act == act).collect()
    }
}

/// The differences between the times.
pub(crate) fn gaps(times: &[f64]) -> Vec<f64> {
    times.windows(2).map(|pair| pair[1] - pair[0]).collect()
}

#[track_caller]
pub(crate) fn near(seen: &[f64], expected: &[f64]) {
    let fits = seen.len() >= expected.len() && seen.iter().zip(expected).all(|(seen, expected)| (seen - expected).abs() < 0.02);
    assert!(fits, "{seen:?} is not {expected:?}");
}
