//! What a message asks for: an act, or a task.

use std::collections::HashMap;

use a2a::{A2AError, Message, PartContent, SendMessageRequest};
use serde_json::{Map, Value, json};

use crate::mcp::service::Settings;

/// The request in a message.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Requested {
    /// Run an act, with its arguments, as a worker.
    Act { name: String, arguments: Value },
    /// Enqueue a task.
    Task { queue: String, kind: Option<String>, payload: Value },
}

/// Reads a message. If it is invalid, the error is a sentence for the sender.
pub(super) fn read(request: &SendMessageRequest, settings: &Settings) -> Result<Requested, A2AError> {
    let message = &request.message;
    if message.task_id.as_deref().is_some_and(|id| !id.is_empty()) {
        return Err(A2AError::unsupported_operation("a task here takes no further messages; ask for it with GetTask, or send a new one"));
    }
    let content = content(message)?;
    if let Value::Object(mut object) = content.clone()
        && let Some(Value::String(name)) = object.remove("act")
    {
        return Ok(Requested::Act { name, arguments: Value::Object(object) });
    }
    let said = |name: &str| -> Option<String> {
        let of = |metadata: &Option<HashMap<String, Value>>| metadata.as_ref()?.get(name)?.as_str().map(str::to_owned);
        of(&message.metadata).or_else(|| of(&request.metadata))
    };
    let queue = match (said("queue"), settings.accepts.as_slice()) {
        (Some(queue), accepts) if accepts.contains(&queue) => queue,
        (None, [only]) => only.clone(),
        (_, []) => return Err(A2AError::invalid_params("no queue accepts tasks here; a data part with `act` works on what is there")),
        (_, accepts) => {
            return Err(A2AError::invalid_params(format!("metadata must name a `queue` that accepts tasks: {}", accepts.join(", "))));
        }
    };
    Ok(Requested::Task { queue, kind: said("kind"), payload: content })
}

/// A single data part is the payload as it is. Text, alone or next to it, becomes its `text` field.
fn content(message: &Message) -> Result<Value, A2AError> {
    let mut data: Option<Map<String, Value>> = None;
    let mut text = Vec::new();
    for part in &message.parts {
        match &part.content {
            PartContent::Text(said) => text.push(said.as_str()),
            PartContent::Data(Value::Object(object)) if data.is_none() => data = Some(object.clone()),
            PartContent::Data(_) => return Err(A2AError::invalid_params("a message has one data part at most, and it is an object")),
            PartContent::Raw(_) | PartContent::Url(_) => return Err(A2AError::content_type_not_supported()),
        }
    }
    match (data, text.join("\n")) {
        (None, text) if text.is_empty() => Err(A2AError::invalid_params("the message is empty: send a data part or text")),
        (data, text) => {
            let mut payload = data.unwrap_or_default();
            if !text.is_empty() {
                payload.entry("text").or_insert(json!(text));
            }
            Ok(Value::Object(payload))
        }
    }
}

#[cfg(test)]
mod tests {
    use a2a::{Part, Role};

    use super::*;

    fn request(parts: Vec<Part>, metadata: Value) -> SendMessageRequest {
        let metadata = serde_json::from_value(metadata).expect("an object");
        let message = Message { metadata: Some(metadata), ..Message::new(Role::User, parts) };
        SendMessageRequest { message, configuration: None, metadata: None, tenant: None }
    }

    fn accepting(queues: &[&str]) -> Settings {
        Settings { accepts: queues.iter().map(|&queue| queue.to_owned()).collect(), ..Settings::default() }
    }

    #[test]
    fn a_data_part_with_an_act_is_an_act_and_everything_else_a_task() {
        let act = request(vec![Part::data(json!({"act": "claim", "queue": "jobs"}))], json!({}));
        let asked = Requested::Act { name: "claim".into(), arguments: json!({"queue": "jobs"}) };
        assert_eq!(read(&act, &accepting(&[])).expect("understood"), asked);
        let task = request(vec![Part::text("call her"), Part::data(json!({"who": "ada"}))], json!({"kind": "call"}));
        let asked = Requested::Task { queue: "jobs".into(), kind: Some("call".into()), payload: json!({"who": "ada", "text": "call her"}) };
        assert_eq!(read(&task, &accepting(&["jobs"])).expect("understood"), asked);
    }

    #[test]
    fn only_queues_that_accept_tasks_get_them() {
        let task = |metadata| request(vec![Part::text("hello")], metadata);
        for (accepts, metadata) in [(vec![], json!({})), (vec!["jobs"], json!({"queue": "activities"})), (vec!["jobs", "runs"], json!({}))]
        {
            assert!(read(&task(metadata.clone()), &accepting(&accepts)).is_err(), "{accepts:?} {metadata}");
        }
        assert!(read(&request(vec![Part::raw(vec![1])], json!({})), &accepting(&["jobs"])).is_err());
        assert!(read(&request(vec![], json!({})), &accepting(&["jobs"])).is_err());
    }
}
