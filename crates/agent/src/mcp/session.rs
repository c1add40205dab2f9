//! One assistant and its agent id.

use serde_json::Value;
use uuid::Uuid;

use super::act::Act;
use super::refusal::Refusal;
use super::service::Service;

/// The answer of an act: a sentence, the same as fields, and the quoted content.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolReply {
    /// For a model to read.
    pub says: String,
    /// For a program to read. Content from outside is in marked fields, see [`super::quote`].
    pub value: Value,
}

/// One assistant with an agent id of its own. What it holds is released when it ends.
#[derive(Debug)]
pub struct Session {
    service: Service,
    agent: String,
    /// Whether it lasts beyond one call. For an assistant that does not, claims are tracked by lease alone.
    stands: bool,
}

impl Session {
    /// A lasting assistant: a process at the other end of a pipe, or an HTTP session.
    pub fn standing(service: &Service) -> Self {
        Self::new(service, true)
    }

    /// An assistant of which we know one request. MCP has had no sessions since 2026-07-28, and A2A never had any.
    pub fn passing(service: &Service) -> Self {
        Self::new(service, false)
    }

    fn new(service: &Service, stands: bool) -> Self {
        let agent = format!("{}-{}", service.settings().agent, Uuid::new_v4().simple());
        Self { service: service.clone(), agent, stands }
    }

    pub fn agent(&self) -> &str {
        &self.agent
    }

    pub fn service(&self) -> &Service {
        &self.service
    }

    /// Runs the requested act, if the assistant may use it.
    pub async fn call(&self, act: &str, arguments: Value) -> Result<ToolReply, Refusal> {
        self.service.renewal().heard_agent(&self.agent);
        let Some(act) = Act::named(act) else {
            let known: Vec<&str> = Act::allowed(&self.service.settings().grants).map(Act::name).collect();
            return Err(Refusal::invalid(format!("There is no act of that name. There is: {}.", known.join(", "))));
        };
        if let Some(grant) = act.grant().filter(|grant| !self.service.settings().grants.has(*grant)) {
            tracing::warn!(act = act.name(), agent = self.agent, "an assistant asked for what was not granted");
            return Err(Refusal::not_granted(act.name(), grant));
        }
        super::calls::call(self, act, arguments).await
    }

    /// Releases what it holds. Returns how many items that were.
    pub async fn end(&self) -> usize {
        self.service.renewal().release(Some(&self.agent)).await
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let renewal = self.service.renewal();
        if !self.stands || renewal.held(&self.agent).is_empty() {
            return;
        }
        let (renewal, agent) = (renewal.clone(), std::mem::take(&mut self.agent));
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move { renewal.release(Some(&agent)).await });
        }
    }
}
