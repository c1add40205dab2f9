//! The signals that ask a program to stop.

use crate::error::Result;

/// Ctrl-C, and SIGTERM on systems that have it, from the moment this exists. They no longer end the process by themselves.
#[derive(Debug)]
pub(super) struct Signals {
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
}

impl Signals {
    #[cfg(unix)]
    pub(super) fn listen() -> Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        let failed = |error: std::io::Error| crate::Error::Other(format!("listen for Ctrl-C and SIGTERM: {error}"));
        Ok(Self {
            interrupt: signal(SignalKind::interrupt()).map_err(failed)?,
            terminate: signal(SignalKind::terminate()).map_err(failed)?,
        })
    }

    /// Waits for the next of them.
    #[cfg(unix)]
    pub(super) async fn next(&mut self) {
        tokio::select! { _ = self.interrupt.recv() => {}, _ = self.terminate.recv() => {} }
    }

    #[cfg(not(unix))]
    pub(super) fn listen() -> Result<Self> {
        Ok(Self {})
    }

    /// Waits for the next Ctrl-C.
    #[cfg(not(unix))]
    pub(super) async fn next(&mut self) {
        if let Err(error) = tokio::signal::ctrl_c().await {
            tracing::warn!(%error, "could not listen for Ctrl-C");
            std::future::pending::<()>().await;
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::process::Command;
    use std::time::Duration;

    use serde_json::{Value, json};

    use super::*;
    use crate::Failure;
    use crate::worker::testing::{Memory, State};
    use crate::worker::{Job, Tally, Worker};

    fn send(signal: &str) {
        let sent = Command::new("kill").args(["-s", signal, &std::process::id().to_string()]).status();
        assert!(sent.is_ok_and(|status| status.success()), "send {signal}");
    }

    async fn until(memory: &Memory, key: &str, state: State) {
        let reached = async {
            while memory.state(key) != Some(state) {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(30), reached).await.unwrap_or_else(|_| panic!("item {key} is not {state:?}"));
    }

    #[tokio::test]
    async fn run_stops_on_ctrl_c_and_on_sigterm_and_a_second_signal_ends_the_grace() {
        // Without a listener here, a worker that does not listen would let the signal end the tests.
        let _ours = Signals::listen().expect("listen");
        for signal in ["INT", "TERM"] {
            let memory = Memory::new("jobs");
            let (runs, waits) = (memory.add("any", json!({})), memory.add("any", json!({})));
            let worker = Worker::builder(memory.transport())
                .concurrency(1)
                .prefetch(1)
                .grace(Duration::from_secs(3600))
                .otherwise(|_: Job<Value>| std::future::pending::<std::result::Result<(), Failure>>())
                .build();
            let running = tokio::spawn(worker.run());
            until(&memory, &waits, State::Running).await;
            send(signal);
            // Items that have not begun are released at once, running ones have the grace period.
            until(&memory, &waits, State::Ready).await;
            assert_eq!(memory.state(&runs), Some(State::Running));
            send(signal);
            let ended = tokio::time::timeout(Duration::from_secs(30), running).await.expect("it ends before its grace is over");
            assert_eq!(ended.expect("no panic").expect("no error"), Tally { released: 2, ..Tally::default() });
            assert_eq!(memory.state(&runs), Some(State::Ready));
        }
    }
}
