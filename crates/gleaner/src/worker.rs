//! A runtime around the acts: claim, run, complete, and leave nothing behind on the way out.
//!
//! Push wakes it, an adaptive poll keeps it correct. Completions are written in batches, as large as they come.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use gleaner::transport::{Direct, Place};
//! use gleaner::worker::{Job, Worker};
//!
//! #[derive(serde::Deserialize)]
//! struct Letter {
//!     to: String,
//! }
//!
//! let place = Direct::new("postgres://localhost/shop", 4)?;
//! let worker = Worker::builder(place.open("jobs").await?)
//!     .concurrency(8)
//!     .handle("letter", |job: Job<Letter>| async move { Ok(format!("Dear {}", job.payload.to)) })
//!     .build();
//! let (_stop, stopped) = tokio::sync::watch::channel(false);
//! worker.run_until(stopped).await?;
//! # Ok(())
//! # }
//! ```
//!
//! # Layout
//!
//! - [`Builder`] puts a worker together; [`Control`] is the handle on it while it runs.
//! - `run` is the loop, paced by `pace`; `runner` runs one item, through [`Middleware`] and `handler`.
//! - `held` are the rows a worker has; `keeper` shows life for them, `suspend` notices sleep, `completer` writes results.
//! - [`testing`] runs handlers without a database, and whole workers against a queue in memory.
//!
//! # When claims fail
//!
//! Errors that may pass (no connection, a restart, a lost race, 429, 5xx) are waited out, 2 to 10 s each, for as long as it takes;
//! finished results are kept meanwhile. Other errors end a worker that never had an answer. One that had goes on for
//! four refusals more, as rarely as it polls, and then ends with the error: never silently. Not being let in at all (a wrong
//! password, no such database or role) ends it at the start too; later it is tried again as rarely, without an end, and told each time.

mod builder;
mod completer;
mod context;
mod control;
mod handler;
mod held;
mod keeper;
mod limit;
mod middleware;
mod options;
mod pace;
mod run;
mod runner;
mod shift;
mod starter;
mod suspend;
pub mod testing;

use std::ops::AddAssign;
use std::sync::Arc;

use serde_json::Value;
use tokio::sync::watch;

pub use self::builder::Builder;
pub use self::context::{Completed, Context, Job};
pub use self::control::{Control, Mishap, Running, Stats};
use self::handler::Handlers;
pub use self::handler::{IntoReply, Replied, Reply};
pub use self::middleware::{Middleware, Next};
pub use self::options::Options;
use self::options::Settings;
pub use self::pace::{Backoff, Poll, Wake};
use self::shift::Shift;
use crate::error::{Error, Result};
use crate::queue::{Failure, Item, Queue};
use crate::transport::{DirectQueue, Transport};

/// What a run did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    pub completed: u64,
    pub failed: u64,
    pub lost: u64,
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

/// Works one queue.
#[derive(Debug)]
pub struct Worker {
    transport: Arc<dyn Transport>,
    settings: Settings,
    handlers: Handlers,
    control: Control,
}

impl Worker {
    /// Puts a worker together that reaches its queue by `transport`.
    pub fn builder(transport: Arc<dyn Transport>) -> Builder {
        Builder::new(transport)
    }

    /// A worker on `queue`; `url` is where it listens for bells.
    pub fn new(queue: Queue, url: Option<&str>, options: Options) -> Self {
        Self::over(Arc::new(DirectQueue::new(queue, url)), options)
    }

    /// A worker that reaches its queue by `transport`.
    pub fn over(transport: Arc<dyn Transport>, options: Options) -> Self {
        let control = Control::new(options.concurrency);
        Self { transport, settings: options.into(), handlers: Handlers::default(), control }
    }

    /// The handle on this worker.
    pub fn control(&self) -> &Control {
        &self.control
    }

    /// Runs `handler` for every claimed item until `stop` turns true.
    ///
    /// A handler that fails or panics is a failed item, not a dead worker. Transient errors are waited out.
    pub async fn run<H, F>(mut self, handler: H, stop: watch::Receiver<bool>) -> Result<Tally>
    where
        H: Fn(Item, Context) -> F + Send + Sync + 'static,
        F: Future<Output = std::result::Result<Option<Value>, Failure>> + Send + 'static,
    {
        self.handlers.otherwise = Some(handler::plain(handler));
        self.run_until(stop).await
    }

    /// Runs the handlers of the kinds they were built for until `stop` turns true.
    pub async fn run_until(self, stop: watch::Receiver<bool>) -> Result<Tally> {
        if self.handlers.is_empty() {
            return Err(Error::Other(format!(
                "the worker of {} has no handler: give it one for a kind, or otherwise",
                self.transport.queue()
            )));
        }
        let (shift, to_write) = Shift::new(self.transport, self.settings, self.handlers, self.control);
        run::run(shift, to_write, stop).await
    }
}
