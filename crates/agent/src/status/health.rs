//! Whether an agent is healthy: it reaches its queues, and polls often enough.

use std::time::Duration;

use gleaner::worker::{Stats, Wake};
use serde::Serialize;

use crate::agent::meter::Seen;
use crate::agent::shared::Shared;
use crate::config::Config;

/// This many errors in a row are no longer a coincidence.
pub const TOO_MANY: u32 = 5;
/// A poll itself takes time, and a machine under load is slow.
const SLACK: Duration = Duration::from_secs(10);

#[derive(Debug, Clone, Serialize)]
pub struct Health {
    pub healthy: bool,
    /// What is wrong, for people. Empty when nothing is.
    pub reasons: Vec<String>,
}

pub fn judge(shared: &Shared, queues: &[(String, Seen)], stats: &Stats) -> Health {
    let now = shared.now();
    // An agent that is paused, full, stopping, or waiting for push alone does not poll, by design.
    let full = stats.running.len() >= stats.concurrency;
    let polls = !stats.paused && !full && !shared.is_stopping() && shared.config.wake != Wake::PushOnly;
    let mut reasons = Vec::new();
    if !now.open {
        reasons.push(match now.trouble {
            Some(trouble) => format!("has not reached its endpoint yet: {}", trouble.message),
            None => "is starting".to_owned(),
        });
    }
    for (queue, seen) in queues {
        match &seen.trouble {
            // No need to count errors: it lasts until a person changes something.
            Some(trouble) if trouble.lasting => reasons.push(format!("{queue}: {}", trouble.message)),
            trouble if seen.errors_in_a_row >= TOO_MANY => {
                let trouble = trouble.as_ref().map_or("unknown", |trouble| &trouble.message);
                reasons.push(format!("{queue}: {} errors in a row: {trouble}", seen.errors_in_a_row));
            }
            _ => {}
        }
        let since = seen.last_poll.map_or_else(|| shared.began.elapsed(), |poll| poll.elapsed());
        if polls && since > longest_wait(&shared.config) {
            reasons.push(format!("{queue}: has not polled for {} s", since.as_secs()));
        }
    }
    if polls && stats.overdue && reasons.is_empty() {
        reasons.push("has not polled when it should have".into());
    }
    Health { healthy: reasons.is_empty(), reasons }
}

/// After this long the next poll is overdue, whether push works or not: twice the longest possible interval.
fn longest_wait(config: &Config) -> Duration {
    let poll = &config.poll;
    let longest = if config.wake == Wake::PollOnly { poll.max } else { poll.max.max(poll.pushed_max) };
    longest.mul_f64(2.0 * (1.0 + poll.jitter)) + SLACK
}
