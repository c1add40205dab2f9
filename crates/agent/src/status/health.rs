//! Whether an agent does what it should: it reaches its queues, and looks often enough.

use std::time::Duration;

use gleaner::worker::{Stats, Wake};
use serde::Serialize;

use crate::agent::meter::Seen;
use crate::agent::shared::Shared;
use crate::config::Config;

/// Errors in a row that are more than bad luck.
pub const TOO_MANY: u32 = 5;
/// A look itself takes time, and so does a machine under load.
const SLACK: Duration = Duration::from_secs(10);

#[derive(Debug, Clone, Serialize)]
pub struct Health {
    pub healthy: bool,
    /// What is wrong, for people; empty when nothing is.
    pub reasons: Vec<String>,
}

pub fn judge(shared: &Shared, queues: &[(String, Seen)], stats: &Stats) -> Health {
    let now = shared.now();
    // One that is paused, full, on its way out, or waits for push alone does not poll, by design.
    let full = stats.running.len() >= stats.concurrency;
    let polls = !stats.paused && !full && !shared.is_stopping() && shared.config.wake != Wake::PushOnly;
    let mut reasons = Vec::new();
    if !now.open {
        reasons.push(match now.trouble {
            Some(trouble) => format!("has not reached its place yet: {}", trouble.message),
            None => "is starting".to_owned(),
        });
    }
    for (queue, seen) in queues {
        match &seen.trouble {
            // No use in counting: it stays so until somebody changes something.
            Some(trouble) if trouble.lasting => reasons.push(format!("{queue}: {}", trouble.message)),
            trouble if seen.errors_in_a_row >= TOO_MANY => {
                let trouble = trouble.as_ref().map_or("unknown", |trouble| &trouble.message);
                reasons.push(format!("{queue}: {} errors in a row: {trouble}", seen.errors_in_a_row));
            }
            _ => {}
        }
        let since = seen.last_poll.map_or_else(|| shared.began.elapsed(), |poll| poll.elapsed());
        if polls && since > longest_wait(&shared.config) {
            reasons.push(format!("{queue}: has not looked for work for {} s", since.as_secs()));
        }
    }
    if polls && stats.overdue && reasons.is_empty() {
        reasons.push("has not looked for work when it should have".into());
    }
    Health { healthy: reasons.is_empty(), reasons }
}

/// By then the next look is overdue, whether push works or not: twice the longest interval there can be.
fn longest_wait(config: &Config) -> Duration {
    let poll = &config.poll;
    let longest = if config.wake == Wake::PollOnly { poll.max } else { poll.max.max(poll.pushed_max) };
    longest.mul_f64(2.0 * (1.0 + poll.jitter)) + SLACK
}
