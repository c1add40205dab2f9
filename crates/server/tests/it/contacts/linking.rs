//! A person's decision: link, link and backfill, unlink; and the record of it.

use anyhow::Result;
use gleaner_intake::contacts::{self, Link, Outcome, Page};
use serde_json::json;
use tokio_postgres::Client;
use uuid::Uuid;

use crate::contacts::world::{World, world};

async fn audit(world: &World) -> Result<Vec<String>> {
    let sql = "select concat_ws(' ', act, detail ->> 'from', detail ->> 'to', detail ->> 'sender', caller) from gleaner.audit where queue = 'activities' order by id";
    Ok(world.client.query(sql, &[]).await?.iter().map(|r| r.get(0)).collect())
}

async fn person(world: &World, name: &str) -> Result<(i64, Client, String)> {
    let id = world.person(name).await?;
    let user = world.text(&format!("select user_id || '/' from sales where id = {id}")).await?.unwrap_or_default();
    Ok((id, world.signed_in(id).await?, user))
}

#[tokio::test]
async fn a_member_links_one_or_all_of_a_sender_and_takes_it_back() -> Result<()> {
    let world = world().await?;
    let (_, member, user) = person(&world, "ann").await?;
    let channel = world.channel("desk").await?;
    let contact = world.contact(Some("new@x.com"), None).await?;
    let mut ids = Vec::new();
    for address in ["old@x.com", "old@x.com", "old@x.com", "else@x.com"] {
        ids.push(world.arrive(channel, "email", address).await?.id);
    }

    let answers = contacts::link(&member, ids[0], contact, Link::default()).await?;
    assert_eq!(answers.iter().map(|a| (a.id, a.outcome)).collect::<Vec<_>>(), [(ids[0], Outcome::Done)]);
    assert_eq!(world.arrived(ids[1]).await?.contact, None);
    assert_eq!(contacts::link(&member, ids[0], contact, Link::default()).await?[0].outcome, Outcome::Already);

    let answers = contacts::link(&member, ids[1], contact, Link { backfill: true, remember: false }).await?;
    let mut linked: Vec<Uuid> = answers.iter().map(|a| a.id).collect();
    linked.sort_unstable();
    let mut expected = vec![ids[1], ids[2]];
    expected.sort_unstable();
    assert_eq!(linked, expected);
    assert_eq!(world.arrived(ids[3]).await?.contact, None, "another sender's");

    assert_eq!(contacts::unlink(&member, ids[2]).await?.outcome, Outcome::Done);
    let apart = world.arrived(ids[2]).await?;
    assert_eq!((apart.contact, apart.matched), (None, Some(json!({"method": "unlinked", "candidates": [contact]}))));
    assert_eq!(contacts::unlink(&member, ids[2]).await?.outcome, Outcome::Already);
    // Linked again, and activities that were unlinked are included, because a person requests it.
    assert_eq!(contacts::link(&member, ids[0], contact, Link { backfill: true, remember: false }).await?.len(), 2);

    assert_eq!(
        audit(&world).await?,
        [
            format!("link {contact} old@x.com {user}"),
            format!("link {contact} old@x.com {user}"),
            format!("link {contact} old@x.com {user}"),
            format!("unlink {contact} old@x.com {user}"),
            format!("link {contact} old@x.com {user}"),
        ]
    );
    Ok(())
}

#[tokio::test]
async fn a_remembered_address_matches_by_itself_from_then_on() -> Result<()> {
    let world = world().await?;
    let (_, member, _) = person(&world, "ann").await?;
    let channel = world.channel("desk").await?;
    let contact = world.contact(Some("first@x.com"), None).await?;
    for (kind, address, from) in
        [("email", "second@x.com", "second@x.com"), ("phone", "+14158675309", "+14158675309"), ("phone", "1234567890", "+1234567890")]
    {
        let first = world.arrive(channel, kind, address).await?;
        world.run(&format!("update activities set metadata = metadata || '{{\"from\": \"{from}\"}}' where id = '{}'", first.id)).await?;
        assert_eq!(first.contact, None);
        for _ in ["once", "and again, which adds nothing"] {
            contacts::link(&member, first.id, contact, Link { backfill: false, remember: true }).await?;
        }
        contacts::parse_all(&world.client).await?;
        assert_eq!(world.arrive(channel, kind, address).await?.contact, Some(contact), "{address}");
    }
    assert_eq!(
        world.text("select concat_ws(' ', email, phone_number, email_jsonb, phone_jsonb) from contacts").await?.as_deref(),
        Some(
            "first@x.com +14158675309 [{\"type\": \"Other\", \"email\": \"second@x.com\"}] [{\"type\": \"Other\", \"number\": \"+14158675309\"}, {\"type\": \"Other\", \"number\": \"+1234567890\"}]"
        )
    );
    Ok(())
}

#[tokio::test]
async fn an_activity_that_is_not_visible_cannot_be_linked() -> Result<()> {
    let world = world().await?;
    let (owner, _, _) = person(&world, "private").await?;
    let (_, member, _) = person(&world, "ann").await?;
    world.run(&format!("update sales set allow_remote_processing = false where id = {owner}")).await?;
    let (private, shared) = (world.channel_with("private", "{}", false, Some(owner)).await?, world.channel("shared").await?);
    let contact = world.contact(None, None).await?;
    let (theirs, ours) = (world.arrive(private, "email", "a@x.com").await?, world.arrive(shared, "email", "a@x.com").await?);

    assert_eq!(contacts::link(&member, theirs.id, contact, Link::default()).await?[0].outcome, Outcome::Gone);
    // A backfill has the same limits.
    assert_eq!(contacts::link(&member, ours.id, contact, Link { backfill: true, remember: false }).await?.len(), 1);
    assert_eq!(world.arrived(theirs.id).await?.contact, None);
    assert_eq!(contacts::unmatched(&member, &Page::default()).await?.len(), 0);
    assert_eq!(contacts::unmatched(&world.client, &Page::default()).await?.len(), 1);

    let stranger = gleaner::connect(&world.database.url).await?;
    stranger.batch_execute("set role anon").await?;
    let refused = contacts::link(&stranger, ours.id, contact, Link::default()).await.unwrap_err();
    assert_eq!(refused.code().map(|c| c.code()), Some("42501"));
    let missing = contacts::link(&member, ours.id, contact + 1, Link::default()).await.unwrap_err();
    assert_eq!(missing.code().map(|c| c.code()), Some("GL003"));
    assert_eq!(contacts::unlink(&member, Uuid::from_u128(1)).await?.outcome, Outcome::Gone);
    Ok(())
}

/// The record is written by a trigger: nobody adds to it, and no way around the acts leaves it out.
#[tokio::test]
async fn the_audit_cannot_be_forged() -> Result<()> {
    let world = world().await?;
    let (_, member, _) = person(&world, "ann").await?;
    let channel = world.channel("desk").await?;
    let contact = world.contact(None, None).await?;
    let arrived = world.arrive(channel, "email", "a@x.com").await?;
    let called = member.execute("select gleaner.audit_link($1, 'link', null, $2)", &[&vec![arrived.id], &contact]).await;
    assert!(called.is_err());
    assert_eq!(audit(&world).await?, Vec::<String>::new());
    member.execute("update activities set contact_id = $2 where id = $1", &[&arrived.id, &contact]).await?;
    assert_eq!(audit(&world).await?.len(), 1);
    let error = member.execute("insert into gleaner.audit (queue, key, act, caller) values ('activities', '1', 'link', 'me')", &[]).await;
    assert!(error.is_err());
    Ok(())
}

#[tokio::test]
async fn the_inbox_is_paged_newest_first_with_names_of_candidates() -> Result<()> {
    let world = world().await?;
    let channel = world.channel("desk").await?;
    world
        .run("insert into contacts (id, first_name, last_name, email) values (1, 'Ann', 'Lee', 'a@x.com'), (2, 'Bob', null, 'a@x.com')")
        .await?;
    for n in 0..5 {
        world.arrive(channel, "email", &format!("n{n}@x.com")).await?;
    }
    // All have the same time, so that only the id distinguishes them.
    world.run("update activities set created_at = '2026-01-01'").await?;
    let newest = world.arrive(channel, "email", "a@x.com").await?;
    // Values that another program may have written there.
    world.run("insert into activities (created_at, metadata) values ('2025-01-01', '{\"match\": {\"candidates\": [\"x\", null, 99999999999999999999, {}]}}')").await?;

    let mut seen = Vec::new();
    let mut page = Page { limit: 2, after: None };
    loop {
        let part = contacts::unmatched(&world.client, &page).await?;
        page.after = part.last().map(contacts::Unmatched::cursor);
        if part.is_empty() {
            break;
        }
        seen.extend(part);
    }
    assert_eq!(seen.len(), 7);
    assert_eq!(seen.iter().map(|u| u.id).collect::<std::collections::BTreeSet<_>>().len(), 7, "each once");
    assert_eq!(seen[0].id, newest.id);
    assert_eq!(seen[0].method.as_deref(), Some("email"));
    assert_eq!(seen[0].candidates.iter().map(|c| (c.id, c.name.as_str())).collect::<Vec<_>>(), [(1, "Ann Lee"), (2, "Bob")]);
    assert!(seen[6].candidates.is_empty());
    Ok(())
}

/// People add a contact because of a message. Every way in which an address becomes known counts.
#[tokio::test]
async fn a_contact_added_after_its_message_finds_it() -> Result<()> {
    let world = world().await?;
    let channel = world.channel("desk").await?;
    let mail = world.arrive(channel, "email", "ann@example.com").await?;
    let call = world.arrive(channel, "phone", "+14158675309").await?;
    let chat = world.arrive(channel, "other", "telegram:42").await?;
    let apart = world.arrive(channel, "email", "ann@example.com").await?;
    let set =
        format!("update activities set metadata = metadata || '{{\"match\": {{\"method\": \"unlinked\"}}}}' where id = '{}'", apart.id);
    world.run(&set).await?;

    let ann = world.contact(Some("Ann@Example.com"), None).await?;
    assert_eq!(world.arrived(mail.id).await?.contact, Some(ann));
    assert_eq!(world.arrived(apart.id).await?.contact, None, "a person took this one apart");
    assert_eq!(world.arrived(call.id).await?.contact, None);
    world.run("update contacts set phone_number = '(415) 867-5309'").await?;
    assert_eq!(world.arrived(call.id).await?.contact, Some(ann), "an address that is added later");
    world.run(&format!("insert into contact_identities (contact_id, kind, value) values ({ann}, 'telegram', '42')")).await?;
    assert_eq!(world.arrived(chat.id).await?.contact, Some(ann));

    let shared = world.arrive(channel, "email", "office@example.com").await?;
    world.run("insert into contacts (email) values ('office@example.com')").await?;
    let first = world.arrived(shared.id).await?.contact;
    assert!(first.is_some());
    Ok(())
}
