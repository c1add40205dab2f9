//! How a worker reaches its queue: directly, or through a server. The worker does not know which.
//!
//! An [`Endpoint`] is where queues are: a database, or a server in front of one. It opens one [`Transport`] per queue, whose
//! methods are the acts of [`crate::queue`], and which may [`Transport::listen`] for new work.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;

use crate::connect::{Pool, checkout};
use crate::error::Result;
use crate::notify::Listener;
use crate::queue::{Acts, Answer, Claim, Claimed, Completion, Failure, Held, Progress, Queue, Waiting};
use crate::worker::{Builder, Worker};

/// The acts of one queue, whatever the connection. Every act of a holder can be repeated: the lease makes that safe.
#[async_trait]
pub trait Transport: Debug + Send + Sync {
    /// The queue's name.
    fn queue(&self) -> &str;

    /// See [`Queue::claim`].
    async fn claim(&self, claim: &Claim) -> Result<Claimed>;
    /// See [`Queue::start`].
    async fn start(&self, held: &[Held]) -> Result<Vec<Answer>>;
    /// The answer, and how long the lease lasts from now.
    async fn progress(&self, held: &Held, progress: &Progress) -> Result<(Answer, Duration)>;
    /// See [`Queue::complete`].
    async fn complete(&self, done: &[Completion]) -> Result<Vec<Answer>>;
    /// See [`Queue::fail`].
    async fn fail(&self, held: &Held, failure: &Failure) -> Result<Answer>;
    /// See [`Queue::release`].
    async fn release(&self, held: &[Held]) -> Result<Vec<Answer>>;
    /// See [`Queue::snooze`].
    async fn snooze(&self, held: &Held, by: Duration) -> Result<Answer>;
    /// See [`Queue::cancel`].
    async fn cancel(&self, keys: &[&str], reason: Option<&str>) -> Result<Vec<Answer>>;
    /// See [`Queue::explain`].
    async fn explain(&self, key: &str, owner: Option<&str>) -> Result<Option<Value>>;
    /// Which of these rows are certainly no longer held. Extends no lease and takes no lock.
    async fn ended(&self, held: &[Held]) -> Result<Vec<Held>>;

    /// How many rows a claim like this one could take now; `None` if they cannot be counted at a bounded cost.
    async fn waiting(&self, claim: &Claim) -> Result<Option<Waiting>> {
        let _ = claim;
        Ok(None)
    }

    /// Whether claims here may name an owner.
    fn has_owners(&self) -> bool {
        true
    }

    /// Whether claims here may name kinds.
    fn has_kinds(&self) -> bool {
        true
    }

    /// The acts for the caller's own transaction, if this transport connects to a database and not to a server.
    fn acts(&self) -> Option<&Acts> {
        None
    }

    /// Starts to receive notifications; `None` if there are none, and only the poll finds work.
    fn listen(&self) -> Option<Box<dyn Push>>;
}

/// Notifications that there may be new work. They are only hints: the worker claims to find out.
#[async_trait]
pub trait Push: Debug + Send {
    /// Whether notifications arrive now.
    fn is_connected(&self) -> bool;
    /// Whether every new row causes a notification now, however it was written. If not, the worker polls often.
    fn is_certain(&self) -> bool {
        self.is_connected()
    }
    /// Discards notifications received so far. Call it before claiming, or a row that arrives in between goes unnoticed until the poll.
    fn mark(&mut self);
    /// Waits for a notification since [`Self::mark`]. A new connection counts as one: rows may have arrived before it.
    async fn notified(&mut self);
}

/// A database or server that has queues.
#[async_trait]
pub trait Endpoint: Debug + Send + Sync {
    /// The address without a password, for people to read.
    fn describe(&self) -> String;
    /// The names of the queues here.
    async fn queues(&self) -> Result<Vec<String>>;
    /// Opens the queue of that name.
    async fn open(&self, queue: &str) -> Result<Arc<dyn Transport>>;
}

/// A database with a direct connection. It opens queues and workers.
#[derive(Debug, Clone)]
pub struct Direct {
    url: String,
    pool: Pool,
}

impl Direct {
    /// The database at `url`, with a pool of this many connections. Does not connect yet.
    pub fn new(url: &str, connections: usize) -> Result<Self> {
        Ok(Self { url: url.to_owned(), pool: crate::pool(url, connections)? })
    }

    /// The queue `name`, for its acts: enqueue, cancel, explain and the others.
    pub async fn queue(&self, name: &str) -> Result<Queue> {
        Queue::open(&self.pool, name).await
    }

    /// Starts to build a worker on the queue `name`, which listens for notifications.
    pub async fn worker(&self, name: &str) -> Result<Builder> {
        Ok(Worker::builder(self.open(name).await?))
    }

    /// The pool, for queues and for the caller's own queries.
    pub fn pool(&self) -> &Pool {
        &self.pool
    }

    /// The URL, with its password.
    pub fn url(&self) -> &str {
        &self.url
    }
}

#[async_trait]
impl Endpoint for Direct {
    fn describe(&self) -> String {
        crate::connect::describe(&self.url)
    }

    async fn queues(&self) -> Result<Vec<String>> {
        let client = checkout(&self.pool).await?;
        Ok(crate::registry::list(&**client).await?.into_iter().map(|entry| entry.name).collect())
    }

    async fn open(&self, queue: &str) -> Result<Arc<dyn Transport>> {
        Ok(Arc::new(DirectQueue { queue: self.queue(queue).await?, url: Some(self.url.clone()) }))
    }
}

/// A queue in a database with a direct connection. Without a URL it does not listen, and polls.
#[derive(Debug, Clone)]
pub struct DirectQueue {
    queue: Queue,
    url: Option<String>,
}

impl DirectQueue {
    /// Connects to `queue` through its pool, and listens for notifications at `url`.
    pub fn new(queue: Queue, url: Option<&str>) -> Self {
        Self { queue, url: url.map(str::to_owned) }
    }
}

#[async_trait]
impl Transport for DirectQueue {
    fn queue(&self) -> &str {
        self.queue.name()
    }

    async fn claim(&self, claim: &Claim) -> Result<Claimed> {
        self.queue.claim(claim).await
    }

    async fn start(&self, held: &[Held]) -> Result<Vec<Answer>> {
        self.queue.start(held).await
    }

    async fn progress(&self, held: &Held, progress: &Progress) -> Result<(Answer, Duration)> {
        self.queue.progress(held, progress).await
    }

    async fn complete(&self, done: &[Completion]) -> Result<Vec<Answer>> {
        self.queue.complete(done).await
    }

    async fn fail(&self, held: &Held, failure: &Failure) -> Result<Answer> {
        self.queue.fail(held, failure).await
    }

    async fn release(&self, held: &[Held]) -> Result<Vec<Answer>> {
        self.queue.release(held).await
    }

    async fn snooze(&self, held: &Held, by: Duration) -> Result<Answer> {
        self.queue.snooze(held, by).await
    }

    async fn cancel(&self, keys: &[&str], reason: Option<&str>) -> Result<Vec<Answer>> {
        self.queue.cancel(keys, reason).await
    }

    async fn explain(&self, key: &str, owner: Option<&str>) -> Result<Option<Value>> {
        self.queue.explain(key, owner).await
    }

    async fn ended(&self, held: &[Held]) -> Result<Vec<Held>> {
        self.queue.ended(held).await
    }

    async fn waiting(&self, claim: &Claim) -> Result<Option<Waiting>> {
        self.queue.waiting(claim).await.map(Some)
    }

    fn has_owners(&self) -> bool {
        self.queue.acts().has_owners()
    }

    fn has_kinds(&self) -> bool {
        self.queue.acts().has_kinds()
    }

    fn acts(&self) -> Option<&Acts> {
        Some(self.queue.acts())
    }

    fn listen(&self) -> Option<Box<dyn Push>> {
        let listener = Listener::new(self.url.as_deref()?, self.queue.name());
        Some(Box::new(DirectPush { listener, triggered: self.queue.acts().is_notified() }))
    }
}

/// The notifications of a database.
#[derive(Debug)]
struct DirectPush {
    listener: Listener,
    /// A trigger notifies of every row. Otherwise only the library, the server and programs that choose to notify do.
    triggered: bool,
}

#[async_trait]
impl Push for DirectPush {
    fn is_connected(&self) -> bool {
        self.listener.is_connected()
    }

    fn is_certain(&self) -> bool {
        self.triggered && self.is_connected()
    }

    fn mark(&mut self) {
        self.listener.mark();
    }

    async fn notified(&mut self) {
        self.listener.notified().await;
    }
}
