//! The JSON-RPC binding of version 1. Every response has status 200; errors are in the body.

use std::convert::Infallible;
use std::time::Duration;

use a2a::{
    A2AError, CancelTaskRequest, GetTaskRequest, JsonRpcId, JsonRpcRequest, JsonRpcResponse, Message, Part, Role, SendMessageRequest,
    SendMessageResponse, StreamResponse, SubscribeToTaskRequest, error_code, methods,
};
use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse as _, Response};
use futures_util::{Stream, StreamExt as _, stream};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::message::{self, Requested};
use super::{stream as life, task};
use crate::mcp::service::Service;
use crate::mcp::session::Session;

/// How long the response to a message is held back while its task is worked on. After that the task is returned as it is. The
/// protocol asks to wait until the task ends, but an item may wait until a laptop wakes up.
const LONGEST_WAIT: Duration = Duration::from_secs(30);

pub(super) async fn answer(State(service): State<Service>, headers: HeaderMap, body: Bytes) -> Response {
    let request: JsonRpcRequest = match serde_json::from_slice(&body) {
        Ok(request) => request,
        Err(error) if error.is_data() => return refuse(id_of(&body), &A2AError::invalid_request(format!("this is no request: {error}"))),
        Err(error) => return refuse(JsonRpcId::Null, &A2AError::new(error_code::PARSE_ERROR, format!("this is no JSON: {error}"))),
    };
    if request.jsonrpc != "2.0" {
        return refuse(request.id, &A2AError::invalid_request("jsonrpc must be \"2.0\""));
    }
    // Without the header the protocol means version 0.3, whose methods have other names.
    let version = headers.get("a2a-version").and_then(|version| version.to_str().ok()).unwrap_or("0.3");
    if version.trim().split('.').next() != Some("1") {
        return refuse(request.id, &A2AError::version_not_supported(version));
    }
    let (id, params) = (request.id, request.params.unwrap_or_default());
    match request.method.as_str() {
        methods::SEND_MESSAGE => unary(id, send(&service, params).await),
        methods::GET_TASK => unary(id, get(&service, params).await),
        methods::CANCEL_TASK => unary(id, cancel(&service, params).await),
        methods::SEND_STREAMING_MESSAGE => streamed(id, send_streaming(service, params).await),
        methods::SUBSCRIBE_TO_TASK => streamed(id, subscribe(service, params).await),
        methods::LIST_TASKS => {
            refuse(id, &A2AError::unsupported_operation("tasks are not listed: keep the id of the one you sent, or send the act `list`"))
        }
        methods::GET_EXTENDED_AGENT_CARD => refuse(id, &A2AError::unsupported_operation("there is no other card than the public one")),
        method if methods::is_valid(method) => refuse(id, &A2AError::push_notification_not_supported()),
        method => refuse(id, &A2AError::method_not_found(method)),
    }
}

async fn send(service: &Service, params: Value) -> Result<SendMessageResponse, A2AError> {
    let request: SendMessageRequest = read(params)?;
    match message::read(&request, service.settings())? {
        Requested::Act { name, arguments } => Ok(SendMessageResponse::Message(act(service, &request, &name, arguments).await)),
        Requested::Task { queue, kind, payload } => {
            let key = service.backend().enqueue(&queue, kind.as_deref(), &payload).await.map_err(task::failed)?;
            let id = task::id(&queue, &key);
            let at_once = request.configuration.and_then(|configuration| configuration.return_immediately).unwrap_or(false);
            let task = if at_once { task::find(service, &id).await? } else { life::settled(service, &id, LONGEST_WAIT).await? };
            Ok(SendMessageResponse::Task(task))
        }
    }
}

/// An act's answer or refusal as a message. The agent is meant to act on a refusal, so it is not a failure of the call.
async fn act(service: &Service, request: &SendMessageRequest, name: &str, arguments: Value) -> Message {
    let (says, value) = match Session::passing(service).call(name, arguments).await {
        Ok(reply) => (reply.says, reply.value),
        Err(refusal) => (format!("{}: {}", refusal.code, refusal.says), refusal.value()),
    };
    let parts = vec![Part::data(value).with_media_type("application/json"), Part::text(says)];
    Message { context_id: request.message.context_id.clone(), ..Message::new(Role::Agent, parts) }
}

async fn get(service: &Service, params: Value) -> Result<a2a::Task, A2AError> {
    task::find(service, &read::<GetTaskRequest>(params)?.id).await
}

async fn cancel(service: &Service, params: Value) -> Result<a2a::Task, A2AError> {
    task::cancel(service, &read::<CancelTaskRequest>(params)?.id).await
}

type Life = stream::BoxStream<'static, Result<StreamResponse, A2AError>>;

async fn send_streaming(service: Service, params: Value) -> Result<Life, A2AError> {
    let request: SendMessageRequest = read(params)?;
    match message::read(&request, service.settings())? {
        Requested::Act { name, arguments } => {
            let message = act(&service, &request, &name, arguments).await;
            Ok(stream::once(async { Ok(StreamResponse::Message(message)) }).boxed())
        }
        Requested::Task { queue, kind, payload } => {
            let key = service.backend().enqueue(&queue, kind.as_deref(), &payload).await.map_err(task::failed)?;
            Ok(life::of(service, task::id(&queue, &key)).boxed())
        }
    }
}

async fn subscribe(service: Service, params: Value) -> Result<Life, A2AError> {
    let id = read::<SubscribeToTaskRequest>(params)?.id;
    let now = task::find(&service, &id).await?;
    if now.status.state.is_terminal() {
        return Err(A2AError::unsupported_operation("the task has ended; ask for it with GetTask"));
    }
    Ok(life::of(service, id).boxed())
}

fn read<T: DeserializeOwned>(params: Value) -> Result<T, A2AError> {
    serde_json::from_value(params).map_err(|error| A2AError::invalid_params(format!("the params do not fit: {error}")))
}

fn unary(id: JsonRpcId, result: Result<impl Serialize, A2AError>) -> Response {
    match result.and_then(|value| serde_json::to_value(value).map_err(|error| A2AError::internal(error.to_string()))) {
        Ok(value) => Json(JsonRpcResponse::success(id, value)).into_response(),
        Err(error) => refuse(id, &error),
    }
}

fn streamed(id: JsonRpcId, life: Result<Life, A2AError>) -> Response {
    match life {
        Ok(life) => Sse::new(events(id, life)).keep_alive(KeepAlive::default()).into_response(),
        Err(error) => refuse(id, &error),
    }
}

fn events(id: JsonRpcId, life: Life) -> impl Stream<Item = Result<Event, Infallible>> {
    life.map(move |event| {
        let value = event.and_then(|event| serde_json::to_value(event).map_err(|error| A2AError::internal(error.to_string())));
        let response = match value {
            Ok(value) => JsonRpcResponse::success(id.clone(), value),
            Err(error) => JsonRpcResponse::error(id.clone(), error.to_jsonrpc_error()),
        };
        Ok(Event::default().data(serde_json::to_string(&response).unwrap_or_default()))
    })
}

fn refuse(id: JsonRpcId, error: &A2AError) -> Response {
    Json(JsonRpcResponse::error(id, error.to_jsonrpc_error())).into_response()
}

/// The id of a request that could not be parsed, if it has one.
fn id_of(body: &[u8]) -> JsonRpcId {
    let body = serde_json::from_slice::<Value>(body).ok();
    body.and_then(|body| serde_json::from_value(body["id"].clone()).ok()).unwrap_or(JsonRpcId::Null)
}
