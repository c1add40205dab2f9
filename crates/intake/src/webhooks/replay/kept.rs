//! Stored requests: finding them and reading them.

use std::time::{Duration, SystemTime};

use axum::http::{HeaderMap, Method};
use bytes::Bytes;
use gleaner_http::database::Error;
use gleaner_ingest::Request;
use serde_json::Value;
use tokio_postgres::types::{ToSql, Type};
use uuid::Uuid;

use super::{Replayer, Stop};
use crate::webhooks::raw;

/// Which stored requests to replay.
#[derive(Debug, Clone, Default)]
pub struct Which {
    pub channel: Option<Uuid>,
    /// In any form that PostgreSQL reads: `2026-11-16 12:00`, `yesterday`.
    pub since: Option<String>,
    pub until: Option<String>,
    /// Only requests without an activity: not understood, or with nothing to queue at the time.
    pub without_activity: bool,
}

/// A stored request.
pub(super) struct Kept {
    pub id: Uuid,
    pub channel: Uuid,
    pub received_at: String,
    pub received: SystemTime,
    method: String,
    target: String,
    headers: Value,
    body: Option<Vec<u8>>,
    body_file: Option<String>,
}

/// The head of a request, as providers read it.
pub(super) struct Head {
    method: Method,
    target: String,
    headers: HeaderMap,
}

impl Replayer {
    /// Ids of stored requests, oldest first. Returns those after `after`, so that many can be found in several calls.
    pub async fn find(&self, which: &Which, after: Option<Uuid>, limit: i64) -> gleaner_http::database::Result<Vec<Uuid>> {
        let parameters: [(&(dyn ToSql + Sync), Type); 6] = [
            (&which.channel, Type::UUID),
            (&which.since, Type::TEXT),
            (&which.until, Type::TEXT),
            (&which.without_activity, Type::BOOL),
            (&after, Type::UUID),
            (&limit, Type::INT8),
        ];
        let client = self.pool.get().await.map_err(|e| Error::Connect(e.to_string()))?;
        let rows = client
            .query_typed(
                "select r.id from gleaner.raw_request as r
                 where ($1 is null or r.provider_id = $1)
                   and ($2 is null or r.received_at >= $2::timestamptz)
                   and ($3 is null or r.received_at < $3::timestamptz)
                   and (not $4 or r.activity_ids = '{}')
                   and ($5 is null or (r.received_at, r.id) > (select a.received_at, a.id from gleaner.raw_request as a where a.id = $5))
                 order by r.received_at, r.id limit $6",
                &parameters,
            )
            .await
            .map_err(Error::doing("look for kept requests"))?;
        Ok(rows.iter().map(|row| row.get(0)).collect())
    }

    pub(super) async fn load(&self, id: Uuid) -> gleaner_http::database::Result<Option<Kept>> {
        let client = self.pool.get().await.map_err(|e| Error::Connect(e.to_string()))?;
        let row = client
            .query_typed_opt(
                "select provider_id, received_at::text, extract(epoch from received_at)::float8, method, target, headers, body, body_file
                 from gleaner.raw_request where id = $1",
                &[(&id, Type::UUID)],
            )
            .await
            .map_err(Error::doing("read a kept request"))?;
        Ok(row.map(|row| Kept {
            id,
            channel: row.get(0),
            received_at: row.get(1),
            received: SystemTime::UNIX_EPOCH + Duration::try_from_secs_f64(row.get(2)).unwrap_or_default(),
            method: row.get(3),
            target: row.get(4),
            headers: row.get(5),
            body: row.get(6),
            body_file: row.get(7),
        }))
    }

    pub(super) async fn body(&self, kept: &Kept) -> Result<Bytes, Stop> {
        let Some(path) = &kept.body_file else { return Ok(kept.body.clone().unwrap_or_default().into()) };
        let unreadable = |error: crate::files::Error| Stop::Because(format!("its body cannot be read: {error}"));
        match self.files.get(path).await.map_err(unreadable)? {
            Some(file) => file.bytes().await.map_err(unreadable),
            None => Err(Stop::Because(format!(
                "its body is not in the file store ({path}); is this the right GLEANER_HOME or GLEANER_FILES_URL?"
            ))),
        }
    }
}

impl Kept {
    pub(super) fn head(&self) -> Head {
        let method = self.method.parse().unwrap_or(Method::POST);
        Head { method, target: self.target.clone(), headers: raw::restore(&self.headers) }
    }
}

impl Head {
    /// The request as it arrived, without what only verification needs.
    pub(super) fn request<'a>(&'a self, body: &'a [u8], received: SystemTime) -> Request<'a> {
        Request { method: &self.method, target: &self.target, headers: &self.headers, body, client: None, now: received, public_base: "" }
    }
}
