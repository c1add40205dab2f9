//! Stops a cluster from another process.

use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use tokio::time::sleep;

use crate::account::Account;
use crate::pid::{self, LOOK_AGAIN, PidFile};
use crate::state::State;
use crate::{Error, Home, Result, lock, socket};

/// What [`down`] had to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stopped {
    /// Nothing ran.
    Nothing,
    /// The process that ran the cluster, which stopped the server in turn.
    Parent(u32),
    /// A server whose parent had died.
    Server(u32),
}

/// Stops whatever runs on a home and waits until it has stopped: signals the process that runs it (SIGTERM), or the server itself
/// (SIGINT) when that process is gone. Fails when `patience` was too short; calling it again is safe.
pub async fn down(home: &Home, patience: Duration) -> Result<Stopped> {
    let end = Instant::now() + patience;
    let mut stopped = Stopped::Nothing;
    if let Some(parent) = lock::holder(home)? {
        // Zero is a holder that has not written its pid yet, and would signal our whole process group. We do not signal ourselves
        // either.
        if parent == 0 || parent == std::process::id() {
            return Err(Error::AlreadyRunning { home: home.path().to_owned(), pid: Some(parent) });
        }
        pid::signal(parent, Signal::SIGTERM)?;
        stopped = Stopped::Parent(parent);
        while lock::holder(home)? == Some(parent) {
            wait_once(end, parent, patience).await?;
        }
    }
    let data = home.data();
    let account = Account::for_data(&data)?;
    let mut asked = None;
    loop {
        let left = pid::servers_in(&data, &account)?;
        let Some(first) = left.first().copied() else { break };
        let server = PidFile::read(&data).map(|file| file.pid).filter(|pid| left.contains(pid));
        // One signal is enough. Sessions without a server end by themselves.
        if let Some(server) = server.filter(|server| asked != Some(*server)) {
            pid::signal(server, Signal::SIGINT)?;
            asked = Some(server);
            if stopped == Stopped::Nothing {
                stopped = Stopped::Server(server);
            }
        }
        wait_once(end, server.unwrap_or(first), patience).await?;
    }
    if let Some(state) = State::read(home)
        && lock::holder(home)?.is_none()
    {
        socket::remove(&state.socket_directory);
        State::remove(home);
    }
    Ok(stopped)
}

async fn wait_once(end: Instant, pid: u32, patience: Duration) -> Result<()> {
    if Instant::now() > end {
        return Err(Error::NotStopped { pid, seconds: patience.as_secs() });
    }
    sleep(LOOK_AGAIN).await;
    Ok(())
}
