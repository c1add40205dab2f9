//! What an operator does: add a person, disable one who holds work, enable again.

use anyhow::Result;
use gleaner_server::people::{Trouble as Leaving, disable, enable};
use gleaner_supabase::auth::Password;
use gleaner_supabase::auth::people::{self, Trouble};
use serde_json::json;

use crate::auth::support::{ADA, PASSWORD, world};

#[tokio::test]
async fn a_user_and_its_owners_row_are_made_together() -> Result<()> {
    let world = world().await?;
    let ada = people::add(&world.client, "Ada@Example.com ", Some(Password::new(PASSWORD)), true).await?;
    let row = world.client.query_one("select id, administrator, email, first_name from sales where user_id = $1", &[&ada.id]).await?;
    assert_eq!((row.get(0), row.get(1)), (ada.sales_id.unwrap_or(0), true));
    assert_eq!((row.get::<_, &str>(2), row.get::<_, &str>(3)), (ADA, "ada"));
    assert!(matches!(people::add(&world.client, ADA, None, false).await, Err(Trouble::Taken(_))));
    assert!(matches!(people::add(&world.client, "bob@example.com", Some(Password::new("short")), false).await, Err(Trouble::Refused(_))));
    assert!(matches!(people::add(&world.client, "bob", None, false).await, Err(Trouble::Refused(_))));
    assert_eq!(world.count("select count(*) from auth.users").await?, 1);
    Ok(())
}

#[tokio::test]
async fn an_owners_row_that_waits_for_its_user_is_linked() -> Result<()> {
    let world = world().await?;
    world.run("insert into sales (id, email, first_name) values (7, 'ADA@example.com', 'Ada'), (8, 'bob@example.com', 'Bob')").await?;
    assert_eq!(people::add(&world.client, ADA, None, false).await?.sales_id, Some(7));
    assert_eq!(world.count("select count(*) from sales").await?, 2);
    Ok(())
}

#[tokio::test]
async fn half_a_user_is_never_left_behind() -> Result<()> {
    let world = world().await?;
    world.run("alter table sales add constraint no_ada check (email <> 'ada@example.com')").await?;
    assert!(matches!(people::add(&world.client, ADA, Some(Password::new(PASSWORD)), false).await, Err(Trouble::Database(_))));
    assert_eq!(world.count("select count(*) from auth.users").await?, 0);
    Ok(())
}

#[tokio::test]
async fn disabling_gives_back_what_was_held_and_hands_over_what_was_owned() -> Result<()> {
    let mut world = world().await?;
    let session = world.ada_signed_in().await?;
    let bob = people::add(&world.client, "bob@example.com", None, false).await?;
    let ada_sales = world.text("select id::text from sales where email = 'ada@example.com'").await?.unwrap_or_default();
    world
        .run(&format!(
            "insert into activities (type, sales_id) values ('call', {ada_sales}), ('sms', {ada_sales}), ('email', {ada_sales}), ('note', null);
             update activities set processing_status = 'completed' where type = 'email'"
        ))
        .await?;
    // She holds two rows: one of her own, one without an owner. They are claimed over HTTP, as an agent does.
    let claims = crate::auth::support::claims(session.access()).to_string();
    let mut taken = 0;
    for kind in ["call", "note"] {
        let transaction = world.client.transaction().await?;
        transaction
            .execute("select set_config('role', 'authenticated', true), set_config('request.jwt.claims', $1, true)", &[&claims])
            .await?;
        let sql = format!("select id from gleaner.claim_activities('laptop', 1, p_kinds => '{{{kind}}}')");
        taken += transaction.query(&sql, &[]).await?.len();
        transaction.commit().await?;
    }
    assert_eq!(taken, 2);

    let report = disable(&mut world.client, ADA, None).await?;
    assert_eq!((report.released, report.left), (vec![("activities".into(), 2)], vec![("activities".into(), 2)]));
    assert_eq!(world.count("select count(*) from activities where processing_status = 'processing'").await?, 0);
    assert_eq!(world.count("select count(*) from activities where attempts > 0").await?, 0, "nothing was burnt");
    assert_eq!(world.count("select count(*) from auth.sessions").await?, 0);
    assert_eq!(world.refresh(session.refresh()).await.status, 400);
    assert_eq!(world.sign_in(ADA, PASSWORD).await.refused(), (403, "user_banned"));

    let report = disable(&mut world.client, ADA, Some("bob@example.com")).await?;
    assert_eq!(report.assigned, vec![("activities".into(), 2)]);
    let owned = format!("select count(*) from activities where sales_id = {}", bob.sales_id.unwrap_or(0));
    assert_eq!(world.count(&owned).await?, 2, "and what she finished stays hers");
    assert_eq!(world.count("select count(*) from gleaner.audit where act = 'assign'").await?, 2);

    enable(&mut world.client, ADA).await?;
    assert_eq!(world.sign_in(ADA, PASSWORD).await.status, 200);
    assert!(matches!(disable(&mut world.client, "carol@example.com", None).await, Err(Leaving::User(Trouble::Unknown(_)))));
    assert!(matches!(disable(&mut world.client, ADA, Some(ADA)).await, Err(Leaving::User(Trouble::Refused(_)))));
    assert_eq!(world.sign_in(ADA, PASSWORD).await.status, 200, "a refused act changes nothing");
    Ok(())
}

#[tokio::test]
async fn the_list_says_who_may_come_in() -> Result<()> {
    let mut world = world().await?;
    world.ada_signed_in().await?;
    people::add(&world.client, "bob@example.com", Some(Password::new(PASSWORD)), true).await?;
    disable(&mut world.client, "bob@example.com", None).await?;
    people::invite(&world.client, "carol@example.com", false, "http://x").await?;
    let list = people::list(&world.client).await?;
    let states: Vec<(&str, &str, bool)> = list
        .iter()
        .map(|p| (p["email"].as_str().unwrap_or_default(), p["state"].as_str().unwrap_or_default(), p["administrator"] == json!(true)))
        .collect();
    assert_eq!(states, [(ADA, "active", false), ("bob@example.com", "disabled", true), ("carol@example.com", "invited", false)]);
    assert_eq!(list[0]["sessions"], 1);
    people::set_password(&world.client, ADA, Password::new("a fresh password")).await?;
    assert_eq!(world.sign_in(ADA, "a fresh password").await.status, 200);
    Ok(())
}
