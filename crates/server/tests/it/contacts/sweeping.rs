//! What the sweep does while no message arrives.

use std::time::Duration;

use anyhow::Result;
use gleaner_intake::contacts::{self, Page, Swept};

use crate::contacts::world::{World, world};

const A_DAY: Duration = Duration::from_secs(86_400);

async fn age(world: &World, interval: &str) -> Result<()> {
    world.run(&format!("update activities set created_at = now() - interval '{interval}'")).await
}

#[tokio::test]
async fn a_sender_whom_a_dead_server_overlooked_becomes_a_contact() -> Result<()> {
    let world = world().await?;
    let (wanted, unwanted) = (world.channel_with("auto", "{}", true, None).await?, world.channel("desk").await?);
    // The server crashed right after this commit.
    let overlooked = world.arrive(wanted, "email", "new@example.com").await?;
    world.arrive(unwanted, "email", "other@example.com").await?;
    assert_eq!(contacts::sweep(&world.client, A_DAY).await?.linked, 0, "whoever stored it a moment ago is about to make it");
    age(&world, "2 days").await?;
    assert_eq!(contacts::sweep(&world.client, A_DAY).await?.linked, 0, "longer ago than asked for");
    age(&world, "5 minutes").await?;
    assert_eq!(contacts::sweep(&world.client, A_DAY).await?.linked, 1);
    assert!(world.arrived(overlooked.id).await?.contact.is_some());
    assert_eq!(contacts::sweep(&world.client, A_DAY).await?, Swept::default());
    assert_eq!(world.count("select count(*) from contacts").await?, 1);
    Ok(())
}

#[tokio::test]
async fn a_sample_of_ours_makes_no_contact_and_is_not_unmatched() -> Result<()> {
    let world = world().await?;
    let channel = world.channel_with("auto", "{}", true, None).await?;
    world.arrive(channel, "email", "test@gleaner.example").await?;
    world.run("update activities set metadata = metadata || '{\"test\": true}', processing_status = 'cancelled'").await?;
    age(&world, "5 minutes").await?;
    assert_eq!(contacts::sweep(&world.client, A_DAY).await?.linked, 0);
    assert!(contacts::unmatched(&world.client, &Page::default()).await?.is_empty());
    // The mark alone, as another program may write it, hides nothing.
    world.arrive(channel, "email", "ann@example.com").await?;
    world.run("update activities set metadata = metadata || '{\"test\": true}'").await?;
    assert_eq!(contacts::unmatched(&world.client, &Page::default()).await?.len(), 1);
    Ok(())
}

#[tokio::test]
async fn what_people_typed_is_read_although_no_message_comes() -> Result<()> {
    let world = world().await?;
    world.contact(None, Some("+44 (0)20 7946 0958")).await?;
    assert_eq!(contacts::sweep(&world.client, A_DAY).await?.addresses, 1);
    assert_eq!(world.text("select address from contact_addresses where parsed").await?.as_deref(), Some("+442079460958"));
    Ok(())
}
