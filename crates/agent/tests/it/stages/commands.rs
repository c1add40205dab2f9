//! Stages that run a program: its input, its progress, and that no process outlives its item.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use serde_json::json;

use crate::pipelines::world::{World, world};

/// A command that starts another, writes its process id to a file, and never ends by itself.
const STUBBORN: &str = "sh -c 'trap \"\" TERM; echo $$ > child; while :; do sleep 0.1; done' & echo $$ > leader; wait";

fn file(command: &str, more: &str) -> String {
    format!("[stages.it]\ncommand = '''{command}'''\n{more}\n[queues.activities.kinds]\nnote = [\"it\"]\n")
}

/// Waits until both processes have ended, also the child that ignores SIGTERM.
async fn ended(world: &World) -> Result<()> {
    let end = Instant::now() + Duration::from_secs(20);
    for name in ["leader", "child"] {
        let pid = world.folder.read(name).trim().to_owned();
        ensure!(!pid.is_empty(), "{name} never ran");
        let lives = || {
            // A zombie has ended, but its parent has not reaped it yet.
            std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
        };
        while lives() {
            ensure!(Instant::now() < end, "{name} {pid} lives on");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    Ok(())
}

#[tokio::test]
async fn a_command_gets_the_item_and_what_earlier_stages_found() -> Result<()> {
    let world = world().await?;
    let text = "[stages.it]\ncommand = \"tee input\"\n[queues.activities.kinds]\nnote = [\"clean\", \"it\"]\n";
    let id = world.text("note", " hello ").await?;
    world.work("activities", &world.pipelines(text)?).await?;
    let input = world.row(id).await?.result["it"].clone();
    assert_eq!(
        (&input["queue"], &input["id"], &input["kind"], &input["stage"]),
        (&json!("activities"), &json!(id), &json!("note"), &json!("it"))
    );
    assert_eq!(
        (&input["payload"]["content"], &input["text"], &input["results"]["transcript"]),
        (&json!(" hello "), &json!("hello"), &json!("hello"))
    );
    Ok(())
}

#[tokio::test]
async fn a_cancelled_item_ends_its_command_with_all_it_started() -> Result<()> {
    let world = world().await?;
    let id = world.text("note", "x").await?;
    let agent = world.agent("activities", &world.pipelines(&file(STUBBORN, ""))?, world.direct()?).await?;
    appears(&world, "child").await?;
    world.client.execute("select gleaner.cancel_activities(array[$1::uuid], 'no longer wanted')", &[&id]).await?;
    let tally = tokio::time::timeout(Duration::from_secs(30), agent.task).await.context("the agent hangs")???;
    assert_eq!((tally.completed, tally.failed, tally.lost), (0, 0, 1));
    assert_eq!(world.row(id).await?.status, "cancelled");
    ended(&world).await
}

#[tokio::test]
async fn a_command_that_takes_too_long_is_ended_and_tried_again_later() -> Result<()> {
    let world = world().await?;
    let id = world.text("note", "x").await?;
    let tally = world.work("activities", &world.pipelines(&file(STUBBORN, "timeout = \"1s\""))?).await?;
    assert_eq!(tally.failed, 1);
    let row = world.row(id).await?;
    assert_eq!(
        (&row.error["type"], &row.error["message"], row.is_dead),
        (&json!("StageError"), &json!("stage it took longer than 1s"), false)
    );
    ended(&world).await
}

async fn appears(world: &World, name: &str) -> Result<()> {
    let end = Instant::now() + Duration::from_secs(30);
    while world.folder.read(name).is_empty() {
        ensure!(Instant::now() < end, "{name} never appeared");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    Ok(())
}
