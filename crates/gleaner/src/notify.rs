//! Notifications that wake waiting workers, sent outside every writer's transaction.
//!
//! A notification inside the enqueue would prevent writers from sharing commits. A separate connection sends it right after the
//! commit; notifications of the next few milliseconds are sent together. A lost notification costs time, never work: a worker
//! that listens also polls.

use std::collections::{BTreeSet, HashMap};
use std::future::poll_fn;
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use tokio_postgres::{AsyncMessage, NoTls, types::Type};

use crate::connect;
use crate::error::{Error, Result};

/// The channel of every notification; the payload is the queue's name.
pub const CHANNEL: &str = "gleaner";

/// The time between two sends. Far less than a claim takes, and rare enough that many writers do not notice the load.
const APART: Duration = Duration::from_millis(5);

/// Sent without waiting for the disk: if a crash loses a notification, the poll finds the row.
const SEND: &str = "select pg_notify('gleaner', q), set_config('synchronous_commit', 'off', true) from unnest($1) q";

/// Waits between attempts to listen. The second is for a rejected login, which only a person can fix.
const LONGEST_WAIT: Duration = Duration::from_secs(10);
const WHILE_REFUSED: Duration = Duration::from_secs(30);

/// Notifies the listeners of queues. Cheap to clone; stops with its last clone.
#[derive(Debug, Clone)]
pub struct Notifier {
    queues: mpsc::UnboundedSender<String>,
}

impl Notifier {
    /// Sends through a connection of `pool`.
    pub fn new(pool: connect::Pool) -> Self {
        let (queues, mut to_notify) = mpsc::unbounded_channel::<String>();
        tokio::spawn(async move {
            while let Some(first) = to_notify.recv().await {
                let next = Instant::now() + APART;
                let mut queues = BTreeSet::from([first]);
                while let Ok(more) = to_notify.try_recv() {
                    queues.insert(more);
                }
                let queues: Vec<String> = queues.into_iter().collect();
                let sent = async {
                    let client = connect::checkout(&pool).await?;
                    client.query_typed(SEND, &[(&queues, Type::TEXT_ARRAY)]).await.map_err(Error::doing("notify"))
                };
                if let Err(error) = sent.await {
                    tracing::debug!(%error, "could not notify; the poll will find the work");
                }
                tokio::time::sleep_until(next).await;
            }
        });
        Self { queues }
    }

    /// Notifies listeners that `queue` has new work. Call it after the commit.
    pub fn notify(&self, queue: &str) {
        // The sending task ends only when the last notifier is dropped.
        let _ = self.queues.send(queue.to_owned());
    }
}

/// Receives the notifications of one queue, on a connection of its own.
#[derive(Debug)]
pub struct Listener {
    queue: String,
    shared: SharedListener,
    seen: u64,
}

impl Listener {
    /// Listens for `queue`. Reconnects by itself, and counts each new connection as a notification: rows may have arrived in between.
    pub fn new(url: &str, queue: &str) -> Self {
        Self { queue: queue.to_owned(), shared: SharedListener::new(url), seen: 0 }
    }

    /// Whether notifications arrive now.
    pub fn is_connected(&self) -> bool {
        self.shared.is_connected()
    }

    /// Discards notifications received so far. Call it before claiming, or a row that arrives in between goes unnoticed until the poll.
    pub fn mark(&mut self) {
        self.seen = self.shared.count(&self.queue);
    }

    /// Waits for a notification since [`Self::mark`].
    pub async fn notified(&mut self) {
        self.seen = self.shared.notified(&self.queue, self.seen).await;
    }
}

/// Receives the notifications of every queue, on one connection.
#[derive(Debug)]
pub struct SharedListener {
    counts: watch::Sender<Counts>,
    connected: watch::Receiver<bool>,
    task: tokio::task::JoinHandle<()>,
}

/// How many notifications each queue received; a new connection counts as one for every queue.
#[derive(Debug, Default)]
struct Counts {
    all: u64,
    by_queue: HashMap<String, u64>,
}

impl Counts {
    fn of(&self, queue: &str) -> u64 {
        self.all + self.by_queue.get(queue).copied().unwrap_or(0)
    }
}

impl SharedListener {
    /// Listens on a separate connection, which it reopens whenever it is lost.
    pub fn new(url: &str) -> Self {
        let counts = watch::Sender::new(Counts::default());
        let (up, connected) = watch::channel(false);
        let (url, arrived) = (url.to_owned(), counts.clone());
        let task = tokio::spawn(async move {
            let mut wait = Duration::from_millis(200);
            loop {
                let listened = listen(&url, &arrived, &up).await;
                // The connection worked until now, so the next attempt does not count as another failure in a row.
                if up.send_replace(false) {
                    wait = Duration::from_millis(200);
                }
                if let Err(error) = listened {
                    tracing::debug!(%error, "cannot listen; polling meanwhile");
                    if matches!(error, Error::Refused { .. }) {
                        wait = WHILE_REFUSED;
                    }
                }
                tokio::time::sleep(wait).await;
                wait = (wait * 2).min(LONGEST_WAIT);
            }
        });
        Self { counts, connected, task }
    }

    /// Whether notifications arrive now.
    pub fn is_connected(&self) -> bool {
        *self.connected.borrow()
    }

    /// How many notifications `queue` has received so far. Read it before claiming.
    pub fn count(&self, queue: &str) -> u64 {
        self.counts.borrow().of(queue)
    }

    /// Waits until `queue` has received more notifications than `seen`, and returns how many.
    pub async fn notified(&self, queue: &str, seen: u64) -> u64 {
        let mut counts = self.counts.subscribe();
        // The sender lives as long as `self`.
        counts.wait_for(|counts| counts.of(queue) > seen).await.map_or(seen, |counts| counts.of(queue))
    }

    /// Waits for the next notification of any queue. Misses one that arrives between two calls: for callers that also poll.
    pub async fn any(&self) {
        // The sender lives as long as `self`.
        let _ = self.counts.subscribe().changed().await;
    }

    /// Counts a notification that came another way: from an act of this process, or a change seen in the log.
    pub fn record(&self, queue: &str) {
        record(&self.counts, queue);
    }
}

fn record(counts: &watch::Sender<Counts>, queue: &str) {
    counts.send_modify(|counts| *counts.by_queue.entry(queue.to_owned()).or_default() += 1);
}

impl Drop for SharedListener {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn listen(url: &str, counts: &watch::Sender<Counts>, up: &watch::Sender<bool>) -> Result<()> {
    let config = connect::parse(url)?;
    // The driver delivers notifications to the task that polls the connection, so this task drives it.
    macro_rules! run {
        ($tls:expr) => {{
            let (client, mut connection) = config.connect($tls).await.map_err(|e| Error::unconnected(&e))?;
            let mut listening = std::pin::pin!(client.batch_execute("listen gleaner"));
            let mut ready = false;
            loop {
                tokio::select! {
                    result = &mut listening, if !ready => {
                        result.map_err(Error::doing("listen"))?;
                        ready = true;
                        up.send_replace(true);
                        counts.send_modify(|counts| counts.all += 1);
                    }
                    message = poll_fn(|cx| connection.poll_message(cx)) => match message {
                        Some(Ok(AsyncMessage::Notification(n))) if n.channel() == CHANNEL => record(counts, n.payload()),
                        Some(Ok(_)) => {}
                        Some(Err(e)) => return Err(Error::doing("listen")(e)),
                        None => return Ok(()),
                    }
                }
            }
        }};
    }
    if connect::is_local(&config) { run!(NoTls) } else { run!(connect::tls(url)?) }
}
