//! A token is refused when its user is banned.

use anyhow::{Context as _, Result};
use gleaner_http::{Caller, begin};
use serde_json::json;

use super::world::{World, world};

/// Creates a person who can sign in and belongs to the team. Returns the id and a token.
async fn signed_in(world: &World, name: &str) -> Result<(String, String)> {
    let (_, user) = world.person(name, true).await?;
    world.run(&format!("insert into auth.users (id, email) values ('{user}', '{name}@example.com')")).await?;
    let token = world.token(&user);
    Ok((user, token))
}

async fn change(world: &World, user: &str, ban: &str) -> Result<()> {
    let done = world.text(&format!("select gleaner.change_user('{user}', '{{\"ban\": \"{ban}\"}}', null)")).await?;
    anyhow::ensure!(done.as_deref() == Some("done"), "{done:?}");
    Ok(())
}

#[tokio::test]
async fn a_ban_ends_a_token_at_once_for_reading_writing_and_calling() -> Result<()> {
    let world = world().await?.with_things().await?;
    let (user, token) = signed_in(&world, "ada").await?;
    let (_, other) = signed_in(&world, "bob").await?;
    world.run("create function one() returns int language sql as 'select 1'").await?;
    world.get("/things?select=id&id=eq.1").signed_in(&token).expect(200).await?;

    change(&world, &user, "forever").await?;
    let banned = ("42501".to_owned(), "User is banned".to_owned());
    assert_eq!(world.get("/things").signed_in(&token).refused(403).await?, banned);
    // Also the path with a check before the commit.
    assert_eq!(world.get("/things?id=eq.1").single().signed_in(&token).refused(403).await?, banned);
    assert_eq!(world.patch("/things?id=eq.1", json!({"name": "mine"})).signed_in(&token).refused(403).await?, banned);
    assert_eq!(world.post("/rpc/one", json!({})).signed_in(&token).refused(403).await?, banned);
    assert_eq!(world.text("select count(*)::text from things where name = 'mine'").await?.as_deref(), Some("0"));
    assert_eq!(world.post("/rpc/one", json!({})).signed_in(&other).expect(200).await?, json!(1), "nobody else is concerned");

    change(&world, &user, "none").await?;
    world.get("/things").signed_in(&token).expect(200).await?;
    world.run(&format!("update auth.users set banned_until = now() - interval '1 minute' where id = '{user}'")).await?;
    world.get("/things").signed_in(&token).expect(200).await?;
    Ok(())
}

#[tokio::test]
async fn the_token_of_a_deleted_user_ends_at_once() -> Result<()> {
    let world = world().await?.with_things().await?;
    let (user, token) = signed_in(&world, "ada").await?;
    world.get("/things?select=id&id=eq.1").signed_in(&token).expect(200).await?;
    world.run(&format!("delete from auth.users where id = '{user}'")).await?;
    let deleted = ("42501".to_owned(), "User was deleted".to_owned());
    assert_eq!(world.get("/things").signed_in(&token).refused(403).await?, deleted);
    assert_eq!(world.patch("/things?id=eq.1", json!({"name": "mine"})).signed_in(&token).refused(403).await?, deleted);
    // Who is restored from a backup may come in again.
    world.run(&format!("insert into auth.users (id, email) values ('{user}', 'ada@example.com')")).await?;
    world.get("/things").signed_in(&token).expect(200).await?;
    Ok(())
}

#[tokio::test]
async fn who_is_disabled_in_the_team_is_out_at_once() -> Result<()> {
    let world = world().await?.with_things().await?;
    let (user, token) = signed_in(&world, "ada").await?;
    world.get("/things").signed_in(&token).expect(200).await?;
    world.run(&format!("update sales set disabled = true where user_id = '{user}'")).await?;
    assert_eq!(world.get("/things").signed_in(&token).refused(403).await?.1, "User is banned");
    Ok(())
}

#[tokio::test]
async fn every_transaction_on_behalf_of_a_person_asks_for_the_ban() -> Result<()> {
    let world = world().await?;
    let (user, token) = signed_in(&world, "ada").await?;
    let caller = world.access.verify(&token)?;
    let mut client = world.pool.get().await?;
    begin(&mut client, &caller).await?.rollback().await?;
    change(&world, &user, "1 hour").await?;
    let refused = begin(&mut client, &caller).await.err().context("a banned person got in")?;
    assert_eq!(refused.code().map(|code| code.code()), Some("42501"));
    // A program's key has an id of its own in the claim that holds a person's.
    let Caller::Token { role, mut claims } = caller else { anyhow::bail!("a token is never us") };
    claims.insert("key_id".into(), json!(user));
    begin(&mut client, &Caller::Token { role, claims }).await?;
    Ok(())
}

/// Where a platform manages its own users, the server's login may not see them. Then no check is made, and nothing fails.
#[tokio::test]
async fn users_that_are_hidden_from_us_are_not_asked_about() -> Result<()> {
    let world = world().await?;
    let (user, _) = signed_in(&world, "ada").await?;
    change(&world, &user, "forever").await?;
    let ask = format!("select gleaner.refuse_banned('{user}')");
    let told = world.client.batch_execute(&ask).await.err().context("it sees the ban")?;
    assert_eq!(told.code().map(|code| code.code()), Some("42501"));
    // Roles belong to the whole database server; this one is never committed.
    world
        .run(&format!(
            "begin; create role onlooker; grant usage, create on schema gleaner to onlooker; grant usage on schema auth to onlooker;
             alter function gleaner.refuse_banned(uuid) owner to onlooker; {ask}; rollback"
        ))
        .await
}
