//! Work that takes effect exactly once: the handler completes its item in the same transaction as the work.
//!
//! ```sh
//! gleaner up --detach
//! cargo run -p gleaner --example transaction -- "$(gleaner status -o url)"
//! ```

use gleaner::worker::{Completed, Tally};
use gleaner::{Direct, Error, Failure, Job, Payload, Pool};
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
    let database = Direct::new(url, 8)?;
    let client = gleaner::connect(url).await?;
    client
        .batch_execute(
            "create table if not exists account (name text primary key, balance bigint not null check (balance >= 0));
             insert into account values ('ada', 100), ('bob', 0) on conflict (name) do update set balance = excluded.balance",
        )
        .await?;
    let transfers = [30, 50, 40].map(|amount| Transfer { from: "ada".into(), to: "bob".into(), amount });
    database.queue("jobs").await?.enqueue_jobs(&transfers).await?;

    let pool = database.pool().clone();
    let worker = database.worker("jobs").await?.handle_job(move |job| transfer(job, pool.clone())).until_empty().build();
    let (_stop, stopped) = watch::channel(false);
    Ok(worker.run_until(stopped).await?)
}

#[derive(Serialize, Deserialize)]
struct Transfer {
    from: String,
    to: String,
    amount: i64,
}

impl Payload for Transfer {
    const KIND: &'static str = "transfer";
}

async fn transfer(job: Job<Transfer>, pool: Pool) -> Result<Completed, Failure> {
    let Transfer { from, to, amount } = &job.payload;
    let mut client = pool.get().await.map_err(|error| Error::Connect(error.to_string()))?;
    let transaction = client.transaction().await?;
    // An error rolls everything back: the transaction is dropped without a commit, and the item fails.
    transaction.execute("update account set balance = balance + $2 where name = $1", &[to, amount]).await?;
    transaction
        .execute("update account set balance = balance - $2 where name = $1", &[from, amount])
        .await
        .map_err(|error| Failure::from(error).category("Refused").for_good())?;
    // Call this last. If the item was taken away meanwhile, this returns an error too.
    let completed = job.complete_in(&transaction, json!({"moved": amount})).await?;
    transaction.commit().await?;
    Ok(completed)
}
