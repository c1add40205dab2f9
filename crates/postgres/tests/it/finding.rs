//! Which PostgreSQL is chosen, and the error when there is none.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;
use gleaner_postgres::{Cluster, Error, Installation, Search};

use crate::support::{Scratch, copy_program, is_root};

const DEBIAN: &str = "PRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\nID=debian\nVERSION_ID=\"12\"\n";

/// A machine with nothing on it but an `os-release`.
fn machine(scratch: &Scratch, os_release: &str) -> Result<Search> {
    let root = scratch.path().join("root");
    fs::create_dir_all(root.join("etc"))?;
    fs::create_dir_all(root.join("var/lib/apt/lists"))?;
    fs::write(root.join("etc/os-release"), os_release)?;
    fs::write(root.join("var/lib/apt/lists/packages"), "")?;
    Ok(Search { only: None, path: OsString::new(), root })
}

/// A program that claims to be PostgreSQL of that version.
fn pretend(bin: &Path, version: &str) -> Result<PathBuf> {
    fs::create_dir_all(bin)?;
    fs::write(bin.join("version"), format!("postgres (PostgreSQL) {version}\n"))?;
    for program in ["postgres", "initdb"] {
        let original = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/fixtures/pretend-postgres");
        copy_program(Path::new(original), &bin.join(program))?;
    }
    Ok(bin.to_owned())
}

#[test]
fn missing_postgresql_names_the_command() -> Result<()> {
    let sudo = if is_root() { "" } else { "sudo " };
    for (os_release, command) in [
        (DEBIAN, "apt-get install -y postgresql"),
        ("ID=fedora\nVERSION_ID=42\n", "dnf install -y postgresql-server"),
        ("ID=alpine\nVERSION_ID=3.22.0\n", "apk add postgresql"),
        ("ID=endeavouros\nID_LIKE=arch\n", "pacman -S --noconfirm postgresql"),
    ] {
        let scratch = Scratch::new()?;
        let error = machine(&scratch, os_release)?.newest().expect_err("nothing there");
        assert!(matches!(error, Error::Missing { .. }), "{error}");
        assert!(error.to_string().contains(&format!("Install it with: {sudo}{command}\n")), "{error}");
    }
    let scratch = Scratch::new()?;
    let search = machine(&scratch, DEBIAN)?;
    fs::remove_file(search.root.join("var/lib/apt/lists/packages"))?;
    let error = search.newest().expect_err("nothing there");
    assert!(error.to_string().contains("apt-get update && "), "a fresh container has no package lists: {error}");
    Ok(())
}

#[test]
fn versions_that_are_too_old_are_named() -> Result<()> {
    let scratch = Scratch::new()?;
    let search = machine(&scratch, DEBIAN)?;
    let bin = pretend(&search.root.join("usr/lib/postgresql/13/bin"), "13.21 (Debian 13.21-0)")?;
    let error = search.newest().expect_err("too old");
    assert!(matches!(&error, Error::TooOld { found, .. } if found.len() == 1), "{error}");
    assert!(error.to_string().contains(&format!("13.21 ({})", bin.display())), "{error}");
    Ok(())
}

#[test]
fn the_newest_is_taken_wherever_it_is() -> Result<()> {
    let scratch = Scratch::new()?;
    let mut search = machine(&scratch, DEBIAN)?;
    for (place, version) in [
        ("usr/lib/postgresql/15/bin", "15.9"),
        ("usr/lib/postgresql/9.6/bin", "9.6.24"),
        ("usr/pgsql-16/bin", "16.10"),
        ("opt/homebrew/opt/postgresql@16/bin", "16.9"),
    ] {
        pretend(&search.root.join(place), version)?;
    }
    assert_eq!(search.newest()?.version().to_string(), "16.10");
    let elsewhere = pretend(&scratch.path().join("elsewhere"), "18.1")?;
    search.path = elsewhere.clone().into_os_string();
    assert_eq!(search.newest()?.bin(), elsewhere, "PATH counts too");
    search.only = Some(search.root.join("usr/lib/postgresql/15/bin"));
    assert_eq!(search.newest()?.version().to_string(), "15.9", "GLEANER_PG_BIN alone counts");
    search.only = Some(search.root.join("usr/lib/postgresql/9.6/bin"));
    assert!(search.newest().expect_err("too old").to_string().contains("its version is 9.6"));
    search.only = Some(scratch.path().to_owned());
    assert!(search.newest().expect_err("nothing there").to_string().contains("GLEANER_PG_BIN"));
    Ok(())
}

#[test]
fn data_is_opened_by_the_version_that_wrote_it() -> Result<()> {
    let scratch = Scratch::new()?;
    let search = machine(&scratch, DEBIAN)?;
    pretend(&search.root.join("usr/lib/postgresql/15/bin"), "15.9")?;
    pretend(&search.root.join("usr/lib/postgresql/17/bin"), "17.2")?;
    let data = scratch.path().join("data");
    fs::create_dir(&data)?;
    assert_eq!(search.for_data(&data)?.version().major, 17, "new data: the newest");
    fs::write(data.join("PG_VERSION"), "15\n")?;
    assert_eq!(search.for_data(&data)?.version().major, 15);
    fs::write(data.join("PG_VERSION"), "16\n")?;
    let error = search.for_data(&data).expect_err("not there");
    assert!(matches!(error, Error::OtherVersion { wanted: 16, .. }), "{error}");
    assert!(error.to_string().contains("Install PostgreSQL 16"), "{error}");
    Ok(())
}

#[tokio::test]
async fn data_of_another_version_is_left_untouched() -> Result<()> {
    let scratch = Scratch::new()?;
    Cluster::start(scratch.options()?).await?.stop().await?;
    let mut options = scratch.options()?;
    options.installation = Some(Installation::at(pretend(&scratch.path().join("newer"), "99.1")?)?);
    let error = Cluster::start(options).await.expect_err("another version");
    assert!(matches!(error, Error::OtherVersion { .. }), "{error}");
    Cluster::start(scratch.options()?).await?.stop().await?;
    Ok(())
}
