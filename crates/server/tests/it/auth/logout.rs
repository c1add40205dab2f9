//! Signing out, by scope.

use anyhow::Result;
use reqwest::Method;

use crate::auth::support::{ADA, Answer, PASSWORD, World, world};

async fn logout(world: &World, query: &str, token: &str) -> Answer {
    world.send(Method::POST, &format!("/logout{query}")).bearer(token).answer().await
}

/// Which of the sessions are still valid.
async fn good(world: &World, sessions: &[&Answer]) -> Vec<bool> {
    let mut good = Vec::new();
    for session in sessions {
        good.push(world.get("/user").bearer(session.access()).answer().await.status == 200);
    }
    good
}

#[tokio::test]
async fn each_scope_ends_what_it_says() -> Result<()> {
    for (query, left) in [
        ("?scope=local", [false, true, true]),
        ("?scope=others", [true, false, true]),
        ("?scope=global", [false, false, true]),
        ("", [false, false, true]),
    ] {
        let world = world().await?;
        let here = world.ada_signed_in().await?;
        let there = world.sign_in(ADA, PASSWORD).await;
        gleaner_supabase::auth::people::add(&world.client, "bob@example.com", Some(gleaner_supabase::auth::Password::new(PASSWORD)), false)
            .await?;
        let bob = world.sign_in("bob@example.com", PASSWORD).await;
        let out = logout(&world, query, here.access()).await;
        assert_eq!((out.status, out.text.as_str()), (204, ""), "{query}");
        assert_eq!(good(&world, &[&here, &there, &bob]).await, left, "{query}");
        assert_eq!(world.refresh(here.refresh()).await.status == 200, left[0], "{query}");
        assert_eq!(world.refresh(there.refresh()).await.status == 200, left[1], "{query}");
    }
    Ok(())
}

#[tokio::test]
async fn ending_a_session_twice_is_reported() -> Result<()> {
    let world = world().await?;
    let here = world.ada_signed_in().await?;
    assert_eq!(logout(&world, "?scope=local", here.access()).await.status, 204);
    assert_eq!(logout(&world, "?scope=local", here.access()).await.refused(), (403, "session_not_found"));
    assert_eq!(world.refresh(here.refresh()).await.refused(), (400, "refresh_token_not_found"));
    Ok(())
}

#[tokio::test]
async fn an_unknown_scope_ends_nothing() -> Result<()> {
    let world = world().await?;
    let here = world.ada_signed_in().await?;
    assert_eq!(logout(&world, "?scope=everybody", here.access()).await.refused(), (400, "validation_failed"));
    assert_eq!(good(&world, &[&here]).await, [true]);
    Ok(())
}
