//! Handlers: the code that runs for an item, by its kind, and its result.

use std::any::Any;
use std::collections::{BTreeMap, HashMap};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::context::{Completed, Context, Job};
use super::middleware::{Middleware, Next};
use crate::error::{Error, describe};
use crate::queue::{Failure, Item};

/// How a handler ended without failing.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply {
    /// It is done, with this result.
    Complete(Option<Value>),
    /// It is done, and the handler has completed it in its own transaction: [`Context::complete_in`].
    Completed(Completed),
    /// Not now: retry after this time; no attempt is counted.
    Snooze(Duration),
    /// The row is no longer the handler's: it was cancelled, by the handler itself or by another, or its lease was lost. Nothing
    /// is written.
    Ended,
}

/// The result of a handler.
pub type Replied = Result<Reply, Failure>;

/// What a handler may return: anything that serializes to JSON (null, as from `()` and `None`, means no result), [`Completed`],
/// or a [`Reply`].
pub trait IntoReply: Send {
    /// Converts the value for the runtime.
    fn into_reply(self) -> Replied;
}

impl<R: Serialize + Send> IntoReply for R {
    fn into_reply(self) -> Replied {
        let result = serde_json::to_value(self)
            .map_err(|error| Failure::new(format!("the result cannot be JSON: {error}")).category("ValidationError").for_good())?;
        Ok(Reply::Complete((!result.is_null()).then_some(result)))
    }
}

impl IntoReply for Completed {
    fn into_reply(self) -> Replied {
        Ok(Reply::Completed(self))
    }
}

impl IntoReply for Reply {
    fn into_reply(self) -> Replied {
        Ok(self)
    }
}

/// Lets handlers use `?` on calls to the queue.
impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::new(error.to_string())
    }
}

/// Lets handlers use `?` on database calls.
impl From<tokio_postgres::Error> for Failure {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::new(describe(&error))
    }
}

pub(super) type Handler = Arc<dyn Fn(Item, Context) -> BoxFuture<'static, Replied> + Send + Sync>;

/// A handler for payloads of type `P`. Any other payload fails for good: a retry would not change it.
pub(super) fn typed<P, R, H, F>(handler: H) -> Handler
where
    P: DeserializeOwned + Send + 'static,
    R: IntoReply,
    H: Fn(Job<P>) -> F + Send + Sync + 'static,
    F: Future<Output = Result<R, Failure>> + Send + 'static,
{
    Arc::new(move |item, context| match P::deserialize(&item.payload) {
        Ok(payload) => {
            let work = handler(Job { payload, item, context });
            async move { work.await?.into_reply() }.boxed()
        }
        Err(error) => {
            let kind = item.kind.as_deref().unwrap_or("this kind");
            let failure = Failure::new(format!("the payload is not what {kind} takes: {error}")).category("ValidationError").for_good();
            std::future::ready(Err(failure)).boxed()
        }
    })
}

/// All handlers of a worker, and the middleware around them.
#[derive(Clone, Default)]
pub(super) struct Handlers {
    pub(super) by_kind: BTreeMap<String, Handler>,
    pub(super) otherwise: Option<Handler>,
    pub(super) layers: Arc<Vec<Arc<dyn Middleware>>>,
    pub(super) time_limits: HashMap<String, Duration>,
    pub(super) time_limit: Option<Duration>,
}

impl std::fmt::Debug for Handlers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let kinds: Vec<&String> = self.by_kind.keys().collect();
        f.debug_struct("Handlers").field("kinds", &kinds).field("otherwise", &self.otherwise.is_some()).finish_non_exhaustive()
    }
}

impl Handlers {
    pub(super) fn is_empty(&self) -> bool {
        self.by_kind.is_empty() && self.otherwise.is_none()
    }

    /// The kinds to claim: those that have a handler, limited to the wanted ones. `None` means all.
    pub(super) fn kinds(&self, wanted: Option<&[String]>) -> Option<Vec<String>> {
        match (wanted, &self.otherwise) {
            (wanted, Some(_)) => wanted.map(<[String]>::to_vec),
            (None, None) => Some(self.by_kind.keys().cloned().collect()),
            (Some(wanted), None) => Some(wanted.iter().filter(|kind| self.by_kind.contains_key(*kind)).cloned().collect()),
        }
    }

    /// Runs the item's handler within its time limit. A panic is a failure like any other.
    pub(super) fn run(&self, item: Item, context: Context) -> BoxFuture<'static, Replied> {
        let kind = item.kind.as_deref().unwrap_or_default();
        let Some(handler) = self.by_kind.get(kind).or(self.otherwise.as_ref()).cloned() else {
            let failure = Failure::new(format!("there is no handler for the kind {kind:?}")).category("ValidationError");
            return std::future::ready(Err(failure)).boxed();
        };
        let limit = self.time_limits.get(kind).copied().or(self.time_limit);
        let next = Next::new(self.layers.clone(), handler);
        let work =
            AssertUnwindSafe(next.run(item, context)).catch_unwind().map(|ended| ended.unwrap_or_else(|panic| Err(panicked(&*panic))));
        match limit {
            None => work.boxed(),
            Some(limit) => async move {
                let overdue = |_| Err(Failure::new(format!("it took longer than {limit:?}, its time limit")).category("Timeout"));
                tokio::time::timeout(limit, work).await.unwrap_or_else(overdue)
            }
            .boxed(),
        }
    }
}

fn panicked(panic: &(dyn Any + Send)) -> Failure {
    let what = panic.downcast_ref::<&str>().map(|s| (*s).to_owned()).or_else(|| panic.downcast_ref::<String>().cloned());
    Failure::new(what.unwrap_or_else(|| "the handler panicked".into())).category("Panic")
}
