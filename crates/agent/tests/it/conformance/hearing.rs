//! Agents are notified of new work. If a notification is lost, only time is lost.

use std::time::Duration;

use anyhow::{Context as _, Result};
use gleaner::{Claim, Completion, Outcome};
use serde_json::json;

use super::promises;
use super::stage::{PATIENCE, Stage, connected, outcomes, settled, take};

promises!(new_work_is_notified_within_a_second, a_lost_connection_is_restored_and_counts_as_a_notification, work_continues_after_a_restart,);

async fn new_work_is_notified_within_a_second(stage: &Stage) -> Result<()> {
    let activities = stage.open("activities").await?;
    let mut push = activities.listen().context("pushed")?;
    connected(&mut push, true).await?;
    settled(&mut push).await;
    for _ in 0..3 {
        stage.world.activity(None, "call", 1.0).await?;
        stage.ring("activities").await?;
        tokio::time::timeout(Duration::from_secs(1), push.notified()).await.context("not heard within a second")?;
        let item = take(&*activities, "call").await?;
        activities.complete(&[Completion::new(item.held(), None)]).await?;
        settled(&mut push).await;
    }
    assert!(push.is_connected());
    Ok(())
}

async fn a_lost_connection_is_restored_and_counts_as_a_notification(stage: &Stage) -> Result<()> {
    let activities = stage.open("activities").await?;
    let mut push = activities.listen().context("pushed")?;
    connected(&mut push, true).await?;
    settled(&mut push).await;
    stage.cut().await?;
    if stage.served.is_some() {
        connected(&mut push, false).await?;
        push.mark();
    }
    stage.mend().await?;
    tokio::time::timeout(PATIENCE, push.notified()).await.context("coming back was not heard")?;
    connected(&mut push, true).await?;
    settled(&mut push).await;
    stage.world.activity(None, "call", 1.0).await?;
    stage.ring("activities").await?;
    tokio::time::timeout(Duration::from_secs(1), push.notified()).await.context("not heard any more")?;
    Ok(())
}

async fn work_continues_after_a_restart(stage: &Stage) -> Result<()> {
    let jobs = stage.open("jobs").await?;
    let item = stage.held(&*jobs, "mail").await?;
    let waiting = stage.job("mail", json!({})).await?;
    stage.cut().await?;
    let tried = jobs.claim(&Claim::by("agent")).await;
    if stage.served.is_some() {
        let error = tried.unwrap_err();
        assert!(error.is_transient(), "{error}");
    }
    stage.mend().await?;
    // The connections of a pool may turn out to be closed one by one.
    let done = [Completion::new(item.held(), Some(json!({"survived": true})))];
    let mut answers = jobs.complete(&done).await;
    for _ in 0..10 {
        if !answers.as_ref().is_err_and(gleaner::Error::is_transient) {
            break;
        }
        answers = jobs.complete(&done).await;
    }
    let answers = answers?;
    assert!(matches!(outcomes(&answers)[..], [(_, Outcome::Done | Outcome::Already)]), "{answers:?}");
    if stage.served.is_some() {
        assert_eq!(take(&*jobs, "mail").await?.key, waiting, "what waited is there");
    }
    Ok(())
}
