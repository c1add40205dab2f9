//! The refusals that the webhook endpoint has counted, with their reasons.

use gleaner_http::begin;
use gleaner_http::database::Error as Database;
use serde::Serialize;
use tokio_postgres::types::Type;
use utoipa::ToSchema;
use uuid::Uuid;

use super::{Channels, Result};

/// The requests refused at one channel in one minute for one reason.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct Refusals {
    /// None: the key belonged to no channel.
    #[schema(required)]
    pub channel: Option<Uuid>,
    #[schema(required)]
    pub name: Option<String>,
    pub at: String,
    pub reason: String,
    pub status: i32,
    pub count: i64,
    #[schema(required)]
    pub last_client: Option<String>,
    #[schema(required)]
    pub detail: Option<String>,
}

impl Channels {
    /// The latest refusals of a channel, newest first.
    pub async fn refusals(&self, name_or_id: &str, limit: i64) -> Result<Vec<Refusals>> {
        let mut client = self.client().await?;
        // A caller that may see the channel may see its refusals; the counts themselves have no policies.
        let transaction = begin(&mut client, &self.caller).await?;
        let id = self.find(&*transaction, name_or_id).await?.id;
        transaction.commit().await.map_err(Database::doing("commit"))?;
        self.read_refusals(Some(id), limit).await
    }

    /// The latest refusals at every channel and without a channel, newest first. For operators: no rights are checked.
    pub async fn all_refusals(&self, limit: i64) -> Result<Vec<Refusals>> {
        self.read_refusals(None, limit).await
    }

    async fn read_refusals(&self, id: Option<Uuid>, limit: i64) -> Result<Vec<Refusals>> {
        let client = self.client().await?;
        let rows = client
            .query_typed(
                "select r.provider_id, c.name, to_jsonb(r.at_minute) #>> '{}' as at, r.reason, r.status, r.count, host(r.last_client), r.detail
                 from gleaner.ingest_refusal as r
                 left join public.ingestion_providers as c on c.id = r.provider_id
                 where $1::uuid is null or r.provider_id = $1
                 order by r.at_minute desc, r.count desc, r.reason
                 limit $2",
                &[(&id, Type::UUID), (&limit, Type::INT8)],
            )
            .await
            .map_err(Database::doing("read the refusals"))?;
        let read = |row: &tokio_postgres::Row| Refusals {
            channel: row.get(0),
            name: row.get(1),
            at: row.get(2),
            reason: row.get(3),
            status: row.get(4),
            count: row.get(5),
            last_client: row.get(6),
            detail: row.get(7),
        };
        Ok(rows.iter().map(read).collect())
    }
}
