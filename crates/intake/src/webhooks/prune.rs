//! Deletes stored requests after their time, or when there are too many of them, oldest first. Also deletes the files of
//! deleted activities.

use std::sync::Arc;
use std::time::Duration;

use gleaner_http::database::{Error, Pool};
use tokio_postgres::types::Type;
use uuid::Uuid;

use super::{Raw, Webhooks};
use crate::files::Files;

const EVERY: Duration = Duration::from_secs(600);

/// A client may be fetching a file of an activity while the activity is deleted, and a fetched file is stored when it is
/// complete.
const UNDER_WAY: Duration = Duration::from_secs(900);

/// The number of deleted activities whose files are deleted in one step.
const STEP: i64 = 200;

/// Prunes regularly, for as long as the server runs.
pub async fn keep_pruning(webhooks: Arc<Webhooks>) {
    let mut turn = tokio::time::interval(EVERY);
    loop {
        turn.tick().await;
        webhooks.limits.tidy();
        match prune(&webhooks.pool, &webhooks.files, &webhooks.settings.raw).await {
            Ok(0) => {}
            Ok(removed) => tracing::debug!(removed, "pruned"),
            Err(error) => tracing::debug!(%error, "could not prune"),
        }
        if let Err(error) = forget_files(&webhooks.pool, &webhooks.files, UNDER_WAY).await {
            tracing::debug!(%error, "could not delete files of deleted activities");
        }
    }
}

/// Deletes requests that are past their time, and their files. Returns the number of deleted rows.
pub async fn prune(pool: &Pool, files: &Files, raw: &Raw) -> gleaner_http::database::Result<i64> {
    let client = pool.get().await.map_err(|e| Error::Connect(e.to_string()))?;
    let keep = raw.keep.as_secs_f64();
    let most = i64::try_from(raw.max_bytes).unwrap_or(i64::MAX);
    let mut all = 0;
    loop {
        let rows = client
            .query_typed(
                // Finds the age at which there is too much: the newest requests that fit are kept.
                "select done.removed, done.files
                 from (
                     select min(clock_timestamp() - counted.received_at) as age
                     from (
                         select received_at, sum(1000 + (headers ->> 'content-length')::bigint) over (order by received_at desc, id) as bytes
                         from gleaner.raw_request
                     ) as counted
                     where counted.bytes > $2
                 ) as too_much
                 cross join lateral gleaner.prune_ingestion(least($1 * interval '1 second', too_much.age)) as done",
                &[(&keep, Type::FLOAT8), (&most, Type::INT8)],
            )
            .await
            .map_err(Error::doing("prune"))?;
        let mut removed = 0;
        for row in rows {
            removed += row.get::<_, i64>(0);
            for path in row.get::<_, Vec<String>>(1) {
                if let Err(error) = files.delete(&path).await {
                    tracing::warn!(path, %error, "a pruned body stays behind");
                }
            }
        }
        all += removed;
        if removed == 0 {
            return Ok(all);
        }
    }
}

/// Deletes the files of activities that were deleted this long ago or longer. Returns the number of activities. Files that
/// remain because the store failed are tried again. Files that are already gone are no error, because several servers may
/// do this at once.
pub async fn forget_files(pool: &Pool, files: &Files, after: Duration) -> gleaner_http::database::Result<usize> {
    let client = pool.get().await.map_err(|e| Error::Connect(e.to_string()))?;
    let mut all = 0;
    loop {
        let rows = client
            .query_typed(
                "select activity_id from gleaner.forgotten_files where at <= clock_timestamp() - $1 * interval '1 second' order by at limit $2",
                &[(&after.as_secs_f64(), Type::FLOAT8), (&STEP, Type::INT8)],
            )
            .await
            .map_err(Error::doing("list deleted activities with files"))?;
        let mut done = Vec::new();
        for activity in rows.iter().map(|row| row.get::<_, Uuid>(0)) {
            match files.delete_activity(activity).await {
                Ok(()) => done.push(activity),
                Err(error) => tracing::warn!(%activity, %error, "files of a deleted activity stay behind"),
            }
        }
        if done.is_empty() {
            return Ok(all);
        }
        client
            .execute_typed("delete from gleaner.forgotten_files where activity_id = any ($1)", &[(&done, Type::UUID_ARRAY)])
            .await
            .map_err(Error::doing("forget deleted activities"))?;
        all += done.len();
    }
}
