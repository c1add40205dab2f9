//! Keys of programs, opaque strings that stand for a role: made, listed, revoked, and turned into claims.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use gleaner::{Error, Pool, Result};
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use tokio_postgres::GenericClient;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::Type;
use uuid::Uuid;

use super::password::random;

/// What every such key begins with; supabase-js looks for it.
pub const PREFIX: &str = "sb_";
const SECRET: &str = "sb_secret_";
const PUBLISHABLE: &str = "sb_publishable_";

/// How long an answer is believed: a revoked key may be used that long.
const FRESH: Duration = Duration::from_secs(5);
/// Remembered at most, unknown keys included.
const MOST: usize = 10_000;

/// What a key is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// An agent: sees only the rows it holds.
    Worker,
    /// Everything; row-level security does not apply.
    Service,
    /// What browsers carry: nobody in particular.
    Anon,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Self::Worker => "worker",
            Self::Service => "service",
            Self::Anon => "anon",
        }
    }
}

/// A key to be made.
#[derive(Debug, Clone)]
pub struct New<'a> {
    pub name: &'a str,
    pub kind: Kind,
    /// For workers: which queues and kinds of work; none: all that its role may.
    pub queues: Option<&'a [String]>,
    pub kinds: Option<&'a [String]>,
    /// PostgreSQL's own reading of a length of time; none: until it is revoked.
    pub valid: Option<&'a str>,
}

/// Makes a key. It is returned here and kept nowhere; None when a living key has that name.
pub async fn add(client: &impl GenericClient, new: &New<'_>) -> Result<Option<(Uuid, String)>> {
    let prefix = if new.kind == Kind::Anon { PUBLISHABLE } else { SECRET };
    let key = format!("{prefix}{}", URL_SAFE_NO_PAD.encode(random::<32>()));
    let hint = format!("{}…", &key[..prefix.len() + 6]);
    let hash = hash_of(&key);
    let made = client
        .query_typed(
            "insert into gleaner.api_key (name, role, hash, hint, queues, kinds, expires_at)
             values ($1, $2, $3, $4, $5, $6, clock_timestamp() + $7::text::interval) returning id",
            &[
                (&new.name, Type::TEXT),
                (&new.kind.name(), Type::TEXT),
                (&hash, Type::BYTEA),
                (&hint, Type::TEXT),
                (&new.queues, Type::TEXT_ARRAY),
                (&new.kinds, Type::TEXT_ARRAY),
                (&new.valid, Type::TEXT),
            ],
        )
        .await;
    match made {
        Ok(rows) => Ok(Some((rows[0].get(0), key))),
        Err(error) if error.code() == Some(&SqlState::UNIQUE_VIOLATION) => Ok(None),
        Err(source) => Err(Error::Database { act: "add the key".into(), source }),
    }
}

/// Every key, newest first, revoked ones too: id, name, role, hint, queues, kinds, state and times.
pub async fn list(client: &impl GenericClient) -> Result<Vec<Value>> {
    let rows = client
        .query_typed(
            "select to_jsonb(k) - 'hash' || jsonb_build_object(
                        'state', case when k.revoked_at is not null then 'revoked' when k.expires_at <= now() then 'expired' else 'good' end,
                        'used_seconds_ago', extract(epoch from now() - k.last_used_at),
                        'created_seconds_ago', extract(epoch from now() - k.created_at),
                        'expires_in_seconds', extract(epoch from k.expires_at - now()))
             from gleaner.api_key as k order by k.created_at desc, k.id",
            &[],
        )
        .await
        .map_err(Error::doing("list the keys"))?;
    Ok(rows.iter().map(|row| row.get(0)).collect())
}

/// Ends a key, by name, id or the key itself. False when there is no living one.
pub async fn revoke(client: &impl GenericClient, which: &str) -> Result<bool> {
    let rows = client
        .query_typed(
            "update gleaner.api_key set revoked_at = clock_timestamp()
             where revoked_at is null and (name = $1 or id::text = $1 or hash = $2) returning id",
            &[(&which, Type::TEXT), (&hash_of(which), Type::BYTEA)],
        )
        .await
        .map_err(Error::doing("revoke the key"))?;
    Ok(!rows.is_empty())
}

fn hash_of(key: &str) -> Vec<u8> {
    Sha256::digest(key).to_vec()
}

type Known = HashMap<[u8; 32], (Instant, Option<Map<String, Value>>)>;

/// Turns keys into claims, and remembers them for a moment.
#[derive(Debug)]
pub struct ApiKeys {
    pool: Pool,
    known: Mutex<Known>,
}

impl ApiKeys {
    pub fn new(pool: Pool) -> Self {
        Self { pool, known: Mutex::default() }
    }

    /// The claims the key stands for (see `gleaner.verify_key`); None when it is unknown, revoked or expired.
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
            // All of them of the last seconds: somebody tries keys out, and remembering those helps nobody.
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
