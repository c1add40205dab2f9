//! State shared by all assistants of one process.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use gleaner::transport::Transport;

use super::backend::Backend;
use super::grant::Grants;
use super::lease_renewal::LeaseRenewal;
use super::refusal::Refusal;

/// How long the shape of a queue is cached: `gleaner attach` may have changed it.
const KNOWN_FOR: Duration = Duration::from_secs(60);

/// Settings for serving assistants.
#[derive(Debug, Clone)]
pub struct Settings {
    /// What assistants may do beyond their own items. Nothing by default.
    pub grants: Grants,
    /// The queues that assistants see. All queues when none are named.
    pub queues: Option<Vec<String>>,
    /// The queues into which other agents may put tasks. None by default.
    pub accepts: Vec<String>,
    /// The owner whose work comes first.
    pub owner: Option<String>,
    /// The prefix of the agent ids. The rest is new for each session.
    pub agent: String,
    /// How long heartbeats continue after an assistant's last call. Longer than a model thinks, shorter than people are willing
    /// to wait.
    pub patience: Duration,
    /// The limit on the bytes of an item's content in one answer.
    pub most_content: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            grants: Grants::none(),
            queues: None,
            accepts: Vec::new(),
            owner: None,
            agent: "mcp".into(),
            patience: Duration::from_secs(600),
            most_content: 64 * 1024,
        }
    }
}

/// A [`Backend`] with its rules and the items held there. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Service {
    shared: Arc<Shared>,
}

/// A queue, and when its description was read.
type OpenQueue = (Instant, Arc<dyn Transport>);

#[derive(Debug)]
struct Shared {
    backend: Arc<dyn Backend>,
    settings: Settings,
    renewal: LeaseRenewal,
    open: Mutex<HashMap<String, OpenQueue>>,
}

impl Service {
    /// Must be called within a runtime: it spawns a task that renews the leases of assistants.
    pub fn new(backend: Arc<dyn Backend>, settings: Settings) -> Self {
        let renewal = LeaseRenewal::start(settings.patience);
        Self { shared: Arc::new(Shared { backend, settings, renewal, open: Mutex::default() }) }
    }

    pub fn backend(&self) -> &dyn Backend {
        &*self.shared.backend
    }

    pub fn settings(&self) -> &Settings {
        &self.shared.settings
    }

    pub fn renewal(&self) -> &LeaseRenewal {
        &self.shared.renewal
    }

    /// The queues that exist here and that assistants may see.
    pub async fn queues(&self) -> Result<Vec<String>, Refusal> {
        let mut queues = self.backend().endpoint().queues().await?;
        if let Some(seen) = &self.settings().queues {
            queues.retain(|queue| seen.contains(queue));
        }
        Ok(queues)
    }

    /// The acts of a queue that assistants may see.
    pub async fn transport(&self, queue: &str) -> Result<Arc<dyn Transport>, Refusal> {
        if self.settings().queues.as_ref().is_some_and(|seen| !seen.iter().any(|name| name == queue)) {
            return Err(Refusal::no_such_queue(queue, &self.queues().await?));
        }
        if let Some((since, open)) = self.shared.open.lock().expect("no panic holds it").get(queue)
            && since.elapsed() < KNOWN_FOR
        {
            return Ok(open.clone());
        }
        let opened = match self.backend().endpoint().open(queue).await {
            Err(gleaner::Error::UnknownQueue { .. }) => return Err(Refusal::no_such_queue(queue, &self.queues().await?)),
            opened => opened?,
        };
        self.shared.open.lock().expect("no panic holds it").insert(queue.to_owned(), (Instant::now(), opened.clone()));
        Ok(opened)
    }

    /// Releases everything that assistants hold. Call it before the process ends.
    pub async fn close(&self) -> usize {
        self.renewal().release(None).await
    }
}
