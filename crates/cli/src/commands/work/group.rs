//! The process groups of running commands: each command with all it started.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

/// How long a command gets between being asked to end and being ended.
pub const PATIENCE: Duration = Duration::from_secs(5);

/// Every command that runs now, by the key of its item.
#[derive(Debug, Clone, Default)]
pub struct Groups {
    running: Arc<Mutex<HashMap<String, Running>>>,
    abandoned: Arc<AtomicBool>,
}

#[derive(Debug, Clone, Copy)]
struct Running {
    lease: i64,
    group: Pid,
    /// Nobody waits for it any more.
    left: bool,
}

/// One command's group. Dropping it while the command runs asks the group to end.
#[derive(Debug)]
pub struct Group {
    groups: Groups,
    key: String,
    group: Pid,
    finished: bool,
}

impl Groups {
    pub fn add(&self, key: &str, lease: i64, leader: u32) -> Group {
        let group = Pid::from_raw(i32::try_from(leader).expect("a process id fits"));
        self.all().insert(key.to_owned(), Running { lease, group, left: false });
        Group { groups: self.clone(), key: key.to_owned(), group, finished: false }
    }

    /// The items whose commands run, with their leases.
    pub fn held(&self) -> Vec<(String, i64)> {
        self.all().iter().filter(|(_, running)| !running.left).map(|(key, running)| (key.clone(), running.lease)).collect()
    }

    /// From now on nobody waits for how commands end.
    pub fn abandon(&self) {
        self.abandoned.store(true, Ordering::SeqCst);
    }

    pub fn is_abandoned(&self) -> bool {
        self.abandoned.load(Ordering::SeqCst)
    }

    /// Asks what is left to end, and ends it when it does not.
    pub async fn end_all(&self) {
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
    pub fn signal(&self, which: Signal) {
        signal(self.group, which);
    }

    /// The command has ended.
    pub fn finish(&mut self) {
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
    // A group that is gone has nobody to tell.
    let _ = killpg(group, which);
}

fn exists(group: Pid) -> bool {
    killpg(group, None).is_ok()
}
