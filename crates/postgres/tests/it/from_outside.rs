//! `status`, `down` and `reset`, called from another process on the same home.

use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result};
use gleaner_postgres::{Cluster, Error, Phase, Stopped, down, reset, status};

use crate::support::{Parent, Scratch, execute, servers_on, value};

const PATIENCE: Duration = Duration::from_secs(20);

#[tokio::test]
async fn status_says_where_it_runs_and_only_while_it_does() -> Result<()> {
    let scratch = Scratch::new()?;
    let home = scratch.home()?;
    let before = status(&home).await?;
    assert!(!before.initialised && before.server.is_none() && before.parent_pid.is_none());

    let parent = Parent::start(&home)?;
    let during = status(&home).await?;
    assert!(during.is_ready());
    assert_eq!(during.parent_pid, Some(parent.pid()));
    let server = during.server.context("a server")?;
    assert_eq!((server.phase, &server.url), (Phase::Ready, &parent.url));
    assert_eq!(servers_on(&home)?, [server.pid]);
    assert_eq!(value(&server.url, "show data_directory").await?, home.data().display().to_string());
    assert!(value(&server.url, "show server_version").await?.starts_with(&server.version.context("a version")?));

    assert!(parent.stop()?.success());
    let after = status(&home).await?;
    assert!(after.initialised && after.server.is_none() && after.parent_pid.is_none());
    Ok(())
}

#[tokio::test]
async fn down_stops_the_parent_and_waits_for_the_server() -> Result<()> {
    let scratch = Scratch::new()?;
    let home = scratch.home()?;
    assert_eq!(down(&home, PATIENCE).await?, Stopped::Nothing);
    let mut parent = Parent::start(&home)?;
    assert_eq!(down(&home, PATIENCE).await?, Stopped::Parent(parent.pid()));
    assert!(servers_on(&home)?.is_empty());
    assert!(parent.wait()?.success());
    assert!(!home.state().exists());
    Ok(())
}

#[tokio::test]
async fn down_stops_a_server_whose_parent_is_gone() -> Result<()> {
    let scratch = Scratch::new()?;
    let home = scratch.home()?;
    let parent = Parent::start(&home)?;
    // The server is stopped for a moment, so that it has not ended by itself when `down` checks.
    let server = servers_on(&home)?[0];
    assert!(Command::new("kill").args(["-STOP", &server.to_string()]).status()?.success());
    parent.kill_nine()?;
    let waking = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(100));
        Command::new("kill").args(["-CONT", &server.to_string()]).status()
    });
    assert_eq!(down(&home, PATIENCE).await?, Stopped::Server(server));
    assert!(waking.join().expect("no panic")?.success());
    assert!(servers_on(&home)?.is_empty());
    assert!(!home.state().exists());
    Ok(())
}

#[tokio::test]
async fn reset_refuses_while_it_runs_and_then_deletes_everything() -> Result<()> {
    let scratch = Scratch::new()?;
    let home = scratch.home()?;
    reset(&home)?;
    let parent = Parent::start(&home)?;
    execute(&parent.url, "create table kept (id bigint)").await?;
    let refused = reset(&home).expect_err("it runs");
    assert!(matches!(refused, Error::AlreadyRunning { pid: Some(pid), .. } if pid == parent.pid()), "{refused}");
    assert_eq!(value(&parent.url, "select count(*) from kept").await?, "0");

    assert!(parent.stop()?.success());
    reset(&home)?;
    assert!(!home.data().exists() && !home.log().exists());
    let cluster = Cluster::start(scratch.options()?).await?;
    assert_eq!(value(cluster.url(), "select to_regclass('kept') is null").await?, "t");
    cluster.stop().await?;
    Ok(())
}
