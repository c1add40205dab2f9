//! Finds the servers that run in a data directory.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::account::Account;
use crate::{Error, Result};

/// How often to check whether a process has started or ended.
pub(crate) const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// What a server writes about itself into `postmaster.pid`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PidFile {
    pub(crate) pid: u32,
    pub(crate) port: u16,
    pub(crate) socket_directory: PathBuf,
    /// `starting`, `ready` or `stopping`; `standby` for a replica.
    pub(crate) phase: String,
}

impl PidFile {
    /// `None` when there is no file, or it does not yet say where the server listens.
    pub(crate) fn read(data: &Path) -> Option<Self> {
        Self::parse(&fs::read_to_string(path(data)).ok()?)
    }

    fn parse(text: &str) -> Option<Self> {
        let line: Vec<&str> = text.lines().map(str::trim).collect();
        Some(Self {
            pid: line.first()?.parse().ok()?,
            port: line.get(3)?.parse().ok()?,
            socket_directory: line.get(4).filter(|path| !path.is_empty()).map(PathBuf::from)?,
            phase: line.get(7).copied().unwrap_or("starting").to_owned(),
        })
    }
}

/// Removes a `postmaster.pid` that belongs to no running server. The caller has made sure of that, and holds the lock.
pub(crate) fn remove_stale(data: &Path) -> Result<()> {
    let path = path(data);
    match fs::remove_file(&path) {
        Ok(()) => tracing::info!(file = %path.display(), "removed what a crashed server left"),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Err(Error::io("delete", &path)(error)),
    }
    Ok(())
}

fn path(data: &Path) -> PathBuf {
    data.join("postmaster.pid")
}

/// Every PostgreSQL process with its working directory in `data`: the server, and sessions that may outlive it for a moment. A
/// process id alone proves nothing, since ids are reused.
#[cfg(target_os = "linux")]
pub(crate) fn servers_in(data: &Path, account: &Account) -> Result<Vec<u32>> {
    use std::os::unix::fs::MetadataExt;

    let home = match fs::metadata(data) {
        Ok(metadata) => (metadata.dev(), metadata.ino()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(Error::io("read", data)(error)),
    };
    let mut inside = Vec::new();
    let mut hidden = Vec::new();
    for entry in fs::read_dir("/proc").map_err(Error::io("read", "/proc"))?.flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        let Ok(name) = fs::read_to_string(entry.path().join("comm")) else {
            continue;
        };
        if !matches!(name.trim(), "postgres" | "postmaster") {
            continue;
        }
        match fs::metadata(entry.path().join("cwd")) {
            Ok(metadata) if (metadata.dev(), metadata.ino()) == home => inside.push(pid),
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied && is_owned_by(pid, account) => {
                hidden.push(pid);
            }
            _ => {}
        }
    }
    if account.is_other() && !hidden.is_empty() {
        inside.extend(ask_as(account, data, &hidden)?);
    }
    Ok(inside)
}

#[cfg(target_os = "linux")]
fn is_owned_by(pid: u32, account: &Account) -> bool {
    use std::os::unix::fs::MetadataExt;
    fs::metadata(format!("/proc/{pid}")).is_ok_and(|process| process.uid() == account.uid())
}

/// In a container root often may not inspect processes of another account, but that account may.
#[cfg(target_os = "linux")]
fn ask_as(account: &Account, data: &Path, pids: &[u32]) -> Result<Vec<u32>> {
    let script = r#"for pid; do if [ "/proc/$pid/cwd" -ef "$0" ]; then echo "$pid"; fi; done"#;
    let output = account
        .command("/bin/sh", Path::new("/"))
        .args(["-c", script])
        .arg(data)
        .args(pids.iter().map(u32::to_string))
        .output()
        .map_err(Error::io("run", "/bin/sh"))?;
    Ok(String::from_utf8_lossy(&output.stdout).lines().filter_map(|line| line.parse().ok()).collect())
}

/// Without /proc: the process that the pid file names, if it is a PostgreSQL at all. The server's own checks cover the rest.
#[cfg(not(target_os = "linux"))]
pub(crate) fn servers_in(data: &Path, _: &Account) -> Result<Vec<u32>> {
    let text = fs::read_to_string(path(data)).unwrap_or_default();
    let Some(pid) = text.lines().next().and_then(|line| line.trim().parse::<u32>().ok()) else {
        return Ok(Vec::new());
    };
    let output = std::process::Command::new("ps").args(["-o", "comm=", "-p", &pid.to_string()]).output().map_err(Error::io("run", "ps"))?;
    let name = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok(if name.trim().ends_with("postgres") { vec![pid] } else { Vec::new() })
}

/// Whether a process has this id.
pub(crate) fn exists(pid: u32) -> bool {
    let Ok(pid) = i32::try_from(pid) else { return false };
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), None) != Err(nix::errno::Errno::ESRCH)
}

/// Sends a signal. A process that is already gone is not an error.
pub(crate) fn signal(pid: u32, signal: nix::sys::signal::Signal) -> Result<()> {
    let target = nix::unistd::Pid::from_raw(i32::try_from(pid).expect("a process id fits"));
    match nix::sys::signal::kill(target, signal) {
        Ok(()) | Err(nix::errno::Errno::ESRCH) => Ok(()),
        Err(errno) => Err(Error::io("signal process", pid.to_string())(errno.into())),
    }
}

#[cfg(test)]
mod tests {
    use super::PidFile;

    #[test]
    fn a_pid_file_is_read_once_it_says_where() {
        let whole = "4711\n/home/postgres\n1700000000\n5432\n/tmp/gleaner-1\n\n  5432001  32769\nready   \n";
        let file = PidFile::parse(whole).expect("complete");
        assert_eq!((file.pid, file.port, file.phase.as_str()), (4711, 5432, "ready"));
        let early = PidFile::parse("4711\n/home/postgres\n1700000000\n5432\n/tmp/gleaner-1\n\n");
        assert_eq!(early.expect("an address").phase, "starting");
        assert_eq!(PidFile::parse("4711\n/home/postgres\n1700000000\n5432\n\n"), None);
    }
}
