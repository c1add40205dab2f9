//! Changing the master key: every channel is encrypted again with the current key, a few at a time.

use gleaner_http::database::Error as Database;
use tokio_postgres::types::Type;

use super::row::{Row, SELECT};
use super::save::Ends;
use super::{Channels, Error, Result};

/// The rows in one batch, so that no other client has to wait for the whole table.
const BATCH: i64 = 100;

/// The result of resealing.
#[derive(Debug, Clone, Default, serde::Serialize)]
pub struct Resealed {
    /// Encrypted with the current key.
    pub resealed: usize,
    /// Could not be decrypted, each with the reason.
    pub locked: Vec<String>,
}

impl Channels {
    /// Encrypts with the current master key whatever was encrypted with another. Afterwards the old key may be removed,
    /// unless some channel is locked. May be stopped and run again at any time.
    pub async fn reseal(&self) -> Result<Resealed> {
        let mut done = Resealed::default();
        let mut after = uuid::Uuid::nil();
        let prefix = self.shared.keys.current_prefix();
        loop {
            let client = self.client().await?;
            let rows = client
                .query_typed(
                    &format!(
                        "{SELECT}
                         where c.id > $1
                           and (not c.sealed or not starts_with(c.sealed_key, $2) or not starts_with(c.sealed_config, $2))
                         order by c.id limit $3"
                    ),
                    &[(&after, Type::UUID), (&prefix, Type::TEXT), (&BATCH, Type::INT8)],
                )
                .await
                .map_err(Database::doing("look for channels sealed with another key"))?;
            drop(client);
            let Some(last) = rows.last() else { return Ok(done) };
            after = last.get("id");
            for row in rows.iter().map(Row::read) {
                // Read the row again: another client may have written since, and not with the current key.
                match self.change(&row.id.to_string(), |_| Ok(Ends::default())).await {
                    Ok(_) => done.resealed += 1,
                    Err(Error::Unknown(_)) => {}
                    Err(error @ Error::Sealed { .. }) => done.locked.push(error.to_string()),
                    Err(error) => return Err(error),
                }
            }
        }
    }
}
