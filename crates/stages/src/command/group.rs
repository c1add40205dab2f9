//! A command with all its child processes.

use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

/// How long a command has between SIGTERM and SIGKILL.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);

/// The process group of one command. Dropping it while the command runs ends the group, with SIGTERM first.
#[derive(Debug)]
pub(super) struct Group(Option<Pid>);

impl Group {
    pub(super) fn of(leader: Option<u32>) -> Self {
        Self(leader.and_then(|leader| i32::try_from(leader).ok()).map(Pid::from_raw))
    }

    /// The command has ended by itself. Its remaining child processes are ended too, because their output would never be read.
    pub(super) fn finish(&mut self) {
        if let Some(group) = self.0.take() {
            let _ = killpg(group, Signal::SIGTERM);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let Some(group) = self.0.take() else { return };
        // The group no longer exists.
        if killpg(group, Signal::SIGTERM).is_err() {
            return;
        }
        let end = move || {
            for _ in 0..PATIENCE.as_millis() / 50 {
                std::thread::sleep(Duration::from_millis(50));
                if killpg(group, None).is_err() {
                    return;
                }
            }
            let _ = killpg(group, Signal::SIGKILL);
        };
        // A thread and not a task: the runtime may be shutting down, and a process that ignores SIGTERM must be ended all the
        // same.
        if std::thread::Builder::new().name("end-command".into()).spawn(end).is_err() {
            let _ = killpg(group, Signal::SIGKILL);
        }
    }
}
