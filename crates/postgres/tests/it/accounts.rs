//! Root, ordinary users, and access to directories.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::process::Command;

use anyhow::Result;
use gleaner_postgres::{Cluster, Error, Home, Installation, Options};

use crate::support::{Parent, Scratch, is_root, ordinary_user, servers_on, value};

fn owner_of_process(pid: u32) -> Result<u32> {
    Ok(fs::metadata(format!("/proc/{pid}"))?.uid())
}

fn psql(url: &str, query: &str) -> Result<String> {
    let output = Command::new(Installation::find()?.program("psql")).args(["-XAt", url, "-c", query]).output()?;
    anyhow::ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

#[tokio::test]
async fn starts_as_the_user_of_the_tests_root_included() -> Result<()> {
    let scratch = Scratch::new()?;
    let parent = Parent::start(&scratch.home()?)?;
    let servers = servers_on(&scratch.home()?)?;
    assert_eq!(servers.len(), 1);
    assert_ne!(owner_of_process(servers[0])?, 0, "PostgreSQL refuses root");
    // The address works for psql and for tokio-postgres, from the account that started it.
    assert_eq!(psql(&parent.url, "select current_user || '@' || current_database()")?, "gleaner@gleaner");
    assert_eq!(value(&parent.url, "select current_user").await?, "gleaner");
    assert!(parent.stop()?.success());
    Ok(())
}

#[tokio::test]
async fn starts_as_an_ordinary_user() -> Result<()> {
    let (scratch, user) = (Scratch::new()?, ordinary_user()?);
    std::os::unix::fs::chown(scratch.path(), Some(user.uid.as_raw()), Some(user.gid.as_raw()))?;
    let home = scratch.home()?;
    let parent = Parent::start_as(&user, &scratch, &home)?;
    let servers = servers_on(&home)?;
    assert_eq!(servers.len(), 1);
    assert_eq!(owner_of_process(servers[0])?, user.uid.as_raw());
    assert_eq!(fs::metadata(home.path())?.permissions().mode() & 0o777, 0o700, "nobody else looks in");
    assert_eq!(psql(&parent.url, "select current_user")?, "gleaner");
    assert!(parent.stop()?.success());

    // Root may run what an ordinary user created, and that user can continue afterwards.
    let cluster = Cluster::start(Options::new(home.clone())).await?;
    assert_eq!(owner_of_process(cluster.pid())?, user.uid.as_raw());
    cluster.stop().await?;
    assert!(Parent::start_as(&user, &scratch, &home)?.stop()?.success());
    Ok(())
}

#[tokio::test]
async fn a_home_out_of_reach_is_refused_with_what_to_do() -> Result<()> {
    let scratch = Scratch::new()?;
    let closed = scratch.path().join("closed");
    fs::create_dir(&closed)?;
    // Accessible to root only, when run as root; read-only for an ordinary user.
    fs::set_permissions(&closed, fs::Permissions::from_mode(if is_root() { 0o700 } else { 0o500 }))?;
    let home = Home::at(closed.join("home"))?;
    let error = Cluster::start(Options::new(home)).await.expect_err("out of reach");
    if is_root() {
        assert!(matches!(&error, Error::OutOfReach { barrier, .. } if *barrier == closed), "{error}");
    }
    assert!(error.to_string().contains("GLEANER_HOME"), "{error}");
    assert_eq!(fs::read_dir(&closed)?.count(), 0, "nothing was made there");
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o700))?;
    Ok(())
}

#[tokio::test]
async fn a_fresh_private_directory_is_a_good_home() -> Result<()> {
    // As `GLEANER_HOME=$(mktemp -d)` creates it.
    let scratch = Scratch::new()?;
    let home = scratch.home()?;
    fs::create_dir(home.path())?;
    fs::set_permissions(home.path(), fs::Permissions::from_mode(0o700))?;
    Cluster::start(Options::new(home)).await?.stop().await?;
    Ok(())
}
