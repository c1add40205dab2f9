//! Deleting a channel. The activities that arrived through it stay.

use gleaner_http::begin;
use gleaner_http::database::Error as Database;
use tokio_postgres::types::Type;

use super::{Channels, Error, Result};

impl Channels {
    pub async fn delete(&self, name_or_id: &str) -> Result<()> {
        let mut client = self.client().await?;
        let transaction = begin(&mut client, &self.caller).await?;
        let row = self.find(&*transaction, name_or_id).await?;
        let gone = transaction
            .query_typed("delete from public.ingestion_providers where id = $1 returning id", &[(&row.id, Type::UUID)])
            .await
            .map_err(Database::doing("delete the channel"))?;
        if gone.is_empty() {
            return Err(Error::Unknown(name_or_id.to_owned()));
        }
        transaction.commit().await.map_err(Database::doing("commit"))?;
        self.shared.cache.forget();
        Ok(())
    }
}
