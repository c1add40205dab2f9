//! Caches the catalogue between requests.
//!
//! Changes of the schema are noticed in two ways. A name that is missing, in our cache or in the database's answer, is looked up in
//! a catalogue read after the request arrived, so that "no such table" is never returned for an existing table. And a request that
//! finds the cache older than its time to live refreshes it in the background.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use gleaner_http::WireError;
use gleaner_http::database::Pool;

use super::{Catalogue, load};
use crate::rest::session;

#[derive(Debug)]
pub(crate) struct Cache {
    pool: Pool,
    schemas: Vec<String>,
    acquire_within: Duration,
    live: Duration,
    current: RwLock<Option<Arc<Catalogue>>>,
    /// One read at a time. Requests that wait for it share the result.
    reading: tokio::sync::Mutex<()>,
}

impl Cache {
    pub(crate) fn new(pool: Pool, schemas: Vec<String>, acquire_within: Duration, live: Duration) -> Self {
        Self { pool, schemas, acquire_within, live, current: RwLock::default(), reading: tokio::sync::Mutex::default() }
    }

    /// The cached catalogue. It is read now if there is none.
    pub(crate) async fn current(self: &Arc<Self>) -> Result<Arc<Catalogue>, WireError> {
        let Some(current) = self.peek() else { return self.read_after(Instant::now()).await };
        if current.read_at.elapsed() > self.live && self.reading.try_lock().is_ok() {
            let cache = Arc::clone(self);
            let stale = current.read_at + self.live;
            // The request does not wait for it: a name missing in the old catalogue is looked up separately.
            tokio::spawn(async move { cache.read_after(stale).await });
        }
        Ok(current)
    }

    /// A catalogue whose read began at `moment` or later.
    pub(crate) async fn read_after(&self, moment: Instant) -> Result<Arc<Catalogue>, WireError> {
        let _reading = self.reading.lock().await;
        if let Some(current) = self.peek().filter(|current| current.read_at >= moment) {
            return Ok(current);
        }
        let client = session::connect(&self.pool, self.acquire_within).await?;
        let catalogue = Arc::new(load::load(&client, &self.schemas).await?);
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&catalogue));
        Ok(catalogue)
    }

    fn peek(&self) -> Option<Arc<Catalogue>> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
