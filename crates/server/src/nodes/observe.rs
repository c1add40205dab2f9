//! Which devices work, as shown by calls of `claim_next_pending_activity` and `claim_stale_activity`.

use std::time::Duration;

use gleaner_http::Caller;
use gleaner_supabase::realtime::{Device, Devices};
use gleaner_supabase::rest::{Call, Observe};
use http::{HeaderMap, HeaderName, HeaderValue};
use serde::Deserialize;
use serde_json::{Map, Value};
use uuid::Uuid;

use super::{ClaimedRow, Named, Nodes, Who};

/// How long such a claim lasts. It reports no progress, and it ends with a plain update that we do not follow. Whether the
/// row is still being worked on is looked up when the device is written to the database.
const HOLD: Duration = Duration::from_secs(300);
/// The queue whose rows these functions claim.
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

impl Observe for Nodes {
    /// If the function is a claim, its caller is at work.
    fn called(&self, call: &Call<'_>) {
        if call.schema != "public" || !matches!(call.function, "claim_next_pending_activity" | "claim_stale_activity") {
            return;
        }
        let claims: Map<String, Value> = serde_json::from_str(call.claims).unwrap_or_default();
        let owner = serde_json::from_slice(call.arguments).ok().and_then(|arguments: Arguments| arguments.p_agent_sales_id);
        let named = Named::new(None, None, &headers(call.headers));
        let Some(node) = named.by(Who::by(call.role, &claims, owner)) else { return };
        let rows: Vec<(String, Row)> = serde_json::from_str(&format!("[{}]", call.rows))
            .map(|rows: Vec<Row>| rows.into_iter().map(|row| (row.id.to_string(), row)).collect())
            .unwrap_or_default();
        let given = rows.iter().map(|(key, row)| ClaimedRow { key, lease: row.lease, activity: Some(row.id), lease_for: HOLD });
        self.gave(&node, QUEUE, given);
    }

    /// If the rows describe devices, one of them may have to be marked offline later.
    fn written(&self, schema: &str, relation: &str) {
        if schema == "public" && relation == "crm_processing_nodes" {
            self.reported();
        }
    }
}

impl Devices for Nodes {
    fn connected(&self, device: &Device, caller: &Caller) -> bool {
        let named = Named::new(device.app.as_deref(), Some(&device.name), &HeaderMap::new());
        let node = named.by(Who::of(caller, None));
        node.iter().for_each(|node| self.heard(node));
        node.is_some()
    }
}

fn headers(written: &str) -> HeaderMap {
    let written: Map<String, Value> = serde_json::from_str(written).unwrap_or_default();
    let read = |name: &str| written.get(name).and_then(Value::as_str).and_then(|value| HeaderValue::from_str(value).ok());
    ["x-client-info", "user-agent"].into_iter().filter_map(|name| Some((HeaderName::from_static(name), read(name)?))).collect()
}
