//! Finds the channel of an ingestion key, for the webhook endpoint.

use std::sync::Arc;
use std::time::Duration;

use gleaner_http::database::Error as Database;
use gleaner_ingest::Channel;
use tokio_postgres::types::Type;

use super::cache::Found;
use super::row::{Row, SELECT};
use super::{Channels, Result, key};

impl Channels {
    /// The channel with this ingestion key, active or not. None when no channel has the key. The result is at most five
    /// seconds old, and never contains a secret that has expired.
    pub async fn by_key(&self, key: &str) -> Result<Option<Arc<Channel>>> {
        if key.is_empty() {
            return Ok(None);
        }
        let hash = key::hash(key);
        self.shared.cache.get(hash, self.look_up(hash)).await
    }

    async fn look_up(&self, hash: [u8; 32]) -> Result<Found> {
        let client = self.client().await?;
        let row = client
            .query_typed_opt(
                // Two probes of two indexes. The current key goes first, because it is nearly always the one that matches.
                &format!(
                    "{SELECT}
                     where c.id = coalesce(
                         (select k.id from public.ingestion_providers as k where k.key_hash = $1),
                         (select p.id from public.ingestion_providers as p
                          where p.previous_key_hash = $1 and p.previous_key_expires > now()))"
                ),
                &[(&hash.as_slice(), Type::BYTEA)],
            )
            .await
            .map_err(Database::doing("look for the channel"))?;
        drop(client);
        let Some(row) = row.as_ref().map(Row::read) else {
            return Ok((None, None));
        };
        let opened = self.open(&row)?;
        self.seal_on_sight(&row, &opened).await;
        let until = row.next_expiry.map(|seconds| Duration::from_secs_f64(seconds.clamp(0.0, 3600.0)));
        Ok((Some(Arc::new(opened.channel)), until))
    }
}
