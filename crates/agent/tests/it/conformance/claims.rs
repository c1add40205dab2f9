//! Which agent gets which items, and in which order.

use std::time::Duration;

use anyhow::{Context as _, Result};
use gleaner::{Claim, Error};
use serde_json::json;
use uuid::Uuid;

use super::promises;
use super::stage::Stage;
use crate::world::keys;

promises!(
    own_work_comes_first_then_everybodys_then_what_others_left,
    a_repeated_claim_brings_the_same_rows,
    only_the_kinds_asked_for_are_claimed,
    an_empty_claim_says_when_to_come_back,
    a_hold_of_ones_own_is_kept,
    a_queue_without_a_payload_gives_the_whole_row,
    what_a_queue_does_not_have_cannot_be_asked_for,
);

async fn own_work_comes_first_then_everybodys_then_what_others_left(stage: &Stage) -> Result<()> {
    let world = &stage.world;
    let (me, other, private) =
        (world.person("ada", 5, true).await?, world.person("bob", 5, true).await?, world.person("eve", 5, false).await?);
    // Oldest first would give the opposite order.
    world.activity(Some(private), "call", 60.0).await?;
    let stale = world.activity(Some(other), "call", 40.0).await?;
    let global = world.activity(None, "call", 20.0).await?;
    let own = world.activity(Some(me), "call", 1.0).await?;
    world.activity(Some(other), "call", 1.0).await?;
    let activities = stage.open("activities").await?;
    let claimed = activities.claim(&Claim::by("ada's laptop").limit(10).owner(me)).await?;
    assert_eq!(keys(&claimed.items), [own, global, stale]);
    let owners: Vec<_> = claimed.items.iter().map(|item| item.owner.clone()).collect();
    assert_eq!(owners, [Some(me.to_string()), None, Some(other.to_string())]);
    assert_eq!(claimed.items[0].payload["content"], "hello");
    assert!(claimed.items.iter().all(|item| item.kind.as_deref() == Some("call")));
    Ok(())
}

async fn a_repeated_claim_brings_the_same_rows(stage: &Stage) -> Result<()> {
    let jobs = stage.open("jobs").await?;
    for n in 0..5 {
        stage.job("mail", json!({"n": n})).await?;
    }
    let mut claim = Claim::by("agent").limit(2);
    claim.request = Some(Uuid::new_v4());
    let first = jobs.claim(&claim).await?.items;
    let again = jobs.claim(&claim).await?.items;
    let leased = |items: &[gleaner::Item]| items.iter().map(|item| (item.key.clone(), item.lease)).collect::<Vec<_>>();
    assert_eq!((leased(&again).len(), leased(&again)), (2, leased(&first)));
    assert!(again[0].lease_for > Duration::from_secs(290), "{:?}", again[0].lease_for);
    claim.request = None;
    assert_eq!(jobs.claim(&claim).await?.items.len(), 2, "without the request others are taken");
    Ok(())
}

async fn only_the_kinds_asked_for_are_claimed(stage: &Stage) -> Result<()> {
    let jobs = stage.open("jobs").await?;
    for kind in ["mail", "sync", "report"] {
        stage.job(kind, json!({})).await?;
    }
    let claimed = jobs.claim(&Claim::by("agent").limit(10).kinds(["sync", "report"])).await?.items;
    let mut kinds: Vec<_> = claimed.iter().filter_map(|item| item.kind.as_deref()).collect();
    kinds.sort_unstable();
    assert_eq!(kinds, ["report", "sync"]);
    assert!(jobs.claim(&Claim::by("agent").kinds(["fax"])).await?.items.is_empty());
    assert_eq!(jobs.claim(&Claim::by("agent").limit(10)).await?.items.len(), 1);
    Ok(())
}

async fn an_empty_claim_says_when_to_come_back(stage: &Stage) -> Result<()> {
    let jobs = stage.open("jobs").await?;
    assert_eq!(jobs.claim(&Claim::by("agent")).await?.next_due_in, None, "nothing waits at all");
    stage.world.run("insert into gleaner.jobs (kind, due_at) values ('mail', now() + interval '1 hour')").await?;
    stage.ring("jobs").await?;
    // The notification ends the cached "empty" answer. It takes a moment to arrive.
    let mut next = None;
    for _ in 0..100 {
        let claimed = jobs.claim(&Claim::by("agent").kinds(["mail"])).await?;
        assert!(claimed.items.is_empty());
        next = claimed.next_due_in;
        if next.is_some() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let next = next.context("something waits")?;
    assert!(next <= Duration::from_secs(3600) && next > Duration::from_secs(3580), "{next:?}");
    assert_eq!(jobs.claim(&Claim::by("agent").kinds(["fax"])).await?.next_due_in, None, "none of that kind");
    Ok(())
}

async fn a_hold_of_ones_own_is_kept(stage: &Stage) -> Result<()> {
    let jobs = stage.open("jobs").await?;
    stage.job("mail", json!({})).await?;
    let mut claim = Claim::by("agent");
    claim.hold = Some(Duration::from_millis(30_500));
    let item = jobs.claim(&claim).await?.items.into_iter().next().context("claimed")?;
    assert!(item.lease_for <= Duration::from_millis(30_500) && item.lease_for > Duration::from_secs(25), "{:?}", item.lease_for);
    Ok(())
}

async fn a_queue_without_a_payload_gives_the_whole_row(stage: &Stage) -> Result<()> {
    let world = &stage.world;
    let id = "'00000000-0000-0000-0000-0000000000a1'";
    world.run(&format!("insert into workspaces (id, name) values ({id}, 'team')")).await?;
    world.run(&format!("insert into baskets (id, workspace_id) values ({id}, {id})")).await?;
    world.run(&format!("insert into raw_dumps (basket_id, body_md) values ({id}, 'a thought')")).await?;
    let dumps = stage.open("dumps").await?;
    let item = dumps.claim(&Claim::by("agent")).await?.items.into_iter().next().context("claimed")?;
    let columns = "select string_agg(column_name, ' ' order by column_name) from information_schema.columns
                   where table_schema = 'public' and table_name = 'agent_processing_queue'";
    let mut given: Vec<&str> = item.payload.as_object().context("an object")?.keys().map(String::as_str).collect();
    given.sort_unstable();
    let wanted = stage.text(columns).await?;
    let mut wanted: Vec<&str> = wanted.split(' ').collect();
    wanted.sort_unstable();
    assert_eq!(given, wanted, "all of the row, and nothing else");
    assert_eq!((item.payload["id"].as_str(), item.kind), (Some(item.key.as_str()), None));
    Ok(())
}

async fn what_a_queue_does_not_have_cannot_be_asked_for(stage: &Stage) -> Result<()> {
    let dumps = stage.open("dumps").await?;
    for claim in [Claim::by("agent").owner(7), Claim::by("agent").kinds(["x"])] {
        let error = dumps.claim(&claim).await.unwrap_err();
        assert!(!error.is_transient() && !matches!(error, Error::Database { .. }), "{error}");
        assert!(error.to_string().contains("dumps has no"), "{error}");
    }
    Ok(())
}
