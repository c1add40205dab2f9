//! How workers are configured: handlers by kind, payloads by type, middleware around all of them.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::Result;
use gleaner::worker::testing::{self, Memory, State};
use gleaner::worker::{Context, Job, Middleware, Next, Replied, Reply, Worker};
use gleaner::{Failure, Item};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::simulation::{Simulation, idle};

#[derive(Deserialize)]
struct Letter {
    to: String,
}

#[derive(Serialize)]
struct Written {
    text: String,
}

async fn write(job: Job<Letter>) -> Result<Written, Failure> {
    job.progress("writing", Some(50.0), Some(&json!({"salutation": "Dear"}))).await?;
    Ok(Written { text: format!("Dear {}", job.payload.to) })
}

#[tokio::test]
async fn a_typed_handler_takes_its_payload_and_gives_its_result() {
    let worker = Worker::builder(Memory::new("jobs").transport()).handle("letter", write).build();
    let trial = testing::run_one(&worker, testing::item("letter", json!({"to": "Ada"}))).await;
    assert_eq!(trial.progress, [("writing".to_owned(), Some(50.0), Some(json!({"salutation": "Dear"})))]);
    assert_eq!(trial.result(), Ok(Some(json!({"text": "Dear Ada"}))));
}

#[tokio::test]
async fn a_payload_of_another_type_fails_for_good() {
    let worker = Worker::builder(Memory::new("jobs").transport()).handle("letter", write).build();
    let trial = testing::run_one(&worker, testing::item("letter", json!({"from": "Ada"}))).await;
    let failure = trial.result().expect_err("there is nobody to write to");
    assert_eq!((failure.category.as_str(), failure.retryable), ("ValidationError", false));
    assert!(failure.message.contains("letter") && failure.message.contains("missing field `to`"), "{}", failure.message);
}

#[tokio::test(start_paused = true)]
async fn only_kinds_with_a_handler_are_claimed() -> Result<()> {
    let memory = Memory::new("jobs");
    let keys = ["letter", "call", "fax"].map(|kind| memory.add(kind, json!({"to": "Ada"})));
    let worker = Worker::builder(memory.transport()).handle("letter", write).handle("call", write).kinds(["letter", "fax"]);
    let sim = Simulation::start(&memory, worker);
    sim.pass(60.0).await;
    assert_eq!(keys.map(|key| memory.state(&key)), [State::Done, State::Ready, State::Ready].map(Some));
    sim.stop().await?;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn otherwise_takes_what_has_no_handler_of_its_own() -> Result<()> {
    let memory = Memory::new("jobs");
    let keys = ["letter", "fax"].map(|kind| memory.add(kind, json!({"to": "Ada"})));
    let worker = idle(&memory).handle("letter", write).otherwise(|job: Job<Value>| async move { Ok(Some(job.item.payload)) });
    let sim = Simulation::start(&memory, worker);
    sim.pass(1.0).await;
    assert_eq!(keys.map(|key| memory.result(&key)), [json!({"text": "Dear Ada"}), json!({"to": "Ada"})].map(Some));
    sim.stop().await?;
    Ok(())
}

#[tokio::test]
async fn a_worker_without_a_handler_says_so() {
    for worker in [
        Worker::builder(Memory::new("jobs").transport()),
        Worker::builder(Memory::new("jobs").transport()).handle("letter", write).kinds(["fax"]),
    ] {
        let (_stop, stopped) = tokio::sync::watch::channel(false);
        let error = worker.build().run_until(stopped).await.map_err(|error| error.to_string());
        assert!(error.as_ref().is_err_and(|error| error.contains("no handler")), "{error:?}");
    }
}

/// Records when it is entered and left.
struct Told(&'static str, Arc<Mutex<Vec<String>>>);

#[async_trait::async_trait]
impl Middleware for Told {
    async fn around(&self, item: Item, context: Context, next: Next) -> Replied {
        self.1.lock().unwrap().push(format!("into {}", self.0));
        let reply = next.run(item, context).await;
        self.1.lock().unwrap().push(format!("out of {}", self.0));
        reply
    }
}

#[tokio::test]
async fn middleware_wraps_every_handler_the_first_outermost() {
    let told = Arc::default();
    let worker = Worker::builder(Memory::new("jobs").transport())
        .handle("letter", write)
        .layer(Told("the first", Arc::clone(&told)))
        .layer(Told("the second", Arc::clone(&told)))
        .build();
    let trial = testing::run_one(&worker, testing::item("letter", json!({"to": "Ada"}))).await;
    assert!(trial.result().is_ok());
    assert_eq!(*told.lock().unwrap(), ["into the first", "into the second", "out of the second", "out of the first"]);
}

#[tokio::test]
async fn middleware_can_answer_itself() {
    async fn closed(_: Item, _: Context, _: Next) -> Replied {
        Ok(Reply::Snooze(Duration::from_secs(60)))
    }
    let worker = Worker::builder(Memory::new("jobs").transport()).handle("letter", write).layer(closed).build();
    let trial = testing::run_one(&worker, testing::item("letter", json!({"to": "Ada"}))).await;
    assert_eq!(trial.reply, Ok(Reply::Snooze(Duration::from_secs(60))));
}

#[tokio::test(start_paused = true)]
async fn a_snoozed_item_comes_back_when_it_was_put_off_to_and_burns_no_attempt() -> Result<()> {
    let memory = Memory::new("jobs");
    let key = memory.add("any", json!(null));
    let sim = Simulation::start(&memory, idle(&memory).otherwise(|_: Job<Value>| async { Ok(Reply::Snooze(Duration::from_secs(600))) }));
    sim.pass(1199.0).await;
    assert_eq!(sim.acts("snooze").len(), 2);
    assert_eq!((memory.state(&key), memory.attempts(&key)), (Some(State::Ready), Some(0)));
    sim.stop().await?;
    Ok(())
}

#[tokio::test]
async fn only_a_direct_worker_can_complete_in_a_transaction() {
    // The item fails with an error, instead of a result that is written twice or never.
    let w = crate::world::world().await.unwrap();
    let url = w.url().to_owned();
    let worker = Worker::builder(Memory::new("jobs").transport())
        .otherwise(move |job: Job<Value>| {
            let url = url.clone();
            async move {
                let mut client = gleaner::connect(&url).await?;
                let tx = client.transaction().await?;
                job.complete_in(&tx, ()).await
            }
        })
        .build();
    let trial = testing::run_one(&worker, testing::item("any", json!(null))).await;
    assert!(trial.reply.as_ref().is_err_and(|failure| failure.message.contains("directly")), "{:?}", trial.reply);
}
