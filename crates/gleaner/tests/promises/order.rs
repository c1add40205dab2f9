//! Who gets what, and in which order.

use anyhow::Result;

use crate::world::{keys, world};

#[tokio::test]
async fn claim_order_is_own_then_global_then_stale_exactly() -> Result<()> {
    let world = world().await?;
    let (me, other, private) =
        (world.person("me", 5, true).await?, world.person("other", 5, true).await?, world.person("private", 5, false).await?);
    let stale = world.activity(Some(other), "call", 30.0).await?;
    let older_stale = world.activity(Some(other), "sms", 60.0).await?;
    let global = world.activity(None, "email", 1.0).await?;
    let older_global = world.activity(None, "sms", 2.0).await?;
    let mine = world.activity(Some(me), "note", 0.0).await?;
    let older_mine = world.activity(Some(me), "call", 1.0).await?;
    let _fresh_of_other = world.activity(Some(other), "call", 1.0).await?;
    let _kept_private = world.activity(Some(private), "call", 600.0).await?;

    let queue = world.queue("activities").await?;
    let got = world.claim(&queue, "a", Some(me), 100).await?;
    assert_eq!(keys(&got), [older_mine, mine, older_global, global, older_stale, stale]);
    assert!(world.claim(&queue, "a", Some(me), 100).await?.is_empty());
    Ok(())
}
