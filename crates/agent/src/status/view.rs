//! The whole state of an agent, as one value.

use gleaner::worker::{Mishap, Stats};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::health::{self, Health};
use crate::agent::meter::{Seen, Trouble};
use crate::agent::shared::Shared;
use crate::config::EndpointAt;
use crate::host::Host;

/// One error may be a coincidence. The second in a row means that the endpoint does not answer.
const OFFLINE: u32 = 2;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Has not reached its endpoint yet, and no attempt has failed.
    Starting,
    Idle,
    Processing,
    /// Its endpoint does not answer.
    Offline,
    Paused,
    Stopping,
}

#[derive(Debug, Clone, Serialize)]
pub struct View {
    pub name: String,
    pub worker: String,
    pub pid: u32,
    pub version: &'static str,
    pub state: State,
    pub health: Health,
    pub uptime_seconds: f64,
    pub transport: &'static str,
    pub endpoint: Option<String>,
    /// Why the endpoint does not answer.
    pub trouble: Option<String>,
    /// Since when, in seconds since the Unix epoch.
    pub trouble_since: Option<u64>,
    pub owner: Option<String>,
    pub paused: bool,
    pub concurrency: usize,
    /// Whether push works now.
    pub push: bool,
    pub completed: u64,
    pub failed: u64,
    pub released: u64,
    pub lost: u64,
    pub queues: Vec<Queue>,
    pub running: Vec<Running>,
    /// The newest first.
    pub errors: Vec<Mishap>,
    pub capabilities: Vec<String>,
    /// The hosted apps: name and state, what is wrong with one and since when, its last error.
    pub apps: Vec<Value>,
    pub polling: Polling,
}

#[derive(Debug, Clone, Serialize)]
pub struct Queue {
    pub queue: String,
    /// What it could claim now. None if that is unknown.
    pub pending: Option<u64>,
    /// Not everything was counted: there may be more.
    pub pending_capped: bool,
    pub claimed: u64,
    pub completed: u64,
    pub failed: u64,
    pub polls: u64,
    pub last_poll_seconds_ago: Option<f64>,
    pub consecutive_errors: u32,
    pub trouble: Option<String>,
}

#[derive(Debug, Clone, Serialize)]
pub struct Running {
    pub queue: String,
    pub key: String,
    pub kind: Option<String>,
    pub stage: Option<String>,
    pub percent: Option<f64>,
    pub seconds: f64,
}

/// The metrics of the poll loop.
#[derive(Debug, Clone, Serialize)]
pub struct Polling {
    pub polls_per_minute: f64,
    pub jobs_found_per_poll: f64,
    pub claim_success_rate: f64,
    pub avg_claim_latency_seconds: f64,
    pub consecutive_errors: u32,
    pub next_poll_seconds: Option<f64>,
}

impl View {
    pub(crate) fn of(shared: &Shared) -> Self {
        let (now, stats) = (shared.now(), shared.control.stats());
        let seen: Vec<(String, Seen)> = now.meters.iter().map(|meter| (meter.queue.clone(), meter.read())).collect();
        let health = health::judge(shared, &seen, &stats);
        let errors_in_a_row = seen.iter().map(|(_, seen)| seen.errors_in_a_row).max().unwrap_or(now.errors_in_a_row);
        let trouble = shared.trouble();
        let sum = |count: fn(&Seen) -> u64| seen.iter().map(|(_, seen)| count(seen)).sum();
        Self {
            state: state(shared, &stats, now.open, errors_in_a_row, trouble.as_ref()),
            health,
            worker: shared.config.worker.clone(),
            pid: std::process::id(),
            version: env!("CARGO_PKG_VERSION"),
            uptime_seconds: shared.began.elapsed().as_secs_f64(),
            transport: if matches!(shared.config.endpoint, EndpointAt::Wire(_)) { "wire" } else { "direct" },
            trouble_since: trouble.as_ref().map(|trouble| trouble.since),
            trouble: trouble.map(|trouble| trouble.message),
            name: now.name,
            endpoint: now.endpoint,
            owner: now.owner,
            paused: stats.paused,
            concurrency: stats.concurrency,
            push: stats.push,
            completed: sum(|seen| seen.completed),
            failed: sum(|seen| seen.failed),
            released: sum(|seen| seen.released),
            lost: sum(|seen| seen.lost),
            polling: polling(&stats, errors_in_a_row),
            queues: seen.into_iter().map(|(queue, seen)| Queue::of(queue, &seen)).collect(),
            running: stats
                .running
                .iter()
                .map(|item| Running {
                    queue: item.queue.clone(),
                    key: item.key.clone(),
                    kind: item.kind.clone(),
                    stage: item.stage.clone(),
                    percent: item.percent,
                    seconds: item.since.elapsed().as_secs_f64(),
                })
                .collect(),
            errors: stats.errors.into_iter().rev().collect(),
            capabilities: shared.work.capabilities(),
            apps: shared.apps.get().map(Host::conditions).unwrap_or_default(),
        }
    }
}

fn state(shared: &Shared, stats: &Stats, open: bool, errors_in_a_row: u32, trouble: Option<&Trouble>) -> State {
    match () {
        () if shared.is_stopping() => State::Stopping,
        () if stats.paused => State::Paused,
        () if !open && errors_in_a_row == 0 => State::Starting,
        () if !open || errors_in_a_row >= OFFLINE || trouble.is_some_and(|trouble| trouble.lasting) => State::Offline,
        () if !stats.running.is_empty() => State::Processing,
        () => State::Idle,
    }
}

fn polling(stats: &Stats, errors_in_a_row: u32) -> Polling {
    Polling {
        polls_per_minute: stats.polls_per_minute,
        jobs_found_per_poll: stats.found_per_poll,
        claim_success_rate: stats.claim_success_rate,
        avg_claim_latency_seconds: stats.claim_latency,
        consecutive_errors: errors_in_a_row.max(stats.consecutive_errors),
        next_poll_seconds: stats.next_poll_seconds,
    }
}

impl Queue {
    fn of(queue: String, seen: &Seen) -> Self {
        let waiting = seen.waiting();
        Self {
            queue,
            pending: waiting.map(|waiting| waiting.count),
            pending_capped: waiting.is_some_and(|waiting| waiting.capped),
            claimed: seen.claimed,
            completed: seen.completed,
            failed: seen.failed,
            polls: seen.polls,
            last_poll_seconds_ago: seen.last_poll.map(|poll| poll.elapsed().as_secs_f64()),
            consecutive_errors: seen.errors_in_a_row,
            trouble: seen.trouble.as_ref().map(|trouble| trouble.message.clone()),
        }
    }
}
