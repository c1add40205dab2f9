//! What a checkpoint of the queue `dumps` stores besides itself, and what deleting a dump deletes.

use anyhow::{Context as _, Result};

use gleaner::{Claim, Completion, Item, Outcome, Progress, Queue};
use serde_json::{Value, json};

use crate::world::{World, outcomes, world};

/// Captures one dump per text in one basket; returns the basket and the dumps.
async fn capture(world: &World, texts: &[&str]) -> Result<(String, Vec<String>)> {
    let sql = "with w as (insert into workspaces (name) values ('team') returning id)
               insert into baskets (workspace_id) select id from w returning id::text";
    let basket = world.text(sql).await?.context("a basket")?;
    let mut dumps = Vec::new();
    for text in texts {
        let sql = format!("insert into raw_dumps (basket_id, body_md) values ('{basket}', '{text}') returning id::text");
        dumps.push(world.text(&sql).await?.context("a dump")?);
    }
    Ok((basket, dumps))
}

fn found(person: &str) -> Value {
    json!({
        "blocks": [
            {"title": "Order", "content": "Forty pumps are ordered.", "semantic_type": "decision", "confidence": 0.8},
            {"title": "Order", "content": "Forty pumps are ordered.", "semantic_type": "decision", "confidence": 7},
            {"content": "An insight without a title."},
        ],
        "context_items": [
            {"kind": "entity", "label": "Meyer  AG", "metadata": {person: "works there"}},
            {"kind": "entity", "label": person},
            {"kind": "entity"},
        ],
        "relationships": [
            {"from_type": "block", "from": "Order", "to_type": "context_item", "to": "meyer ag", "relationship_type": "mentions", "strength": 0.6},
            {"from_type": "block", "from": "Order", "to_type": "context_item", "to": "nobody", "relationship_type": "mentions"},
            {"from_type": "context_item", "from": person, "to_type": "context_item", "to": "Meyer AG", "relationship_type": "links_to"},
        ],
    })
}

/// Claims one dump and completes it with what was found.
async fn work(world: &World, person: &str) -> Result<()> {
    let queue = world.queue("dumps").await?;
    let item = queue.claim(&Claim::by("agent")).await?.items.pop().context("a dump")?;
    let answers = queue.complete(&[Completion::new(item.held(), Some(found(person)))]).await?;
    assert_eq!(outcomes(&answers), [Outcome::Done]);
    Ok(())
}

async fn report(queue: &Queue, item: &Item, stage: &str, partial: Value) -> Result<Outcome> {
    let progress = Progress { partial: Some(partial), ..Progress::stage(stage) };
    Ok(queue.progress(&item.held(), &progress).await?.0.outcome)
}

const STORED: &str = "select format('%s blocks, %s entities, %s sources, %s connections', (select count(*) from blocks),
    (select count(*) from context_items), (select count(*) from context_item_sources), (select count(*) from substrate_relationships))";

#[tokio::test]
async fn what_a_checkpoint_finds_is_stored_with_it_and_counted_for_people() -> Result<()> {
    let world = world().await?;
    let (_, dumps) = capture(&world, &["text"]).await?;
    work(&world, "Ada").await?;
    assert_eq!(world.text(STORED).await?.as_deref(), Some("1 blocks, 2 entities, 2 sources, 2 connections"));
    let of_dump =
        format!("select count(*) from blocks b, substrate_relationships r where b.dump_id = '{0}' and r.dump_id = '{0}'", dumps[0]);
    assert_eq!(world.count(&of_dump).await?, 2, "each with the dump it came from");
    let row = "select format('%s, %s %s', result ->> 'message', progress ->> 'percent', progress ->> 'stage') from agent_processing_queue";
    assert_eq!(world.text(row).await?.as_deref(), Some("1 insight, 2 entities, 2 connections, 100 Analysis complete"));
    Ok(())
}

#[tokio::test]
async fn a_repeated_checkpoint_writes_nothing_twice_and_a_changed_one_replaces_what_the_dump_had() -> Result<()> {
    let world = world().await?;
    capture(&world, &["text"]).await?;
    let queue = world.queue("dumps").await?;
    let item = queue.claim(&Claim::by("agent")).await?.items.pop().context("a dump")?;
    let versions = "select string_agg(v, ' ' order by v) from (
        select id || '/' || xmin as v from blocks union all select id || '/' || xmin from context_items
        union all select id || '/' || xmin from substrate_relationships) as rows";
    let mut seen = Vec::new();
    for stage in ["Extracting insights", "Mapping connections"] {
        assert_eq!(report(&queue, &item, stage, found("Ada")).await?, Outcome::Done);
        seen.push(world.text(versions).await?);
    }
    assert_eq!(seen[0], seen[1], "the same list is not written again");
    report(&queue, &item, "again", json!({"blocks": [], "context_items": [{"kind": "entity", "label": "Bob"}]})).await?;
    assert_eq!(world.text(STORED).await?.as_deref(), Some("0 blocks, 1 entities, 1 sources, 0 connections"));
    Ok(())
}

#[tokio::test]
async fn a_worker_that_lost_its_lease_stores_no_insight() -> Result<()> {
    let world = world().await?;
    capture(&world, &["text"]).await?;
    let queue = world.queue("dumps").await?;
    let late = queue.claim(&Claim::by("slow")).await?.items.pop().context("a dump")?;
    world.age("dumps", "6 minutes").await?;
    queue.claim(&Claim::by("quick")).await?.items.pop().context("the same dump")?;
    assert_eq!(report(&queue, &late, "Extracting insights", found("Ada")).await?, Outcome::Lost);
    assert_eq!(outcomes(&queue.complete(&[Completion::new(late.held(), Some(found("Ada")))]).await?), [Outcome::Lost]);
    assert_eq!(world.text(STORED).await?.as_deref(), Some("0 blocks, 0 entities, 0 sources, 0 connections"));
    Ok(())
}

#[tokio::test]
async fn deleting_a_dump_deletes_what_was_made_of_it_and_of_nothing_else() -> Result<()> {
    let world = world().await?;
    let (_, dumps) = capture(&world, &["first", "second"]).await?;
    work(&world, "Ada").await?;
    work(&world, "Bob").await?;
    assert_eq!(world.text(STORED).await?.as_deref(), Some("2 blocks, 3 entities, 4 sources, 4 connections"));
    let metadata = "select metadata::text from context_items where label = 'Meyer  AG'";
    assert_eq!(world.text(metadata).await?.as_deref(), Some(r#"{"Ada": "works there", "Bob": "works there"}"#));
    world.run(&format!("delete from raw_dumps where id = '{}'", dumps[0])).await?;
    assert_eq!(world.text(STORED).await?.as_deref(), Some("1 blocks, 2 entities, 2 sources, 2 connections"));
    assert_eq!(world.text(metadata).await?.as_deref(), Some(r#"{"Bob": "works there"}"#), "what the deleted one said is gone");
    assert_eq!(world.count("select count(*) from agent_processing_queue").await?, 1);
    world.run("delete from raw_dumps").await?;
    assert_eq!(world.text(STORED).await?.as_deref(), Some("0 blocks, 0 entities, 0 sources, 0 connections"));
    Ok(())
}

#[tokio::test]
async fn reflections_are_computed_from_what_the_newest_dumps_have_in_common() -> Result<()> {
    let world = world().await?;
    let (basket, dumps) = capture(&world, &["first", "second"]).await?;
    let read = format!("select fn_reflections('{basket}')::text");
    let read = async || anyhow::Ok(serde_json::from_str::<Value>(&world.text(&read).await?.context("reflections")?)?);
    let before = read().await?;
    assert_eq!((&before["pattern"], &before["dumps"]), (&Value::Null, &json!(2)), "{before}");
    work(&world, "Ada").await?;
    work(&world, "Bob").await?;
    let after = read().await?;
    assert_eq!(after["pattern"], "Meyer  AG comes back in 2 of 2 dumps.", "{after}");
    assert_ne!(after["version"], before["version"]);
    world.run(&format!("update raw_dumps set created_at = now() - interval '15 days' where id = '{}'", dumps[0])).await?;
    assert_eq!(read().await?["dumps"], 1, "older dumps do not count");
    Ok(())
}
