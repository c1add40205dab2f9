//! Jobs: payloads whose type determines their kind.

use std::collections::HashMap;

use anyhow::Result;
use gleaner::{Claim, Direct, Job, Payload};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::sync::watch;

use crate::world::world;

const STATUS: &str = "status = { column = \"state\", ready = \"new\", running = \"busy\", done = \"done\", failed = \"failed\" }\n";

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Errand {
    note: String,
}

impl Payload for Errand {
    const KIND: &'static str = "errand";
}

fn errand(note: &str) -> Errand {
    Errand { note: note.into() }
}

#[tokio::test]
async fn a_job_commits_with_the_transaction_it_is_enqueued_in() -> Result<()> {
    let w = world().await?;
    let queue = w.queue("jobs").await?;
    let mut client = w.connect().await?;
    for (commits, rows) in [(false, 0), (true, 1)] {
        let transaction = client.transaction().await?;
        assert_eq!(queue.acts().enqueue_job(&transaction, &errand("bread")).await?.outcome, "enqueued");
        if commits {
            transaction.commit().await?;
        } else {
            transaction.rollback().await?;
        }
        assert_eq!(w.count("select count(*) from gleaner.jobs where kind = 'errand' and payload = '{\"note\": \"bread\"}'").await?, rows);
    }
    Ok(())
}

#[tokio::test]
async fn a_job_can_be_given_a_due_time_and_a_unique_key_before_it_is_enqueued() -> Result<()> {
    let w = world().await?;
    let queue = w.queue("jobs").await?;
    let mut item = queue.item_of(&errand("bread"))?;
    item["unique_key"] = "bread".into();
    item["due_at"] = "2999-01-01T00:00:00Z".into();
    let (first, second) = (queue.enqueue(&[item.clone()]).await?, queue.enqueue(&[item]).await?);
    assert_eq!((first[0].outcome.as_str(), second[0].outcome.as_str()), ("enqueued", "standing"));
    assert_eq!(first[0].key, second[0].key);
    assert!(queue.claim(&Claim::by("me")).await?.items.is_empty(), "it is not due yet");
    Ok(())
}

#[tokio::test]
async fn the_fields_of_a_job_are_columns_where_the_queue_has_no_payload_column() -> Result<()> {
    let w = world().await?;
    w.run("create table errand (id bigserial primary key, sort text, note text, state text not null default 'new', answer jsonb)").await?;
    w.attach("errands", &format!("table = \"public.errand\"\nkind = \"sort\"\nresult = \"answer\"\n{STATUS}")).await?;
    let database = Direct::new(w.url(), 4)?;
    database.queue("errands").await?.enqueue_jobs(&[errand("bread"), errand("milk")]).await?;
    assert_eq!(w.count("select count(*) from errand where sort = 'errand' and note in ('bread', 'milk')").await?, 2);

    let handler = |job: Job<Errand>| async move { Ok(json!({"bought": job.payload.note})) };
    let (_stop, stopped) = watch::channel(false);
    let tally = database.worker("errands").await?.handle_job(handler).until_empty().build().run_until(stopped).await?;
    assert_eq!(tally.completed, 2);
    assert_eq!(w.count("select count(*) from errand where answer ->> 'bought' = note").await?, 2);
    Ok(())
}

#[tokio::test]
async fn a_job_that_the_queue_cannot_store_is_refused_with_the_reason() -> Result<()> {
    #[derive(Serialize, Deserialize)]
    struct Pairs(HashMap<(i32, i32), i32>);

    impl Payload for Pairs {
        const KIND: &'static str = "pairs";
    }

    let w = world().await?;
    w.run("create table plain (id bigserial primary key, state text not null default 'new')").await?;
    w.attach("plain", &format!("table = \"public.plain\"\n{STATUS}")).await?;
    let error = w.queue("plain").await?.enqueue_job(&errand("bread")).await.unwrap_err().to_string();
    assert!(error.contains("has no kinds") && error.contains("declare `kind`"), "{error}");

    let error = w.queue("jobs").await?.enqueue_job(&Pairs(HashMap::from([((1, 2), 3)]))).await.unwrap_err().to_string();
    assert!(error.starts_with("write the payload of kind \"pairs\" as JSON: "), "{error}");

    w.run("create table bare (id bigserial primary key, sort text, state text not null default 'new')").await?;
    w.attach("bare", &format!("table = \"public.bare\"\nkind = \"sort\"\n{STATUS}")).await?;
    let error = w.queue("bare").await?.enqueue_job(&Sum(vec![1, 2])).await.unwrap_err().to_string();
    assert!(error.contains("fields are columns"), "{error}");
    Ok(())
}

#[derive(Serialize, Deserialize)]
struct Sum(Vec<i64>);

impl Payload for Sum {
    const KIND: &'static str = "sum";
}
