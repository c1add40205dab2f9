//! What all assistants of one process share.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use gleaner::transport::Transport;

use super::desk::Desk;
use super::grant::Grants;
use super::keeper::Keeper;
use super::refusal::Refusal;

/// How long what a queue looks like is remembered: `gleaner attach` may have changed it.
const KNOWN_FOR: Duration = Duration::from_secs(60);

/// How assistants are served.
#[derive(Debug, Clone)]
pub struct Settings {
    /// What they may do beyond their own items. Nothing by default.
    pub grants: Grants,
    /// The queues they see; all of them when none are named.
    pub queues: Option<Vec<String>>,
    /// The queues into which other agents may put tasks. None by default.
    pub accepts: Vec<String>,
    /// Whose work comes first.
    pub owner: Option<String>,
    /// How the agent ids begin; the rest is new for each session.
    pub agent: String,
    /// How long after its last word life is shown for an assistant. Longer than it thinks, shorter than people wait.
    pub patience: Duration,
    /// Bytes of an item's content in one answer.
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

/// A desk with its rules, and what is held at it. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Service {
    shared: Arc<Shared>,
}

/// A queue, and since when it is known.
type Known = (Instant, Arc<dyn Transport>);

#[derive(Debug)]
struct Shared {
    desk: Arc<dyn Desk>,
    settings: Settings,
    keeper: Keeper,
    open: Mutex<HashMap<String, Known>>,
}

impl Service {
    /// Within a runtime: a task shows life for what assistants hold.
    pub fn new(desk: Arc<dyn Desk>, settings: Settings) -> Self {
        let keeper = Keeper::start(settings.patience);
        Self { shared: Arc::new(Shared { desk, settings, keeper, open: Mutex::default() }) }
    }

    pub fn desk(&self) -> &dyn Desk {
        &*self.shared.desk
    }

    pub fn settings(&self) -> &Settings {
        &self.shared.settings
    }

    pub fn keeper(&self) -> &Keeper {
        &self.shared.keeper
    }

    /// The queues that are here, and that assistants may see.
    pub async fn queues(&self) -> Result<Vec<String>, Refusal> {
        let mut queues = self.desk().place().queues().await?;
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
        let opened = match self.desk().place().open(queue).await {
            Err(gleaner::Error::UnknownQueue { .. }) => return Err(Refusal::no_such_queue(queue, &self.queues().await?)),
            opened => opened?,
        };
        self.shared.open.lock().expect("no panic holds it").insert(queue.to_owned(), (Instant::now(), opened.clone()));
        Ok(opened)
    }

    /// Gives back everything that assistants hold: before the process ends.
    pub async fn close(&self) -> usize {
        self.keeper().release(None).await
    }
}
