//! The door bell: wakes those who wait, outside every writer's transaction.
//!
//! A notification inside the enqueue would cost writers their shared commits. One connection rings instead, at once for the
//! first and then at most every 25 ms. A lost bell costs time, never work: whoever listens also polls.

use std::collections::{BTreeSet, HashMap};
use std::future::poll_fn;
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio_postgres::{AsyncMessage, NoTls, types::Type};

use crate::connect;
use crate::error::{Error, Result};

/// The channel every bell rings on; the payload is the queue's name.
pub const CHANNEL: &str = "gleaner";

const AT_MOST_EVERY: Duration = Duration::from_millis(25);

/// Between tries to listen; longer while we are not let in, which only a person changes.
const LONGEST_WAIT: Duration = Duration::from_secs(10);
const WHILE_REFUSED: Duration = Duration::from_secs(30);

/// Rings for queues. Cheap to clone; stops with its last clone.
#[derive(Debug, Clone)]
pub struct Bell {
    pulls: mpsc::UnboundedSender<String>,
}

impl Bell {
    /// A bell that rings through `pool`.
    pub fn new(pool: connect::Pool) -> Self {
        let (pulls, mut pulled) = mpsc::unbounded_channel::<String>();
        tokio::spawn(async move {
            while let Some(first) = pulled.recv().await {
                let mut queues = BTreeSet::from([first]);
                while let Ok(more) = pulled.try_recv() {
                    queues.insert(more);
                }
                let queues: Vec<String> = queues.into_iter().collect();
                let rung = async {
                    let client = connect::checkout(&pool).await?;
                    client
                        .query_typed("select pg_notify('gleaner', q) from unnest($1) q", &[(&queues, Type::TEXT_ARRAY)])
                        .await
                        .map_err(Error::doing("ring"))
                };
                if let Err(error) = rung.await {
                    tracing::debug!(%error, "the bell did not ring; the poll will find the work");
                }
                tokio::time::sleep(AT_MOST_EVERY).await;
            }
        });
        Self { pulls }
    }

    /// Tells listeners that `queue` has new work. Call it after the commit.
    pub fn ring(&self, queue: &str) {
        // The ringing task ends only when the last bell is gone.
        let _ = self.pulls.send(queue.to_owned());
    }
}

/// Hears bells for one queue, on a connection of its own.
#[derive(Debug)]
pub struct Listener {
    queue: String,
    ears: Ears,
    heard: u64,
}

impl Listener {
    /// Listens for `queue`; reconnects by itself, and counts each connection as a ring: what happened in between is unknown.
    pub fn new(url: &str, queue: &str) -> Self {
        Self { queue: queue.to_owned(), ears: Ears::new(url), heard: 0 }
    }

    /// Whether bells can be heard now.
    pub fn is_connected(&self) -> bool {
        self.ears.is_connected()
    }

    /// Forgets rings so far. Call it before looking, or a row that arrives in between goes unnoticed until the poll.
    pub fn mark(&mut self) {
        self.heard = self.ears.rings(&self.queue);
    }

    /// Waits for a ring since [`Self::mark`].
    pub async fn rung(&mut self) {
        self.heard = self.ears.rung(&self.queue, self.heard).await;
    }
}

/// Hears bells for every queue, on one connection.
#[derive(Debug)]
pub struct Ears {
    rings: watch::Sender<Rings>,
    connected: watch::Receiver<bool>,
    task: tokio::task::JoinHandle<()>,
}

/// How often each queue's bell was heard; a new connection counts as a ring of all.
#[derive(Debug, Default)]
struct Rings {
    all: u64,
    by_queue: HashMap<String, u64>,
}

impl Rings {
    fn of(&self, queue: &str) -> u64 {
        self.all + self.by_queue.get(queue).copied().unwrap_or(0)
    }
}

impl Ears {
    pub fn new(url: &str) -> Self {
        let rings = watch::Sender::new(Rings::default());
        let (up, connected) = watch::channel(false);
        let (url, rung) = (url.to_owned(), rings.clone());
        let task = tokio::spawn(async move {
            let mut wait = Duration::from_millis(200);
            loop {
                let listened = listen(&url, &rung, &up).await;
                // It worked until just now: the next try is not one of a row of failures.
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
        Self { rings, connected, task }
    }

    /// Whether bells can be heard now.
    pub fn is_connected(&self) -> bool {
        *self.connected.borrow()
    }

    /// How often the bell of `queue` was heard so far. Read it before looking for work.
    pub fn rings(&self, queue: &str) -> u64 {
        self.rings.borrow().of(queue)
    }

    /// Waits until it was heard more often than `heard`; how often that is.
    pub async fn rung(&self, queue: &str, heard: u64) -> u64 {
        let mut rings = self.rings.subscribe();
        // The sender lives as long as we do.
        rings.wait_for(|rings| rings.of(queue) > heard).await.map_or(heard, |rings| rings.of(queue))
    }

    /// Waits for the next ring of any queue. One between two calls goes unheard: for those who also look by themselves.
    pub async fn any(&self) {
        // The sender lives as long as we do.
        let _ = self.rings.subscribe().changed().await;
    }

    /// Counts a ring that came another way: an act of this process, a change seen in the log.
    pub fn hear(&self, queue: &str) {
        heard(&self.rings, queue);
    }
}

fn heard(rings: &watch::Sender<Rings>, queue: &str) {
    rings.send_modify(|rings| *rings.by_queue.entry(queue.to_owned()).or_default() += 1);
}

impl Drop for Ears {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn listen(url: &str, rings: &watch::Sender<Rings>, up: &watch::Sender<bool>) -> Result<()> {
    let config = connect::parse(url)?;
    // The driver hands notifications to whoever polls the connection, so this task drives it.
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
                        rings.send_modify(|rings| rings.all += 1);
                    }
                    message = poll_fn(|cx| connection.poll_message(cx)) => match message {
                        Some(Ok(AsyncMessage::Notification(n))) if n.channel() == CHANNEL => heard(rings, n.payload()),
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
