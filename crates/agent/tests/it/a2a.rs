//! Tests with the A2A client of the official SDK, on a real PostgreSQL.

use gleaner::{Completion, Progress};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use a2a::{
    A2AError, AgentCard, CancelTaskRequest, GetTaskRequest, Message, Part, PartContent, Role, SendMessageConfiguration, SendMessageRequest,
    SendMessageResponse, StreamResponse, Task, TaskState, error_code,
};
use a2a_client::agent_card::AgentCardResolver;
use a2a_client::auth::AuthInterceptor;
use a2a_client::{A2AClient, A2AClientFactory, Transport};
use anyhow::{Context as _, Result};
use futures_util::StreamExt as _;
use gleaner_agent::mcp::{Grant, Grants, Settings};
use serde_json::{Value, json};

use crate::mcp::stage::{Stage, TOKEN};

type Peer = A2AClient<Box<dyn Transport>>;

fn accepting() -> Settings {
    Settings { accepts: vec!["jobs".into()], ..Settings::default() }
}

/// Connects as another agent would: resolves the card, and uses the transport that it names.
async fn meet(stage: &Stage) -> Result<(AgentCard, Peer)> {
    let card = AgentCardResolver::new(None).resolve(&stage.base).await?;
    let factory = A2AClientFactory::builder().with_interceptor(Arc::new(AuthInterceptor::bearer(TOKEN))).build();
    let peer = factory.create_from_card(&card).await?;
    Ok((card, peer))
}

fn message(parts: Vec<Part>, metadata: Value) -> SendMessageRequest {
    let metadata: HashMap<String, Value> = serde_json::from_value(metadata).expect("an object");
    let message = Message { metadata: Some(metadata), ..Message::new(Role::User, parts) };
    SendMessageRequest { message, configuration: None, metadata: None, tenant: None }
}

/// Sends an act as a data part, and returns the data of the answer.
async fn act(peer: &Peer, arguments: Value) -> Result<Value> {
    match peer.send_message(&message(vec![Part::data(arguments)], json!({}))).await? {
        SendMessageResponse::Message(answer) => match answer.parts.into_iter().next().map(|part| part.content) {
            Some(PartContent::Data(data)) => Ok(data),
            other => anyhow::bail!("no data: {other:?}"),
        },
        SendMessageResponse::Task(task) => anyhow::bail!("a task: {task:?}"),
    }
}

async fn send(peer: &Peer, kind: &str) -> Result<Task> {
    let mut request = message(vec![Part::data(json!({"to": "ada"})), Part::text("say hello")], json!({"kind": kind}));
    let at_once = SendMessageConfiguration {
        accepted_output_modes: None,
        task_push_notification_config: None,
        history_length: None,
        return_immediately: Some(true),
    };
    request.configuration = Some(at_once);
    match peer.send_message(&request).await? {
        SendMessageResponse::Task(task) => Ok(task),
        SendMessageResponse::Message(message) => anyhow::bail!("a message: {message:?}"),
    }
}

async fn get(peer: &Peer, id: &str) -> Result<Task, A2AError> {
    peer.get_task(&GetTaskRequest { id: id.into(), history_length: None, tenant: None }).await
}

#[tokio::test]
async fn the_card_shows_what_is_allowed_and_nothing_else() -> Result<()> {
    let stage = Stage::with(Settings::default()).await?;
    let (card, _) = meet(&stage).await?;
    let skills: Vec<&str> = card.skills.iter().map(|skill| skill.id.as_str()).collect();
    assert_eq!(skills, ["list", "claim", "progress", "complete", "fail", "snooze", "release", "explain"]);
    assert_eq!(card.supported_interfaces[0].url, format!("{}/a2a", stage.base));
    assert!(card.security_requirements.is_some());
    let granted = Stage::with(Settings { grants: Grants::from_iter([Grant::Cancel]), ..accepting() }).await?;
    let (card, _) = meet(&granted).await?;
    let skills: Vec<&str> = card.skills.iter().map(|skill| skill.id.as_str()).collect();
    assert!(skills.contains(&"task") && skills.contains(&"cancel") && !skills.contains(&"link_contact"), "{skills:?}");
    Ok(())
}

#[tokio::test]
async fn another_agent_works_an_item_from_claim_to_completion() -> Result<()> {
    let stage = Stage::with(Settings::default()).await?;
    let (_, peer) = meet(&stage).await?;
    let key = stage.job("mail", json!({"to": "ada"})).await?;
    let claimed = act(&peer, json!({"act": "claim", "queue": "jobs"})).await?;
    let item = &claimed["items"][0];
    assert_eq!(item["key"], key);
    assert!(
        item["content"]["untrusted"] == true
            && item["content"]["text"].as_str().is_some_and(|text| text.starts_with("<<<untrusted content of jobs"))
    );
    let held = |act: &str| json!({"act": act, "queue": "jobs", "key": key, "lease": item["lease"]});
    act(&peer, held("progress")).await?;
    let mut complete = held("complete");
    complete["result"] = json!({"sent": true});
    assert_eq!(act(&peer, complete).await?["outcome"], "done");
    assert_eq!(stage.text("select status || (result ->> 'sent') from gleaner.jobs").await?, "donetrue");
    Ok(())
}

#[tokio::test]
async fn a_stale_lease_is_refused_to_another_agent_too() -> Result<()> {
    let stage = Stage::with(Settings::default()).await?;
    let (_, peer) = meet(&stage).await?;
    let key = stage.job("mail", json!({})).await?;
    let claimed = act(&peer, json!({"act": "claim", "queue": "jobs"})).await?;
    stage.age("6 minutes").await?;
    assert_eq!(stage.other_agent().await?[0].key, key);
    let before = stage.text("select to_jsonb(j) from gleaner.jobs as j").await?;
    let stale = json!({"act": "complete", "queue": "jobs", "key": key, "lease": claimed["items"][0]["lease"], "result": {"by": "stale"}});
    let refused = act(&peer, stale).await?;
    assert_eq!(refused["error"]["code"], "lost", "{refused}");
    assert!(refused["error"]["message"].as_str().is_some_and(|says| says.contains("Drop this result")));
    assert_eq!(stage.text("select to_jsonb(j) from gleaner.jobs as j").await?, before);
    Ok(())
}

#[tokio::test]
async fn a_task_follows_its_item_to_the_result() -> Result<()> {
    let stage = Stage::with(accepting()).await?;
    let (_, peer) = meet(&stage).await?;
    let task = send(&peer, "mail").await?;
    assert_eq!(task.status.state, TaskState::Submitted);
    assert_eq!(stage.text("select kind || payload::text from gleaner.jobs").await?, r#"mail{"to": "ada", "text": "say hello"}"#);

    let item = stage.other_agent().await?.remove(0);
    stage.jobs().progress(&item.held(), &Progress::stage("writing").percent(50.0)).await?;
    let working = get(&peer, &task.id).await?;
    assert_eq!(working.status.state, TaskState::Working);
    assert_eq!(working.status.message.as_ref().and_then(Message::text), Some("writing, 50 %"));

    stage.jobs().complete(&[Completion::new(item.held(), Some(json!({"sent": true})))]).await?;
    let completed = get(&peer, &task.id).await?;
    assert_eq!(completed.status.state, TaskState::Completed);
    let artifact = &completed.artifacts.context("artifacts")?[0];
    assert_eq!(artifact.parts[0].content, PartContent::Data(json!({"sent": true})));
    Ok(())
}

#[tokio::test]
async fn a_caller_that_waits_for_a_task_gets_it_when_it_has_ended() -> Result<()> {
    let stage = Stage::with(accepting()).await?;
    let (_, peer) = meet(&stage).await?;
    let jobs = stage.jobs().clone();
    let worker = tokio::spawn(async move {
        loop {
            if let Some(item) = jobs.claim(&gleaner::Claim::by("worker").limit(1)).await?.items.pop() {
                return jobs.complete(&[Completion::new(item.held(), Some(json!({"n": 1})))]).await;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    let SendMessageResponse::Task(task) = peer.send_message(&message(vec![Part::text("hello")], json!({"kind": "mail"}))).await? else {
        anyhow::bail!("no task");
    };
    worker.await??;
    assert_eq!(task.status.state, TaskState::Completed);
    Ok(())
}

#[tokio::test]
async fn a_stream_sends_each_change_and_ends_with_the_result() -> Result<()> {
    let stage = Stage::with(accepting()).await?;
    let (_, peer) = meet(&stage).await?;
    let mut life = peer.send_streaming_message(&message(vec![Part::text("hello")], json!({"kind": "mail"}))).await?;
    let next = async |life: &mut a2a_client::BoxStream<'static, Result<StreamResponse, A2AError>>| -> Result<StreamResponse> {
        Ok(tokio::time::timeout(Duration::from_secs(20), life.next()).await?.context("an event")??)
    };
    let StreamResponse::Task(task) = next(&mut life).await? else { anyhow::bail!("first the task") };
    assert_eq!(task.status.state, TaskState::Submitted);
    let item = stage.other_agent().await?.remove(0);
    let StreamResponse::StatusUpdate(update) = next(&mut life).await? else { anyhow::bail!("then that it is worked on") };
    assert_eq!(update.status.state, TaskState::Working);
    stage.jobs().complete(&[Completion::new(item.held(), Some(json!({"n": 1})))]).await?;
    let StreamResponse::ArtifactUpdate(update) = next(&mut life).await? else { anyhow::bail!("then the result") };
    // Numbers in this protocol are doubles.
    assert_eq!(update.artifact.parts[0].content, PartContent::Data(json!({"n": 1.0})));
    let StreamResponse::StatusUpdate(update) = next(&mut life).await? else { anyhow::bail!("then the end") };
    assert_eq!(update.status.state, TaskState::Completed);
    assert!(life.next().await.is_none());
    Ok(())
}

#[tokio::test]
async fn tasks_are_cancelled_by_grant_only_and_failures_are_reported() -> Result<()> {
    let cancel = |id: &str| CancelTaskRequest { id: id.into(), metadata: None, tenant: None };
    let stage = Stage::with(accepting()).await?;
    let (_, peer) = meet(&stage).await?;
    let task = send(&peer, "mail").await?;
    let refused = peer.cancel_task(&cancel(&task.id)).await.expect_err("not granted");
    assert!(refused.code == error_code::UNSUPPORTED_OPERATION && refused.message.contains("--grant cancel"), "{refused:?}");
    assert_eq!(get(&peer, &task.id).await?.status.state, TaskState::Submitted);
    let item = stage.other_agent().await?.remove(0);
    stage.jobs().fail(&item.held(), &gleaner::Failure::new("no such address").for_good()).await?;
    let failed = get(&peer, &task.id).await?;
    assert_eq!((failed.status.state, failed.status.message.as_ref().and_then(Message::text)), (TaskState::Failed, Some("no such address")));

    let stage = Stage::with(Settings { grants: Grants::from_iter([Grant::Cancel]), ..accepting() }).await?;
    let (_, peer) = meet(&stage).await?;
    let task = send(&peer, "mail").await?;
    assert_eq!(peer.cancel_task(&cancel(&task.id)).await?.status.state, TaskState::Canceled);
    let done = send(&peer, "mail").await?;
    let item = stage.other_agent().await?.remove(0);
    stage.jobs().complete(&[Completion::new(item.held(), None)]).await?;
    assert_eq!(peer.cancel_task(&cancel(&done.id)).await.expect_err("ended").code, error_code::TASK_NOT_CANCELABLE);
    Ok(())
}

#[tokio::test]
async fn what_is_not_accepted_or_not_granted_is_refused() -> Result<()> {
    let stage = Stage::with(accepting()).await?;
    let (_, peer) = meet(&stage).await?;
    let elsewhere = message(vec![Part::text("hello")], json!({"queue": "activities"}));
    let refused = peer.send_message(&elsewhere).await.expect_err("not accepted");
    assert!(refused.code == error_code::INVALID_PARAMS && refused.message.contains("jobs"), "{refused:?}");
    assert_eq!(stage.text("select count(*) from activities").await?, "0");
    // Rows of queues that accept no tasks cannot be read as tasks.
    stage.run("insert into activities (type, raw_data) values ('note', '{}')").await?;
    let activity = stage.text("select id from activities").await?;
    for id in [format!("activities:{activity}"), "jobs:999".to_owned(), "jobs:nonsense".to_owned(), "nonsense".to_owned()] {
        assert_eq!(get(&peer, &id).await.expect_err("not there").code, error_code::TASK_NOT_FOUND, "{id}");
    }
    let key = stage.job("mail", json!({})).await?;
    let refused = act(&peer, json!({"act": "cancel", "queue": "jobs", "keys": [key], "reason": "because"})).await?;
    assert_eq!(refused["error"]["code"], "not_granted");
    assert_eq!(stage.text("select status from gleaner.jobs").await?, "ready");
    Ok(())
}
