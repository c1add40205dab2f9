//! A server does what was left undone before it started.

use anyhow::Result;

use crate::webhooks::support::world_on;
use crate::world::{database, eventually};

#[tokio::test]
async fn a_server_reads_contacts_and_makes_missing_ones_when_it_starts() -> Result<()> {
    let url = database().await?.url;
    let client = gleaner::connect(&url).await?;
    client
        .batch_execute(
            "insert into contacts (first_name, phone_number) values ('Ann', '+44 (0)20 7946 0958');
             insert into ingestion_providers (name, provider_code, auto_create_contacts) values ('auto', 'generic', true);
             insert into activities (type, provider_id, metadata, created_at)
             select 'email', id, '{\"from\": \"new@example.com\"}', now() - interval '1 hour' from ingestion_providers",
        )
        .await?;
    let world = world_on(&url, |_| {}).await?;
    let read = "select count(*) from contact_addresses where parsed and address = '+442079460958'";
    eventually("the contact's number to be read", async || Ok(world.count(read).await? == 1)).await?;
    let unmatched = "select count(*) from activities where contact_id is null";
    eventually("the sender to have a contact", async || Ok(world.count(unmatched).await? == 0)).await?;
    world.server.stop().await;
    Ok(())
}
