//! A cache of the queues' declarations, so that a thousand claims in a minute do not query for them a thousand times.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use gleaner::{Acts, Error, Pool};
use tokio_postgres::types::Type;

/// How long a cached queue is used without a check. `gleaner attach` may have changed it.
const KNOWN_FOR: Duration = Duration::from_secs(10);
/// The most tenants in the cache. When there are more, the cache is cleared and filled again.
const MOST_TENANTS: usize = 10_000;

#[derive(Debug)]
pub(super) struct QueueCache {
    pool: Pool,
    queues: Mutex<HashMap<String, Remembered>>,
    /// By queue and tenant.
    tenants: Mutex<HashMap<(String, String), Within>>,
}

#[derive(Debug)]
struct Within {
    acts: Arc<Acts>,
    /// The acts these were made from. They are of no use when those have changed.
    of: Arc<Acts>,
}

#[derive(Debug)]
struct Remembered {
    acts: Arc<Acts>,
    /// When the queue was last attached, according to the registry.
    attached: String,
    until: Instant,
}

impl QueueCache {
    pub(super) fn new(pool: Pool) -> Self {
        Self { pool, queues: Mutex::default(), tenants: Mutex::default() }
    }

    /// Calls `each` for every queue in the cache.
    pub(super) fn for_each(&self, mut each: impl FnMut(&str, &Acts)) {
        for (name, known) in self.queues.lock().expect("no panic holds it").iter() {
            each(name, &known.acts);
        }
    }

    pub(super) async fn acts(&self, name: &str) -> Result<Arc<Acts>, Error> {
        let remembered = self.remembered(name);
        if let Some((acts, false)) = remembered {
            return Ok(acts);
        }
        let client = self.pool.get().await.map_err(|error| Error::Connect(error.to_string()))?;
        // Another request may have loaded the queue while this one waited for a connection.
        if remembered.is_none()
            && let Some((acts, _)) = self.remembered(name)
        {
            return Ok(acts);
        }
        // Read before the declaration it belongs to: if an attach happens in between, the value differs at the next check.
        let attached = client
            .query_typed("select changed_at::text from gleaner.queue where name = $1", &[(&name, Type::TEXT)])
            .await
            .map_err(Error::doing("read the registry (is the database migrated? `gleaner migrate`)"))?;
        let attached: Option<String> = attached.first().map(|row| row.get(0));
        if let Some(known) = self.queues.lock().expect("no panic holds it").get_mut(name)
            && Some(&known.attached) == attached.as_ref()
        {
            known.until = Instant::now() + KNOWN_FOR;
            return Ok(known.acts.clone());
        }
        let acts = Acts::of(&**client, name).await.map(Arc::new);
        let mut queues = self.queues.lock().expect("no panic holds it");
        match (acts, attached) {
            (Ok(acts), Some(attached)) => {
                queues.insert(name.to_owned(), Remembered { acts: acts.clone(), attached, until: Instant::now() + KNOWN_FOR });
                Ok(acts)
            }
            (acts, _) => {
                queues.remove(name);
                acts
            }
        }
    }

    /// The acts of a queue, within the tenant if one is named.
    pub(super) async fn acts_within(&self, name: &str, tenant: Option<&str>) -> Result<Arc<Acts>, Error> {
        let acts = self.acts(name).await?;
        let Some(tenant) = tenant else { return Ok(acts) };
        let key = (name.to_owned(), tenant.to_owned());
        if let Some(within) = self.tenants.lock().expect("no panic holds it").get(&key)
            && Arc::ptr_eq(&within.of, &acts)
        {
            return Ok(within.acts.clone());
        }
        let client = self.pool.get().await.map_err(|error| Error::Connect(error.to_string()))?;
        let within = Arc::new(Acts::clone(&acts).within(&**client, tenant).await?);
        let mut tenants = self.tenants.lock().expect("no panic holds it");
        if tenants.len() >= MOST_TENANTS {
            tenants.clear();
        }
        tenants.insert(key, Within { acts: within.clone(), of: acts });
        Ok(within)
    }

    /// What is cached for the queue, and whether the caller must check it again. Only the first caller after it expires
    /// must check; the others go on with the cached value.
    fn remembered(&self, name: &str) -> Option<(Arc<Acts>, bool)> {
        let mut queues = self.queues.lock().expect("no panic holds it");
        let known = queues.get_mut(name)?;
        let now = Instant::now();
        let is_time = known.until <= now;
        if is_time {
            known.until = now + KNOWN_FOR;
        }
        Some((known.acts.clone(), is_time))
    }
}
