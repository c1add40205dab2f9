//! The process groups of running commands: each command with all its child processes.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use gleaner::Held;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

/// How long a command has between SIGTERM and SIGKILL.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);

/// Every running command, by the key of its item.
#[derive(Debug, Clone, Default)]
pub(super) struct Groups {
    running: Arc<Mutex<HashMap<String, Running>>>,
    abandoned: Arc<AtomicBool>,
}

#[derive(Debug, Clone, Copy)]
struct Running {
    lease: i64,
    group: Pid,
    /// The caller does not wait for it any more.
    left: bool,
}

/// The process group of one command. Dropping it while the command runs signals the group to end.
#[derive(Debug)]
pub(super) struct Group {
    groups: Groups,
    key: String,
    group: Pid,
    finished: bool,
}

impl Groups {
    pub(super) fn add(&self, key: &str, lease: i64, leader: u32) -> Group {
        let group = Pid::from_raw(i32::try_from(leader).expect("a process id fits"));
        self.all().insert(key.to_owned(), Running { lease, group, left: false });
        Group { groups: self.clone(), key: key.to_owned(), group, finished: false }
    }

    /// The items whose commands are running, with their leases.
    pub(super) fn held(&self) -> Vec<Held> {
        self.all().iter().filter(|(_, running)| !running.left).map(|(key, running)| Held::new(key, running.lease)).collect()
    }

    /// From now on the results of commands are ignored.
    pub(super) fn abandon(&self) {
        self.abandoned.store(true, Ordering::SeqCst);
    }

    pub(super) fn is_abandoned(&self) -> bool {
        self.abandoned.load(Ordering::SeqCst)
    }

    /// Signals the remaining groups to end, and kills those that do not.
    pub(super) async fn end_all(&self) {
        let left: Vec<Pid> = self.all().drain().map(|(_, running)| running.group).collect();
        left.iter().for_each(|group| signal(*group, Signal::SIGTERM));
        let until = Instant::now() + PATIENCE;
        while left.iter().any(|group| exists(*group)) && Instant::now() < until {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        left.iter().for_each(|group| signal(*group, Signal::SIGKILL));
    }

    fn all(&self) -> MutexGuard<'_, HashMap<String, Running>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Group {
    pub(super) fn signal(&self, which: Signal) {
        signal(self.group, which);
    }

    /// The command has ended.
    pub(super) fn finish(&mut self) {
        self.finished = true;
        self.groups.all().remove(&self.key);
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if !self.finished {
            self.signal(Signal::SIGTERM);
            if let Some(running) = self.groups.all().get_mut(&self.key) {
                running.left = true;
            }
        }
    }
}

fn signal(group: Pid, which: Signal) {
    // The group may be gone already, which is not an error.
    let _ = killpg(group, which);
}

fn exists(group: Pid) -> bool {
    killpg(group, None).is_ok()
}
