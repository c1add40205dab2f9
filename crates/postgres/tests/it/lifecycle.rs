//! Start, run, stop.

use std::fs;
use std::io::Write as _;
use std::net::TcpListener;
use std::os::unix::process::ExitStatusExt;

use anyhow::{Context as _, Result};
use gleaner_postgres::{Cluster, Error, Home, Installation, Options};
use nix::sys::signal::Signal;

use crate::support::{Parent, Scratch, execute, install_program, servers_on, value};

fn append(home: &Home, line: &str) -> Result<()> {
    let path = home.data().join("postgresql.conf");
    writeln!(fs::OpenOptions::new().append(true).open(path)?, "{line}")?;
    Ok(())
}

#[tokio::test]
async fn data_survives_stop_and_start() -> Result<()> {
    let scratch = Scratch::new()?;
    let cluster = Cluster::start(scratch.options()?).await?;
    execute(cluster.url(), "create table kept (id bigint); insert into kept values (1), (2)").await?;
    let first_directory = cluster.socket_directory().to_owned();
    cluster.stop().await?;
    assert!(!first_directory.exists());

    let cluster = Cluster::start(scratch.options()?).await?;
    assert_eq!(cluster.socket_directory(), first_directory, "a home keeps the address of its database");
    assert_eq!(value(cluster.url(), "select count(*) from kept").await?, "2");
    // Dropping it has the same effect as stopping it.
    drop(cluster);
    assert!(servers_on(&scratch.home()?)?.is_empty());
    Ok(())
}

#[tokio::test]
async fn a_second_start_on_one_home_is_refused() -> Result<()> {
    let scratch = Scratch::new()?;
    let parent = Parent::start(&scratch.home()?)?;
    let error = Cluster::start(scratch.options()?).await.expect_err("taken");
    assert!(matches!(error, Error::AlreadyRunning { pid: Some(pid), .. } if pid == parent.pid()), "{error}");
    assert!(error.to_string().contains(&format!("already running, pid {}", parent.pid())), "{error}");
    assert_eq!(value(&parent.url, "select 1").await?, "1", "the first one is left in peace");
    assert_eq!(servers_on(&scratch.home()?)?.len(), 1);
    Ok(())
}

#[tokio::test]
async fn of_many_starts_at_once_one_succeeds() -> Result<()> {
    let scratch = Scratch::new()?;
    let home = scratch.home()?;
    let starts = (0..6).map(|_| {
        let home = home.clone();
        std::thread::spawn(move || Parent::start(&home))
    });
    let starts: Vec<_> = starts.collect();
    let running: Vec<Parent> = starts.into_iter().filter_map(|start| start.join().expect("no panic").ok()).collect();
    assert_eq!(running.len(), 1);
    assert_eq!(servers_on(&home)?.len(), 1);
    Ok(())
}

#[tokio::test]
async fn several_homes_run_side_by_side() -> Result<()> {
    let (one, other) = (Scratch::new()?, Scratch::new()?);
    let (one, other) = tokio::try_join!(async { Ok::<_, anyhow::Error>(Cluster::start(one.options()?).await?) }, async {
        Ok(Cluster::start(other.options()?).await?)
    },)?;
    execute(one.url(), "create table only_here (id bigint)").await?;
    assert_eq!(value(other.url(), "select to_regclass('only_here') is null").await?, "t");
    one.stop().await?;
    assert_eq!(value(other.url(), "select 1").await?, "1");
    other.stop().await?;
    Ok(())
}

#[tokio::test]
async fn sigterm_and_sigint_stop_cleanly() -> Result<()> {
    let scratch = Scratch::new()?;
    let home = scratch.home()?;
    for signal in [Signal::SIGTERM, Signal::SIGINT] {
        let mut parent = Parent::start(&home)?;
        // An open session does not delay it.
        let _session = gleaner_postgres::testing::connect(&parent.url).await?;
        parent.signal(signal)?;
        let status = parent.wait()?;
        assert!(status.success() && status.signal().is_none(), "{signal}: {status}");
        assert!(servers_on(&home)?.is_empty());
        assert!(!home.state().exists() && !home.data().join("postmaster.pid").exists());
    }
    let log = fs::read_to_string(home.log())?;
    assert_eq!(log.matches("database system is shut down").count(), 2, "{log}");
    assert!(!log.contains("interrupted"), "the second start had nothing to recover: {log}");
    Ok(())
}

#[tokio::test]
async fn commits_are_durable_and_settings_are_those_of_a_queue() -> Result<()> {
    let scratch = Scratch::new()?;
    let cluster = Cluster::start(scratch.options()?).await?;
    for (setting, expected) in [
        ("fsync", "on"),
        ("synchronous_commit", "on"),
        ("full_page_writes", "on"),
        ("wal_level", "logical"),
        ("listen_addresses", ""),
        ("TimeZone", "UTC"),
        ("server_encoding", "UTF8"),
        ("max_connections", "200"),
        ("autovacuum_naptime", "10s"),
    ] {
        assert_eq!(value(cluster.url(), &format!("show {setting}")).await?, expected, "{setting}");
    }
    let faults = "select coalesce(string_agg(name || ': ' || error, ', '), '') from pg_file_settings where error is not null";
    assert_eq!(value(cluster.url(), faults).await?, "");
    cluster.stop().await?;
    Ok(())
}

#[tokio::test]
async fn a_persons_own_settings_survive_and_win() -> Result<()> {
    let scratch = Scratch::new()?;
    Cluster::start(scratch.options()?).await?.stop().await?;
    append(&scratch.home()?, "work_mem = '7MB'")?;
    append(&scratch.home()?, "listen_addresses = '*'")?;
    let cluster = Cluster::start(scratch.options()?).await?;
    assert_eq!(value(cluster.url(), "show work_mem").await?, "7MB");
    assert_eq!(value(cluster.url(), "show listen_addresses").await?, "", "where it listens is not theirs to set");
    cluster.stop().await?;
    Ok(())
}

#[tokio::test]
async fn a_port_is_opened_when_asked_and_wants_the_password() -> Result<()> {
    let scratch = Scratch::new()?;
    let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let mut options = scratch.options()?;
    options.port = Some(port);
    let cluster = Cluster::start(options).await?;
    let tcp_url = cluster.tcp_url().context("an address")?.to_owned();
    assert_eq!(value(&tcp_url, "select current_user").await?, "gleaner");
    assert_eq!(value(cluster.url(), "select current_user").await?, "gleaner");
    let guess = format!("postgresql://gleaner:guess@127.0.0.1:{port}/gleaner");
    assert!(value(&guess, "select 1").await.is_err());
    let status = gleaner_postgres::status(cluster.home()).await?;
    assert_eq!(status.server.context("running")?.tcp_url, Some(tcp_url));
    cluster.stop().await?;
    Ok(())
}

#[tokio::test]
async fn the_error_shows_why_a_server_ended_at_once() -> Result<()> {
    let scratch = Scratch::new()?;
    Cluster::start(scratch.options()?).await?.stop().await?;
    append(&scratch.home()?, "no_such_setting = 1")?;
    let error = Cluster::start(scratch.options()?).await.expect_err("a fault in the file");
    assert!(matches!(&error, Error::Died { tail, .. } if tail.contains("no_such_setting")), "{error}");
    assert!(!scratch.home()?.state().exists());
    Ok(())
}

#[tokio::test]
async fn files_that_are_no_data_are_left_alone() -> Result<()> {
    let scratch = Scratch::new()?;
    let home = scratch.home()?;
    fs::create_dir_all(home.data())?;
    fs::write(home.data().join("letters.txt"), "mine")?;
    let error = Cluster::start(Options::new(home.clone())).await.expect_err("not ours");
    assert!(matches!(error, Error::NotADataDirectory { .. }), "{error}");
    assert_eq!(fs::read_to_string(home.data().join("letters.txt"))?, "mine");
    Ok(())
}

#[tokio::test]
async fn the_end_of_the_server_is_noticed() -> Result<()> {
    let scratch = Scratch::new()?;
    let mut parent = Parent::start(&scratch.home()?)?;
    let server = i32::try_from(servers_on(&scratch.home()?)?[0])?;
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(server), Signal::SIGQUIT)?;
    assert!(!parent.wait()?.success());
    Ok(())
}

/// A package upgrade replaces the executable under the running server. New sessions of the old server would load new libraries.
#[tokio::test]
async fn an_upgrade_under_a_running_server_is_noticed_and_a_restart_keeps_address_and_data() -> Result<()> {
    let scratch = Scratch::new()?;
    let found = Installation::find()?;
    let bin = scratch.path().join("bin");
    fs::create_dir(&bin)?;
    std::os::unix::fs::symlink(found.program("initdb"), bin.join("initdb"))?;
    // A script in place of the executable, which would look for its libraries beside it.
    let install = || install_program(&found.program("postgres"), &bin.join("postgres"));
    install()?;
    let mut options = scratch.options()?;
    options.installation = Some(Installation::at(&bin)?);
    let mut cluster = Cluster::start(options).await?;
    execute(cluster.url(), "create table kept (id bigint)").await?;
    let (url, pid) = (cluster.url().to_owned(), cluster.pid());

    install()?;
    cluster.upgraded().await;
    cluster.restart().await?;
    assert_eq!((cluster.url(), cluster.pid() == pid), (url.as_str(), false));
    assert_eq!(value(cluster.url(), "select count(*) from kept").await?, "0");
    cluster.stop().await?;
    Ok(())
}
