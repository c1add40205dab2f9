//! Receives notifications of new work: one WebSocket for all queues of a place, in the protocol of Supabase Realtime.
//!
//! A notification is only a hint, and a lost one loses no work: a worker that gets one claims, and a worker that does not polls.
//! So every change of the connection or of a channel counts as a notification.
//!
//! - [`Socket`]: the handle that the queues share; [`Channel`]: the subscription of one queue; [`Hearing`]: a subscriber that
//!   waits.
//! - `talk`: the connection itself.

mod talk;

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use gleaner::transport::Push;
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};

use super::http::Http;
use super::shape::Shape;

/// The notification socket of one place. Connects when the first queue subscribes, and ends with the last clone.
#[derive(Debug, Clone)]
pub(super) struct Socket {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    http: Arc<Http>,
    heard: watch::Sender<Heard>,
    task: OnceLock<(mpsc::UnboundedSender<Channel>, tokio::task::AbortHandle)>,
}

impl Drop for Shared {
    fn drop(&mut self) {
        if let Some((_, task)) = self.task.get() {
            task.abort();
        }
    }
}

/// The subscription of one queue.
#[derive(Debug, Clone)]
pub(super) struct Channel {
    pub queue: String,
    pub topic: String,
    /// The `config` of its join message.
    pub config: Value,
    /// Whether the server confirms separately that it watches the table.
    pub watches: bool,
}

impl Channel {
    /// The notifications of a queue on our own server. Needs no right to any row, and no published table.
    pub(super) fn of_queue(queue: &str) -> Self {
        let config = json!({"postgres_changes": [], "gleaner": {"queue": queue}});
        Self { queue: queue.to_owned(), topic: format!("realtime:gleaner-{queue}"), config, watches: false }
    }

    /// Rows that become ready, watched in the table itself.
    pub(super) fn table(shape: &Shape) -> Self {
        let filter = format!("{}=eq.{}", shape.status, shape.ready);
        // Every claim and completion is an update too. The filter keeps those out.
        let binding = |event: &str| json!({"event": event, "schema": shape.schema, "table": shape.table, "filter": filter});
        let config = json!({"postgres_changes": [binding("INSERT"), binding("UPDATE")]});
        Self { queue: shape.queue.clone(), topic: format!("realtime:gleaner-{}", shape.queue), config, watches: true }
    }
}

/// Per queue: how many notifications there were, and whether one would be received now.
#[derive(Debug, Default)]
struct Heard {
    queues: HashMap<String, (u64, bool)>,
}

impl Heard {
    fn of(&self, queue: &str) -> (u64, bool) {
        self.queues.get(queue).copied().unwrap_or_default()
    }
}

impl Socket {
    pub(super) fn new(http: Arc<Http>) -> Self {
        Self { shared: Arc::new(Shared { http, heard: watch::Sender::new(Heard::default()), task: OnceLock::new() }) }
    }

    /// Subscribes to the queue from now on.
    pub(super) fn follow(&self, channel: Channel) -> Hearing {
        let (asks, _) = self.shared.task.get_or_init(|| {
            let (asks, asked) = mpsc::unbounded_channel();
            let task = tokio::spawn(talk::keep(self.shared.http.clone(), asked, ChannelNotifier(self.shared.heard.clone())));
            (asks, task.abort_handle())
        });
        let queue = channel.queue.clone();
        // The task ends only with this socket.
        let _ = asks.send(channel);
        Hearing { heard: self.shared.heard.subscribe(), marked: self.shared.heard.borrow().of(&queue).0, queue, _socket: self.clone() }
    }
}

/// Notifies the subscribers that wait.
#[derive(Debug)]
struct ChannelNotifier(watch::Sender<Heard>);

impl ChannelNotifier {
    fn notify(&self, queue: &str) {
        self.0.send_modify(|heard| heard.queues.entry(queue.to_owned()).or_default().0 += 1);
    }

    /// A change of the channel also counts as a notification, so that the worker polls.
    fn is_live(&self, queue: &str, live: bool) {
        self.0.send_modify(|heard| {
            let (rings, was) = heard.queues.entry(queue.to_owned()).or_default();
            if *was != live {
                *rings += 1;
            }
            *was = live;
        });
    }
}

/// Waits for notifications of one queue.
#[derive(Debug)]
pub(super) struct Hearing {
    heard: watch::Receiver<Heard>,
    queue: String,
    marked: u64,
    _socket: Socket,
}

#[async_trait]
impl Push for Hearing {
    fn is_connected(&self) -> bool {
        self.heard.borrow().of(&self.queue).1
    }

    fn mark(&mut self) {
        self.marked = self.heard.borrow().of(&self.queue).0;
    }

    async fn notified(&mut self) {
        let (queue, marked) = (self.queue.clone(), self.marked);
        match self.heard.wait_for(|heard| heard.of(&queue).0 > marked).await.map(|heard| heard.of(&queue).0) {
            Ok(rings) => self.marked = rings,
            // We hold the sender ourselves. If it were dropped all the same, polling would do the work.
            Err(_) => std::future::pending().await,
        }
    }
}
