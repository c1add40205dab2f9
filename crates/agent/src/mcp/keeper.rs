//! Shows life for assistants that think.
//!
//! A model may be silent for minutes between two calls, longer than a hold lasts. While its session is there, and for
//! [`Settings::patience`](super::Settings::patience) after its last word, the keeper shows life for what it holds. Then it
//! stops: nothing is released, because the assistant may yet hand in its result, but the hold runs out and others may take
//! the item, after which the old lease is refused. A session that ends gives everything back at once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use gleaner::queue::{Claimed, Item};
use gleaner::transport::Transport;
use gleaner::{Claim, Error, Outcome, Result};
use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;

/// After a failed sign of life; a hold lasts minutes.
const TRY_AGAIN: Duration = Duration::from_secs(5);
/// However short a hold, the database is not asked more often.
const LEAST_PAUSE: Duration = Duration::from_millis(250);

/// What is held, by queue, key and lease.
type Key = (String, String, i64);
/// What is given back of one queue.
type Returned = (Arc<dyn Transport>, Vec<(String, i64)>);

#[derive(Debug)]
struct Hold {
    agent: String,
    transport: Arc<dyn Transport>,
    /// When its assistant was last heard of.
    heard: Instant,
    /// When to show life next.
    next: Instant,
    pause: Duration,
}

/// Everything that assistants of this process hold. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Keeper {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    patience: Duration,
    holds: Mutex<HashMap<Key, Hold>>,
    changed: Notify,
}

impl Keeper {
    /// Begins to keep. The task ends with the last clone.
    pub fn start(patience: Duration) -> Self {
        let shared = Arc::new(Shared { patience, holds: Mutex::default(), changed: Notify::new() });
        tokio::spawn(keep(Arc::downgrade(&shared)));
        Self { shared }
    }

    /// Claims for an assistant, and begins to keep. Whoever hung up before the answer came does not know what it holds, so it
    /// holds nothing: it is given back.
    pub async fn claim(&self, transport: &Arc<dyn Transport>, claim: Claim) -> Result<Claimed> {
        let (keeper, transport) = (self.clone(), transport.clone());
        let (answer, answered) = oneshot::channel();
        tokio::spawn(async move {
            let claimed = transport.claim(&claim).await;
            for item in claimed.iter().flat_map(|claimed| &claimed.items) {
                keeper.hold(&claim.agent, &transport, item);
            }
            if let Err(Ok(claimed)) = answer.send(claimed) {
                let held: Vec<(&str, i64)> = claimed.items.iter().map(|item| (item.key.as_str(), item.lease)).collect();
                held.iter().for_each(|(key, lease)| keeper.let_go(transport.queue(), key, *lease));
                if let Err(error) = transport.release(&held).await {
                    tracing::warn!(%error, queue = transport.queue(), "what nobody waited for was not given back; its hold will run out");
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

    /// It is not held any more, by its holder's own act or by somebody else's.
    pub fn let_go(&self, queue: &str, key: &str, lease: i64) {
        self.holds().remove(&(queue.to_owned(), key.to_owned(), lease));
    }

    /// The assistant spoke: all it holds is kept for another while.
    pub fn heard_agent(&self, agent: &str) {
        self.heard(|_, hold| hold.agent == agent);
    }

    /// Somebody spoke of this lease. Without sessions that is all there is to know an assistant by.
    pub fn heard_lease(&self, queue: &str, key: &str, lease: i64) {
        self.heard(|held, _| held.0 == queue && held.1 == key && held.2 == lease);
    }

    fn heard(&self, which: impl Fn(&Key, &Hold) -> bool) {
        let now = Instant::now();
        for (_, hold) in self.holds().iter_mut().filter(|(key, hold)| which(key, hold)) {
            // Back from a silence that was too long: whether it is still ours the next sign of life will tell.
            if now.duration_since(hold.heard) > self.shared.patience {
                hold.next = now;
                self.shared.changed.notify_one();
            }
            hold.heard = now;
        }
    }

    /// What the agent holds.
    pub fn held(&self, agent: &str) -> Vec<Key> {
        let mut held: Vec<Key> = self.holds().iter().filter(|(_, hold)| hold.agent == agent).map(|(key, _)| key.clone()).collect();
        held.sort();
        held
    }

    /// Gives back what these agents hold, without burning an attempt. What cannot be given back is left to its hold.
    pub async fn release(&self, agent: Option<&str>) -> usize {
        let mut by_queue: HashMap<String, Returned> = HashMap::new();
        self.holds().retain(|(queue, key, lease), hold| {
            let theirs = agent.is_none_or(|agent| hold.agent == agent);
            if theirs {
                let entry = by_queue.entry(queue.clone()).or_insert_with(|| (hold.transport.clone(), Vec::new()));
                entry.1.push((key.clone(), *lease));
            }
            !theirs
        });
        let mut released = 0;
        for (queue, (transport, held)) in by_queue {
            let held: Vec<(&str, i64)> = held.iter().map(|(key, lease)| (key.as_str(), *lease)).collect();
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

/// A third of the hold: two signs may be lost before it matters.
fn pause(lease_for: Duration) -> Duration {
    (lease_for / 3).max(LEAST_PAUSE)
}

async fn keep(shared: std::sync::Weak<Shared>) {
    loop {
        let Some(keeper) = shared.upgrade().map(|shared| Keeper { shared }) else { return };
        let now = Instant::now();
        let patience = keeper.shared.patience;
        let lives = |hold: &Hold| now.duration_since(hold.heard) <= patience;
        let due: Vec<(Key, Arc<dyn Transport>)> = keeper
            .holds()
            .iter()
            .filter(|(_, hold)| hold.next <= now && lives(hold))
            .map(|(key, hold)| (key.clone(), hold.transport.clone()))
            .collect();
        for (key, transport) in due {
            keeper.show_life(&key, &*transport).await;
        }
        let next = keeper.holds().values().filter(|hold| lives(hold)).map(|hold| hold.next).min();
        let shared = keeper.shared.clone();
        drop(keeper);
        // Wakes now and then all the same, to find out that nobody is left.
        let next = next.unwrap_or(now + TRY_AGAIN).min(now + TRY_AGAIN);
        tokio::select! {
            () = tokio::time::sleep_until(next) => {}
            () = shared.changed.notified() => {}
        }
    }
}

impl Keeper {
    async fn show_life(&self, held: &Key, transport: &dyn Transport) {
        let answered = transport.progress(&held.1, held.2, None, None, None).await;
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
