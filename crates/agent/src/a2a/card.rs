//! The agent card: the name and the skills of this service, for agents that discover it.

use std::collections::HashMap;

use a2a::{AgentCapabilities, AgentCard, AgentInterface, AgentSkill, HttpAuthSecurityScheme, SecurityScheme, TRANSPORT_PROTOCOL_JSONRPC};
use serde_json::json;

use crate::mcp::act::Act;
use crate::mcp::service::Settings;

/// The card of this service at that address. Acts that are not granted and queues that accept no tasks are left out.
pub(super) fn card(settings: &Settings, url: &str) -> AgentCard {
    let mut skills: Vec<AgentSkill> = Vec::new();
    if !settings.accepts.is_empty() {
        let description = format!(
            "Takes a task for later work. Metadata names `queue` (one of {}) and, where the queue has kinds, `kind`; the data part, or the text, is \
             what the worker gets. The task's state follows the item, and its result is the artifact.",
            settings.accepts.join(", ")
        );
        let example = json!({"metadata": {"queue": settings.accepts[0], "kind": "mail"}, "parts": [{"data": {"to": "ada"}}]});
        skills.push(skill("task", "Send a task", description, "task", example.to_string()));
    }
    for act in Act::allowed(&settings.grants) {
        let description =
            format!("{} A message with a data part {{\"act\": \"{}\", …}} and the arguments of the act.", act.description(), act.name());
        let example = json!({"parts": [{"data": {"act": act.name(), "queue": "jobs"}}]});
        skills.push(skill(act.name(), act.title(), description, "work", example.to_string()));
    }
    AgentCard {
        name: "Gleaner".into(),
        description: "Work queues in PostgreSQL: send tasks in, or claim items under a lease and hand in results.".into(),
        version: env!("CARGO_PKG_VERSION").into(),
        supported_interfaces: vec![AgentInterface::new(url, TRANSPORT_PROTOCOL_JSONRPC)],
        capabilities: AgentCapabilities {
            streaming: Some(true),
            push_notifications: Some(false),
            extensions: None,
            extended_agent_card: Some(false),
        },
        default_input_modes: vec!["application/json".into(), "text/plain".into()],
        default_output_modes: vec!["application/json".into(), "text/plain".into()],
        skills,
        provider: None,
        documentation_url: None,
        icon_url: None,
        security_schemes: Some(HashMap::from([("token".to_owned(), bearer())])),
        security_requirements: Some(vec![HashMap::from([("token".to_owned(), Vec::new())])]),
        signatures: None,
    }
}

fn skill(id: &str, name: &str, description: String, tag: &str, example: String) -> AgentSkill {
    AgentSkill {
        id: id.into(),
        name: name.into(),
        description,
        tags: vec!["queue".into(), tag.into()],
        examples: Some(vec![example]),
        input_modes: None,
        output_modes: None,
        security_requirements: None,
    }
}

fn bearer() -> SecurityScheme {
    SecurityScheme::HttpAuth(HttpAuthSecurityScheme {
        scheme: "Bearer".into(),
        description: Some("The token this agent was started with.".into()),
        bearer_format: None,
    })
}
