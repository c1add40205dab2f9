//! A cache of recent look-ups: the webhook endpoint looks up the same few keys all day.

use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use gleaner_ingest::Channel;
use tokio::sync::OnceCell;
use tokio::time::Instant;

use super::Result;

/// A change made elsewhere is seen after this long.
const LIFETIME: Duration = Duration::from_secs(5);
/// Unknown keys are cached too, and any client can make up more of them.
const ROOM: usize = 10_000;

type Hash = [u8; 32];
/// What was found for a key, and a limit on how long it may be cached.
pub(super) type Found = (Option<Arc<Channel>>, Option<Duration>);

#[derive(Debug, Default)]
pub(super) struct Cache {
    entries: Mutex<HashMap<Hash, Entry>>,
}

#[derive(Debug, Clone)]
struct Entry {
    asked: Instant,
    /// Filled by the first request. Requests that arrive in the meantime wait for it instead of querying too.
    found: Arc<OnceCell<(Option<Arc<Channel>>, Instant)>>,
}

impl Cache {
    pub(super) async fn get(&self, hash: Hash, look: impl Future<Output = Result<Found>>) -> Result<Option<Arc<Channel>>> {
        let entry = self.entry(hash);
        let found = entry
            .found
            .get_or_try_init(async || {
                let (channel, limit) = look.await?;
                let lifetime = limit.map_or(LIFETIME, |limit| limit.min(LIFETIME));
                // Counted from the start of the query, because the result may be as old as that.
                Ok::<_, super::Error>((channel, entry.asked + lifetime))
            })
            .await?;
        Ok(found.0.clone())
    }

    fn entry(&self, hash: Hash) -> Entry {
        let now = Instant::now();
        let fresh = |entry: &Entry| entry.found.get().map_or(now < entry.asked + LIFETIME, |(_, until)| now < *until);
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(entry) = entries.get(&hash).filter(|entry| fresh(entry)) {
            return entry.clone();
        }
        if entries.len() >= ROOM {
            entries.retain(|_, entry| fresh(entry));
            // Still full: a flood of made-up keys. Clearing the cache costs the real keys one look-up each.
            if entries.len() >= ROOM {
                entries.clear();
            }
        }
        let entry = Entry { asked: now, found: Arc::default() };
        entries.insert(hash, entry.clone());
        entry
    }

    /// Call after a change of our own. Look-ups that are running keep their result, for requests that began before the
    /// change.
    pub(super) fn forget(&self) {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}
