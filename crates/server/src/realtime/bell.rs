//! A channel that hears a queue's bell: `"config": {"gleaner": {"queue": "jobs"}}`.
//!
//! Says only that there may be work, so that it needs no right to any row, no published table and no statement: an agent whose
//! key shows it nothing but what it holds hears of new work all the same.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::watch;

use super::hub::Member;
use crate::access::{Caller, Role};
use crate::queues::Queues;

/// A thousand rows are one reason to look.
const AT_MOST_EVERY: Duration = Duration::from_millis(25);

/// What a join wants to hear.
#[derive(Debug, Clone)]
pub struct Bell {
    pub queue: String,
    /// How often it rang before the reply: from there on nothing is missed.
    heard: u64,
}

/// The bell a join asks for; the error is for the client to read.
pub async fn asked(queues: Option<&Queues>, config: &Value, caller: &Caller) -> Result<Option<Bell>, String> {
    let Some(queue) = config.pointer("/gleaner/queue").and_then(Value::as_str) else { return Ok(None) };
    let queues = queues.ok_or("no queues are served here")?;
    if matches!(caller, Caller::Token { role: Role::Anon, .. }) {
        return Err("Unauthorized: sign in, or use a key of `gleaner keys add`, to hear of work".into());
    }
    let heard = queues.follow(queue).await.map_err(|error| error.to_string())?;
    Ok(Some(Bell { queue: queue.to_owned(), heard }))
}

/// Tells the member of every ring, for as long as this lives.
#[derive(Debug)]
pub struct Ringing(tokio::task::AbortHandle);

impl Ringing {
    /// `live` says whether the log is followed: what was written while it was not rang no bell.
    pub fn start(queues: Option<&Queues>, mut live: watch::Receiver<bool>, member: &Arc<Member>) -> Option<Self> {
        let (queues, bell, member) = (queues?.clone(), member.bell.clone()?, member.clone());
        let task = tokio::spawn(async move {
            let mut heard = bell.heard;
            let payload = json!({"queue": bell.queue}).to_string();
            loop {
                tokio::select! {
                    rings = queues.rung(&bell.queue, heard) => heard = rings,
                    Ok(()) = live.changed() => {}
                }
                member.tell("bell", &payload);
                tokio::time::sleep(AT_MOST_EVERY).await;
            }
        });
        Some(Self(task.abort_handle()))
    }
}

impl Drop for Ringing {
    fn drop(&mut self) {
        self.0.abort();
    }
}
