//! What the parts of an agent know of each other.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use gleaner::worker::Control;
use tokio::time::Instant;

use super::meter::{Meter, Trouble};
use super::work::Work;
use crate::config::Config;
use crate::host::Host;

#[derive(Debug)]
pub struct Shared {
    pub config: Config,
    pub control: Control,
    pub work: Arc<dyn Work>,
    /// The queues it means to work.
    pub queues: Vec<String>,
    pub began: Instant,
    /// The apps it hosts, if it does.
    pub apps: OnceLock<Host>,
    stopping: AtomicBool,
    /// Whether it was told what rings and what does not.
    said: AtomicBool,
    now: Mutex<Now>,
}

#[derive(Debug, Clone, Default)]
pub struct Now {
    /// What it is called; not the configured name where that was taken.
    pub name: String,
    /// The place in words, once it is known.
    pub place: Option<String>,
    /// Whether the place answered, and has something to work.
    pub open: bool,
    /// Tries to open it that failed, one after the other.
    pub errors_in_a_row: u32,
    pub trouble: Option<Trouble>,
    /// Whose work comes first.
    pub owner: Option<String>,
    pub meters: Vec<Arc<Meter>>,
}

impl Shared {
    pub fn new(config: Config, work: Arc<dyn Work>, queues: Vec<String>) -> Self {
        let now = Now { name: config.name.text.clone(), owner: config.owner.clone(), ..Now::default() };
        Self {
            control: Control::new(config.concurrency),
            work,
            queues,
            began: Instant::now(),
            apps: OnceLock::new(),
            stopping: AtomicBool::new(false),
            said: AtomicBool::new(false),
            now: Mutex::new(now),
            config,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn now(&self) -> Now {
        self.lock().clone()
    }

    pub fn change(&self, change: impl FnOnce(&mut Now)) {
        change(&mut self.lock());
    }

    pub fn name(&self) -> String {
        self.lock().name.clone()
    }

    pub fn set_name(&self, name: &str) {
        name.clone_into(&mut self.lock().name);
    }

    pub fn meters(&self) -> Vec<Arc<Meter>> {
        self.lock().meters.clone()
    }

    /// What is wrong with the place as a whole, else with one of its queues.
    pub fn trouble(&self) -> Option<Trouble> {
        let now = self.now();
        now.trouble.or_else(|| now.meters.iter().find_map(|meter| meter.read().trouble))
    }

    /// Whether nobody has told yet what rings and what does not.
    pub fn is_first_to_say(&self) -> bool {
        !self.said.swap(true, Ordering::Relaxed)
    }

    pub fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    pub fn set_stopping(&self) {
        self.stopping.store(true, Ordering::Relaxed);
    }
}
