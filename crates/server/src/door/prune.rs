//! What was kept for replay goes after its time, or when there is too much of it; the oldest first. The files of activities that
//! were deleted go too.

use std::sync::Arc;
use std::time::Duration;

use gleaner::{Error, Pool};
use tokio_postgres::types::Type;
use uuid::Uuid;

use crate::State;
use crate::config::Raw;
use crate::files::Files;

const EVERY: Duration = Duration::from_secs(600);

/// Somebody may be fetching a file of an activity while it is deleted, and what is fetched is kept when it is whole.
const UNDER_WAY: Duration = Duration::from_secs(900);

/// Deleted activities whose files are deleted at a step.
const STEP: i64 = 200;

/// Prunes now and then, for as long as the server runs.
pub async fn keep_pruning(state: Arc<State>) {
    let mut turn = tokio::time::interval(EVERY);
    loop {
        turn.tick().await;
        state.limits.tidy();
        match prune(&state.pool, &state.files, &state.config.raw).await {
            Ok(0) => {}
            Ok(removed) => tracing::debug!(removed, "pruned"),
            Err(error) => tracing::debug!(%error, "could not prune"),
        }
        if let Err(error) = forget_files(&state.pool, &state.files, UNDER_WAY).await {
            tracing::debug!(%error, "could not delete files of deleted activities");
        }
    }
}

/// Removes what is past its time, and the files of it. Returns how many rows went.
pub async fn prune(pool: &Pool, files: &Files, raw: &Raw) -> gleaner::Result<i64> {
    let client = pool.get().await.map_err(|e| Error::Connect(e.to_string()))?;
    let keep = raw.keep.as_secs_f64();
    let most = i64::try_from(raw.max_bytes).unwrap_or(i64::MAX);
    let mut all = 0;
    loop {
        let rows = client
            .query_typed(
                // The age at which there is too much: the newest requests that fit are kept.
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

/// Deletes the files of activities that were deleted this long ago or longer. Returns of how many activities. What stays behind when
/// the store fails is tried again, and files that are gone already are no failure: several servers may do this at once.
pub async fn forget_files(pool: &Pool, files: &Files, after: Duration) -> gleaner::Result<usize> {
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
