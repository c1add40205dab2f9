//! Which clients are notified of what, and with which rights.

use std::time::Duration;

use anyhow::{Context as _, Result};
use futures_util::FutureExt as _;
use gleaner::Claim;
use gleaner::transport::Endpoint as _;
use gleaner_agent::wire::{Protocol, Settings, Wire};
use gleaner_supabase::auth::api_keys::{self, Kind, New};

use crate::conformance::stage::{Over, PATIENCE, connected, settled, stage};

/// A worker's key can read no row that it does not hold, so it gets no change events of the table.
#[tokio::test]
async fn a_worker_key_is_notified_of_work_it_cannot_see_yet() -> Result<()> {
    let stage = stage(Over::Native).await?;
    let served = stage.served.as_ref().context("served")?;
    let new = New { name: "whisper", kind: Kind::Worker, queues: Some(&["activities".into()]), kinds: None, valid: None };
    let (_, key) = api_keys::add(&stage.world.client, &new).await?.context("made")?;
    let wire = Wire::connect(Settings { url: served.url(), service_key: Some(key), ..Settings::default() })?;
    let activities = wire.open("activities").await?;
    let mut push = activities.listen().context("pushed")?;
    connected(&mut push, true).await?;
    // A subscriber to the changes of the table counts as connected once the server follows the log.
    let follower = Wire::connect_by(served.settings(), Protocol::Rpc)?.open("activities").await?;
    connected(&mut follower.listen().context("pushed")?, true).await?;
    settled(&mut push).await;
    // A plain insert without a notification: the server reads the log.
    let id = stage.world.activity(None, "call", 1.0).await?;
    tokio::time::timeout(Duration::from_secs(1), push.notified()).await.context("not heard")?;
    let item = activities.claim(&Claim::by("whisper")).await?.items.into_iter().next().context("claimed")?;
    assert_eq!(item.key, id);
    assert!(activities.ended(&[item.held()]).await?.is_empty());
    let refused = wire.open("jobs").await?.claim(&Claim::by("whisper")).await.unwrap_err();
    assert!(!refused.is_transient() && refused.to_string().contains("keys add"), "{refused}");
    assert_eq!(wire.who().await?, None, "a worker key has no owner");
    Ok(())
}

/// `gleaner.jobs` is in no publication. Over functions there are no notifications, and the client learns that.
#[tokio::test]
async fn a_channel_that_is_refused_leaves_the_work_to_the_poll() -> Result<()> {
    let stage = stage(Over::Rpc).await?;
    let jobs = stage.open("jobs").await?;
    let mut push = jobs.listen().context("a push")?;
    tokio::time::timeout(PATIENCE, push.notified()).await.context("the refusal is a reason to look")?;
    assert!(!push.is_connected());
    stage.held(&*jobs, "mail").await?;
    Ok(())
}

#[tokio::test]
async fn an_anonymous_key_is_not_notified_of_work() -> Result<()> {
    let stage = stage(Over::Native).await?;
    let served = stage.served.as_ref().context("served")?;
    // Uses the anonymous key in place of the service key.
    let wire = Wire::connect_by(Settings { service_key: Some(served.anon.clone()), ..served.settings() }, Protocol::Native)?;
    assert!(wire.open("jobs").await.is_err(), "it may not even know of the queue");
    Ok(())
}

#[tokio::test]
async fn all_queues_are_notified_on_one_socket() -> Result<()> {
    let stage = stage(Over::Native).await?;
    let (jobs, activities) = (stage.open("jobs").await?, stage.open("activities").await?);
    let mut heard = [jobs.listen().context("pushed")?, activities.listen().context("pushed")?, jobs.listen().context("pushed")?];
    for push in &mut heard {
        connected(push, true).await?;
    }
    for push in &mut heard {
        settled(push).await;
    }
    stage.ring("jobs").await?;
    for n in [0, 2] {
        tokio::time::timeout(PATIENCE, heard[n].notified()).await.context("not heard")?;
    }
    // All arrive on one socket, in order.
    assert!(heard[1].notified().now_or_never().is_none(), "the other queue is quiet");
    Ok(())
}

#[tokio::test]
async fn a_channel_that_fails_is_joined_again_and_waiting_workers_poll() -> Result<()> {
    let stage = stage(Over::Rpc).await?;
    let activities = stage.open("activities").await?;
    let mut push = activities.listen().context("pushed")?;
    connected(&mut push, true).await?;
    settled(&mut push).await;
    // The server loses its replication connection, and notifies its channels of that.
    stage.world.run("select pg_terminate_backend(active_pid) from pg_replication_slots where database = current_database()").await?;
    tokio::time::timeout(PATIENCE, push.notified()).await.context("the loss is a reason to look")?;
    connected(&mut push, true).await?;
    settled(&mut push).await;
    stage.world.activity(None, "call", 1.0).await?;
    tokio::time::timeout(Duration::from_secs(1), push.notified()).await.context("not heard any more")?;
    Ok(())
}

/// Whatever the types of their keys and statuses.
#[tokio::test]
async fn every_published_queue_is_notified_by_its_table() -> Result<()> {
    let stage = stage(Over::Rpc).await?;
    for name in ["activities", "dumps", "runs", "followups"] {
        let mut push = stage.open(name).await?.listen().context("pushed")?;
        connected(&mut push, true).await.context(name)?;
    }
    Ok(())
}
