//! What a channel may follow besides changes of tables: signals, which the server names and raises.
//!
//! A signal only says that a client should check for news, so following it needs no right to any row, no published table and no
//! statement.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use gleaner_http::Caller;
use serde_json::Value;
use tokio::sync::watch;

use super::hub::Member;

/// The shortest time between two messages: a thousand changed rows need only one.
const AT_MOST_EVERY: Duration = Duration::from_millis(5);

/// The signals of a server.
pub trait Signals: Send + Sync + 'static {
    /// The signal that this configuration of a join asks for. The error is meant for the client to read.
    fn asked<'a>(&'a self, config: &'a Value, caller: &'a Caller) -> BoxFuture<'a, Result<Option<Signal>, String>>;

    /// Waits until `name` was raised more often than `seen`, and returns how often it was raised.
    fn raised<'a>(&'a self, name: &'a str, seen: u64) -> BoxFuture<'a, u64>;
}

/// The signal that a join follows.
#[derive(Debug, Clone)]
pub struct Signal {
    pub name: String,
    /// How often it was raised before the reply. From there on nothing is missed.
    pub seen: u64,
    /// The event that notifies the client, and the key under which the reply to its join repeats `payload`.
    pub event: &'static str,
    pub reply_key: &'static str,
    pub payload: Value,
}

/// Sends every raise to the member, until it is dropped.
#[derive(Debug)]
pub(super) struct Following(tokio::task::AbortHandle);

impl Following {
    /// `live` says whether changes are followed: what was written while they were not raised no signal.
    pub(super) fn start(signals: Option<&Arc<dyn Signals>>, mut live: watch::Receiver<Option<u64>>, member: &Arc<Member>) -> Option<Self> {
        let (signals, signal, member) = (signals?.clone(), member.signal.clone()?, member.clone());
        let task = tokio::spawn(async move {
            let mut seen = signal.seen;
            let mut was_live = live.borrow_and_update().is_some();
            let payload = signal.payload.to_string();
            loop {
                tokio::select! {
                    raised = signals.raised(&signal.name, seen) => seen = raised,
                    Ok(live) = live.wait_for(|live| live.is_some() != was_live) => was_live = live.is_some(),
                }
                member.send(signal.event, &payload);
                tokio::time::sleep(AT_MOST_EVERY).await;
            }
        });
        Some(Self(task.abort_handle()))
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        self.0.abort();
    }
}
