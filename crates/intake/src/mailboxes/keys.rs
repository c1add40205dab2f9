//! The public keys that sign push notifications, fetched when a key is needed that we do not have.

use std::time::Duration;

use gleaner_ingest::providers::gmail::key_id;
use gleaner_ingest::{Channel, Request};
use reqwest::Client;
use serde_json::Value;
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::google::Google;

/// Google changes its keys every few days and publishes new ones in advance. Older sets are fetched again.
const LIFETIME: Duration = Duration::from_secs(6 * 3600);
/// The shortest time between two fetches: made-up key ids must not make us call Google without end.
const PAUSE: Duration = Duration::from_secs(20);

#[derive(Debug, Default)]
pub(super) struct Keys {
    known: Mutex<CachedKeys>,
}

#[derive(Debug, Default)]
struct CachedKeys {
    set: Option<Value>,
    fetched: Option<Instant>,
    asked: Option<Instant>,
}

impl Keys {
    /// The set of keys, with the one that this request names if Google has it. Concurrent requests wait for one fetch.
    pub(super) async fn for_request(&self, request: &Request<'_>, google: &Google, http: &Client) -> Option<Value> {
        let wanted = key_id(request)?;
        let mut known = self.known.lock().await;
        let old = known.fetched.is_none_or(|at| at.elapsed() > LIFETIME);
        let may_ask = known.asked.is_none_or(|at| at.elapsed() > PAUSE);
        if (old || !known.has(&wanted)) && may_ask {
            known.asked = Some(Instant::now());
            match fetch(google, http).await {
                Ok(set) => {
                    known.set = Some(set);
                    known.fetched = Some(Instant::now());
                }
                Err(error) => tracing::warn!(%error, "the keys that sign pushes could not be fetched"),
            }
        }
        known.set.clone()
    }
}

impl CachedKeys {
    fn has(&self, id: &str) -> bool {
        let keys = self.set.as_ref().and_then(|set| set["keys"].as_array());
        keys.is_some_and(|keys| keys.iter().any(|key| key["kid"].as_str() == Some(id)))
    }
}

async fn fetch(google: &Google, http: &Client) -> Result<Value, String> {
    let failed = |error: reqwest::Error| super::client::describe(error);
    let answer = http.get(&google.jwks_url).timeout(Duration::from_secs(10)).send().await.map_err(failed)?;
    let set: Value = answer.error_for_status().map_err(failed)?.json().await.map_err(failed)?;
    if set["keys"].is_array() { Ok(set) } else { Err("the answer has no keys".into()) }
}

/// The channel with the keys among its settings: verification does no I/O, and finds the keys there.
pub(super) fn added(channel: &Channel, keys: Value) -> Channel {
    let mut settings = channel.settings.as_map().clone();
    settings.insert("jwks".into(), keys);
    Channel { settings: settings.into(), ..channel.clone() }
}
