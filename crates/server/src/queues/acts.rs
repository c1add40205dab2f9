//! The other acts, one handler each. A stale lease changes nothing. A request for one row gets 409 or 410; a request for
//! many rows gets a result for each row.

use axum::Json;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use futures_util::FutureExt as _;
use gleaner::queue::{Answer, Completion, Held, OnDuplicate, Progress};
use gleaner::{Acts, Error, Failure, Outcome, registry};
use gleaner_http::{Body, Caller, WireError};
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value, json};

use super::Queues;
use super::claim::{Text, seconds};
use super::failure::refuse;
use super::transaction::with_caller;
use super::worked;

/// Runs an act of the queue on behalf of the caller, in a transaction of its own.
macro_rules! act {
    ($queues:expr, $caller:expr, $queue:expr, $tenant:expr, |$acts:ident, $transaction:ident| $act:expr) => {{
        let known = $queues.acts(&$queue).await.map_err(|error| refuse(&$caller, &error))?;
        let tenant: Option<Text> = $tenant;
        with_caller(&$queues.shared.pool, &$caller, |transaction| {
            async move {
                let mut $acts = Acts::clone(&known);
                let $transaction = &**transaction;
                if let Some(tenant) = tenant {
                    $acts = $acts.within($transaction, tenant.to_string()).await?;
                }
                $act
            }
            .boxed()
        })
        .await
        .map_err(|error: Error| refuse(&$caller, &error))?
    }};
}

type Reply = Result<Response, WireError>;

pub(super) async fn list(State(queues): State<Queues>, caller: Caller) -> Reply {
    let entries = with_caller(&queues.shared.pool, &caller, |transaction| registry::survey(&**transaction).boxed()).await;
    let entries = entries.map_err(|error| refuse(&caller, &error))?;
    let shown = entries.iter().map(|entry| {
        let declared = entry.declaration.as_ref();
        let (owners, kinds) = (declared.is_some_and(|d| d.owner.is_some()), declared.is_some_and(|d| d.kind.is_some()));
        json!({"name": entry.name, "table": entry.table, "owners": owners, "kinds": kinds, "broken": entry.broken})
    });
    Ok(Json(shown.collect::<Vec<_>>()).into_response())
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Enqueue {
    /// The keys of each item are columns of the table.
    items: Vec<Map<String, Value>>,
    #[serde(default)]
    on_duplicate: Duplicate,
    tenant: Option<Text>,
}

#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Duplicate {
    #[default]
    Skip,
    Replace,
}

pub(super) async fn enqueue(State(queues): State<Queues>, caller: Caller, Path(queue): Path<String>, Body(body): Body<Enqueue>) -> Reply {
    let items: Vec<Value> = body.items.into_iter().map(Value::Object).collect();
    let on_duplicate = match body.on_duplicate {
        Duplicate::Skip => OnDuplicate::Skip,
        Duplicate::Replace => OnDuplicate::Replace,
    };
    let put = act!(queues, caller, queue, body.tenant, |acts, transaction| acts.enqueue(transaction, &items, on_duplicate).await);
    queues.ring(&queue);
    let shown: Vec<_> = put.iter().map(|one| json!({"key": one.key, "outcome": one.outcome})).collect();
    Ok((StatusCode::CREATED, Json(json!({"items": shown}))).into_response())
}

/// One row or many: `{"key", "lease", …}` or `{"items": [{"key", "lease", …}]}`.
#[derive(Debug)]
pub(super) struct OneOrMany<T> {
    items: Vec<T>,
    tenant: Option<Text>,
    single: bool,
}

/// Deserialized without `#[serde(untagged)]`, whose error would only say that no variant matches.
impl<'de, T: DeserializeOwned> Deserialize<'de> for OneOrMany<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut body = Map::deserialize(deserializer)?;
        let tenant = body.remove("tenant").map(serde_json::from_value).transpose().map_err(D::Error::custom)?.flatten();
        let Some(items) = body.remove("items") else {
            let item = serde_json::from_value(Value::Object(body)).map_err(D::Error::custom)?;
            return Ok(Self { items: vec![item], tenant, single: true });
        };
        if let Some(name) = body.keys().next() {
            return Err(D::Error::custom(format_args!("unknown field `{name}` beside `items`, expected `tenant`")));
        }
        Ok(Self { items: serde_json::from_value(items).map_err(D::Error::custom)?, tenant, single: false })
    }
}

impl<T> OneOrMany<T> {
    fn parts(self) -> (Vec<T>, Option<Text>, bool) {
        (self.items, self.tenant, self.single)
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HeldRow {
    key: Text,
    lease: i64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Done {
    key: Text,
    lease: i64,
    #[serde(default)]
    result: Option<Value>,
}

pub(super) async fn start(
    State(queues): State<Queues>,
    caller: Caller,
    Path(queue): Path<String>,
    Body(body): Body<OneOrMany<HeldRow>>,
) -> Reply {
    let (items, tenant, single) = body.parts();
    let held = keys(&items);
    Ok(answer(single, act!(queues, caller, queue, tenant, |acts, transaction| acts.start(transaction, &held).await)))
}

/// Which of these leases have certainly ended. Rows that the caller cannot see are left out.
pub(super) async fn ended(
    State(queues): State<Queues>,
    caller: Caller,
    Path(queue): Path<String>,
    Body(body): Body<OneOrMany<HeldRow>>,
) -> Reply {
    let (items, tenant, _) = body.parts();
    let held = keys(&items);
    let ended = act!(queues, caller, queue, tenant, |acts, transaction| acts.ended(transaction, &held).await);
    let shown: Vec<_> = ended.iter().map(|held| json!({"key": held.key, "lease": held.lease})).collect();
    Ok(Json(json!({"items": shown})).into_response())
}

pub(super) async fn complete(
    State(queues): State<Queues>,
    caller: Caller,
    Path(queue): Path<String>,
    Body(body): Body<OneOrMany<Done>>,
) -> Reply {
    let (items, tenant, single) = body.parts();
    let done: Vec<_> = items.into_iter().map(|item| Completion::new(Held::new(item.key.to_string(), item.lease), item.result)).collect();
    let held: Vec<Held> = done.iter().map(|done| done.held.clone()).collect();
    let answers = act!(queues, caller, queue, tenant, |acts, transaction| acts.complete(transaction, &done).await);
    worked::ended(queues.nodes(), &queue, &held, &answers, true);
    Ok(answer(single, answers))
}

pub(super) async fn release(
    State(queues): State<Queues>,
    caller: Caller,
    Path(queue): Path<String>,
    Body(body): Body<OneOrMany<HeldRow>>,
) -> Reply {
    let (items, tenant, single) = body.parts();
    let held = keys(&items);
    let given_back = held.clone();
    let answers = act!(queues, caller, queue, tenant, |acts, transaction| acts.release(transaction, &held).await);
    worked::ended(queues.nodes(), &queue, &given_back, &answers, false);
    queues.ring(&queue);
    Ok(answer(single, answers))
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Shown {
    key: Text,
    lease: i64,
    stage: Option<String>,
    percent: Option<f64>,
    partial: Option<Value>,
    /// How long the lease is extended by. The default is the queue's declared hold time.
    hold_seconds: Option<f64>,
    tenant: Option<Text>,
}

pub(super) async fn progress(State(queues): State<Queues>, caller: Caller, Path(queue): Path<String>, Body(body): Body<Shown>) -> Reply {
    let lease = body.lease;
    let held = Held::new(body.key.to_string(), lease);
    let hold = body.hold_seconds.map(seconds).transpose()?;
    let progress = Progress { stage: body.stage, percent: body.percent, partial: body.partial, hold };
    let (one, left) = act!(queues, caller, queue, body.tenant, |acts, transaction| acts.progress(transaction, &held, &progress).await);
    if one.outcome == Outcome::Done {
        queues.nodes().kept(&queue, &one.key, lease, left);
    }
    let mut shown = shown(&one);
    shown["lease_seconds"] = json!(left.as_secs_f64());
    Ok((status(&one), Json(shown)).into_response())
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Fail {
    key: Text,
    lease: i64,
    message: String,
    category: Option<String>,
    #[serde(default = "yes")]
    retryable: bool,
    retry_in_seconds: Option<f64>,
    tenant: Option<Text>,
}

fn yes() -> bool {
    true
}

pub(super) async fn fail(State(queues): State<Queues>, caller: Caller, Path(queue): Path<String>, Body(body): Body<Fail>) -> Reply {
    let mut failure = Failure::new(body.message);
    if let Some(category) = body.category {
        failure = failure.category(category);
    }
    failure.retryable = body.retryable;
    failure.retry_in = body.retry_in_seconds.map(seconds).transpose()?;
    let lease = body.lease;
    let one = act!(queues, caller, queue, body.tenant, |acts, transaction| {
        acts.fail(transaction, &Held::new(body.key.to_string(), body.lease), &failure).await
    });
    worked::ended(queues.nodes(), &queue, &[Held::new(&one.key, lease)], std::slice::from_ref(&one), false);
    queues.ring(&queue);
    Ok((status(&one), Json(shown(&one))).into_response())
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Snooze {
    key: Text,
    lease: i64,
    seconds: f64,
    tenant: Option<Text>,
}

pub(super) async fn snooze(State(queues): State<Queues>, caller: Caller, Path(queue): Path<String>, Body(body): Body<Snooze>) -> Reply {
    let by = seconds(body.seconds)?;
    let lease = body.lease;
    let one = act!(queues, caller, queue, body.tenant, |acts, transaction| {
        acts.snooze(transaction, &Held::new(body.key.to_string(), body.lease), by).await
    });
    worked::ended(queues.nodes(), &queue, &[Held::new(&one.key, lease)], std::slice::from_ref(&one), false);
    queues.ring(&queue);
    Ok((status(&one), Json(shown(&one))).into_response())
}

/// Rows by key, or by the values of their columns.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Cancel {
    keys: Option<Vec<Text>>,
    matching: Option<Map<String, Value>>,
    reason: Option<String>,
    tenant: Option<Text>,
}

pub(super) async fn cancel(State(queues): State<Queues>, caller: Caller, Path(queue): Path<String>, Body(body): Body<Cancel>) -> Reply {
    let reason = body.reason;
    let answers = match (body.keys, body.matching) {
        (Some(keys), None) => {
            let keys = written(&keys);
            act!(queues, caller, queue, body.tenant, |acts, transaction| acts.cancel(transaction, &texts(&keys), reason.as_deref()).await)
        }
        (None, Some(matching)) => {
            let matching = Value::Object(matching);
            act!(queues, caller, queue, body.tenant, |acts, transaction| {
                acts.cancel_matching(transaction, &matching, reason.as_deref()).await
            })
        }
        _ => return Err(WireError::bad("either `keys` or `matching` says which rows")),
    };
    Ok(answer(false, answers))
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Requeue {
    keys: Vec<Text>,
    tenant: Option<Text>,
}

pub(super) async fn requeue(State(queues): State<Queues>, caller: Caller, Path(queue): Path<String>, Body(body): Body<Requeue>) -> Reply {
    let keys = written(&body.keys);
    let answers = act!(queues, caller, queue, body.tenant, |acts, transaction| acts.requeue(transaction, &texts(&keys)).await);
    queues.ring(&queue);
    Ok(answer(false, answers))
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Bury {
    keys: Vec<Text>,
    reason: Option<String>,
    tenant: Option<Text>,
}

pub(super) async fn bury(State(queues): State<Queues>, caller: Caller, Path(queue): Path<String>, Body(body): Body<Bury>) -> Reply {
    let keys = written(&body.keys);
    let answers = act!(queues, caller, queue, body.tenant, |acts, transaction| {
        acts.bury(transaction, &texts(&keys), body.reason.as_deref()).await
    });
    Ok(answer(false, answers))
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Assign {
    keys: Vec<Text>,
    /// No owner when left out.
    owner: Option<Text>,
    tenant: Option<Text>,
}

pub(super) async fn assign(State(queues): State<Queues>, caller: Caller, Path(queue): Path<String>, Body(body): Body<Assign>) -> Reply {
    let (keys, owner) = (written(&body.keys), body.owner.as_ref().map(ToString::to_string));
    let answers =
        act!(queues, caller, queue, body.tenant, |acts, transaction| acts.assign(transaction, &texts(&keys), owner.as_deref()).await);
    queues.ring(&queue);
    Ok(answer(false, answers))
}

#[derive(Debug, Deserialize)]
pub(super) struct Explain {
    owner: Option<String>,
    tenant: Option<Text>,
}

pub(super) async fn explain(
    State(queues): State<Queues>,
    caller: Caller,
    Path((queue, key)): Path<(String, String)>,
    Query(asked): Query<Explain>,
) -> Reply {
    let told = act!(queues, caller, queue, asked.tenant, |acts, transaction| acts.explain(transaction, &key, asked.owner.as_deref()).await);
    match told {
        Some(told) => Ok(Json(told).into_response()),
        None => Err(WireError::new(StatusCode::NOT_FOUND, "P0002", "there is no such row, or you may not see it")),
    }
}

fn keys(items: &[HeldRow]) -> Vec<Held> {
    items.iter().map(|item| Held::new(item.key.to_string(), item.lease)).collect()
}

fn written(keys: &[Text]) -> Vec<String> {
    keys.iter().map(ToString::to_string).collect()
}

fn texts(keys: &[String]) -> Vec<&str> {
    keys.iter().map(String::as_str).collect()
}

fn shown(answer: &Answer) -> Value {
    json!({"key": answer.key, "outcome": answer.outcome.as_str(), "status": answer.status})
}

fn status(answer: &Answer) -> StatusCode {
    match answer.outcome {
        Outcome::Done | Outcome::Already => StatusCode::OK,
        Outcome::Lost => StatusCode::CONFLICT,
        Outcome::Gone => StatusCode::GONE,
    }
}

fn answer(single: bool, answers: Vec<Answer>) -> Response {
    match answers.as_slice() {
        [one] if single => (status(one), Json(shown(one))).into_response(),
        many => Json(json!({"items": many.iter().map(shown).collect::<Vec<_>>()})).into_response(),
    }
}
