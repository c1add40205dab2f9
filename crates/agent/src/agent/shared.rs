//! State shared by the parts of an agent.

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
    /// The queues it is configured to work.
    pub queues: Vec<String>,
    pub began: Instant,
    /// The hosted apps, if it hosts any.
    pub apps: OnceLock<Host>,
    stopping: AtomicBool,
    now: Mutex<Now>,
}

#[derive(Debug, Clone, Default)]
pub struct Now {
    /// The agent's name. It differs from the configured one if that was taken.
    pub name: String,
    /// A description of the endpoint, once it is known.
    pub endpoint: Option<String>,
    /// Whether the endpoint has answered and has a queue to work.
    pub open: bool,
    /// Failed attempts to open the endpoint since the last success.
    pub errors_in_a_row: u32,
    pub trouble: Option<Trouble>,
    /// The owner whose work comes first.
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

    /// What is wrong with the endpoint as a whole, otherwise with one of its queues.
    pub fn trouble(&self) -> Option<Trouble> {
        let now = self.now();
        now.trouble.or_else(|| now.meters.iter().find_map(|meter| meter.read().trouble))
    }

    pub fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    pub fn set_stopping(&self) {
        self.stopping.store(true, Ordering::Relaxed);
    }
}
