//! The server process: our child, or one that was running before.

use std::io;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::Duration;

use nix::sys::signal::Signal;
use tokio::sync::watch;

use crate::account::Account;
use crate::pid::{self, LOOK_AGAIN};
use crate::{ParentDeath, Result};

/// A running server, started by this process or an earlier one.
#[derive(Debug)]
pub(crate) enum Server {
    Child(ChildProcess),
    /// It outlived the parent that started it.
    Adopted {
        pid: u32,
        data: PathBuf,
        account: Account,
    },
}

impl Server {
    pub(crate) fn pid(&self) -> u32 {
        match self {
            Self::Child(process) => process.pid,
            Self::Adopted { pid, .. } => *pid,
        }
    }

    pub(crate) fn signal(&self, signal: Signal) -> Result<()> {
        match self {
            Self::Child(process) => process.signal(signal),
            Self::Adopted { pid, .. } if !self.has_exited() => pid::signal(*pid, signal),
            Self::Adopted { .. } => Ok(()),
        }
    }

    pub(crate) fn has_exited(&self) -> bool {
        match self {
            Self::Child(process) => process.exit().is_some(),
            // When in doubt it is taken as still running.
            Self::Adopted { pid, data, account } => pid::servers_in(data, account).is_ok_and(|servers| !servers.contains(pid)),
        }
    }

    /// How a child ended; `None` for an adopted server, whose exit status only its first parent gets.
    pub(crate) fn exit(&self) -> Option<ExitStatus> {
        match self {
            Self::Child(process) => process.exit(),
            Self::Adopted { .. } => None,
        }
    }

    /// Waits until it has ended.
    pub(crate) async fn exited(&self) {
        match self {
            Self::Child(process) => {
                // An error means that the waiting thread is gone, which happens only after the server has ended.
                let _ = process.exit.clone().wait_for(Option::is_some).await;
            }
            Self::Adopted { .. } => {
                while !self.has_exited() {
                    tokio::time::sleep(LOOK_AGAIN * 5).await;
                }
            }
        }
    }
}

/// Our child, and the thread that started it and waits for it.
///
/// The kernel sends the parent-death signal when the *thread* that forked ends, not the process. A thread of a runtime's pool may
/// end at any time, so the child gets its own thread, which lives exactly as long as the child.
#[derive(Debug)]
pub(crate) struct ChildProcess {
    pid: u32,
    exit: watch::Receiver<Option<ExitStatus>>,
    /// Locked while a signal is sent and while the child is reaped: until then its pid is not used again.
    reaped: Arc<Mutex<bool>>,
}

impl ChildProcess {
    pub(crate) fn spawn(mut command: Command, parent_death: ParentDeath) -> io::Result<Self> {
        let (started, start) = mpsc::channel();
        let (ended, exit) = watch::channel(None);
        let reaped = Arc::new(Mutex::new(false));
        let reaper = Arc::clone(&reaped);
        std::thread::Builder::new().name("gleaner-postgres".to_owned()).spawn(move || {
            die_with_parent(&mut command, parent_death);
            match command.spawn() {
                Err(error) => drop(started.send(Err(error))),
                Ok(mut child) => {
                    let _ = started.send(Ok(child.id()));
                    // Nothing else waits for this child, so waiting does not fail.
                    let status = reap(&mut child, &reaper).unwrap_or_default();
                    let _ = ended.send(Some(status));
                }
            }
        })?;
        let pid = start.recv().map_err(|_| io::Error::other("the thread that starts PostgreSQL ended"))??;
        Ok(Self { pid, exit, reaped })
    }

    fn exit(&self) -> Option<ExitStatus> {
        *self.exit.borrow()
    }

    fn signal(&self, signal: Signal) -> Result<()> {
        let reaped = self.reaped.lock().unwrap_or_else(PoisonError::into_inner);
        if *reaped { Ok(()) } else { pid::signal(self.pid, signal) }
    }
}

impl Drop for ChildProcess {
    /// An abandoned start must not leave a server running. After an orderly end there is no process to signal.
    fn drop(&mut self) {
        let _ = self.signal(Signal::SIGINT);
    }
}

/// Waits until the child has ended, and reaps it under the lock.
#[cfg(target_os = "linux")]
fn reap(child: &mut Child, reaped: &Mutex<bool>) -> io::Result<ExitStatus> {
    use nix::sys::wait::{Id, WaitPidFlag, waitid};

    // First waits without reaping: a zombie's pid is not used again, so the lock is needed only for an instant.
    let pid = nix::unistd::Pid::from_raw(i32::try_from(child.id()).expect("a process id fits"));
    while waitid(Id::Pid(pid), WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT) == Err(nix::errno::Errno::EINTR) {}
    let mut reaped = reaped.lock().unwrap_or_else(PoisonError::into_inner);
    *reaped = true;
    child.wait()
}

#[cfg(not(target_os = "linux"))]
fn reap(child: &mut Child, reaped: &Mutex<bool>) -> io::Result<ExitStatus> {
    loop {
        let mut guard = reaped.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(status) = child.try_wait()? {
            *guard = true;
            return Ok(status);
        }
        drop(guard);
        std::thread::sleep(LOOK_AGAIN);
    }
}

#[cfg(target_os = "linux")]
#[allow(unsafe_code)]
fn die_with_parent(command: &mut Command, parent_death: ParentDeath) {
    use std::os::unix::process::CommandExt;

    let signal = match parent_death {
        ParentDeath::ShutDown => Signal::SIGINT,
        ParentDeath::Abort => Signal::SIGQUIT,
    };
    let parent = std::process::id();
    // A process group of its own: Ctrl-C at the terminal is for us, and we stop the server when we are done with it.
    command.process_group(0);
    // SAFETY: between fork and exec only async-signal-safe calls are allowed. prctl and getppid are plain system calls,
    // and nothing here allocates or locks. It runs after the change of user, which would clear the signal again.
    unsafe {
        command.pre_exec(move || {
            nix::sys::prctl::set_pdeathsig(signal)?;
            // The parent may have died before the signal was requested.
            if nix::unistd::getppid().as_raw().unsigned_abs() == parent { Ok(()) } else { Err(io::Error::from(nix::errno::Errno::ESRCH)) }
        });
    }
}

#[cfg(not(target_os = "linux"))]
fn die_with_parent(command: &mut Command, _: ParentDeath) {
    use std::os::unix::process::CommandExt;
    command.process_group(0);
}

/// Blocks until the server has ended or the timeout has passed. For `Drop`, which cannot await.
pub(crate) fn wait_blocking(server: &Server, timeout: Duration) -> bool {
    let end = std::time::Instant::now() + timeout;
    while !server.has_exited() {
        if std::time::Instant::now() > end {
            return false;
        }
        std::thread::sleep(LOOK_AGAIN / 2);
    }
    true
}
