//! Encrypting secrets that other programs wrote in clear.

use std::time::Duration;

use gleaner_http::database::Error as Database;

use super::row::{Opened, Row, SELECT};
use super::save::Ends;
use super::{Channels, Result, masks};

/// The rows sealed in one batch.
const BATCH: i64 = 100;

impl Channels {
    /// Seals a row that was written in clear and drops expired secrets. A failure is harmless: the row is used as it is,
    /// another server may have sealed it, and the sweep tries again.
    pub(super) async fn seal_on_sight(&self, row: &Row, opened: &Opened) {
        // A newer version may treat settings as secret that an older one did not.
        let config = masks::as_settings(&row.config);
        let (masked, _) = masks::split(self.provider(&row.provider_code), &config);
        if row.sealed && row.expired.is_empty() && masked == config {
            return;
        }
        let sealed = async {
            let client = self.client().await?;
            self.save(&**client, opened, &Ends::default()).await
        };
        if let Err(error) = sealed.await {
            tracing::warn!(channel = %row.id, %error, "the secrets of a channel could not be sealed");
        }
    }

    /// Seals every channel written in clear, and drops expired secrets. Returns how many channels needed it.
    pub async fn sweep(&self) -> Result<usize> {
        let mut swept = 0;
        let mut after = uuid::Uuid::nil();
        loop {
            let client = self.client().await?;
            let rows = client
                .query_typed(
                    &format!(
                        "{SELECT}
                         where c.id > $1
                           and (not c.sealed
                                or exists (select from jsonb_each_text(c.secrets_expire) as e where e.value::timestamptz <= now()))
                         order by c.id limit $2"
                    ),
                    &[(&after, tokio_postgres::types::Type::UUID), (&BATCH, tokio_postgres::types::Type::INT8)],
                )
                .await
                .map_err(Database::doing("look for channels to seal"))?;
            drop(client);
            let Some(last) = rows.last() else { return Ok(swept) };
            after = last.get("id");
            for row in rows.iter().map(Row::read) {
                match self.open(&row) {
                    Ok(opened) => self.seal_on_sight(&row, &opened).await,
                    Err(error) => tracing::warn!(channel = %row.id, %error, "a channel cannot be opened"),
                }
                swept += 1;
            }
        }
    }

    /// Sweeps regularly, for as long as it is polled.
    pub async fn keep_sealed(self, every: Duration) {
        loop {
            if let Err(error) = self.sweep().await {
                tracing::warn!(%error, "channels could not be swept");
            }
            tokio::time::sleep(every).await;
        }
    }
}
