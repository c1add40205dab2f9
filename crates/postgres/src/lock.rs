//! The lock on a home: held by the process that runs the cluster, released by the kernel when it dies.

use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt;
use std::time::{Duration, Instant};

use nix::fcntl::{Flock, FlockArg};

use crate::{Error, Home, Result};

/// Held for as long as the value lives. The file contains the holder's pid, for messages only; the lock itself decides.
#[derive(Debug)]
pub(crate) struct Lock {
    _held: Flock<File>,
}

impl Lock {
    /// Takes the lock, or returns who holds it.
    pub(crate) fn take(home: &Home) -> Result<Self> {
        // `status` holds the lock for an instant, and a start must not take that for a running cluster. An abandoned start in this
        // same process releases the lock when its server is gone, which takes a moment on a busy machine.
        let begun = Instant::now();
        let patience =
            |holder: Option<u32>| if holder == Some(std::process::id()) { Duration::from_secs(3) } else { Duration::from_millis(250) };
        loop {
            if let Some(lock) = Self::try_take(home)? {
                return Ok(lock);
            }
            if begun.elapsed() > patience(pid_in(home)) {
                return Err(Error::AlreadyRunning { home: home.path().to_owned(), pid: pid_in(home) });
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn try_take(home: &Home) -> Result<Option<Self>> {
        let path = home.lock();
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .mode(0o644)
            .open(&path)
            .map_err(Error::io("open", &path))?;
        match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(mut held) => {
                home.give_to_owner(&path)?;
                held.set_len(0).and_then(|()| writeln!(held, "{}", std::process::id())).map_err(Error::io("write", &path))?;
                Ok(Some(Self { _held: held }))
            }
            Err((_, nix::errno::Errno::EWOULDBLOCK)) => Ok(None),
            Err((_, errno)) => Err(Error::io("lock", &path)(errno.into())),
        }
    }
}

/// The process that runs a cluster on this home, if one does.
pub(crate) fn holder(home: &Home) -> Result<Option<u32>> {
    let path = home.lock();
    let file = match File::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Error::io("open", &path)(error)),
    };
    // Shared, so that two concurrent checks do not mistake each other for a holder.
    match Flock::lock(file, FlockArg::LockSharedNonblock) {
        Ok(_) => Ok(None),
        // A holder that has not written its pid yet is still a holder.
        Err((_, nix::errno::Errno::EWOULDBLOCK)) => Ok(Some(pid_in(home).unwrap_or(0))),
        Err((_, errno)) => Err(Error::io("lock", &path)(errno.into())),
    }
}

fn pid_in(home: &Home) -> Option<u32> {
    fs::read_to_string(home.lock()).ok()?.trim().parse().ok()
}
