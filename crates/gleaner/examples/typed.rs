//! A handler per kind, each with a payload of its own type, a limit of time, and something around all of them.
//!
//! ```sh
//! gleaner up --detach
//! cargo run -p gleaner --example typed -- "$(gleaner status -o url)"
//! ```

use std::time::{Duration, Instant};

use gleaner::transport::{Direct, Place};
use gleaner::worker::{Context, Job, Next, Replied, Tally, Worker};
use gleaner::{Failure, Item, Queue};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::sync::watch;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::args().nth(1).or_else(|| std::env::var("DATABASE_URL").ok()).ok_or("pass the URL of a migrated database")?;
    println!("{:?}", run(&url).await?);
    Ok(())
}

pub async fn run(url: &str) -> Result<Tally, Box<dyn std::error::Error>> {
    let place = Direct::new(url, 4)?;
    Queue::open(place.pool(), "jobs")
        .await?
        .enqueue(&[
            json!({"kind": "letter", "payload": {"to": "ada"}}),
            json!({"kind": "sum", "payload": [1, 2, 3, 4]}),
            // Not a list of numbers: it fails for good, because trying again will not make it one.
            json!({"kind": "sum", "payload": "four"}),
        ])
        .await?;

    // Only what has a handler is claimed; other kinds are left to other workers.
    let worker = Worker::builder(place.open("jobs").await?)
        .concurrency(2)
        .handle("letter", write)
        .handle("sum", |job: Job<Vec<i64>>| async move { Ok(job.payload.iter().sum::<i64>()) })
        .time_limit("letter", Duration::from_secs(60))
        .layer(timed)
        .until_empty()
        .build();
    let (_stop, stopped) = watch::channel(false);
    Ok(worker.run_until(stopped).await?)
}

#[derive(Deserialize)]
struct Letter {
    to: String,
}

#[derive(Serialize)]
struct Written {
    text: String,
}

async fn write(job: Job<Letter>) -> Result<Written, Failure> {
    job.progress("writing", Some(50.0), None).await?;
    Ok(Written { text: format!("Dear {}, …", job.payload.to) })
}

/// Middleware: runs around every handler.
async fn timed(item: Item, context: Context, next: Next) -> Replied {
    let (kind, begun) = (item.kind.clone().unwrap_or_default(), Instant::now());
    let reply = next.run(item, context).await;
    println!("{kind}: {} after {:?}", if reply.is_ok() { "done" } else { "failed" }, begun.elapsed());
    reply
}
