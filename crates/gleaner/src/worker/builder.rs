//! Configures a worker.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::Worker;
use super::context::Job;
use super::control::Control;
use super::handler::{Handlers, IntoReply, typed};
use super::middleware::Middleware;
use super::pace::{Backoff, Poll, Wake};
use super::settings::Settings;
use super::suspend::WallClock;
use crate::queue::{Failure, Payload};
use crate::transport::Transport;

/// Created by [`Worker::builder`].
#[must_use]
#[derive(Debug)]
pub struct Builder {
    transport: Arc<dyn Transport>,
    settings: Settings,
    handlers: Handlers,
    concurrency: usize,
    control: Option<Control>,
}

impl Builder {
    pub(super) fn new(transport: Arc<dyn Transport>) -> Self {
        Self { transport, settings: Settings::default(), handlers: Handlers::default(), concurrency: 4, control: None }
    }

    /// The name stored in the database as the holder. By default a new one for each process.
    pub fn agent(mut self, agent: impl Into<String>) -> Self {
        self.settings.agent = agent.into();
        self
    }

    /// The owner whose work comes first.
    pub fn owner(mut self, owner: Option<String>) -> Self {
        self.settings.owner = owner;
        self
    }

    /// The number of handlers that run at once, four by default. Ignored if there is a [`Self::control`], which has its own number.
    pub fn concurrency(mut self, most: usize) -> Self {
        self.concurrency = most;
        self
    }

    /// Items claimed beyond what can run at once, none by default. They are released when the worker stops or is paused.
    pub fn prefetch(mut self, more: usize) -> Self {
        self.settings.prefetch = more;
        self
    }

    /// The most items of one claim; as many as can run by default.
    pub fn batch(mut self, most: usize) -> Self {
        self.settings.batch = most.max(1);
        self
    }

    /// Also claims items that become due within this time. Their handler is called at once, and waits for the rest itself.
    pub fn early(mut self, early: Duration) -> Self {
        self.settings.early = early;
        self
    }

    /// How long a lease lasts without a sign of life, instead of the declared hold. A crashed worker's items come back after it.
    pub fn hold(mut self, hold: Duration) -> Self {
        self.settings.hold = Some(hold);
        self
    }

    /// Finished results that may wait to be written, five thousand by default: enough for handlers to continue while a thousand
    /// are written. At this limit no handler frees its slot for the next item, so nothing more is claimed.
    pub fn unwritten(mut self, most: usize) -> Self {
        self.settings.unwritten = most.max(1);
        self
    }

    /// How long running handlers may take to finish during shutdown, 30 s by default. Then their items are released, and no
    /// attempt is counted.
    pub fn grace(mut self, grace: Duration) -> Self {
        self.settings.grace = grace;
        self
    }

    /// How often running items are checked for cancellation, all in one statement; 5 s by default.
    pub fn watch(mut self, every: Duration) -> Self {
        self.settings.watch = every;
        self
    }

    /// How often it polls for work.
    pub fn poll(mut self, poll: Poll) -> Self {
        self.settings.poll = poll;
        self
    }

    /// Delays after temporary errors.
    pub fn backoff(mut self, backoff: Backoff) -> Self {
        self.settings.backoff = backoff;
        self
    }

    /// What makes it claim: notifications, the poll, or both, which is the default.
    pub fn wake(mut self, wake: Wake) -> Self {
        self.settings.wake = wake;
        self
    }

    /// Pause, concurrency and statistics, shared by all workers that use the same [`Control`].
    pub fn control(mut self, control: Control) -> Self {
        self.control = Some(control);
        self
    }

    /// Ends when no row is due and no handler runs.
    pub fn until_empty(mut self) -> Self {
        self.settings.until_empty = true;
        self
    }

    /// Ends after this many items.
    pub fn take(mut self, items: usize) -> Self {
        self.settings.take = Some(items);
        self
    }

    /// How long a handler of this kind may run. A handler that takes longer is dropped, and its item fails with the category `Timeout`.
    pub fn time_limit(mut self, kind: &str, limit: Duration) -> Self {
        self.handlers.time_limits.insert(kind.to_owned(), limit);
        self
    }

    /// How long handlers of all other kinds may run. Without it the only limit is the queue's deadline.
    pub fn time_limit_default(mut self, limit: Duration) -> Self {
        self.handlers.time_limit = Some(limit);
        self
    }

    /// The handler for items of `kind`. Only kinds with a handler are claimed, unless there is [`Self::otherwise`].
    ///
    /// A payload that is not a `P` fails its item for good, with the category `ValidationError`.
    pub fn handle<P, R, H, F>(mut self, kind: &str, handler: H) -> Self
    where
        P: DeserializeOwned + Send + 'static,
        R: IntoReply,
        H: Fn(Job<P>) -> F + Send + Sync + 'static,
        F: Future<Output = Result<R, Failure>> + Send + 'static,
    {
        self.handlers.by_kind.insert(kind.to_owned(), typed(handler));
        self
    }

    /// The handler for items with a payload of type `P`: [`Self::handle`] for the kind that the type names.
    pub fn handle_job<P, R, H, F>(self, handler: H) -> Self
    where
        P: Payload,
        R: IntoReply,
        H: Fn(Job<P>) -> F + Send + Sync + 'static,
        F: Future<Output = Result<R, Failure>> + Send + 'static,
    {
        self.handle(P::KIND, handler)
    }

    /// The handler for items of any other kind, and for items without a kind.
    pub fn otherwise<R, H, F>(mut self, handler: H) -> Self
    where
        R: IntoReply,
        H: Fn(Job<Value>) -> F + Send + Sync + 'static,
        F: Future<Output = Result<R, Failure>> + Send + 'static,
    {
        self.handlers.otherwise = Some(typed(handler));
        self
    }

    /// Limits claims to these kinds.
    pub fn kinds<S: Into<String>>(mut self, kinds: impl IntoIterator<Item = S>) -> Self {
        self.settings.kinds = Some(kinds.into_iter().map(Into::into).collect());
        self
    }

    /// Wraps every handler. The first one added is the outermost; the time limit applies to all of them together.
    pub fn layer(mut self, middleware: impl Middleware) -> Self {
        Arc::make_mut(&mut self.handlers.layers).push(Arc::new(middleware));
        self
    }

    /// Another wall clock, for tests: when it runs ahead of the monotonic clock, the machine has slept.
    pub fn wall_clock(mut self, clock: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        self.settings.wall = WallClock(Arc::new(clock));
        self
    }

    /// The worker, ready to [`run`](Worker::run).
    pub fn build(self) -> Worker {
        Worker {
            transport: self.transport,
            settings: self.settings,
            handlers: self.handlers,
            control: self.control.unwrap_or_else(|| Control::new(self.concurrency)),
        }
    }
}
