//! The rules by which a sender is matched to a contact.

use anyhow::Result;
use gleaner_ingest::address::{email, phone};
use gleaner_intake::contacts;
use serde_json::json;

use crate::contacts::world::{World, world};

/// What a provider makes of this sender, in a channel of this region.
fn sender(text: &str, region: &str) -> Option<(&'static str, String)> {
    email::normalise(text).map(|address| ("email", address)).or_else(|| phone::normalise(text, region).map(|address| ("phone", address)))
}

/// Creates one contact, then stores this sender, by webhook and by a plain insert.
async fn links(world: &World, written: &str, arriving: &str, region: &str, expected: bool) -> Result<()> {
    world.run("delete from activities; delete from contacts").await?;
    world.run(&format!("update gleaner.contact_settings set default_region = '{region}'")).await?;
    let channel = world.channel_with(&format!("{written} {arriving}"), &json!({"default_region": region}).to_string(), false, None).await?;
    let contact =
        if written.contains('@') { world.contact(Some(written), None).await? } else { world.contact(None, Some(written)).await? };
    contacts::parse_all(&world.client).await?;
    let arrived = match sender(arriving, region) {
        Some((kind, address)) => world.arrive(channel, kind, &address).await?.contact,
        None => None,
    };
    assert_eq!(arrived, expected.then_some(contact), "{arriving:?} to {written:?} [{region}]");
    // SQL recognizes a country only by its code, or by the ten digits of country code 1.
    if region == "US" {
        let inserted = world.insert(arriving).await?.contact;
        assert_eq!(inserted, expected.then_some(contact), "{arriving:?} inserted plainly, to {written:?}");
    }
    Ok(())
}

#[tokio::test]
async fn every_written_form_finds_its_contact() -> Result<()> {
    let world = world().await?;
    for (written, arriving, region) in [
        // Addresses.
        ("john@example.com", "John Q <JOHN@example.com>", "US"),
        ("John@Example.com", "john@example.com", "US"),
        ("john@example.com", "\"Doe, John\" <john@example.com>", "US"),
        ("john@example.com", "john@example.com (John)", "US"),
        ("john@example.com", "john@example.com, jane@example.com", "US"),
        ("john@example.com", "john+news@example.com", "US"),
        ("john.doe@gmail.com", "johndoe+x@googlemail.com", "US"),
        ("john@bücher.example", "john@bücher.example", "US"),
        // The table of formats, in both directions.
        ("(415) 867-5309", "+14158675309", "US"),
        ("+1 (415) 867-5309", "+14158675309", "US"),
        ("4158675309 x123", "+14158675309", "US"),
        ("+14158675309", "(415) 867-5309", "US"),
        ("415.867.5309", "whatsapp:+14158675309", "US"),
        ("011 44 20 7946 0958", "+442079460958", "US"),
        ("+44 (0)20 7946 0958", "+442079460958", "US"),
        ("06 6982", "+39066982", "IT"),
        ("+39066982", "06 6982", "IT"),
        ("8 (495) 123-45-67", "+74951234567", "RU"),
        ("011 15 2345-6789", "+5491123456789", "AR"),
        ("+1234567890", "+1234567890", "US"),
        ("0044 20 7946 0958", "0044 20 7946 0958", "US"),
        ("384387", "384387", "US"),
        ("+1 555 010 0199", "+15550100199", "US"),
        // Other spellings of a mobile number.
        ("+52 1 55 1234 5678", "+525512345678", "US"),
        ("+52 55 1234 5678", "+5215512345678", "US"),
        ("+55 11 98765-4321", "+551187654321", "US"),
        ("+55 11 8765-4321", "+5511987654321", "US"),
        ("+54 9 11 2345-6789", "+541123456789", "US"),
        ("+54 11 2345-6789", "+5491123456789", "US"),
    ] {
        links(&world, written, arriving, region, true).await?;
    }
    Ok(())
}

#[tokio::test]
async fn ten_equal_digits_across_countries_are_no_match() -> Result<()> {
    let world = world().await?;
    for (written, arriving) in [
        ("+1 (415) 867-5309", "+33415867530"),
        ("+1 (415) 867-5309", "+44 4158675309"),
        ("+44 4158675309", "+14158675309"),
        ("(415) 867-5309", "+4474158675309"),
        // A withheld caller, and the line in Austin that has the same digits.
        ("(737) 874-2833", "+7378742833"),
        ("+7378742833", "+7378742833"),
        ("(737) 874-2833", "anonymous"),
        ("+86 282452253", "+86282452253"),
        // A British number dialled from elsewhere, and a line in Maine.
        ("0044 20 7946 0958", "+12079460958"),
        ("+44 20 7946 0958", "(207) 946-0958"),
        // Not a possible number: it must match digit for digit.
        ("+1234567890", "+11234567890"),
        ("+1234567890", "+1234567891"),
        ("1234567", "+11234567"),
        // A short code is compared as text.
        ("84387", "384387"),
        ("38-43-87", "384387"),
        // A land line in São Paulo never had a nine.
        ("+55 11 3765-4321", "+5511937654321"),
        ("+52 55 1234 5678", "+5255123456789"),
        // Dots are significant everywhere but at Google.
        ("john.doe@example.com", "johndoe@example.com"),
        ("john@example.com", "john@example.org"),
        ("+14158675309", "whatsapp:US.14158675309"),
    ] {
        links(&world, written, arriving, "US", false).await?;
    }
    Ok(())
}

/// A number written without country code by a person in country code 1, parsed by a server that is configured for another
/// region.
#[tokio::test]
async fn last_ten_digits_count_within_country_code_one_only() -> Result<()> {
    let world = world().await?;
    world.run("update gleaner.contact_settings set default_region = 'GB'").await?;
    let contact = world.contact(None, Some("415 867 5309")).await?;
    contacts::parse_all(&world.client).await?;
    assert_eq!(
        world.text("select address from contact_addresses where parsed and loose is not null").await?.as_deref(),
        Some("+444158675309")
    );
    let (american, british) =
        (world.channel_with("us", r#"{"default_region": "us"}"#, false, None).await?, world.channel_with("gb", "{}", false, None).await?);
    assert_eq!(world.arrive(american, "phone", "+14158675309").await?.contact, Some(contact));
    assert_eq!(world.arrive(british, "phone", "+14158675309").await?.contact, None);

    // With two candidates, none is chosen.
    let other = world.contact(None, Some("(415) 867-5309")).await?;
    contacts::parse_all(&world.client).await?;
    let arrived = world.arrive(american, "phone", "+14158675309").await?;
    assert_eq!(arrived.contact, None);
    assert_eq!(arrived.matched, Some(json!({"method": "phone_loose", "candidates": [contact, other]})));
    Ok(())
}

#[tokio::test]
async fn what_fits_several_stays_unlinked_with_its_candidates() -> Result<()> {
    let world = world().await?;
    let channel = world.channel("desk").await?;
    for (method, first, second, kind, arriving) in [
        ("email", "john@example.com", "John@Example.com", "email", "john@example.com"),
        ("email_loose", "jane+a@example.com", "jane+b@example.com", "email", "jane@example.com"),
        ("phone", "+14158675309", "(415) 867-5309", "phone", "+14158675309"),
        ("phone_alias", "+52 55 1234 5678", "+525512345678", "phone", "+5215512345678"),
    ] {
        let written = |text: &'static str| if kind == "email" { (Some(text), None) } else { (None, Some(text)) };
        let (first, second) = (written(first), written(second));
        let candidates = [world.contact(first.0, first.1).await?, world.contact(second.0, second.1).await?];
        contacts::parse_all(&world.client).await?;
        for arrived in [world.arrive(channel, kind, arriving).await?, world.insert(arriving).await?] {
            assert_eq!(arrived.contact, None, "{method}");
            assert_eq!(arrived.matched, Some(json!({"method": method, "candidates": candidates})));
        }
    }
    Ok(())
}

/// An exact match decides, even if other contacts have the same mailbox in another spelling.
#[tokio::test]
async fn an_exact_match_needs_no_second_rule() -> Result<()> {
    let world = world().await?;
    let channel = world.channel("desk").await?;
    let tagged = world.contact(Some("jane+a@example.com"), None).await?;
    world.contact(Some("jane@example.com"), None).await?;
    assert_eq!(world.arrive(channel, "email", "jane+a@example.com").await?.contact, Some(tagged));
    Ok(())
}

#[tokio::test]
async fn a_contact_twice_in_one_address_is_still_one() -> Result<()> {
    let world = world().await?;
    let channel = world.channel("desk").await?;
    world
        .run(
            "insert into contacts (id, email, phone_number, email_jsonb, phone_jsonb) values
             (7, 'a@x.com', '415 867 5309', '[{\"email\": \"A@x.com\"}]', '[{\"number\": \"+1 415 867 5309\"}, {\"number\": \"(415) 8675309\"}]')",
        )
        .await?;
    for _ in ["as SQL reads it", "as the library does"] {
        assert_eq!(world.arrive(channel, "email", "a@x.com").await?.contact, Some(7));
        assert_eq!(world.arrive(channel, "phone", "+14158675309").await?.contact, Some(7));
        contacts::parse_all(&world.client).await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_contact_given_by_the_writer_is_left_alone() -> Result<()> {
    let world = world().await?;
    let (ann, bob) = (world.contact(Some("a@x.com"), None).await?, world.contact(Some("b@x.com"), None).await?);
    let sql = "insert into activities (contact_id, metadata) values ($1, '{\"from\": \"a@x.com\"}') returning contact_id";
    let linked: Option<i64> = world.client.query_one(sql, &[&bob]).await?.get(0);
    assert_eq!(linked, Some(bob));
    assert_ne!(ann, bob);
    Ok(())
}

/// Whatever a program writes into these columns, the row is stored.
#[tokio::test]
async fn odd_senders_never_stop_an_insert() -> Result<()> {
    let world = world().await?;
    let long = "x@".repeat(4000);
    for metadata in [
        json!({"from": ""}),
        json!({"from": null}),
        json!({"from": 4_158_675_309_u64}),
        json!({"from": {"a": 1}}),
        json!({"from": long}),
        json!({"from": "9".repeat(5000)}),
        json!(["from"]),
        json!("from"),
    ] {
        world.client.execute("insert into activities (metadata, raw_data) values ($1, $1)", &[&metadata]).await?;
    }
    world.client.execute("insert into activities (sender_kind, sender_address) values ('carrier pigeon', 'coo')", &[]).await?;
    world.client.execute("insert into activities (sender_address) values ('nobody knows what')", &[]).await?;
    world
        .client
        .execute("insert into contacts (email, phone_number, email_jsonb, phone_jsonb) values ($1, $1, '{}', '7')", &[&long])
        .await?;
    Ok(())
}
