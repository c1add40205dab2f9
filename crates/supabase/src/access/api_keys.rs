//! Turns the keys of programs into claims.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use gleaner_http::database::{Error, Pool, Result};
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use tokio_postgres::types::Type;

/// The prefix of every such key. supabase-js looks for it.
const PREFIX: &str = "sb_";

/// How long a result is cached. A revoked key may be used for that long.
const FRESH: Duration = Duration::from_secs(5);
/// The most keys cached, unknown ones included.
const MOST: usize = 10_000;

/// Whether the token is an opaque key. It does not contain its expiry, and may be revoked at any time.
pub fn is_opaque(token: &str) -> bool {
    token.starts_with(PREFIX)
}

type Known = HashMap<[u8; 32], (Instant, Option<Map<String, Value>>)>;

/// Turns keys into claims, and caches them for a moment.
#[derive(Debug)]
pub struct ApiKeys {
    pool: Pool,
    known: Mutex<Known>,
}

impl ApiKeys {
    pub fn new(pool: Pool) -> Self {
        Self { pool, known: Mutex::default() }
    }

    /// The claims of the key (see `gleaner.verify_key`); `None` when it is unknown, revoked or expired.
    pub async fn verify(&self, key: &str) -> Result<Option<Map<String, Value>>> {
        let hash: [u8; 32] = Sha256::digest(key).into();
        if let Some((_, claims)) = self.lock().get(&hash).filter(|(at, _)| at.elapsed() < FRESH) {
            return Ok(claims.clone());
        }
        let client = self.pool.get().await.map_err(|error| Error::Connect(error.to_string()))?;
        let rows = client
            .query_typed("select gleaner.verify_key($1)", &[(&hash.as_slice(), Type::BYTEA)])
            .await
            .map_err(Error::doing("verify a key"))?;
        let claims = match rows[0].get::<_, Option<Value>>(0) {
            Some(Value::Object(claims)) => Some(claims),
            _ => None,
        };
        let mut known = self.lock();
        if known.len() >= MOST {
            known.retain(|_, (at, _)| at.elapsed() < FRESH);
            // All of them are from the last seconds: a client is trying out keys, and caching those is useless.
            if known.len() >= MOST {
                known.clear();
            }
        }
        known.insert(hash, (Instant::now(), claims.clone()));
        Ok(claims)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}
