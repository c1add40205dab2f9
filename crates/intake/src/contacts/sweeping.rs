//! Does regularly what is otherwise done when a message arrives: contacts' addresses are parsed, and contacts are created
//! for senders that a crashed server did not get to.

use std::time::Duration;

use gleaner_http::database::{Error, Pool, Result};
use tokio_postgres::GenericClient;
use tokio_postgres::types::Type;
use uuid::Uuid;

use super::{create, parse_all};

/// The number of senders in one batch: each is looked up under a lock, and a CRM's triggers may be slow.
const SENDERS: i64 = 200;

/// Younger messages are skipped: the server that stored one is about to create its contact.
const MOMENT: Duration = Duration::from_secs(30);

/// How far back the first sweep goes. It may be the one after a crash.
const FIRST: Duration = Duration::from_secs(86_400);

/// How far back later sweeps go: another server may have crashed.
const LATER: Duration = Duration::from_secs(900);

/// What a sweep has done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Swept {
    /// The number of contacts' addresses that were parsed.
    pub addresses: usize,
    /// The number of activities whose sender now has a contact.
    pub linked: usize,
}

/// Parses what waits to be parsed, and creates the missing contacts of senders since then, newest first.
pub async fn sweep(client: &impl GenericClient, since: Duration) -> Result<Swept> {
    let addresses = parse_all(client).await?;
    let overlooked = overlooked(client, since).await?;
    let created = if overlooked.is_empty() { Vec::new() } else { create(client, &overlooked).await? };
    Ok(Swept { addresses, linked: created.iter().filter(|one| one.contact.is_some()).count() })
}

/// Activities of unknown senders in channels that create contacts. `gleaner.create_contacts` checks them again.
async fn overlooked(client: &impl GenericClient, since: Duration) -> Result<Vec<Uuid>> {
    let rows = client
        .query_typed(
            "select a.id
             from public.activities as a
             join public.ingestion_providers as p on p.id = a.provider_id
             where a.contact_id is null
               and a.created_at >= now() - $1 * interval '1 second'
               and a.created_at < now() - $2 * interval '1 second'
               and a.sender_kind in ('email', 'phone') and a.sender_address is not null
               and (p.auto_create_contacts or p.config ->> 'auto_create_contacts' = 'true')
               and a.metadata -> 'match' is null
               and a.metadata ->> 'spam' is distinct from 'true'
               -- A sample of ours has no sender.
               and a.metadata ->> 'test' is distinct from 'true'
             order by a.created_at desc limit $3",
            &[(&since.as_secs_f64(), Type::FLOAT8), (&MOMENT.as_secs_f64(), Type::FLOAT8), (&SENDERS, Type::INT8)],
        )
        .await
        .map_err(Error::doing("look for senders without contact"))?;
    Ok(rows.iter().map(|row| row.get(0)).collect())
}

/// Sweeps at once and then regularly, for as long as it is polled.
pub async fn keep_swept(pool: Pool, every: Duration) {
    let mut since = FIRST;
    loop {
        let swept = async {
            let client = pool.get().await.map_err(|error| Error::Connect(error.to_string()))?;
            sweep(&**client, since).await
        };
        match swept.await {
            Ok(swept) => {
                since = LATER;
                if swept != Swept::default() {
                    tracing::debug!(swept.addresses, swept.linked, "contacts swept");
                }
            }
            Err(error) => tracing::debug!(%error, "contacts could not be swept"),
        }
        tokio::time::sleep(every).await;
    }
}
