//! The figures in Prometheus' text format.

use std::fmt::Write as _;

use super::view::View;
use crate::agent::meter::{BOUNDS, Seen};
use crate::agent::shared::Shared;

/// The name of a metric, its help text, and how to read it.
type Counter = (&'static str, &'static str, fn(&Seen) -> u64);

/// The queue whose figures are also exported under the names of the follow-up daemon.
const FOLLOWUPS: &str = "followups";

pub(super) fn text(shared: &Shared) -> String {
    let view = View::of(shared);
    let queues: Vec<(String, Seen)> = shared.meters().iter().map(|meter| (meter.queue.clone(), meter.read())).collect();
    let mut out = Exposition::default();

    out.gauge(
        "gleaner_agent_healthy",
        "Whether the agent reaches its queues and polls often enough.",
        f64::from(u8::from(view.health.healthy)),
    );
    out.gauge("gleaner_agent_paused", "Whether the agent is paused and claims nothing new.", f64::from(u8::from(view.paused)));
    out.gauge("gleaner_agent_push_connected", "Whether new work is heard of without polling.", f64::from(u8::from(view.push)));
    out.gauge("gleaner_agent_concurrency", "Items that may be in work at once.", view.concurrency as f64);
    out.gauge("gleaner_agent_running", "Items in work.", view.running.len() as f64);
    out.gauge("gleaner_agent_uptime_seconds", "Since the agent was started.", view.uptime_seconds);
    out.gauge("gleaner_agent_polls_per_minute", "Looks for work within the last minute.", view.polling.polls_per_minute);
    out.gauge("gleaner_agent_jobs_found_per_poll", "Items found per poll, on average.", view.polling.jobs_found_per_poll);
    out.gauge(
        "gleaner_agent_claim_success_rate",
        "Share of claims that brought work while there was some.",
        view.polling.claim_success_rate,
    );
    out.gauge("gleaner_agent_claim_latency_seconds", "Length of a claim, on average.", view.polling.avg_claim_latency_seconds);
    out.gauge("gleaner_agent_consecutive_errors", "Looks in a row that failed.", f64::from(view.polling.consecutive_errors));

    let per_queue: [Counter; 6] = [
        ("gleaner_agent_polls_total", "Looks for work.", |seen| seen.polls),
        ("gleaner_agent_items_claimed_total", "Items taken.", |seen| seen.claimed),
        ("gleaner_agent_items_completed_total", "Items whose result was accepted.", |seen| seen.completed),
        ("gleaner_agent_items_failed_total", "Items that failed.", |seen| seen.failed),
        ("gleaner_agent_items_released_total", "Items given back without burning an attempt.", |seen| seen.released),
        ("gleaner_agent_items_lost_total", "Results that came after the lease had passed on.", |seen| seen.lost),
    ];
    for (name, help, count) in per_queue {
        out.head(name, help, "counter");
        queues.iter().for_each(|(queue, seen)| out.sample(name, &[("queue", queue)], count(seen) as f64));
    }
    out.head("gleaner_agent_pending_items", "Items it could claim now, counted up to ten thousand.", "gauge");
    for (queue, seen) in &queues {
        if let Some(waiting) = seen.waiting() {
            out.sample("gleaner_agent_pending_items", &[("queue", queue)], waiting.count as f64);
        }
    }
    out.head("gleaner_agent_poll_duration_seconds", "Duration of a poll.", "histogram");
    queues.iter().for_each(|(queue, seen)| out.histogram("gleaner_agent_poll_duration_seconds", &[("queue", queue)], seen));

    // The names of the follow-up daemon. An agent that does not work follow-ups executes none, and does not know how many wait.
    let followups = queues.iter().find(|(queue, _)| queue == FOLLOWUPS).map(|(_, seen)| seen.clone());
    let pending = followups.as_ref().and_then(Seen::waiting);
    let followups = followups.unwrap_or_default();
    out.head("followup_actions_executed_total", "Follow-ups executed.", "counter");
    out.sample("followup_actions_executed_total", &[], followups.completed as f64);
    out.head("followup_poll_cycle_duration_seconds", "Duration of a poll for follow-ups.", "histogram");
    out.histogram("followup_poll_cycle_duration_seconds", &[], &followups);
    out.head("followup_pending_actions_count", "Follow-ups that are due and not taken.", "gauge");
    if let Some(pending) = pending {
        out.sample("followup_pending_actions_count", &[], pending.count as f64);
    }
    out.0
}

/// Lines of the text format.
#[derive(Debug, Default)]
struct Exposition(String);

impl Exposition {
    fn head(&mut self, name: &str, help: &str, kind: &str) {
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn gauge(&mut self, name: &str, help: &str, value: f64) {
        self.head(name, help, "gauge");
        self.sample(name, &[], value);
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: f64) {
        let labels: Vec<String> = labels.iter().map(|(label, value)| format!("{label}=\"{}\"", escaped(value))).collect();
        let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        let _ = writeln!(self.0, "{name}{labels} {value}");
    }

    fn histogram(&mut self, name: &str, labels: &[(&str, &str)], seen: &Seen) {
        let bucket = format!("{name}_bucket");
        let within = |bound: &str, out: &mut Self, count: u64| {
            let all: Vec<(&str, &str)> = labels.iter().copied().chain([("le", bound)]).collect();
            out.sample(&bucket, &all, count as f64);
        };
        for (bound, count) in BOUNDS.iter().zip(seen.buckets) {
            within(&bound.to_string(), self, count);
        }
        within("+Inf", self, seen.polls);
        self.sample(&format!("{name}_sum"), labels, seen.poll_time.as_secs_f64());
        self.sample(&format!("{name}_count"), labels, seen.polls as f64);
    }
}

fn escaped(value: &str) -> String {
    value.replace('\\', r"\\").replace('"', "\\\"").replace('\n', r"\n")
}
