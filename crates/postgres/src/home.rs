//! The directory of a private cluster.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::account::Account;
use crate::{Error, Result};

/// The directory that holds one private cluster and all its files:
///
/// ```text
/// postgres/           the data (PGDATA)
/// log/postgres.log    what the server said
/// run.json            where it runs now
/// socket              the directory of its unix socket, the same at each start
/// lock                held by the process that runs it
/// password            only when a TCP port was asked for
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Home {
    path: PathBuf,
}

impl Home {
    /// `GLEANER_HOME`; else `/var/lib/gleaner` as root; else `$XDG_DATA_HOME/gleaner` or `~/.local/share/gleaner`.
    pub fn from_env() -> Result<Self> {
        let set = |name| env::var_os(name).filter(|value: &OsString| !value.is_empty()).map(PathBuf::from);
        if let Some(path) = set("GLEANER_HOME") {
            return Self::at(path);
        }
        if nix::unistd::geteuid().is_root() {
            return Self::at("/var/lib/gleaner");
        }
        // The XDG rules say that a relative path is ignored.
        if let Some(data) = set("XDG_DATA_HOME").filter(|path| path.is_absolute()) {
            return Self::at(data.join("gleaner"));
        }
        Self::at(set("HOME").ok_or(Error::NoHome)?.join(".local/share/gleaner"))
    }

    /// This directory, which need not exist yet. A relative path is resolved once, from the current directory.
    pub fn at(path: impl Into<PathBuf>) -> Result<Self> {
        let path = path.into();
        let path = std::path::absolute(&path).map_err(Error::io("make absolute", &path))?;
        Ok(Self { path })
    }

    /// The directory itself.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The data directory (PGDATA).
    pub fn data(&self) -> PathBuf {
        self.path.join("postgres")
    }

    /// The server's log.
    pub fn log(&self) -> PathBuf {
        self.path.join("log/postgres.log")
    }

    /// Where the state of a running cluster is written.
    pub fn state(&self) -> PathBuf {
        self.path.join("run.json")
    }

    /// Where the path of the socket directory is kept.
    pub(crate) fn socket(&self) -> PathBuf {
        self.path.join("socket")
    }

    pub(crate) fn lock(&self) -> PathBuf {
        self.path.join("lock")
    }

    pub(crate) fn password(&self) -> PathBuf {
        self.path.join("password")
    }

    /// Data being initialised; complete only once it is renamed to [`Home::data`].
    pub(crate) fn unfinished(&self) -> PathBuf {
        self.path.join("postgres.new")
    }

    /// Data being deleted: renamed at once, deleted soon after.
    pub(crate) fn discarded(&self) -> PathBuf {
        self.path.join("postgres.old")
    }

    /// Creates the directories. Refuses a place that the server's account cannot enter, before anything is created there.
    pub(crate) fn create(&self, account: &Account) -> Result<()> {
        let remedy =
            || "Set GLEANER_HOME to a directory that account can reach, such as /var/lib/gleaner, or start as an ordinary user".to_owned();
        self.open_if_new(account)?;
        account.must_reach(&self.path, remedy)?;
        let mode = if account.is_other() { 0o711 } else { 0o700 };
        let logs = self.path.join("log");
        for directory in [&self.path, &logs] {
            if !directory.is_dir() {
                fs::DirBuilder::new().recursive(true).mode(mode).create(directory).map_err(Error::io("create directory", directory))?;
            }
        }
        self.give_to_owner(&logs)
    }

    /// A file created by root in an ordinary user's home must not lock that user out later.
    pub(crate) fn give_to_owner(&self, path: &Path) -> Result<()> {
        if !nix::unistd::geteuid().is_root() {
            return Ok(());
        }
        let owner = fs::metadata(&self.path).map_err(Error::io("read", &self.path))?;
        std::os::unix::fs::chown(path, Some(owner.uid()), Some(owner.gid())).map_err(Error::io("change owner of", path))
    }

    /// `GLEANER_HOME=$(mktemp -d)` as root creates a directory that only root can enter. While it is empty it holds no secret, so
    /// the server's account is given access, as the user intends.
    fn open_if_new(&self, account: &Account) -> Result<()> {
        let Ok(metadata) = fs::metadata(&self.path) else {
            return Ok(());
        };
        let empty = fs::read_dir(&self.path).is_ok_and(|mut entries| entries.next().is_none());
        if account.is_other() && metadata.uid() == 0 && empty {
            let mode = metadata.permissions().mode() | 0o111;
            fs::set_permissions(&self.path, fs::Permissions::from_mode(mode)).map_err(Error::io("change mode of", &self.path))?;
        }
        Ok(())
    }
}
