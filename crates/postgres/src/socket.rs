//! The directory of the unix socket: the same at each start of a home, open to the server's account only.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::SystemTime;

use crate::account::Account;
use crate::{Error, Home, Result};

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
    /// The one this home has kept; a new one at the first start, and where something else has taken the name since.
    pub(crate) fn create(account: &Account, home: &Home, wanted: Option<&Path>) -> Result<Self> {
        if let Some(path) = kept(home, wanted) {
            if account.barrier(path.parent().unwrap_or(&path)).is_none() && create_again(&path, account) {
                return Ok(Self::of(path));
            }
            tracing::warn!(path = %path.display(), "the socket directory of this home is not free; the address of the database changes");
        }
        let directory = Self::of(create(account, wanted)?);
        let note = home.socket();
        fs::write(&note, directory.path.as_os_str().as_bytes()).map_err(Error::io("write", &note))?;
        home.give_to_owner(&note)?;
        Ok(directory)
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

/// The directory that the first start of this home made.
fn kept(home: &Home, wanted: Option<&Path>) -> Option<PathBuf> {
    let path = PathBuf::from(fs::read_to_string(home.socket()).ok()?);
    (path.is_absolute() && is_ours(&path) && wanted.is_none_or(|parent| path.starts_with(parent))).then_some(path)
}

/// Makes it under the name it had. One that is still there must belong to the server's account alone, with no server in it: it may
/// be that of another home, if this one is a copy.
fn create_again(path: &Path, account: &Account) -> bool {
    match fs::DirBuilder::new().mode(0o700).create(path) {
        Ok(()) => account.give(path).is_ok(),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            let private =
                fs::symlink_metadata(path).is_ok_and(|found| found.is_dir() && found.uid() == account.uid() && found.mode() & 0o077 == 0);
            let free = private && sockets(path).all(|socket| UnixStream::connect(socket).is_err());
            if free {
                clear(path);
            }
            free
        }
        Err(_) => false,
    }
}

/// A new name: no other user can have prepared it, and no stale socket can be in it.
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
    if is_ours(path) {
        clear(path);
        let _ = fs::remove_dir(path);
    }
}

/// Removes the sockets of a server that ended without doing so itself.
pub(crate) fn clear(path: &Path) {
    for socket in sockets(path) {
        let _ = fs::remove_file(socket);
    }
}

/// PostgreSQL's sockets in a directory, and the lock files beside them.
fn sockets(directory: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.filter(|entry| entry.file_name().as_bytes().starts_with(b".s.PGSQL.")).map(|entry| entry.path())
}

fn is_ours(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.as_bytes().starts_with(PREFIX.as_bytes()))
}

/// A name that is unlikely to be taken: short, and free of characters that mean something in a URL.
pub(crate) fn unique() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let nanos = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.subsec_nanos());
    format!("{:x}-{:x}{:x}", std::process::id(), nanos, COUNT.fetch_add(1, Ordering::Relaxed))
}
