//! A new data directory: created under another name, flushed, then renamed. So a data directory that exists is complete.

use std::fs::{self, File};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use crate::account::Account;
use crate::{Error, Home, Installation, NAME, Result, settings};

/// Initialises the data directory unless it exists. Returns whether it did.
pub(crate) fn initialise(home: &Home, account: &Account, installation: &Installation, durable: bool) -> Result<bool> {
    let (data, unfinished) = (home.data(), home.unfinished());
    // Left behind by an interrupted start or reset.
    for leftover in [&unfinished, &home.discarded()] {
        remove_tree(leftover)?;
    }
    if data.join("PG_VERSION").exists() {
        return Ok(false);
    }
    if fs::read_dir(&data).is_ok_and(|mut entries| entries.next().is_some()) {
        return Err(Error::NotADataDirectory { data });
    }

    fs::DirBuilder::new().mode(0o700).create(&unfinished).map_err(Error::io("create directory", &unfinished))?;
    account.give(&unfinished)?;
    // Unicode letters for upper() and ~*, plain byte order for comparing: fast, and the same on every system. Where the system has
    // no C.UTF-8, plain C.
    let made = run_initdb(&unfinished, account, installation, "C.UTF-8");
    if made.is_err() {
        remove_contents(&unfinished)?;
        run_initdb(&unfinished, account, installation, "C")?;
    }
    settings::write_initial(&unfinished, account)?;
    if durable {
        flush(&unfinished)?;
    }
    fs::rename(&unfinished, &data).map_err(Error::io("rename", &unfinished))?;
    if durable {
        File::open(home.path()).and_then(|directory| directory.sync_all()).map_err(Error::io("flush", home.path()))?;
    }
    Ok(true)
}

fn run_initdb(data: &Path, account: &Account, installation: &Installation, letters: &str) -> Result<()> {
    let program = installation.program("initdb");
    let output = account
        .command(&program, data)
        .args(["--no-sync", "--no-instructions", "--auth=trust", "--encoding=UTF8", "--locale=C"])
        .arg(format!("--lc-ctype={letters}"))
        .arg(format!("--username={NAME}"))
        .arg("--pgdata")
        .arg(data)
        .output()
        .map_err(Error::io("run", &program))?;
    if output.status.success() {
        return Ok(());
    }
    let text = [output.stdout, output.stderr].concat();
    let output_text = String::from_utf8_lossy(&text).trim().to_owned();
    Err(Error::Initdb { data: data.to_owned(), status: output.status, output: output_text })
}

/// One flush of the whole file system: several times faster than initdb's own, which flushes each file in turn.
#[cfg(target_os = "linux")]
fn flush(data: &Path) -> Result<()> {
    let directory = File::open(data).map_err(Error::io("open", data))?;
    nix::unistd::syncfs(directory).map_err(|errno| Error::io("flush", data)(errno.into()))
}

#[cfg(not(target_os = "linux"))]
fn flush(_: &Path) -> Result<()> {
    nix::unistd::sync();
    Ok(())
}

/// Deletes a directory. A missing one is not an error.
pub(crate) fn remove_tree(path: &Path) -> Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(Error::io("delete", path)(error)),
        _ => Ok(()),
    }
}

fn remove_contents(directory: &Path) -> Result<()> {
    for entry in fs::read_dir(directory).map_err(Error::io("read", directory))?.flatten() {
        let path = entry.path();
        if path.is_dir() {
            remove_tree(&path)?;
        } else {
            fs::remove_file(&path).map_err(Error::io("delete", &path))?;
        }
    }
    Ok(())
}
