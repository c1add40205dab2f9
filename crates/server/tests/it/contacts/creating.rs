//! Contacts created for unknown senders.

use anyhow::Result;
use futures_util::future::try_join_all;
use gleaner_intake::contacts::{self, Created};
use gleaner_postgres::testing;
use serde_json::json;
use uuid::Uuid;

use crate::contacts::world::{World, event, ingest, world};

/// Stores an event of a sender with this name.
async fn arrive(world: &World, channel: Uuid, sender: (&str, &str), name: Option<&str>, from: &str) -> Result<Uuid> {
    let mut brought = event(&Uuid::new_v4().to_string());
    brought["sender"] = json!({"kind": sender.0, "address": sender.1});
    brought["sender_name"] = json!(name);
    brought["metadata"] = json!({"from": from});
    let answers = world.ingest(&[json!({"channel": channel, "events": [brought]})]).await?;
    Ok(answers[0].id.expect("stored"))
}

async fn contact(world: &World, id: i64) -> Result<Option<String>> {
    world
        .text(&format!(
            "select concat_ws('|', first_name, last_name, email, phone_number, email_jsonb, phone_jsonb, tags, sales_id) from contacts where id = {id}"
        ))
        .await
}

#[tokio::test]
async fn an_unknown_sender_becomes_a_contact_where_the_channel_wants_it() -> Result<()> {
    let world = world().await?;
    let owner = world.person("ann").await?;
    let (wanted, unwanted) = (world.channel_with("auto", "{}", true, Some(owner)).await?, world.channel("desk").await?);
    for (sender, name, from, expected) in [
        (
            ("email", "john@example.com"),
            None,
            "john@example.com",
            format!(
                "john||john@example.com|[{{\"type\": \"Other\", \"email\": \"john@example.com\"}}]|[]|{{auto-created,unqualified}}|{owner}"
            ),
        ),
        (
            ("email", "jd@example.com"),
            Some("Doe, John"),
            "jd@example.com",
            format!(
                "John|Doe|jd@example.com|[{{\"type\": \"Other\", \"email\": \"jd@example.com\"}}]|[]|{{auto-created,unqualified}}|{owner}"
            ),
        ),
        (
            ("phone", "+14158675309"),
            Some("Kerry van Fisher"),
            "+14158675309",
            format!(
                "Kerry|van Fisher|+14158675309|[]|[{{\"type\": \"Other\", \"number\": \"+14158675309\"}}]|{{auto-created,unqualified}}|{owner}"
            ),
        ),
        (
            ("phone", "1234567890"),
            None,
            "+1234567890",
            format!(
                "1234567890||+1234567890|[]|[{{\"type\": \"Other\", \"number\": \"+1234567890\"}}]|{{auto-created,unqualified}}|{owner}"
            ),
        ),
    ] {
        let first = arrive(&world, wanted, sender, name, from).await?;
        let created = contacts::create(&world.client, &[first]).await?;
        let [Created { activity, contact: Some(id), fresh: true }] = created[..] else { panic!("{created:?}") };
        assert_eq!(activity, first);
        assert_eq!(contact(&world, id).await?, Some(expected));
        assert_eq!(world.arrived(first).await?.contact, Some(id));
        // The next message matches it, before and after the number has been parsed.
        for _ in ["before", "after"] {
            let next = arrive(&world, unwanted, sender, name, from).await?;
            assert_eq!(world.arrived(next).await?.contact, Some(id), "{sender:?}");
            contacts::parse_all(&world.client).await?;
            world.run(&format!("update contacts set phone_number = phone_number where id = {id}")).await?;
            contacts::parse_all(&world.client).await?;
        }
        assert!(contacts::create(&world.client, &[first]).await?.is_empty(), "it has its contact");
    }
    Ok(())
}

#[tokio::test]
async fn nothing_is_made_of_what_should_not_be_a_contact() -> Result<()> {
    let world = world().await?;
    let (wanted, unwanted) = (world.channel_with("auto", "{}", true, None).await?, world.channel("desk").await?);
    world.contact(Some("two@x.com"), None).await?;
    world.contact(Some("two@x.com"), None).await?;
    let ids = [
        arrive(&world, unwanted, ("email", "a@x.com"), None, "a@x.com").await?,
        arrive(&world, wanted, ("email", "two@x.com"), None, "two@x.com").await?,
        arrive(&world, wanted, ("other", "telegram:7"), None, "").await?,
        arrive(&world, wanted, ("email", "spam@x.com"), None, "spam@x.com").await?,
    ];
    world.run(&format!("update activities set metadata = metadata || '{{\"spam\": true}}' where id = '{}'", ids[3])).await?;
    assert_eq!(contacts::create(&world.client, &ids).await?, []);
    assert_eq!(world.count("select count(*) from contacts").await?, 2);
    Ok(())
}

#[tokio::test]
async fn fifty_messages_of_one_new_sender_at_once_make_one_contact() -> Result<()> {
    let world = world().await?;
    let channel = world.channel_with("auto", "{}", true, None).await?;
    let clients = try_join_all((0..50).map(|_| gleaner::connect(&world.database.url))).await?;
    // Different spellings of one mailbox and of one number, in turn.
    let spellings = [("email", "new@example.com"), ("email", "new+a@example.com"), ("phone", "+525512345678"), ("phone", "+5215512345678")];
    let made = try_join_all(clients.iter().enumerate().map(|(n, client)| async move {
        let (kind, address) = spellings[n % 4];
        let mut brought = event(&n.to_string());
        brought["sender"] = json!({"kind": kind, "address": address});
        let answers = ingest(client, &[json!({"channel": channel, "events": [brought]})]).await?;
        anyhow::Ok(contacts::create(client, &[answers[0].id.expect("stored")]).await?)
    }))
    .await?;
    assert_eq!(world.count("select count(*) from contacts").await?, 2);
    assert_eq!(world.count("select count(*) from activities where contact_id is null").await?, 0);
    assert_eq!(made.iter().flatten().filter(|created| created.fresh).count(), 2);
    Ok(())
}

/// A CRM that existed before us: lists instead of columns, tags that are numbers, triggers of its own.
const CRM: &str = "
    create table public.sales (id bigint generated by default as identity primary key, first_name text not null, last_name text not null,
        email text not null, administrator boolean not null, user_id uuid not null, avatar jsonb, disabled boolean not null default false);
    create table public.contacts (id bigint generated by default as identity primary key, first_name text, last_name text, title text,
        email_jsonb jsonb, phone_jsonb jsonb, first_seen timestamptz, last_seen timestamptz, tags bigint[], company_id bigint,
        sales_id bigint references public.sales (id));
    insert into public.contacts (first_name, email_jsonb, phone_jsonb, tags) values
        ('Bob', '[{\"email\": \"Bob@Example.com\", \"type\": \"Work\"}]', '[{\"number\": \"+44 (0)20 7946 0958\", \"type\": \"Work\"}]', '{1,2}');
    create function public.lower_emails() returns trigger language plpgsql as $$ begin
        new.email_jsonb := coalesce((select jsonb_agg(e || jsonb_build_object('email', lower(e ->> 'email'))) from jsonb_array_elements(new.email_jsonb) e), '[]');
        return new; end $$;
    create trigger lower_emails before insert or update on public.contacts for each row execute function public.lower_emails();";

#[tokio::test]
async fn a_crm_that_was_there_first_keeps_its_shape() -> Result<()> {
    let database = testing::server().empty_database().await?;
    gleaner::connect(&database.url).await?.batch_execute(CRM).await?;
    gleaner::migrate::migrate(&database.url, &|_| {}).await?;
    let world = World::on(database).await?;
    let channel = world.channel_with("auto", "{}", true, None).await?;
    // Its existing contact, matched from the lists alone.
    contacts::parse_all(&world.client).await?;
    for sender in [("email", "bob@example.com"), ("phone", "+442079460958")] {
        let known = arrive(&world, channel, sender, None, sender.1).await?;
        assert_eq!(world.arrived(known).await?.contact, Some(1), "{sender:?}");
    }
    // A new contact, without tags, since ours are text.
    let unknown = arrive(&world, channel, ("email", "new@example.com"), Some("New Person"), "new@example.com").await?;
    let [Created { contact: Some(id), fresh: true, .. }] = contacts::create(&world.client, &[unknown]).await?[..] else {
        panic!("no contact")
    };
    assert_eq!(
        world.text(&format!("select concat_ws('|', first_name, last_name, email_jsonb, phone_jsonb, tags, first_seen is not null) from contacts where id = {id}")).await?.as_deref(),
        Some("New|Person|[{\"type\": \"Other\", \"email\": \"new@example.com\"}]|[]|t")
    );
    // An address that a person chose to remember goes into its list.
    let other = arrive(&world, world.channel("desk").await?, ("phone", "+14158675309"), None, "+14158675309").await?;
    contacts::link(&world.client, other, 1, contacts::Link { backfill: false, remember: true }).await?;
    assert_eq!(world.text("select phone_jsonb -> 1 ->> 'number' from contacts where id = 1").await?.as_deref(), Some("+14158675309"));
    Ok(())
}

/// The table refuses one contact: the others are created, and the activity stays in the list for a person.
#[tokio::test]
async fn a_contact_that_the_table_rejects_does_not_affect_others() -> Result<()> {
    let world = world().await?;
    let channel = world.channel_with("auto", "{}", true, None).await?;
    world.run("alter table contacts add constraint no_robots check (first_name <> 'robot')").await?;
    let (refused, made) = (
        arrive(&world, channel, ("email", "robot@x.com"), None, "robot@x.com").await?,
        arrive(&world, channel, ("email", "ann@x.com"), None, "ann@x.com").await?,
    );
    let created = contacts::create(&world.client, &[refused, made]).await?;
    assert_eq!(created.iter().find(|c| c.activity == refused).and_then(|c| c.contact), None);
    assert!(created.iter().any(|c| c.activity == made && c.contact.is_some()));
    assert_eq!(world.count("select count(*) from contacts").await?, 1);
    Ok(())
}
