//! Puts work in with the data it belongs to, and works it off.
//!
//! ```sh
//! gleaner up --detach
//! cargo run -p gleaner --example worker -- "$(gleaner status -o url)"
//! ```

use gleaner::queue::OnDuplicate;
use gleaner::worker::{Options, Tally};
use gleaner::{Failure, Queue, Worker};
use serde_json::json;
use tokio::sync::watch;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::args().nth(1).or_else(|| std::env::var("DATABASE_URL").ok()).ok_or("pass the URL of a migrated database")?;
    println!("{:?}", run(&url).await?);
    Ok(())
}

pub async fn run(url: &str) -> Result<Tally, Box<dyn std::error::Error>> {
    let pool = gleaner::pool(url, 4)?;
    let queue = Queue::open(&pool, "jobs").await?;

    // One transaction: the letter and the job to send it exist together, or neither does.
    let mut client = gleaner::connect(url).await?;
    let transaction = client.transaction().await?;
    transaction.batch_execute("create temporary table letter (recipient text); insert into letter values ('ada')").await?;
    let job = json!({"kind": "letter", "payload": {"to": "ada"}});
    let enqueued = queue.acts().enqueue(&transaction, &[job], OnDuplicate::Skip).await?;
    transaction.commit().await?;
    println!("enqueued {}", enqueued[0].key);

    let (_stop, stopped) = watch::channel(false);
    let options = Options { kinds: Some(vec!["letter".into()]), until_empty: true, ..Options::default() };
    let tally = Worker::new(queue, Some(url), options)
        .run(
            |item, context| async move {
                // Shows life and a stage; an answer other than done would mean that the row is no longer ours.
                context.progress("writing", Some(50.0), None).await?;
                let Some(to) = item.payload["to"].as_str() else {
                    return Err(Failure::new("a letter to nobody").category("DataError").for_good());
                };
                Ok(Some(json!({"text": format!("Dear {to}, …")})))
            },
            stopped,
        )
        .await?;
    Ok(tally)
}
