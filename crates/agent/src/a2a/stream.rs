//! The stream of a task's changes.

use std::time::Duration;

use a2a::{A2AError, StreamResponse, Task, TaskArtifactUpdateEvent, TaskStatusUpdateEvent};
use futures_util::Stream;
use futures_util::stream;
use tokio::time::Instant;

use super::task;
use crate::mcp::service::Service;

/// The first delay between two reads of the row. It is short, for work that is done at once.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
/// A stream ends after this long. A client that still wants updates subscribes again.
const LONGEST_STREAM: Duration = Duration::from_secs(3600);

/// Waits until the task has ended, and returns it. If the time runs out first, returns it as it is.
pub(super) async fn settled(service: &Service, id: &str, within: Duration) -> Result<Task, A2AError> {
    let until = Instant::now() + within;
    let mut pause = FIRST_PAUSE;
    loop {
        let now = task::find(service, id).await?;
        if now.status.state.is_terminal() || Instant::now() + pause > until {
            return Ok(now);
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

enum Next {
    First,
    After(Box<Task>, Duration),
    Last(Box<Task>),
    End,
}

/// Sends the task first, then each change, and its result at the end.
pub(super) fn of(service: Service, id: String) -> impl Stream<Item = Result<StreamResponse, A2AError>> {
    let until = Instant::now() + LONGEST_STREAM;
    stream::unfold(Next::First, move |next| {
        let (service, id) = (service.clone(), id.clone());
        async move {
            match next {
                Next::First => Some(match task::find(&service, &id).await {
                    Ok(now) if now.status.state.is_terminal() => (Ok(StreamResponse::Task(now)), Next::End),
                    Ok(now) => (Ok(StreamResponse::Task(now.clone())), Next::After(Box::new(now), FIRST_PAUSE)),
                    Err(error) => (Err(error), Next::End),
                }),
                Next::After(before, pause) => change(&service, &id, *before, pause, until).await,
                Next::Last(ended) => Some((Ok(status(*ended)), Next::End)),
                Next::End => None,
            }
        }
    })
}

async fn change(
    service: &Service,
    id: &str,
    before: Task,
    mut pause: Duration,
    until: Instant,
) -> Option<(Result<StreamResponse, A2AError>, Next)> {
    loop {
        if Instant::now() > until {
            return None;
        }
        tokio::time::sleep(pause).await;
        let now = match task::find(service, id).await {
            Ok(now) => now,
            Err(error) => return Some((Err(error), Next::End)),
        };
        pause = (pause * 2).min(LONGEST_PAUSE);
        let says = |task: &Task| task.status.message.as_ref().and_then(|message| message.text().map(str::to_owned));
        if now.status.state == before.status.state && says(&now) == says(&before) {
            continue;
        }
        let terminal = now.status.state.is_terminal();
        return Some(match now.artifacts.as_ref().and_then(|artifacts| artifacts.first()) {
            Some(artifact) if terminal => {
                let (task_id, context_id, artifact) = (now.id.clone(), now.context_id.clone(), artifact.clone());
                let event =
                    TaskArtifactUpdateEvent { task_id, context_id, artifact, append: Some(false), last_chunk: Some(true), metadata: None };
                (Ok(StreamResponse::ArtifactUpdate(event)), Next::Last(Box::new(now)))
            }
            _ if terminal => (Ok(status(now)), Next::End),
            _ => (Ok(status(now.clone())), Next::After(Box::new(now), FIRST_PAUSE)),
        });
    }
}

fn status(task: Task) -> StreamResponse {
    StreamResponse::StatusUpdate(TaskStatusUpdateEvent {
        task_id: task.id,
        context_id: task.context_id,
        status: task.status,
        metadata: None,
    })
}
