//! The file of a dump: served to those who may read the dump, deleted after it.

use std::time::Duration;

use axum::http::HeaderMap;
use axum::response::Response;
use gleaner_http::database::{Error, Result};
use gleaner_http::{Caller, with_caller};
use tokio_postgres::types::Type;
use uuid::Uuid;

use super::Dumps;
use super::add::path;
use crate::media;

const EVERY: Duration = Duration::from_secs(60);
const STEP: i64 = 200;

impl Dumps {
    /// The file, if the caller may read the row.
    pub(super) async fn file(&self, caller: &Caller, dump: Uuid, headers: &HeaderMap) -> Result<Response, media::Failure> {
        let row = with_caller(&self.pool, caller, |transaction| {
            Box::pin(async move {
                let sql = "select d.file_name, d.media_type, d.file_sha256 from public.raw_dumps as d where d.id = $1 and d.file_sha256 is not null";
                transaction.query_typed_opt(sql, &[(&dump, Type::UUID)]).await.map_err(Error::doing("look for the dump"))
            })
        });
        let row = match row.await {
            Ok(row) => row.ok_or(media::Failure::Unknown)?,
            Err(error) if error.code().is_some_and(|code| code.code() == "42501") => return Err(media::Failure::Unknown),
            Err(error) => return Err(media::Failure::Away(error.to_string())),
        };
        let (name, media_type, sha256): (String, String, String) = (row.get(0), row.get(1), row.get(2));
        media::stored_file(&self.files, &path(dump, &sha256), &name, &media_type, headers).await?.ok_or(media::Failure::Gone)
    }

    /// Deletes the files of deleted dumps. What the store refuses is tried again. Returns how many were deleted.
    pub async fn forget_files(&self) -> Result<usize> {
        let client = self.pool.get().await.map_err(|error| Error::Connect(error.to_string()))?;
        let mut all = 0;
        loop {
            let sql = "select f.dump_id, f.sha256 from gleaner.forgotten_dump_files as f order by f.at limit $1";
            let rows = client.query_typed(sql, &[(&STEP, Type::INT8)]).await.map_err(Error::doing("list deleted dumps with files"))?;
            let mut done = Vec::new();
            for (dump, sha256) in rows.iter().map(|row| (row.get::<_, Uuid>(0), row.get::<_, String>(1))) {
                match self.files.delete(&path(dump, &sha256)).await {
                    Ok(()) => done.push(dump),
                    Err(error) => tracing::warn!(%dump, %error, "the file of a deleted dump stays behind"),
                }
            }
            if done.is_empty() {
                return Ok(all);
            }
            let sql = "delete from gleaner.forgotten_dump_files where dump_id = any ($1)";
            client.execute_typed(sql, &[(&done, Type::UUID_ARRAY)]).await.map_err(Error::doing("forget deleted dumps"))?;
            all += done.len();
        }
    }
}

/// Deletes files of deleted dumps for as long as the server runs. A database without the system dumps has none.
pub async fn keep_forgetting(dumps: Dumps) {
    let mut turn = tokio::time::interval(EVERY);
    loop {
        turn.tick().await;
        if let Err(error) = dumps.forget_files().await {
            tracing::debug!(%error, "could not delete files of deleted dumps");
        }
    }
}
