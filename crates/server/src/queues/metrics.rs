//! `/metrics`: the figures for Prometheus. Labels are names of queues and states, and so they are few.

use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use gleaner_http::describe::Denied;
use gleaner_http::{Caller, WireError};
use metrics::{Unit, counter, describe_counter, describe_gauge, gauge};
use metrics_exporter_prometheus::PrometheusBuilder;
use serde_json::Value;

use super::Queues;
use super::failure::refuse;
use super::figures::{Made, Range};

/// The figures for Prometheus
///
/// Of the last hour, at most fifteen seconds old. For administrators and the service key.
#[utoipa::path(
    get,
    path = "/metrics",
    tag = "operations",
    responses((status = 200, description = "Prometheus' text format.", body = String, content_type = "text/plain"), Denied)
)]
pub(crate) async fn metrics(State(queues): State<Queues>, caller: Caller) -> Result<impl IntoResponse, WireError> {
    let allowed = queues.allowed(&caller).await.map_err(|error| refuse(&caller, &error))?;
    if !allowed.is_administrator {
        return Err(WireError::new(StatusCode::FORBIDDEN, "42501", "metrics are for administrators and the service key"));
    }
    let made = queues.figures(Range::Hour).await.map_err(|error| refuse(&caller, &error))?;
    let (spared, statements) = queues.tally();
    // A recorder of its own: a queue that is gone leaves nothing behind, and two servers in one process do not mix.
    let recorder = PrometheusBuilder::new().build_recorder();
    metrics::with_local_recorder(&recorder, || record(&made, spared, statements));
    Ok(([(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], recorder.handle().render()))
}

fn record(made: &Made, spared: u64, statements: u64) {
    describe_gauge!("gleaner_queue_items", "Rows by state; counts of unfinished rows stop at ten thousand.");
    describe_gauge!("gleaner_queue_oldest_seconds", Unit::Seconds, "How long the oldest row of the state has been due.");
    describe_gauge!("gleaner_queue_sampled_items", "Rows of the last hour that the following are measured on, by how they ended.");
    describe_gauge!("gleaner_queue_latency_seconds", Unit::Seconds, "From due to finished; to taken where a table does not store its end.");
    describe_gauge!("gleaner_queue_within_30s_ratio", "Share of the measured rows that took at most 30 seconds.");
    describe_gauge!("gleaner_queue_stolen_ratio", "Share of owned rows that another than the owner finished.");
    describe_gauge!("gleaner_agents", "Agents that were heard of within two minutes.");
    describe_counter!("gleaner_claims_spared_total", "Claims that were answered without a statement.");
    describe_counter!("gleaner_claim_statements_total", "Statements that the other claims took.");
    counter!("gleaner_claims_spared_total").absolute(spared);
    counter!("gleaner_claim_statements_total").absolute(statements);
    gauge!("gleaner_agents", "state" => "busy").set(made.busy as f64);
    gauge!("gleaner_agents", "state" => "idle").set((made.online - made.busy) as f64);
    for (queue, figures) in &made.queues {
        let number = |name: &str| figures[name].as_f64();
        for one in figures["counts"].as_array().into_iter().flatten() {
            let state = one["state"].as_str().unwrap_or_default().to_owned();
            let set = |name: &'static str, value: &Value| {
                if let Some(value) = value.as_f64() {
                    gauge!(name, "queue" => queue.clone(), "state" => state.clone()).set(value);
                }
            };
            set("gleaner_queue_items", &one["count"]);
            set("gleaner_queue_oldest_seconds", &one["oldest_seconds"]);
        }
        for (name, quantile) in [("p50", "0.5"), ("p95", "0.95"), ("p99", "0.99")] {
            if let Some(value) = number(name) {
                gauge!("gleaner_queue_latency_seconds", "queue" => queue.clone(), "quantile" => quantile).set(value);
            }
        }
        for result in ["done", "dead"] {
            if let Some(value) = number(result) {
                gauge!("gleaner_queue_sampled_items", "queue" => queue.clone(), "result" => result).set(value);
            }
        }
        for (name, part, whole) in
            [("gleaner_queue_within_30s_ratio", "within_30s", "timed"), ("gleaner_queue_stolen_ratio", "stolen", "owned")]
        {
            if let (Some(part), Some(whole)) = (number(part), number(whole).filter(|whole| *whole > 0.0)) {
                gauge!(name, "queue" => queue.clone()).set(part / whole);
            }
        }
    }
}
