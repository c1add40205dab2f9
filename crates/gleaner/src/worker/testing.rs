//! For tests: runs one item through a worker's handlers, and provides a queue in memory with a controllable clock.
//!
//! ```
//! # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
//! use gleaner::worker::testing::{self, Memory};
//! use gleaner::worker::{Job, Worker};
//! use serde_json::{Value, json};
//!
//! let worker = Worker::builder(Memory::new("jobs").transport())
//!     .handle("double", |job: Job<i64>| async move { Ok(job.payload * 2) })
//!     .build();
//! let trial = testing::run_one(&worker, testing::item("double", json!(21))).await;
//! assert_eq!(trial.result(), Ok(Some(json!(42))));
//! # });
//! ```
//!
//! [`Memory`] reads tokio's clock. In a test with `#[tokio::test(start_paused = true)]` (tokio's feature `test-util`) hours pass
//! in milliseconds and deterministically, and `tokio::time::advance` moves the clock.

mod memory;
mod push;
mod rows;

use std::time::Duration;

use serde_json::Value;

pub use self::memory::{Memory, Statement, Trouble};
pub use self::rows::State;
use super::Worker;
use super::context::Context;
use super::handler::{Replied, Reply};
use super::held::Row;
use crate::error::Error;
use crate::queue::{Failure, Item, Payload};

/// An item as a claim would return it.
pub fn item(kind: &str, payload: Value) -> Item {
    Item {
        key: "1".into(),
        lease: 1,
        kind: Some(kind.into()),
        owner: None,
        attempts: 0,
        payload,
        partial: None,
        lease_for: Duration::from_secs(300),
        deadline_in: Duration::from_secs(3600),
    }
}

/// A job as a claim would return it.
pub fn job<P: Payload>(payload: &P) -> Result<Item, Error> {
    let payload = serde_json::to_value(payload).map_err(|source| Error::Payload { kind: P::KIND, source })?;
    Ok(item(P::KIND, payload))
}

/// What a handler did with one item.
#[derive(Debug)]
pub struct Trial {
    /// How the handler ended.
    pub reply: Replied,
    /// The reported stages, with percent and partial result.
    pub progress: Vec<(String, Option<f64>, Option<Value>)>,
}

impl Trial {
    /// The result, if the handler left the completion to the runtime.
    pub fn result(self) -> Result<Option<Value>, Failure> {
        match self.reply? {
            Reply::Complete(result) => Ok(result),
            other => Err(Failure::new(format!("no result, but {other:?}"))),
        }
    }
}

/// Runs one item through the worker's handlers, including middleware and time limit. It uses no queue.
pub async fn run_one(worker: &Worker, item: Item) -> Trial {
    let memory = Memory::new(worker.transport.queue());
    memory.hold(&item);
    let context = Context { queue: memory.transport(), row: Row::new(&item, 0) };
    let reply = worker.handlers.run(item, context).await;
    Trial { reply, progress: memory.progress() }
}
