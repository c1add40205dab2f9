//! Guessing passwords is slow, and its limits cannot be used to lock out other people.

use anyhow::Result;
use futures_util::future::join_all;
use serde_json::json;

use crate::auth::support::{ADA, Answer, PASSWORD, World, world};

async fn from(world: &World, client: &str, email: &str, password: &str) -> Answer {
    world.post("/token?grant_type=password", &json!({"email": email, "password": password})).header("x-test-client", client).answer().await
}

#[tokio::test]
async fn guessing_is_limited_and_the_owner_signs_in_from_elsewhere() -> Result<()> {
    let world = world().await?;
    world.ada().await?;
    let guesses = join_all((0..30).map(|n| {
        let world = &world;
        async move { from(world, "198.51.100.7", ADA, &format!("guess {n}")).await }
    }))
    .await;
    let looked_at = guesses.iter().filter(|answer| answer.status == 400).count();
    assert!((10..=11).contains(&looked_at), "thirty at once are no more than thirty in a row: {looked_at}");
    let refused = guesses.iter().find(|answer| answer.status == 429).expect("some are refused");
    assert_eq!(refused.code(), "over_request_rate_limit");
    assert!(
        refused.header("retry-after").is_some_and(|seconds| seconds.parse::<u64>().is_ok_and(|s| (1..=30).contains(&s))),
        "{refused:?}"
    );
    assert_eq!(from(&world, "198.51.100.7", ADA, PASSWORD).await.status, 429, "there even the right one waits");
    assert_eq!(from(&world, "203.0.113.9", ADA, PASSWORD).await.status, 200, "elsewhere it always works");
    assert_eq!(world.sign_in(ADA, PASSWORD).await.status, 200);
    Ok(())
}

#[tokio::test]
async fn a_limited_guess_costs_no_hashing() -> Result<()> {
    let world = world().await?;
    for n in 0..12 {
        from(&world, "198.51.100.7", ADA, &format!("guess {n}")).await;
    }
    let before = world.auth.hasher().checked();
    assert_eq!(from(&world, "198.51.100.7", ADA, "one more").await.status, 429);
    assert_eq!(world.auth.hasher().checked(), before);
    Ok(())
}

#[tokio::test]
async fn a_household_of_addresses_counts_as_one() -> Result<()> {
    let world = world().await?;
    world.ada().await?;
    for n in 0..11 {
        from(&world, &format!("2001:db8:1:2::{n:x}"), ADA, "guess").await;
    }
    assert_eq!(from(&world, "2001:db8:1:2:ffff::1", ADA, PASSWORD).await.status, 429);
    assert_eq!(from(&world, "2001:db8:1:3::1", ADA, PASSWORD).await.status, 200);
    Ok(())
}

#[tokio::test]
async fn those_who_know_their_password_are_never_slowed_down() -> Result<()> {
    let world = world().await?;
    world.ada().await?;
    for _ in 0..15 {
        assert_eq!(from(&world, "192.0.2.1", ADA, PASSWORD).await.status, 200);
    }
    Ok(())
}
