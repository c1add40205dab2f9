//! What is otherwise done when a message comes, done also while none does: contacts' addresses are read, and senders whom a
//! server that died had no time for become contacts.

use std::time::Duration;

use gleaner::{Error, Pool, Result};
use tokio_postgres::GenericClient;
use tokio_postgres::types::Type;
use uuid::Uuid;

use super::{create, parse_all};

/// How many senders at a time: each is looked for under a lock, and a CRM's triggers may take their time.
const SENDERS: i64 = 200;

/// Whoever stored a message a moment ago is about to make its contact.
const MOMENT: Duration = Duration::from_secs(30);

/// How far back the first look goes. It is the one after a crash.
const FIRST: Duration = Duration::from_secs(86_400);

/// How far back the looks after it go: another server may have died.
const LATER: Duration = Duration::from_secs(900);

/// What a sweep has done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Swept {
    /// Addresses of contacts read.
    pub addresses: usize,
    /// Activities whose sender has a contact now.
    pub linked: usize,
}

/// Reads what waits to be read, and makes the contacts that are missing of the senders since then, the newest first.
pub async fn sweep(client: &impl GenericClient, since: Duration) -> Result<Swept> {
    let addresses = parse_all(client).await?;
    let overlooked = overlooked(client, since).await?;
    let created = if overlooked.is_empty() { Vec::new() } else { create(client, &overlooked).await? };
    Ok(Swept { addresses, linked: created.iter().filter(|one| one.contact.is_some()).count() })
}

/// Activities of unknown senders in channels that make contacts of them. `gleaner.create_contacts` decides once more.
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
               -- A sample of ours came from nobody.
               and a.metadata ->> 'test' is distinct from 'true'
             order by a.created_at desc limit $3",
            &[(&since.as_secs_f64(), Type::FLOAT8), (&MOMENT.as_secs_f64(), Type::FLOAT8), (&SENDERS, Type::INT8)],
        )
        .await
        .map_err(Error::doing("look for senders without contact"))?;
    Ok(rows.iter().map(|row| row.get(0)).collect())
}

/// Sweeps at once and then now and then, for as long as it is polled.
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
