//! A screenshot: stored by the agent that holds the run, served to those who may read it, deleted in the end.

use std::time::Duration;

use axum::http::HeaderMap;
use axum::response::Response;
use bytes::Bytes;
use gleaner_http::database::Error;
use gleaner_http::{Caller, with_caller};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tokio_postgres::types::Type;
use uuid::Uuid;

use super::Artefacts;
use crate::media;

const EVERY: Duration = Duration::from_secs(60);
const STEP: i64 = 200;

/// What an agent wants to be kept.
#[derive(Debug, Clone)]
pub struct Artefact {
    pub run: Uuid,
    pub lease: i64,
    pub row: i32,
    pub step: i32,
    pub name: String,
    pub keep_days: Option<i32>,
    pub bytes: Bytes,
}

/// Why an artefact was not kept.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    #[error("this run is not yours: it was cancelled, or another agent holds it")]
    Lost,
    #[error("this run has as many artefacts as it may have")]
    Full,
    #[error(transparent)]
    Files(#[from] crate::files::Error),
    #[error(transparent)]
    Database(#[from] Error),
}

impl Artefacts {
    /// The file first, then its row: a row never names a file that is not there.
    pub async fn store(&self, caller: &Caller, artefact: Artefact) -> Result<Uuid, Failure> {
        let id = Uuid::new_v4();
        let sha256 = hex::encode(Sha256::digest(&artefact.bytes));
        let path = path(artefact.run, id, &sha256);
        let request = json!({"id": id, "run": artefact.run, "lease": artefact.lease, "row": artefact.row, "step": artefact.step,
            "name": artefact.name, "media_type": "image/png", "size": artefact.bytes.len(), "sha256": sha256, "keep_days": artefact.keep_days});
        self.files.put(&path, artefact.bytes).await?;
        let stored: Result<Value, Error> = with_caller(&self.pool, caller, |transaction| {
            Box::pin(async move {
                let sql = "select gleaner.store_artefact($1)";
                let rows = transaction.query_typed(sql, &[(&request, Type::JSONB)]).await.map_err(Error::doing("keep the artefact"))?;
                Ok(rows.first().map(|row| row.get::<_, Value>(0)).unwrap_or_default())
            })
        })
        .await;
        let refused = match stored.as_ref().map(|answer| answer["outcome"].as_str()) {
            Ok(Some("stored")) => return Ok(id),
            Ok(Some("full")) => Some(Failure::Full),
            Ok(_) => Some(Failure::Lost),
            Err(_) => None,
        };
        if let Err(error) = self.files.delete(&path).await {
            tracing::warn!(path, %error, "a file without a row stays behind");
        }
        match (stored, refused) {
            (Err(error), _) => Err(error.into()),
            (Ok(_), refused) => Err(refused.unwrap_or(Failure::Lost)),
        }
    }

    /// The file, if the caller may read the row.
    pub(super) async fn file(&self, caller: &Caller, run: Uuid, id: Uuid, headers: &HeaderMap) -> Result<Response, media::Failure> {
        let row = with_caller(&self.pool, caller, |transaction| {
            Box::pin(async move {
                let sql = "select a.name, a.media_type, a.sha256 from public.run_artefacts as a where a.run_id = $1 and a.id = $2";
                let params = [(&run as _, Type::UUID), (&id as _, Type::UUID)];
                transaction.query_typed_opt(sql, &params).await.map_err(Error::doing("look for the artefact"))
            })
        });
        let row = match row.await {
            Ok(row) => row.ok_or(media::Failure::Unknown)?,
            Err(error) if error.code().is_some_and(|code| ["42501", "42P01"].contains(&code.code())) => {
                return Err(media::Failure::Unknown);
            }
            Err(error) => return Err(media::Failure::Away(error.to_string())),
        };
        let (name, media_type, sha256): (String, String, String) = (row.get(0), row.get(1), row.get(2));
        media::stored_file(&self.files, &path(run, id, &sha256), &name, &media_type, headers).await?.ok_or(media::Failure::Gone)
    }

    /// Deletes artefacts whose time is over, and the files of deleted ones. Returns how many files were deleted.
    pub async fn forget_files(&self) -> Result<usize, Error> {
        let client = self.pool.get().await.map_err(|error| Error::Connect(error.to_string()))?;
        let sql = "delete from public.run_artefacts where expires_at < now()";
        client.execute_typed(sql, &[]).await.map_err(Error::doing("delete old artefacts"))?;
        let mut all = 0;
        loop {
            let sql = "select f.artefact_id, f.run_id, f.sha256 from gleaner.forgotten_artefacts as f order by f.at limit $1";
            let rows = client.query_typed(sql, &[(&STEP, Type::INT8)]).await.map_err(Error::doing("list deleted artefacts"))?;
            let mut done: Vec<Uuid> = Vec::new();
            for row in &rows {
                let (id, run, sha256): (Uuid, Uuid, String) = (row.get(0), row.get(1), row.get(2));
                match self.files.delete(&path(run, id, &sha256)).await {
                    Ok(()) => done.push(id),
                    Err(error) => tracing::warn!(%id, %error, "the file of a deleted artefact stays behind"),
                }
            }
            if done.is_empty() {
                return Ok(all);
            }
            let sql = "delete from gleaner.forgotten_artefacts where artefact_id = any ($1)";
            client.execute_typed(sql, &[(&done, Type::UUID_ARRAY)]).await.map_err(Error::doing("forget deleted artefacts"))?;
            all += done.len();
        }
    }
}

/// Deletes what is over for as long as the server runs. A database without the system runs has nothing.
pub async fn keep_forgetting(artefacts: Artefacts) {
    let mut turn = tokio::time::interval(EVERY);
    loop {
        turn.tick().await;
        if let Err(error) = artefacts.forget_files().await {
            tracing::debug!(%error, "could not delete old artefacts");
        }
    }
}

/// Where the file is. The hash is part of it, so that an id that was used again does not reach another's file.
fn path(run: Uuid, id: Uuid, sha256: &str) -> String {
    format!("runs/{run}/{id}-{sha256}")
}
