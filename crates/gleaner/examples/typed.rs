//! One handler per kind, each with its own payload type, a time limit, and middleware around all of them.
//!
//! ```sh
//! gleaner up --detach
//! cargo run -p gleaner --example typed -- "$(gleaner status -o url)"
//! ```

use std::time::{Duration, Instant};

use gleaner::worker::{Next, Replied, Tally};
use gleaner::{Context, Direct, Failure, Item, Job, Payload};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::sync::watch;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::args().nth(1).or_else(|| std::env::var("DATABASE_URL").ok()).ok_or("pass the URL of a migrated database")?;
    println!("{:?}", run(&url).await?);
    Ok(())
}

pub(crate) async fn run(url: &str) -> Result<Tally, Box<dyn std::error::Error>> {
    let database = Direct::new(url, 4)?;
    let queue = database.queue("jobs").await?;
    queue.enqueue_job(&Letter { to: "ada".into() }).await?;
    // A job is a row: instead of calling `enqueue_job` with the type, it can be written as JSON.
    queue
        .enqueue(&[
            json!({"kind": "sum", "payload": [1, 2, 3, 4]}),
            // Not a list of numbers: it fails for good, because a retry would not change the payload.
            json!({"kind": "sum", "payload": "four"}),
        ])
        .await?;

    // Only kinds with a handler are claimed; other kinds are left to other workers.
    let worker = database
        .worker("jobs")
        .await?
        .concurrency(2)
        .handle_job(write)
        .handle("sum", |job: Job<Vec<i64>>| async move { Ok(job.payload.iter().sum::<i64>()) })
        .time_limit(Letter::KIND, Duration::from_secs(60))
        .layer(timed)
        .until_empty()
        .build();
    let (_stop, stopped) = watch::channel(false);
    Ok(worker.run_until(stopped).await?)
}

#[derive(Serialize, Deserialize)]
struct Letter {
    to: String,
}

impl Payload for Letter {
    const KIND: &'static str = "letter";
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
