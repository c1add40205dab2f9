//! Refreshing: one-time tokens, the grace period for a lost response, and the end of the token family on reuse.

use anyhow::Result;
use futures_util::future::join_all;
use serde_json::json;

use crate::auth::support::{World, claims, signed, world};

async fn sessions(world: &World) -> Result<i64> {
    world.count("select count(*) from auth.sessions").await
}

#[tokio::test]
async fn a_refresh_gives_another_pair_in_the_same_session() -> Result<()> {
    let world = world().await?;
    let first = world.ada_signed_in().await?;
    let second = world.refresh(first.refresh()).await;
    assert_eq!(second.status, 200, "{second:?}");
    assert_ne!(first.refresh(), second.refresh());
    assert_ne!(first.access(), second.access());
    let (before, after) = (claims(first.access()), claims(second.access()));
    assert_eq!((&before["session_id"], &before["amr"]), (&after["session_id"], &after["amr"]));
    assert_ne!(before["jti"], after["jti"]);
    assert_eq!(second.body["user"]["id"], first.body["user"]["id"]);
    assert_eq!(sessions(&world).await?, 1);
    assert_eq!(world.count("select count(*) from auth.refresh_tokens where not revoked").await?, 1);
    Ok(())
}

#[tokio::test]
async fn the_parent_is_answered_with_the_active_token_while_its_answer_may_have_been_lost() -> Result<()> {
    let world = world().await?;
    let first = world.ada_signed_in().await?;
    let second = world.refresh(first.refresh()).await;
    for _ in 0..3 {
        let again = world.refresh(first.refresh()).await;
        assert_eq!((again.status, again.refresh()), (200, second.refresh()), "within the grace, as often as they ask");
        assert_ne!(again.access(), second.access());
    }
    // Long after, it works once more, because it is the direct parent of a token that was never used.
    world.age_tokens("1 hour").await?;
    let later = world.refresh(first.refresh()).await;
    assert_eq!((later.status, later.refresh()), (200, second.refresh()));
    assert_eq!(world.refresh(second.refresh()).await.status, 200, "and the active one is good");
    Ok(())
}

#[tokio::test]
async fn the_parent_is_taken_once_more_and_not_forever() -> Result<()> {
    let world = world().await?;
    let first = world.ada_signed_in().await?;
    let second = world.refresh(first.refresh()).await;
    world.age_tokens("1 hour").await?;
    assert_eq!(world.refresh(first.refresh()).await.status, 200);
    assert_eq!(world.refresh(first.refresh()).await.status, 200, "that answer may have been lost as well");
    world.age_tokens("11 seconds").await?;
    assert_eq!(world.refresh(first.refresh()).await.refused(), (400, "refresh_token_already_used"));
    assert_eq!(sessions(&world).await?, 0);
    assert_eq!(world.refresh(second.refresh()).await.refused(), (400, "refresh_token_not_found"));
    Ok(())
}

#[tokio::test]
async fn later_use_of_an_older_token_ends_the_family() -> Result<()> {
    let world = world().await?;
    let first = world.ada_signed_in().await?;
    let second = world.refresh(first.refresh()).await;
    let third = world.refresh(second.refresh()).await;
    let grace = world.refresh(first.refresh()).await;
    assert_eq!((grace.status, grace.refresh()), (200, third.refresh()), "within the grace any of them is");
    world.age_tokens("11 seconds").await?;
    let stolen = world.refresh(first.refresh()).await;
    assert_eq!(stolen.refused(), (400, "refresh_token_already_used"), "{stolen:?}");
    assert_eq!(world.refresh(third.refresh()).await.refused(), (400, "refresh_token_not_found"), "the family is revoked");
    assert_eq!(world.get("/user").bearer(third.access()).answer().await.refused(), (403, "session_not_found"));
    Ok(())
}

#[tokio::test]
async fn reuse_ends_only_the_family_it_belongs_to() -> Result<()> {
    let world = world().await?;
    let phone = world.ada_signed_in().await?;
    let laptop = world.sign_in("ada@example.com", crate::auth::support::PASSWORD).await;
    let next = world.refresh(phone.refresh()).await;
    world.refresh(next.refresh()).await;
    world.age_tokens("1 minute").await?;
    assert_eq!(world.refresh(phone.refresh()).await.status, 400);
    assert_eq!(world.refresh(laptop.refresh()).await.status, 200);
    Ok(())
}

#[tokio::test]
async fn one_token_used_by_many_at_once_gives_one_successor() -> Result<()> {
    let world = world().await?;
    let first = world.ada_signed_in().await?;
    let answers = join_all((0..8).map(|_| world.refresh(first.refresh()))).await;
    let mut given: Vec<&str> = answers.iter().map(|answer| answer.refresh()).collect();
    given.dedup();
    assert_eq!(given.len(), 1, "{given:?}");
    assert_eq!(world.count("select count(*) from auth.refresh_tokens where not revoked").await?, 1);
    assert_eq!(world.refresh(given[0]).await.status, 200);
    Ok(())
}

/// The same, step by step: the second request arrives before the first has committed.
#[tokio::test]
async fn of_two_uses_at_once_the_second_waits_and_gets_the_firsts_successor() -> Result<()> {
    let world = world().await?;
    let first = world.ada_signed_in().await?;
    let public = first.refresh().split('.').next().unwrap_or_default().to_owned();
    let other = gleaner::connect(&world.database.url).await?;
    let refresh = "select gleaner.refresh_session($1, $2, '10 seconds') ->> 'token'";
    world.run("begin").await?;
    let winner: String = world.client.query_one(refresh, &[&public, &"winner"]).await?.get(0);
    let late = tokio::spawn(async move { other.query_one(refresh, &[&public, &"late"]).await.map(|row| row.get::<_, String>(0)) });
    let waiting = "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'";
    while world.count(waiting).await? == 0 {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    world.run("commit").await?;
    assert_eq!((winner.as_str(), late.await??.as_str()), ("winner", "winner"));
    assert_eq!(world.count("select count(*) from auth.refresh_tokens where not revoked").await?, 1);
    Ok(())
}

#[tokio::test]
async fn an_unknown_token_is_not_found_and_ends_no_session() -> Result<()> {
    let world = world().await?;
    let session = world.ada_signed_in().await?;
    let public = session.refresh().split('.').next().unwrap_or_default().to_owned();
    let stored = world.text("select token from auth.refresh_tokens").await?.unwrap_or_default();
    assert_eq!(stored, public, "the database keeps the public half");
    for token in [stored.as_str(), "v2kq0x", &format!("{public}.AAAA"), "\0", session.access(), &signed(&json!({"role": "anon"}))] {
        assert_eq!(world.refresh(token).await.refused(), (400, "refresh_token_not_found"), "{token}");
    }
    assert_eq!(world.post("/token?grant_type=refresh_token", &json!({})).answer().await.refused(), (400, "validation_failed"));
    assert_eq!(world.refresh(session.refresh()).await.status, 200);
    Ok(())
}

#[tokio::test]
async fn a_session_that_is_over_says_so() -> Result<()> {
    let world = world().await?;
    let session = world.ada_signed_in().await?;
    world.run("update auth.sessions set not_after = now()").await?;
    assert_eq!(world.refresh(session.refresh()).await.refused(), (400, "session_expired"));
    world.run("update auth.sessions set not_after = null, created_at = now() - interval '91 days'").await?;
    assert_eq!(world.refresh(session.refresh()).await.refused(), (400, "session_expired"), "put away for too long");
    world.sign_in("ada@example.com", crate::auth::support::PASSWORD).await;
    assert_eq!(sessions(&world).await?, 1, "and swept away at the next sign-in");
    Ok(())
}

#[tokio::test]
async fn a_disabled_or_banned_user_cannot_refresh() -> Result<()> {
    let world = world().await?;
    for close in ["update sales set disabled = true", "update sales set disabled = false; update auth.users set banned_until = 'infinity'"]
    {
        if world.count("select count(*) from auth.users").await? == 0 {
            world.ada().await?;
        }
        world.run("update auth.users set banned_until = null; update sales set disabled = false").await?;
        let session = world.sign_in("ada@example.com", crate::auth::support::PASSWORD).await;
        world.run(close).await?;
        assert_eq!(world.get("/user").bearer(session.access()).answer().await.refused(), (403, "user_banned"), "{close}");
        assert_eq!(world.refresh(session.refresh()).await.refused(), (403, "user_banned"), "{close}");
        assert_eq!(sessions(&world).await?, 0, "and the session is over");
    }
    Ok(())
}

#[tokio::test]
async fn an_internal_error_is_a_5xx_so_that_no_client_signs_out() -> Result<()> {
    let world = world().await?;
    let session = world.ada_signed_in().await?;
    world.run("alter table auth.sessions rename to sessions_away").await?;
    let trouble = world.refresh(session.refresh()).await;
    assert_eq!(trouble.status, 500, "{trouble:?}");
    assert!(
        !trouble.text.contains("sessions_away") && !trouble.text.contains("relation"),
        "what the database said stays here: {}",
        trouble.text
    );
    world.run("alter table auth.sessions_away rename to sessions").await?;
    assert_eq!(world.refresh(session.refresh()).await.status, 200);
    Ok(())
}
