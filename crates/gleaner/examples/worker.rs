//! Enqueues a job together with the data it belongs to, and works until Ctrl-C.
//!
//! ```sh
//! gleaner up --detach
//! cargo run -p gleaner --example worker -- "$(gleaner status -o url)"
//! ```

use gleaner::{Direct, Failure, Job, Payload, Worker};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Letter {
    to: String,
}

impl Payload for Letter {
    const KIND: &'static str = "letter";
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::args().nth(1).or_else(|| std::env::var("DATABASE_URL").ok()).ok_or("pass the URL of a migrated database")?;
    let tally = prepare(&url).await?.run().await?;
    println!("{tally:?}");
    Ok(())
}

pub(crate) async fn prepare(url: &str) -> Result<Worker, Box<dyn std::error::Error>> {
    let database = Direct::new(url, 4)?;
    let queue = database.queue("jobs").await?;

    // One transaction: the person and the job to write to them exist together, or neither does.
    let mut client = gleaner::connect(url).await?;
    let transaction = client.transaction().await?;
    transaction.batch_execute("create temporary table person (name text); insert into person values ('Ada')").await?;
    queue.acts().enqueue_job(&transaction, &Letter { to: "Ada".into() }).await?;
    transaction.commit().await?;
    // Without other data to write it is one call, which also notifies the workers.
    queue.enqueue_job(&Letter { to: "Grace".into() }).await?;

    Ok(database.worker("jobs").await?.concurrency(8).handle_job(write).build())
}

async fn write(job: Job<Letter>) -> Result<String, Failure> {
    // Renews the lease and stores a stage. If the item was cancelled or taken away, the answer says so.
    job.progress("writing", Some(50.0), None).await?;
    Ok(format!("Dear {}, …", job.payload.to))
}
