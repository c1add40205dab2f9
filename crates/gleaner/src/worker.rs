//! A runtime around the acts: claim, run, complete, and release unfinished rows on shutdown.
//!
//! Notifications wake it, and an adaptive poll finds what they miss. Completions are written in batches of whatever is finished.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use gleaner::{Direct, Job};
//!
//! #[derive(serde::Deserialize)]
//! struct Letter {
//!     to: String,
//! }
//!
//! let worker = Direct::new("postgres://localhost/shop", 4)?
//!     .worker("jobs")
//!     .await?
//!     .concurrency(8)
//!     .handle("letter", |job: Job<Letter>| async move { Ok(format!("Dear {}", job.payload.to)) })
//!     .build();
//! worker.run().await?;
//! # Ok(())
//! # }
//! ```
//!
//! A type that implements [`Payload`](crate::Payload) names its kind itself: [`Builder::handle_job`].
//!
//! # Layout
//!
//! - [`Builder`] configures a worker; [`Control`] is the handle on it while it runs.
//! - [`Worker::run`] stops on Ctrl-C and SIGTERM, [`Worker::run_until`] when the caller asks for it.
//! - `run` is what the parts of one run share; `poll_loop` claims, paced by `pace`; `lane` runs items, through [`Middleware`] and
//!   `handler`; `prefetch` has those that wait for a free handler; `burst` detects when handlers that end together have ended.
//! - `held` are the rows a worker holds; `renewal` extends their leases, `suspend` detects sleep, `completer` writes results.
//! - [`testing`] runs handlers without a database, and whole workers against a queue in memory.
//!
//! # When claims fail
//!
//! Temporary errors (no connection, a restart, a serialization failure, 429, 5xx) are retried with delays of 2 to 10 s, without
//! limit; finished results are kept meanwhile. Other errors end a worker that never got an answer. A worker that did get answers
//! makes four more attempts after a refusal, at the longest poll interval, and then ends with the error: never silently. A
//! rejected login (a wrong password, no such database or role) ends it at the start too. Later it is retried at the same
//! interval, without limit, and logged each time.

mod builder;
mod burst;
mod completer;
mod context;
mod control;
mod handler;
mod held;
mod lane;
mod limit;
mod middleware;
mod pace;
mod poll_loop;
mod prefetch;
mod renewal;
mod run;
mod settings;
mod signals;
mod suspend;
pub mod testing;

use std::ops::AddAssign;
use std::pin::pin;
use std::sync::Arc;

use tokio::sync::watch;

pub use self::builder::Builder;
pub use self::context::{Completed, Context, Job};
pub use self::control::{Control, Mishap, Running, Stats};
use self::handler::Handlers;
pub use self::handler::{IntoReply, Replied, Reply};
pub use self::middleware::{Middleware, Next};
pub use self::pace::{Backoff, Poll, Wake};
use self::run::Run;
use self::settings::Settings;
use self::signals::Signals;
use crate::error::{Error, Result};
use crate::transport::Transport;

/// The counts of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Items that are done.
    pub completed: u64,
    /// Items that failed.
    pub failed: u64,
    /// Items whose lease was lost before their result was written.
    pub lost: u64,
    /// Items that were given back unfinished.
    pub released: u64,
}

impl AddAssign for Tally {
    fn add_assign(&mut self, more: Self) {
        self.completed += more.completed;
        self.failed += more.failed;
        self.lost += more.lost;
        self.released += more.released;
    }
}

/// A worker on one queue.
#[derive(Debug)]
pub struct Worker {
    transport: Arc<dyn Transport>,
    settings: Settings,
    handlers: Handlers,
    control: Control,
}

impl Worker {
    /// Starts to build a worker that connects to its queue through `transport`.
    pub fn builder(transport: Arc<dyn Transport>) -> Builder {
        Builder::new(transport)
    }

    /// The handle on this worker.
    pub fn control(&self) -> &Control {
        &self.control
    }

    /// Works until Ctrl-C or SIGTERM, or until the worker ends by itself ([`Builder::until_empty`], [`Builder::take`]).
    ///
    /// The first signal stops the claiming: running handlers have the [`grace`](Builder::grace) period to finish, then their
    /// items are released. A second signal ends the grace period. From the first call on these signals no longer end the process
    /// by themselves. A program that handles them itself calls [`Self::run_until`].
    pub async fn run(self) -> Result<Tally> {
        let mut signals = Signals::listen()?;
        let (stop, stopped) = watch::channel(false);
        let run = self.prepare()?;
        let mut running = pin!(poll_loop::run(run.clone(), stopped));
        tokio::select! {
            ended = &mut running => return ended,
            () = signals.next() => {
                tracing::info!(queue = run.queue(), grace = ?run.settings.grace, "stopping; a second signal ends the grace");
                stop.send_replace(true);
            }
        }
        tokio::select! {
            ended = &mut running => return ended,
            () = signals.next() => run.hurry.send_replace(true),
        };
        running.await
    }

    /// Works until `stop` turns true, or until the worker ends by itself. A handler that fails or panics fails its item and not
    /// the worker. Running handlers have the [`grace`](Builder::grace) period to finish, then their items are released.
    pub async fn run_until(self, stop: watch::Receiver<bool>) -> Result<Tally> {
        poll_loop::run(self.prepare()?, stop).await
    }

    fn prepare(self) -> Result<Arc<Run>> {
        if self.handlers.is_empty() {
            return Err(Error::Other(format!(
                "the worker of {} has no handler: give it one for a kind, or otherwise",
                self.transport.queue()
            )));
        }
        Ok(Run::new(self.transport, self.settings, self.handlers, self.control))
    }
}
