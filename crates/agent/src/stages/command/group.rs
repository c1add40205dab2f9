//! A command with all it started.

use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

/// How long a command gets between being asked to end and being ended.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);

/// One command's process group. Dropping it while the command runs ends the group: politely first.
#[derive(Debug)]
pub(super) struct Group(Option<Pid>);

impl Group {
    pub fn of(leader: Option<u32>) -> Self {
        Self(leader.and_then(|leader| i32::try_from(leader).ok()).map(Pid::from_raw))
    }

    /// The command has ended by itself. What it left behind ends as well: nobody would ever read it.
    pub fn finish(&mut self) {
        if let Some(group) = self.0.take() {
            let _ = killpg(group, Signal::SIGTERM);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let Some(group) = self.0.take() else { return };
        // A group that is gone has nobody to tell.
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
        // Not a task: the runtime may be on its way out, and what ignores the request must end all the same.
        if std::thread::Builder::new().name("end-command".into()).spawn(end).is_err() {
            let _ = killpg(group, Signal::SIGKILL);
        }
    }
}
