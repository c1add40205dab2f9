//! Sessions that lock rows from opposite ends wait for each other in one order.

use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::json;

use crate::orders::words;
use crate::world::{World, jobs, world};

/// Waits until this many sessions of this database wait for a lock.
async fn waiting(world: &World, sessions: i64) -> Result<()> {
    for _ in 0..500 {
        let count = "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'";
        if world.count(count).await? >= sessions {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    anyhow::bail!("{sessions} sessions never waited")
}

#[tokio::test]
async fn replacing_the_same_keys_in_opposite_orders_does_not_deadlock() -> Result<()> {
    let world = world().await?;
    // Each row takes some time, so that both sessions are in the middle of their keys at once.
    world
        .run(
            "create function slow() returns trigger language plpgsql as $$ begin perform pg_sleep(0.05); return null; end $$;
             create trigger slow after insert or update on gleaner.jobs for each row execute function slow()",
        )
        .await?;
    let keys = ["a", "b", "c", "d", "e", "f"];
    let up: Vec<_> = keys.iter().map(|k| json!({"unique_key": k, "payload": {"from": "up"}})).collect();
    let down: Vec<_> = keys.iter().rev().map(|k| json!({"unique_key": k, "payload": {"from": "down"}})).collect();
    let call = async |items: &Vec<serde_json::Value>| -> Result<Vec<String>> {
        let sql = format!("select outcome from gleaner.enqueue_jobs('{}', 'replace')", json!(items));
        words(&world.connect().await?, &sql).await
    };
    for _ in 0..3 {
        let (up, down) = tokio::join!(call(&up), call(&down));
        ensure!(up?.len() == 6 && down?.len() == 6);
    }
    assert_eq!(world.count("select count(*) from gleaner.jobs").await?, 6);
    Ok(())
}

/// The delete has locked one row and waits for the next; the completion has locked the batch and waits for the row.
#[tokio::test]
async fn a_plain_delete_and_a_completion_do_not_deadlock() -> Result<()> {
    let world = world().await?;
    let queue = world.queue("jobs").await?;
    queue.enqueue(&jobs("default", 100)).await?;
    let held = world.claim(&queue, "a", None, 100).await?;
    let mut third = world.connect().await?;
    let editor = third.transaction().await?;
    editor.execute("select from gleaner.jobs where id = 50 for update", &[]).await?;
    let (deleter, completer) = (world.connect().await?, world.connect().await?);
    let delete = deleter.execute("delete from gleaner.jobs where id = any (array[10, 50])", &[]);
    let complete = async {
        waiting(&world, 1).await?;
        let sql = format!("select outcome from gleaner.complete_jobs_many('{{9,10}}', '{{{0},{0}}}')", held[0].lease);
        words(&completer, &sql).await
    };
    let letting_go = async {
        waiting(&world, 2).await?;
        anyhow::Ok(editor.commit().await?)
    };
    let (deleted, completed, let_go) = tokio::join!(delete, complete, letting_go);
    let_go?;
    assert_eq!(deleted?, 2);
    assert!(completed?.contains(&"done".to_owned()));
    Ok(())
}
