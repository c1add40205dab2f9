//! The directory of the unix socket: a new one per start, open to the server's account only.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::SystemTime;

use crate::account::Account;
use crate::{Error, Result};

const PREFIX: &str = "gleaner-";

/// What `sun_path` holds on Linux, less the closing zero; macOS has four bytes less, and our paths are far shorter.
const LONGEST: usize = 107;

/// A socket directory that goes when it is dropped, also with a start that was given up half way.
#[derive(Debug)]
pub(crate) struct SocketDirectory {
    path: PathBuf,
    kept: bool,
}

impl SocketDirectory {
    /// Makes a new one.
    pub(crate) fn create(account: &Account, wanted: Option<&Path>) -> Result<Self> {
        Ok(Self::of(create(account, wanted)?))
    }

    /// One that is there.
    pub(crate) fn of(path: PathBuf) -> Self {
        Self { path, kept: false }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Leaves it where it is: a server still listens there.
    pub(crate) fn keep(&mut self) {
        self.kept = true;
    }
}

impl Drop for SocketDirectory {
    fn drop(&mut self) {
        if !self.kept {
            remove(&self.path);
        }
    }
}

/// A new name each time: nobody can have prepared it, and no stale socket can be in it.
fn create(account: &Account, wanted: Option<&Path>) -> Result<PathBuf> {
    // Not XDG_RUNTIME_DIR: it is removed when its user signs out, and a server may stay longer than that. As root /run,
    // which no cleaner sweeps and which a service with a private /tmp shares with the rest of the system.
    let places: &[&str] = if account.is_other() { &["/run", "/tmp"] } else { &["/tmp"] };
    let mut refused = None;
    for place in wanted.into_iter().chain(places.iter().map(Path::new)) {
        if account.barrier(place).is_some() {
            continue;
        }
        match create_in(place, account) {
            Ok(path) => return Ok(path),
            Err(error) => refused = Some(error),
        }
    }
    Err(refused.unwrap_or_else(|| Error::io("enter", "/tmp")(std::io::ErrorKind::PermissionDenied.into())))
}

fn create_in(place: &Path, account: &Account) -> Result<PathBuf> {
    loop {
        let path = place.join(format!("{PREFIX}{}", unique()));
        if path.join(".s.PGSQL.65535").as_os_str().as_bytes().len() > LONGEST {
            return Err(Error::SocketPathTooLong { path });
        }
        match fs::DirBuilder::new().mode(0o700).create(&path) {
            Ok(()) => {
                account.give(&path)?;
                return Ok(path);
            }
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(Error::io("create directory", &path)(error)),
        }
    }
}

/// Removes one that no server uses any more. Only what we made: a directory by our name, and the sockets in it.
pub(crate) fn remove(path: &Path) {
    let ours = path.file_name().is_some_and(|name| name.as_bytes().starts_with(PREFIX.as_bytes()));
    if ours {
        clear(path);
        let _ = fs::remove_dir(path);
    }
}

/// Removes the sockets of a server that ended without doing so itself.
pub(crate) fn clear(path: &Path) {
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        if entry.file_name().as_bytes().starts_with(b".s.PGSQL.") {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// A name nobody else is likely to have: short, and free of characters that mean something in a URL.
pub(crate) fn unique() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let nanos = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.subsec_nanos());
    format!("{:x}-{:x}{:x}", std::process::id(), nanos, COUNT.fetch_add(1, Ordering::Relaxed))
}
