//! Who works, as calls of the specification's own claims show it.

use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};
use serde::Deserialize;
use serde_json::{Map, Value};
use uuid::Uuid;

use super::request::Request;
use super::session::Outcome;
use crate::nodes::{Given, Named, Nodes, Who};

/// How long such a claim lasts; there is no progress in it, and its end is a plain update that we do not follow. Whether the
/// row is still worked on is looked up when the database is told.
const HOLD: Duration = Duration::from_secs(300);
/// The queue of what these functions give out.
const QUEUE: &str = "activities";

#[derive(Debug, Deserialize)]
struct Arguments {
    p_agent_sales_id: Option<i64>,
}

#[derive(Debug, Deserialize)]
struct Row {
    id: Uuid,
    lease: Option<i64>,
}

/// A function was called; if it is a claim, its caller works.
pub fn notice_claim(nodes: &Nodes, request: &Request, function: &str, outcome: &Outcome) {
    if request.schema != "public" || !matches!(function, "claim_next_pending_activity" | "claim_stale_activity") {
        return;
    }
    let claims: Map<String, Value> = serde_json::from_str(&request.context.claims).unwrap_or_default();
    let owner = serde_json::from_slice(&request.body).ok().and_then(|arguments: Arguments| arguments.p_agent_sales_id);
    let named = Named::new(None, None, &headers(&request.context.headers));
    let Some(node) = named.by(Who::by(&request.context.role, &claims, owner)) else { return };
    let rows: Vec<(String, Row)> = serde_json::from_str(&format!("[{}]", outcome.rows))
        .map(|rows: Vec<Row>| rows.into_iter().map(|row| (row.id.to_string(), row)).collect())
        .unwrap_or_default();
    let given = rows.iter().map(|(key, row)| Given { key, lease: row.lease, activity: Some(row.id), lease_for: HOLD });
    nodes.gave(&node, QUEUE, given);
}

/// Rows were written; if they tell of devices, somebody must notice when these fall silent.
pub fn notice_report(nodes: &Nodes, request: &Request, relation: &str) {
    if request.schema == "public" && relation == "crm_processing_nodes" {
        nodes.reported();
    }
}

fn headers(written: &str) -> HeaderMap {
    let written: Map<String, Value> = serde_json::from_str(written).unwrap_or_default();
    let read = |name: &str| written.get(name).and_then(Value::as_str).and_then(|value| HeaderValue::from_str(value).ok());
    ["x-client-info", "user-agent"].into_iter().filter_map(|name| Some((HeaderName::from_static(name), read(name)?))).collect()
}
