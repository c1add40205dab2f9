//! An item as a task. No state is kept here: everything is in the row, also after a restart.

use std::collections::HashMap;

use a2a::{A2AError, Artifact, Message, Part, Role, Task, TaskState, TaskStatus};
use gleaner::Outcome;
use serde_json::{Value, json};

use crate::mcp::backend::Row;
use crate::mcp::grant::Grant;
use crate::mcp::refusal::Refusal;
use crate::mcp::service::Service;

/// The id of a task: its queue and its key.
pub(super) fn id(queue: &str, key: &str) -> String {
    format!("{queue}:{key}")
}

/// The task in its current state. Only queues that accept tasks have tasks.
pub(super) async fn find(service: &Service, id: &str) -> Result<Task, A2AError> {
    let (queue, key) = parts(service, id)?;
    let row = service.backend().show(queue, key).await.map_err(failed)?;
    Ok(task(queue, &row.ok_or_else(|| A2AError::task_not_found(id))?))
}

/// Cancels the task's item, if that was granted.
pub(super) async fn cancel(service: &Service, id: &str) -> Result<Task, A2AError> {
    if !service.settings().grants.has(Grant::Cancel) {
        return Err(A2AError::unsupported_operation(Refusal::not_granted("cancel", Grant::Cancel).says));
    }
    let (queue, key) = parts(service, id)?;
    let transport = service.transport(queue).await.map_err(refused)?;
    let answers = transport.cancel(&[key], Some("cancelled by another agent")).await.map_err(failed)?;
    let now = find(service, id).await?;
    match answers.first().map(|answer| answer.outcome) {
        Some(Outcome::Done) => Ok(now),
        _ if now.status.state == TaskState::Canceled => Ok(now),
        _ => Err(A2AError::task_not_cancelable(id)),
    }
}

fn parts<'a>(service: &Service, id: &'a str) -> Result<(&'a str, &'a str), A2AError> {
    let parts = id.split_once(':').filter(|(queue, _)| service.settings().accepts.iter().any(|accepts| accepts == queue));
    parts.ok_or_else(|| A2AError::task_not_found(id))
}

fn task(queue: &str, row: &Row) -> Task {
    let (state, says) = state(row);
    let id = id(queue, &row.key);
    let message = says.map(|says| Message {
        task_id: Some(id.clone()),
        context_id: Some(id.clone()),
        ..Message::new(Role::Agent, vec![Part::text(says)])
    });
    let artifacts = (state == TaskState::Completed && !row.result.is_null()).then(|| vec![artifact(&row.result)]);
    let metadata = HashMap::from([
        ("queue".to_owned(), json!(queue)),
        ("key".to_owned(), json!(row.key)),
        ("kind".to_owned(), json!(row.kind)),
        ("attempts".to_owned(), json!(row.attempts)),
    ]);
    Task {
        context_id: id.clone(),
        id,
        status: TaskStatus { state, message, timestamp: None },
        artifacts,
        history: None,
        metadata: Some(metadata),
    }
}

pub(super) fn artifact(result: &Value) -> Artifact {
    let parts = vec![Part::data(result.clone())];
    // Workers derive results from text that others wrote.
    let metadata = Some(HashMap::from([("untrusted".to_owned(), json!(true))]));
    Artifact { artifact_id: "result".into(), name: Some("result".into()), description: None, parts, metadata, extensions: None }
}

/// The state, and a message about it if there is one.
fn state(row: &Row) -> (TaskState, Option<String>) {
    let error = || match &row.error {
        Value::Null => None,
        Value::String(says) => Some(says.clone()),
        error => error["message"].as_str().map(str::to_owned),
    };
    match row.state.as_str() {
        "done" => (TaskState::Completed, None),
        "cancelled" => (TaskState::Canceled, None),
        "dead" => (TaskState::Failed, error()),
        "failed" => (TaskState::Submitted, error().map(|says| format!("attempt {} failed and will be repeated: {says}", row.attempts))),
        "ready" | "scheduled" => (TaskState::Submitted, None),
        _ => {
            let stage = row.progress["stage"].as_str().map(str::to_owned);
            let percent = row.progress["percent"].as_f64().map(|percent| format!("{percent} %"));
            let says: Vec<String> = stage.into_iter().chain(percent).collect();
            (TaskState::Working, (!says.is_empty()).then(|| says.join(", ")))
        }
    }
}

pub(super) fn failed(error: gleaner::Error) -> A2AError {
    refused(Refusal::from(error))
}

pub(super) fn refused(refusal: Refusal) -> A2AError {
    match refusal.code {
        "invalid" | "no_such_queue" | "gone" => A2AError::invalid_params(refusal.says),
        "not_granted" | "forbidden" => A2AError::unsupported_operation(refusal.says),
        _ => A2AError::internal(refusal.says),
    }
}
