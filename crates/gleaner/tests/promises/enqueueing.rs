//! Many similar items are enqueued by one statement. The result is the same as for single items.

use anyhow::{Context as _, Result};
use gleaner::queue::OnDuplicate;
use serde_json::{Value, json};

use crate::world::world;

/// The resulting row, except for its key and time.
const SEEN: &str = "select jsonb_agg(to_jsonb(q) - 'id' || jsonb_build_object('due_at', q.due_at < now() - interval '1 day', 'created_at', q.created_at < now() - interval '1 day')
    order by q.id)::text from gleaner.jobs as q";

#[tokio::test]
async fn many_alike_become_what_each_becomes_alone() -> Result<()> {
    let sets: Vec<Vec<Value>> = vec![
        (0..20).map(|n| json!({"kind": "mail", "payload": {"n": n, "quote": "it's \"so\""}})).collect(),
        (0..20).map(|n| json!({"priority": n % 4 - 1, "payload": [n], "kind": "call"})).collect(),
        (0..20).map(|n| json!({"payload": n, "due_at": "2020-01-01T00:00:00Z"})).collect(),
        (0..20).map(|n| json!({"payload": n, "due_at": if n % 2 == 0 { json!("2020-01-01T00:00:00Z") } else { Value::Null }})).collect(),
        (0..20).map(|n| json!({"payload": n, "created_at": "2020-01-01T00:00:00Z"})).collect(),
        // Items that were read from the table and enqueued again contain the engine's columns, which only the engine sets.
        (0..20).map(|n| json!({"payload": n, "lease": 7, "agent": "me", "attempts": 3})).collect(),
    ];
    for items in sets {
        let world = world().await?;
        let queue = world.queue("jobs").await?;
        for item in &items {
            queue.enqueue(std::slice::from_ref(item)).await?;
        }
        let alone = world.text(SEEN).await?;
        world.run("delete from gleaner.jobs").await?;
        let told = queue.enqueue(&items).await?;
        assert_eq!(world.text(SEEN).await?, alone, "{}", items[0]);
        assert!(told.iter().all(|t| t.outcome == "enqueued"));
        let keys = world.text("select string_agg(id::text, ' ' order by id) from gleaner.jobs").await?.context("rows")?;
        assert_eq!(told.iter().map(|t| t.key.clone()).collect::<Vec<_>>().join(" "), keys, "answers come in the order of the items");
    }
    Ok(())
}

#[tokio::test]
async fn one_bad_item_among_many_is_reported_and_none_is_stored() -> Result<()> {
    let world = world().await?;
    let acts = gleaner::Acts::of(&world.client, "jobs").await?;
    let good = || json!({"kind": "mail", "payload": {}});
    let cases = [
        (json!(7), "GL002", "an item must be an object"),
        (json!({"kind": "mail", "payload": {}, "colour": "red"}), "42703", "colour"),
        (json!({"kind": null, "payload": {}}), "23502", "kind"),
    ];
    for (bad, code, says) in cases {
        for place in [0, 5, 9] {
            let mut items: Vec<Value> = (0..10).map(|_| good()).collect();
            items[place] = bad.clone();
            let error = acts.enqueue(&world.client, &items, OnDuplicate::Skip).await.expect_err("refused");
            assert_eq!(error.code().map(|c| c.code().to_owned()).as_deref(), Some(code), "{bad} at {place}: {error}");
            assert!(format!("{:#}", anyhow::Error::from(error)).contains(says), "{bad} at {place}");
        }
    }
    let all_bad: Vec<Value> = (0..10).map(|n| json!({"colour": n})).collect();
    assert!(acts.enqueue(&world.client, &all_bad, OnDuplicate::Skip).await.is_err());
    assert_eq!(world.count("select count(*) from gleaner.jobs").await?, 0);
    Ok(())
}

#[tokio::test]
async fn many_alike_keep_their_unique_keys_and_what_differs_among_them() -> Result<()> {
    let world = world().await?;
    let queue = world.queue("jobs").await?;
    let items: Vec<Value> = (0..20).map(|n| json!({"payload": n, "unique_key": format!("k{}", n % 5)})).collect();
    let told = queue.enqueue(&items).await?;
    assert_eq!(told.iter().filter(|t| t.outcome == "enqueued").count(), 5);
    assert_eq!(told.iter().filter(|t| t.outcome == "standing").count(), 15);
    let mixed: Vec<Value> =
        (0..20).map(|n| if n % 3 == 0 { json!({"payload": n, "kind": "odd"}) } else { json!({"payload": n}) }).collect();
    queue.enqueue(&mixed).await?;
    assert_eq!(world.count("select count(*) from gleaner.jobs where kind = 'odd' and (payload)::int % 3 = 0").await?, 7);
    assert_eq!(world.count("select count(*) from gleaner.jobs where unique_key is null").await?, 20);
    Ok(())
}
