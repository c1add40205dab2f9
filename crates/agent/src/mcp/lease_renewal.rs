//! Renews leases for assistants that are thinking.
//!
//! A model may be silent for minutes between two calls, longer than a lease lasts. While its session exists, and for
//! [`Settings::patience`](super::Settings::patience) after its last call, the renewal sends heartbeats for the items it holds.
//! Then it stops. It releases nothing, because the assistant may still send its result, but the lease expires and other agents
//! may claim the item; after that the old lease is refused. A session that ends releases everything at once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use gleaner::queue::{Claimed, Item};
use gleaner::transport::Transport;
use gleaner::{Claim, Error, Held, Outcome, Progress, Result};
use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;

/// The delay after a failed heartbeat. A lease lasts minutes.
const TRY_AGAIN: Duration = Duration::from_secs(5);
/// However short a lease is, heartbeats are not sent more often than this.
const LEAST_PAUSE: Duration = Duration::from_millis(250);

/// A held item: queue, key and lease.
type Key = (String, String, i64);
/// The items to release in one queue.
type Returned = (Arc<dyn Transport>, Vec<Held>);

#[derive(Debug)]
struct Hold {
    agent: String,
    transport: Arc<dyn Transport>,
    /// When its assistant last made a call.
    heard: Instant,
    /// When to send the next heartbeat.
    next: Instant,
    pause: Duration,
}

/// Everything that the assistants of this process hold. Cheap to clone.
#[derive(Debug, Clone)]
pub struct LeaseRenewal {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    patience: Duration,
    holds: Mutex<HashMap<Key, Hold>>,
    changed: Notify,
}

impl LeaseRenewal {
    /// Starts the heartbeat task. The task ends with the last clone.
    pub fn start(patience: Duration) -> Self {
        let shared = Arc::new(Shared { patience, holds: Mutex::default(), changed: Notify::new() });
        tokio::spawn(keep(Arc::downgrade(&shared)));
        Self { shared }
    }

    /// Claims for an assistant and starts to renew the leases. A client that disconnected before the answer arrived does not
    /// know what it holds, so the items are released.
    pub async fn claim(&self, transport: &Arc<dyn Transport>, claim: Claim) -> Result<Claimed> {
        let (renewal, transport) = (self.clone(), transport.clone());
        let (answer, answered) = oneshot::channel();
        tokio::spawn(async move {
            let claimed = transport.claim(&claim).await;
            for item in claimed.iter().flat_map(|claimed| &claimed.items) {
                renewal.hold(&claim.agent, &transport, item);
            }
            if let Err(Ok(claimed)) = answer.send(claimed) {
                let held: Vec<Held> = claimed.items.iter().map(|item| item.held()).collect();
                held.iter().for_each(|held| renewal.let_go(transport.queue(), &held.key, held.lease));
                if let Err(error) = transport.release(&held).await {
                    tracing::warn!(%error, queue = transport.queue(), "items of a client that left were not released; their leases will expire");
                }
            }
        });
        answered.await.unwrap_or_else(|_| Err(Error::Other("the claim was cut short".into())))
    }

    fn hold(&self, agent: &str, transport: &Arc<dyn Transport>, item: &Item) {
        let now = Instant::now();
        let pause = pause(item.lease_for);
        let hold = Hold { agent: agent.to_owned(), transport: transport.clone(), heard: now, next: now + pause, pause };
        self.holds().insert((transport.queue().to_owned(), item.key.clone(), item.lease), hold);
        self.shared.changed.notify_one();
    }

    /// Removes an item that is no longer held, whether its holder or another caller ended the hold.
    pub fn let_go(&self, queue: &str, key: &str, lease: i64) {
        self.holds().remove(&(queue.to_owned(), key.to_owned(), lease));
    }

    /// The assistant made a call: everything it holds is renewed for another `patience`.
    pub fn heard_agent(&self, agent: &str) {
        self.heard(|_, hold| hold.agent == agent);
    }

    /// A caller used this lease. Without sessions the lease is all that identifies an assistant.
    pub fn heard_lease(&self, queue: &str, key: &str, lease: i64) {
        self.heard(|held, _| held.0 == queue && held.1 == key && held.2 == lease);
    }

    fn heard(&self, which: impl Fn(&Key, &Hold) -> bool) {
        let now = Instant::now();
        for (_, hold) in self.holds().iter_mut().filter(|(key, hold)| which(key, hold)) {
            // The assistant returned after its `patience` ran out. The next heartbeat shows whether the lease is still ours.
            if now.duration_since(hold.heard) > self.shared.patience {
                hold.next = now;
                self.shared.changed.notify_one();
            }
            hold.heard = now;
        }
    }

    /// The items that the agent holds.
    pub fn held(&self, agent: &str) -> Vec<Key> {
        let mut held: Vec<Key> = self.holds().iter().filter(|(_, hold)| hold.agent == agent).map(|(key, _)| key.clone()).collect();
        held.sort();
        held
    }

    /// Releases what these agents hold without using up an attempt. If a release fails, the lease expires instead.
    pub async fn release(&self, agent: Option<&str>) -> usize {
        let mut by_queue: HashMap<String, Returned> = HashMap::new();
        self.holds().retain(|(queue, key, lease), hold| {
            let theirs = agent.is_none_or(|agent| hold.agent == agent);
            if theirs {
                let entry = by_queue.entry(queue.clone()).or_insert_with(|| (hold.transport.clone(), Vec::new()));
                entry.1.push(Held::new(key, *lease));
            }
            !theirs
        });
        let mut released = 0;
        for (queue, (transport, held)) in by_queue {
            match transport.release(&held).await {
                Ok(answers) => released += answers.iter().filter(|answer| answer.outcome == Outcome::Done).count(),
                Err(error) => tracing::warn!(%error, queue, "what an assistant held was not given back; its hold will run out"),
            }
        }
        released
    }

    fn holds(&self) -> MutexGuard<'_, HashMap<Key, Hold>> {
        self.shared.holds.lock().expect("no panic holds it")
    }
}

/// A third of the lease: two heartbeats may be lost before it expires.
fn pause(lease_for: Duration) -> Duration {
    (lease_for / 3).max(LEAST_PAUSE)
}

async fn keep(shared: std::sync::Weak<Shared>) {
    loop {
        let Some(renewal) = shared.upgrade().map(|shared| LeaseRenewal { shared }) else { return };
        let now = Instant::now();
        let patience = renewal.shared.patience;
        let lives = |hold: &Hold| now.duration_since(hold.heard) <= patience;
        let due: Vec<(Key, Arc<dyn Transport>)> = renewal
            .holds()
            .iter()
            .filter(|(_, hold)| hold.next <= now && lives(hold))
            .map(|(key, hold)| (key.clone(), hold.transport.clone()))
            .collect();
        for (key, transport) in due {
            renewal.show_life(&key, &*transport).await;
        }
        let next = renewal.holds().values().filter(|hold| lives(hold)).map(|hold| hold.next).min();
        let shared = renewal.shared.clone();
        drop(renewal);
        // Also wakes from time to time to notice that no clone is left.
        let next = next.unwrap_or(now + TRY_AGAIN).min(now + TRY_AGAIN);
        tokio::select! {
            () = tokio::time::sleep_until(next) => {}
            () = shared.changed.notified() => {}
        }
    }
}

impl LeaseRenewal {
    async fn show_life(&self, held: &Key, transport: &dyn Transport) {
        let answered = transport.progress(&Held::new(&held.1, held.2), &Progress::default()).await;
        let mut holds = self.holds();
        let Some(hold) = holds.get_mut(held) else { return };
        match answered {
            Ok((answer, _)) if matches!(answer.outcome, Outcome::Done | Outcome::Already) => hold.next = Instant::now() + hold.pause,
            Ok((answer, _)) => {
                tracing::info!(
                    queue = held.0,
                    key = held.1,
                    agent = hold.agent,
                    outcome = answer.outcome.as_str(),
                    "an assistant's item has passed on"
                );
                holds.remove(held);
            }
            Err(error) => {
                tracing::debug!(%error, queue = held.0, key = held.1, "no sign of life could be given; trying again");
                hold.next = Instant::now() + TRY_AGAIN.min(hold.pause);
            }
        }
    }
}
