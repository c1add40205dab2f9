//! Killed parents, servers left running, and stale files.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result};
use gleaner_postgres::testing::PrivateServer;
use gleaner_postgres::{Cluster, Home, Installation, down};

use crate::support::{Parent, Scratch, eventually, execute, is_root, servers_on, value};

/// Runs a program as the account that owns the data.
fn as_server_account(home: &Home, mut command: Command) -> Result<Child> {
    let owner = fs::metadata(home.data())?;
    command.current_dir(home.data()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    if is_root() {
        command.uid(owner.uid()).gid(owner.gid());
    }
    Ok(command.spawn()?)
}

/// A server without a parent, like one that outlived its parent. On Linux that needs a parent that started it differently.
async fn survivor(scratch: &Scratch, home: &Home) -> Result<Child> {
    let sockets = scratch.path().join("sockets");
    fs::create_dir_all(&sockets)?;
    let owner = fs::metadata(home.data())?;
    std::os::unix::fs::chown(&sockets, Some(owner.uid()), Some(owner.gid()))?;
    let mut command = Command::new(Installation::find()?.program("postgres"));
    command.arg("-D").arg(home.data()).arg("-k").arg(&sockets).args(["-c", "listen_addresses="]);
    let child = as_server_account(home, command)?;
    let ready = || Ok(fs::read_to_string(home.data().join("postmaster.pid")).is_ok_and(|text| text.contains("ready")));
    eventually("the survivor is ready", ready).await?;
    Ok(child)
}

#[tokio::test]
async fn kill_nine_of_the_parent_leaves_no_second_server() -> Result<()> {
    let scratch = Scratch::new()?;
    let home = scratch.home()?;
    let parent = Parent::start(&home)?;
    execute(&parent.url, "create table kept (id bigint)").await?;
    let mut url = parent.url.clone();
    let mut parent = Some(parent);
    for round in 1..=4 {
        execute(&url, &format!("insert into kept values ({round})")).await?;
        // The next start follows at once, while the server is still shutting down.
        parent.take().context("a parent")?.kill_nine()?;
        let next = Parent::start(&home)?;
        assert_eq!(servers_on(&home)?.len(), 1, "round {round}");
        assert_eq!(value(&next.url, "select count(*) from kept").await?, round.to_string());
        url = next.url.clone();
        parent = Some(next);
    }
    parent.context("a parent")?.kill_nine()?;
    eventually("the server ends with its parent", || Ok(servers_on(&home)?.is_empty())).await?;
    // Cleans up after the killed parent: there is nothing left to stop.
    down(&home, Duration::from_secs(20)).await?;
    assert!(!home.state().exists());
    Ok(())
}

#[tokio::test]
async fn a_server_that_survived_its_parent_is_adopted() -> Result<()> {
    let scratch = Scratch::new()?;
    let home = scratch.home()?;
    Cluster::start(scratch.options()?).await?.stop().await?;
    let mut child = survivor(&scratch, &home).await?;
    let cluster = Cluster::start(scratch.options()?).await?;
    assert!(cluster.was_adopted());
    assert_eq!(cluster.pid(), child.id());
    assert_eq!(servers_on(&home)?.len(), 1);
    execute(cluster.url(), "create table works (id bigint)").await?;
    // The test is the survivor's parent and must reap it, or it would remain as a zombie.
    let reaper = std::thread::spawn(move || child.wait());
    cluster.stop().await?;
    assert!(reaper.join().expect("no panic")?.success());
    assert!(servers_on(&home)?.is_empty());
    Ok(())
}

/// In most containers root may not inspect the processes of other accounts (no CAP_SYS_PTRACE). An ordinary user never needs to,
/// and this test then runs the plain way.
#[tokio::test]
async fn a_survivor_is_found_without_the_right_to_trace() -> Result<()> {
    let scratch = Scratch::new()?;
    let home = scratch.home()?;
    Cluster::start(scratch.options()?).await?.stop().await?;
    let mut child = survivor(&scratch, &home).await?;
    let program = env!("CARGO_BIN_EXE_gleaner-postgres");
    let mut command = Command::new(program);
    if is_root() {
        command = Command::new("setpriv");
        command.args(["--bounding-set=-sys_ptrace", program]);
    }
    let parent = Parent::run(command, &home)?;
    assert_eq!(servers_on(&home)?, [child.id()]);
    let reaper = std::thread::spawn(move || child.wait());
    assert!(parent.stop()?.success());
    reaper.join().expect("no panic")?;
    Ok(())
}

#[tokio::test]
async fn stale_postmaster_pid_is_recovered() -> Result<()> {
    let scratch = Scratch::new()?;
    let home = scratch.home()?;
    let cluster = Cluster::start(scratch.options()?).await?;
    execute(cluster.url(), "create table kept (id bigint); insert into kept values (1)").await?;
    let written = fs::read_to_string(home.data().join("postmaster.pid"))?;
    cluster.stop().await?;

    // The hard case: its pid now belongs to a running process of the same account. PostgreSQL itself refuses to start then.
    let mut command = Command::new("sleep");
    command.arg("60");
    let mut stranger = as_server_account(&home, command)?;
    let (_, rest) = written.split_once('\n').context("several lines")?;
    fs::write(home.data().join("postmaster.pid"), format!("{}\n{rest}", stranger.id()))?;
    let cluster = Cluster::start(scratch.options()?).await?;
    assert!(!cluster.was_adopted());
    assert_eq!(value(cluster.url(), "select count(*) from kept").await?, "1");
    cluster.stop().await?;
    assert!(stranger.try_wait()?.is_none(), "the stranger is left alone");
    stranger.kill()?;
    stranger.wait()?;
    Ok(())
}

#[tokio::test]
async fn another_homes_server_is_never_mistaken_for_ours() -> Result<()> {
    let (one, other) = (Scratch::new()?, Scratch::new()?);
    Cluster::start(one.options()?).await?.stop().await?;
    let neighbour = Cluster::start(other.options()?).await?;
    // As in a copied directory, or a restored backup of a running server.
    fs::copy(other.home()?.data().join("postmaster.pid"), one.home()?.data().join("postmaster.pid"))?;
    assert_eq!(gleaner_postgres::status(&one.home()?).await?.server, None);
    let cluster = Cluster::start(one.options()?).await?;
    assert!(!cluster.was_adopted());
    assert_ne!(cluster.pid(), neighbour.pid());
    cluster.stop().await?;
    assert_eq!(value(neighbour.url(), "select 1").await?, "1");
    neighbour.stop().await?;
    Ok(())
}

#[tokio::test]
async fn an_interrupted_initialisation_starts_over() -> Result<()> {
    let scratch = Scratch::new()?;
    let unfinished = scratch.home()?.path().join("postgres.new");
    fs::create_dir_all(&unfinished)?;
    fs::write(unfinished.join("PG_VERSION"), "15\n")?;
    let cluster = Cluster::start(scratch.options()?).await?;
    assert_eq!(value(cluster.url(), "select 1").await?, "1");
    assert!(!unfinished.exists());
    cluster.stop().await?;
    Ok(())
}

#[tokio::test]
async fn a_start_that_is_given_up_leaves_no_server() -> Result<()> {
    let scratch = Scratch::new()?;
    let home = scratch.home()?;
    Cluster::start(scratch.options()?).await?.stop().await?;
    // From before the server exists until after it is ready.
    for milliseconds in (0..160).step_by(20) {
        let given_up = tokio::time::timeout(Duration::from_millis(milliseconds), Cluster::start(scratch.options()?)).await;
        drop(given_up);
        let cluster = Cluster::start(scratch.options()?).await;
        assert_eq!(servers_on(&home)?.len(), 1, "given up after {milliseconds} ms: {cluster:?}");
        cluster?.stop().await?;
    }
    Ok(())
}

#[tokio::test]
async fn what_was_committed_survives_a_crash() -> Result<()> {
    let mut server = PrivateServer::start(true).await?;
    let url = server.url().to_owned();
    execute(&url, "create table kept (id bigint)").await?;
    for round in 1..=2 {
        let held = server.connect().await?;
        held.batch_execute("insert into kept values (1)").await?;
        held.batch_execute("begin; insert into kept values (2)").await?;
        server.crash().await?;
        assert!(held.batch_execute("commit").await.is_err());
        assert!(servers_on(server.cluster().home())?.is_empty());
        server.restart().await?;
        assert_eq!(server.url(), url, "the address stays");
        assert_eq!(value(&url, "select count(*) from kept").await?, round.to_string());
    }
    let home = server.cluster().home().path().to_owned();
    server.stop().await?;
    assert!(!home.exists(), "nothing is left");
    Ok(())
}
