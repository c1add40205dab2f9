//! Keys of programs, opaque strings that stand for a role: created, listed and revoked. `access` turns them into claims.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use gleaner_http::database::{Error, Result};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use tokio_postgres::GenericClient;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::Type;
use uuid::Uuid;

use super::password::random;

const SECRET: &str = "sb_secret_";
const PUBLISHABLE: &str = "sb_publishable_";

/// What a key permits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// For an agent, which sees only the rows it holds.
    Worker,
    /// For full access. Row-level security does not apply.
    Service,
    /// For browsers, without a user.
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

/// A key to be created.
#[derive(Debug, Clone)]
pub struct New<'a> {
    pub name: &'a str,
    pub kind: Kind,
    /// For workers: which queues and kinds of work. `None`: all that its role may use.
    pub queues: Option<&'a [String]>,
    pub kinds: Option<&'a [String]>,
    /// An interval in PostgreSQL's syntax. `None`: valid until revoked.
    pub valid: Option<&'a str>,
}

/// Creates a key. It is returned here and not stored; `None` when an active key has that name.
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

/// Revokes a key, by name, id or the key itself. Returns false when there is no active one.
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
