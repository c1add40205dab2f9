//! Contacts' own numbers, parsed by the server.

use std::time::Duration;

use anyhow::Result;
use futures_util::future::try_join_all;
use gleaner_intake::contacts;

use crate::contacts::world::world;

#[tokio::test]
async fn messages_that_came_before_their_contact_was_parsed_are_matched_again() -> Result<()> {
    let world = world().await?;
    world.run("update gleaner.contact_settings set default_region = 'AR'").await?;
    let channel = world.channel_with("ar", r#"{"default_region": "AR"}"#, false, None).await?;
    let before = world.arrive(channel, "phone", "+5491123456789").await?;
    let contact = world.contact(None, Some("011 15 2345-6789")).await?;
    let first = world.arrive(channel, "phone", "+5491123456789").await?;
    let unlinked = world.arrive(channel, "phone", "+5491123456789").await?;
    assert_eq!((first.contact, unlinked.contact), (None, None), "SQL cannot read this number");
    world
        .run(&format!(
            "update activities set metadata = metadata || '{{\"match\": {{\"method\": \"unlinked\"}}}}' where id = '{}'",
            unlinked.id
        ))
        .await?;

    assert_eq!(contacts::parse_pending(&world.client).await?, 1);
    assert_eq!(world.arrived(first.id).await?.contact, Some(contact));
    assert_eq!(world.arrived(unlinked.id).await?.contact, None, "a person took this one apart");
    assert_eq!(world.arrived(before.id).await?.contact, Some(contact), "the contact was added because of it");
    assert_eq!(world.arrive(channel, "phone", "+5491123456789").await?.contact, Some(contact));
    assert_eq!(contacts::parse_pending(&world.client).await?, 0);
    Ok(())
}

#[tokio::test]
async fn a_changed_number_is_read_again_and_the_old_one_forgotten() -> Result<()> {
    let world = world().await?;
    let channel = world.channel("desk").await?;
    let contact = world.contact(None, Some("(415) 867-5309")).await?;
    contacts::parse_all(&world.client).await?;
    world.run("update contacts set phone_number = '011 44 20 7946 0958'").await?;
    assert_eq!(contacts::parse_all(&world.client).await?, 1);
    assert_eq!(world.arrive(channel, "phone", "+14158675309").await?.contact, None);
    assert_eq!(world.arrive(channel, "phone", "+442079460958").await?.contact, Some(contact));
    world.run("delete from contacts").await?;
    assert_eq!(world.count("select count(*) from contact_addresses").await?, 0);
    Ok(())
}

#[tokio::test]
async fn text_that_is_no_number_matches_no_contact() -> Result<()> {
    let world = world().await?;
    // Digits that SQL does not recognize, and text that is no number.
    world.contact(None, Some("４１５-８６７-５３０９")).await?;
    world.contact(None, Some("números")).await?;
    contacts::parse_all(&world.client).await?;
    assert_eq!(
        world.text("select string_agg(address, ' ') from contact_addresses").await?.as_deref(),
        Some("+14158675309"),
        "what is read is kept, what is not is not"
    );
    Ok(())
}

/// Several servers after an import: each address is parsed once, and a contact that is being edited is skipped.
#[tokio::test]
async fn servers_share_the_reading_of_an_import() -> Result<()> {
    let world = world().await?;
    world.run("insert into contacts (phone_number) select '(415) 867-' || lpad(n::text, 4, '0') from generate_series(1, 3000) n").await?;
    let editor = gleaner::connect(&world.database.url).await?;
    editor.batch_execute("begin; update contacts set phone_number = '+442079460958' where phone_number = '(415) 867-0007'").await?;
    let clients = try_join_all((0..4).map(|_| gleaner::connect(&world.database.url))).await?;
    // A server that waited for the editor would wait for ever.
    let reading = tokio::time::timeout(Duration::from_secs(120), try_join_all(clients.iter().map(contacts::parse_all)));
    let read: usize = reading.await??.into_iter().sum();
    assert_eq!(read, 2999);
    editor.batch_execute("commit").await?;
    assert_eq!(contacts::parse_all(&world.client).await?, 1);
    assert_eq!(world.count("select count(*) from contact_addresses where not parsed").await?, 0);
    assert_eq!(world.count("select count(*) from contact_addresses").await?, 3000);
    Ok(())
}

/// A server keeps its sessions; what is changed while it runs must reach them.
#[tokio::test]
async fn the_region_of_numbers_is_changed_on_a_running_server() -> Result<()> {
    let w = crate::webhooks::support::world().await?;
    let channel = w.channel_of("generic", serde_json::json!({"scheme": "none"})).await?;
    w.client.batch_execute("insert into contacts (first_name, phone_number) values ('Ann', '020 7946 0958')").await?;
    let send = async |id: &str| {
        let body = serde_json::json!({"type": "sms", "from": "+442079460958", "content": "hello", "external_id": id}).to_string();
        let answer = w.send("POST", &channel.target(), &[("content-type", "application/json")], body.as_bytes()).await?;
        anyhow::ensure!(answer.status == 202, "{answer:?}");
        w.text(&format!("select contact_id::text from activities where external_id = '{id}'")).await
    };
    assert_eq!(send("before").await?, None, "not a number of the United States");
    w.client.batch_execute("update gleaner.contact_settings set default_region = 'GB'").await?;
    assert!(send("after").await?.is_some());
    assert!(w.text("select contact_id::text from activities where external_id = 'before'").await?.is_some(), "found with it");
    Ok(())
}
