//! How a worker reaches its queue: directly, or over somebody's wire. The worker does not know which.
//!
//! A [`Place`] is where queues are: a database, or a server in front of one. It opens one [`Transport`] per queue, whose
//! methods are the acts of [`crate::queue`], and which may [`Transport::listen`] for new work.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;

use crate::bell::Listener;
use crate::connect::{Pool, checkout};
use crate::error::Result;
use crate::queue::{Acts, Answer, Claim, Claimed, Failure, Queue, Waiting};

/// The acts of one queue, however they get there. Every act of a holder can be repeated: the lease makes it safe.
#[async_trait]
pub trait Transport: Debug + Send + Sync {
    /// The queue's name.
    fn queue(&self) -> &str;

    async fn claim(&self, claim: &Claim) -> Result<Claimed>;
    async fn start(&self, held: &[(&str, i64)]) -> Result<Vec<Answer>>;
    /// The answer, and how long the lease lasts from now.
    async fn progress(
        &self,
        key: &str,
        lease: i64,
        stage: Option<&str>,
        percent: Option<f64>,
        partial: Option<&Value>,
    ) -> Result<(Answer, Duration)>;
    async fn complete(&self, done: &[(&str, i64, Option<Value>)]) -> Result<Vec<Answer>>;
    async fn fail(&self, key: &str, lease: i64, failure: &Failure) -> Result<Answer>;
    async fn release(&self, held: &[(&str, i64)]) -> Result<Vec<Answer>>;
    async fn snooze(&self, key: &str, lease: i64, by: Duration) -> Result<Answer>;
    async fn cancel(&self, keys: &[&str], reason: Option<&str>) -> Result<Vec<Answer>>;
    async fn explain(&self, key: &str, owner: Option<&str>) -> Result<Option<Value>>;
    /// Which of these are certainly no longer held. Shows no life and takes no lock.
    async fn ended(&self, held: &[(&str, i64)]) -> Result<Vec<(String, i64)>>;

    /// How much a claim like this one could find now; none where nobody can say at a bounded price.
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

    /// The acts for a transaction of the caller's, where there is a database at the other end and not a server.
    fn acts(&self) -> Option<&Acts> {
        None
    }

    /// Begins to hear of new work; none where nothing is pushed, and the poll has to do.
    fn listen(&self) -> Option<Box<dyn Push>>;
}

/// Hears that there may be new work. Says nothing certain: whoever hears it looks.
#[async_trait]
pub trait Push: Debug + Send {
    /// Whether it would be heard now.
    fn is_connected(&self) -> bool;
    /// Forgets what was heard so far. Call it before looking, or what arrives in between goes unnoticed until the poll.
    fn mark(&mut self);
    /// Waits for something since [`Self::mark`]. A new connection counts: what happened before it is unknown.
    async fn rung(&mut self);
}

/// Where queues are.
#[async_trait]
pub trait Place: Debug + Send + Sync {
    /// For people: the address, without a password.
    fn describe(&self) -> String;
    /// The names of the queues here.
    async fn queues(&self) -> Result<Vec<String>>;
    async fn open(&self, queue: &str) -> Result<Arc<dyn Transport>>;
}

/// A database, spoken to directly.
#[derive(Debug, Clone)]
pub struct Direct {
    url: String,
    pool: Pool,
}

impl Direct {
    pub fn new(url: &str, connections: usize) -> Result<Self> {
        Ok(Self { url: url.to_owned(), pool: crate::pool(url, connections)? })
    }

    pub fn pool(&self) -> &Pool {
        &self.pool
    }

    pub fn url(&self) -> &str {
        &self.url
    }
}

#[async_trait]
impl Place for Direct {
    fn describe(&self) -> String {
        crate::connect::describe(&self.url)
    }

    async fn queues(&self) -> Result<Vec<String>> {
        let client = checkout(&self.pool).await?;
        Ok(crate::registry::list(&**client).await?.into_iter().map(|entry| entry.name).collect())
    }

    async fn open(&self, queue: &str) -> Result<Arc<dyn Transport>> {
        // Whoever is not let in is told so here.
        drop(checkout(&self.pool).await?);
        Ok(Arc::new(DirectQueue { queue: Queue::open(&self.pool, queue).await?, url: Some(self.url.clone()) }))
    }
}

/// A queue by way of the database. Without a URL it hears nothing and polls.
#[derive(Debug, Clone)]
pub struct DirectQueue {
    queue: Queue,
    url: Option<String>,
}

impl DirectQueue {
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

    async fn start(&self, held: &[(&str, i64)]) -> Result<Vec<Answer>> {
        self.queue.start(held).await
    }

    async fn progress(
        &self,
        key: &str,
        lease: i64,
        stage: Option<&str>,
        percent: Option<f64>,
        partial: Option<&Value>,
    ) -> Result<(Answer, Duration)> {
        self.queue.progress(key, lease, stage, percent, partial).await
    }

    async fn complete(&self, done: &[(&str, i64, Option<Value>)]) -> Result<Vec<Answer>> {
        self.queue.complete(done).await
    }

    async fn fail(&self, key: &str, lease: i64, failure: &Failure) -> Result<Answer> {
        self.queue.fail(key, lease, failure).await
    }

    async fn release(&self, held: &[(&str, i64)]) -> Result<Vec<Answer>> {
        self.queue.release(held).await
    }

    async fn snooze(&self, key: &str, lease: i64, by: Duration) -> Result<Answer> {
        self.queue.snooze(key, lease, by).await
    }

    async fn cancel(&self, keys: &[&str], reason: Option<&str>) -> Result<Vec<Answer>> {
        self.queue.cancel(keys, reason).await
    }

    async fn explain(&self, key: &str, owner: Option<&str>) -> Result<Option<Value>> {
        self.queue.explain(key, owner).await
    }

    async fn ended(&self, held: &[(&str, i64)]) -> Result<Vec<(String, i64)>> {
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
        self.url.as_deref().map(|url| Box::new(Listener::new(url, self.queue.name())) as Box<dyn Push>)
    }
}

#[async_trait]
impl Push for Listener {
    fn is_connected(&self) -> bool {
        Listener::is_connected(self)
    }

    fn mark(&mut self) {
        Listener::mark(self);
    }

    async fn rung(&mut self) {
        Listener::rung(self).await;
    }
}
