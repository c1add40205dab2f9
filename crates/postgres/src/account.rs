//! The account the server runs as. PostgreSQL refuses root, so as root the server runs as an unprivileged account.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use nix::unistd::{Gid, Uid, User, getegid, geteuid};

use crate::{Error, Result};

/// The account initdb and postgres run as.
#[derive(Debug, Clone)]
pub(crate) struct Account {
    name: String,
    uid: u32,
    gid: u32,
    /// Set when we are root and this is another account.
    other: bool,
}

impl Account {
    /// Our own account; as root the owner of existing data, else `postgres`, else `nobody`.
    pub(crate) fn for_data(data: &Path) -> Result<Self> {
        if !geteuid().is_root() {
            let (uid, gid) = (geteuid().as_raw(), getegid().as_raw());
            return Ok(Self { name: uid.to_string(), uid, gid, other: false });
        }
        // Data created by an ordinary user stays that user's, also when root starts the server.
        let owner = fs::metadata(data).ok().filter(|owner| owner.uid() != 0);
        if let Some(owner) = owner {
            let name = User::from_uid(Uid::from_raw(owner.uid())).ok().flatten().map(|user| user.name);
            let name = name.unwrap_or_else(|| owner.uid().to_string());
            return Ok(Self { name, uid: owner.uid(), gid: owner.gid(), other: true });
        }
        let exists = |name| User::from_name(name).ok().flatten().filter(|user| !user.uid.is_root());
        let user = exists("postgres").or_else(|| exists("nobody")).ok_or(Error::NoAccount)?;
        Ok(Self { name: user.name, uid: user.uid.as_raw(), gid: user.gid.as_raw(), other: true })
    }

    /// Whether the server runs as a different account than this process.
    pub(crate) fn is_other(&self) -> bool {
        self.other
    }

    #[cfg(target_os = "linux")]
    pub(crate) fn uid(&self) -> u32 {
        self.uid
    }

    /// A command that runs as this account, in `directory`, without the environment variables that PostgreSQL would read.
    pub(crate) fn command(&self, program: impl AsRef<Path>, directory: &Path) -> Command {
        let mut command = Command::new(program.as_ref());
        command.current_dir(directory).stdin(Stdio::null());
        for (name, _) in std::env::vars_os() {
            let name_text = name.to_string_lossy();
            if name_text.starts_with("PG") || name_text.starts_with("LC_") || name_text == "LANG" {
                command.env_remove(name);
            }
        }
        command.env("LC_ALL", "C");
        if self.other {
            // Setting the uid also drops root's supplementary groups.
            command.uid(self.uid).gid(self.gid).env("HOME", directory);
        }
        command
    }

    /// Makes this account the owner of a file or directory.
    pub(crate) fn give(&self, path: &Path) -> Result<()> {
        if !self.other {
            return Ok(());
        }
        nix::unistd::chown(path, Some(Uid::from_raw(self.uid)), Some(Gid::from_raw(self.gid)))
            .map_err(|errno| Error::io("change owner of", path)(errno.into()))
    }

    /// Fails when this account cannot enter a directory on the way to `wanted`, which need not exist yet.
    pub(crate) fn must_reach(&self, wanted: &Path, remedy: impl FnOnce() -> String) -> Result<()> {
        match self.barrier(wanted) {
            None => Ok(()),
            Some(barrier) => Err(Error::OutOfReach { account: self.name.clone(), barrier, wanted: wanted.to_owned(), remedy: remedy() }),
        }
    }

    /// The first directory on the way that this account cannot enter.
    pub(crate) fn barrier(&self, wanted: &Path) -> Option<PathBuf> {
        if !self.other {
            return None;
        }
        let way: Vec<&Path> = wanted.ancestors().collect();
        way.into_iter().rev().filter(|path| path.is_dir()).find(|path| !self.may_enter(path)).map(Path::to_owned)
    }

    fn may_enter(&self, directory: &Path) -> bool {
        let Ok(metadata) = fs::metadata(directory) else {
            return false;
        };
        let bit = match (metadata.uid() == self.uid, metadata.gid() == self.gid) {
            (true, _) => 0o100,
            (false, true) => 0o010,
            (false, false) => 0o001,
        };
        // The mode decides nearly every case. An access list may still allow what the mode does not, so the kernel is asked.
        metadata.mode() & bit != 0 || self.command("/bin/true", directory).status().is_ok_and(|status| status.success())
    }
}
