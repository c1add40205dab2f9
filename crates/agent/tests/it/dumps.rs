//! Dumps through the pipelines: insights, entities and connections, stage by stage.

use anyhow::{Context as _, Result};
use gleaner_agent::pipeline::Pipelines;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::pipelines::world::{World, world};

const NOTES: &str = "# Pump trial\n\nAda Lovelace of Meyer AG tested the solar pumps for two weeks. We decided to order forty solar pumps. \
    Three seals are broken. Please send Ada Lovelace the invoice by Friday. Can Meyer AG give a discount?";

async fn capture(world: &World, text: &str) -> Result<Uuid> {
    let sql = "with w as (insert into workspaces (name) values ('team') returning id),
                    b as (insert into baskets (workspace_id) select id from w returning id)
               insert into raw_dumps (basket_id, body_md) select id, $1 from b returning id";
    Ok(world.client.query_one(sql, &[&text]).await?.get(0))
}

async fn queued(world: &World, dump: Uuid) -> Result<Value> {
    Ok(world.client.query_one("select to_jsonb(q) from agent_processing_queue as q where dump_id = $1", &[&dump]).await?.get(0))
}

async fn lines(world: &World, sql: &str) -> Result<Vec<String>> {
    Ok(world.client.query(sql, &[]).await?.iter().map(|row| row.get(0)).collect())
}

#[tokio::test]
async fn a_dump_becomes_insights_entities_and_connections_without_a_model() -> Result<()> {
    let world = world().await?;
    let dump = capture(&world, NOTES).await?;
    assert_eq!(world.work("dumps", &Pipelines::load(None)?).await?.completed, 1);
    let row = queued(&world, dump).await?;
    assert_eq!((&row["processing_state"], &row["progress"]["percent"]), (&json!("completed"), &json!(100)), "{row}");
    let kinds = lines(&world, "select semantic_type from blocks order by semantic_type").await?;
    assert_eq!(kinds, ["action", "decision", "insight", "problem", "question"]);
    let entities = lines(&world, "select label from context_items where kind = 'entity' order by label").await?;
    assert_eq!(entities, ["Ada Lovelace", "Meyer AG"]);
    let edges = "select distinct b.semantic_type || ' ' || r.relationship_type || ' ' || c.label from substrate_relationships r
                 join blocks b on b.id = r.from_id join context_items c on c.id = r.to_id where c.label = 'Meyer AG' order by 1";
    assert_eq!(lines(&world, edges).await?, ["insight mentions Meyer AG", "question mentions Meyer AG"]);
    let counts = &row["result"]["counts"];
    assert_eq!(counts["insights"], 5);
    let message = format!("5 insights, {} entities, {} connections", counts["entities"], counts["connections"]);
    assert_eq!(row["result"]["message"], json!(message));
    let elsewhere = "select 'x' from blocks b full join substrate_relationships r on true full join context_item_sources s on true
                     where b.dump_id is distinct from r.dump_id or s.dump_id is distinct from r.dump_id";
    assert!(lines(&world, elsewhere).await?.is_empty(), "each names the dump it came from");
    Ok(())
}

/// Early results are there while later stages run, and an agent that is killed then loses none of them.
#[tokio::test]
async fn a_second_agent_continues_after_stored_insights_and_stores_none_twice() -> Result<()> {
    let world = world().await?;
    let file = |command: &str| {
        format!(
            "[stages.\"Asking\"]\ncommand = \"{command}\"\n[queues.dumps]\nrecord = {{ table = \"raw_dumps\", value = \"dump_id\", text = \"body_md\" }}\n\
             [queues.dumps.kinds]\n\"*\" = [\"blocks\", \"context_items\", \"Asking\", \"relationships\", \"summary\"]\n"
        )
    };
    let dump = capture(&world, NOTES).await?;
    let agent = world.mortal("dumps", &world.pipelines(&file("sleep 600"))?, world.direct()?)?;
    let versions = "select id || '/' || xmin from blocks union all select id || '/' || xmin from context_items order by 1";
    let end = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while queued(&world, dump).await?["progress"]["stage"] != "Asking" {
        anyhow::ensure!(std::time::Instant::now() < end, "the stage does not begin");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    let early = lines(&world, versions).await?;
    assert!(early.len() > 5, "early results are rows already: {early:?}");
    world.kill(agent).await?;
    let lapse = "begin; set local role gleaner_engine; update agent_processing_queue set due_at = due_at - interval '30 minutes',
                 deadline_at = deadline_at - interval '30 minutes'; commit";
    world.client.batch_execute(lapse).await?;
    assert_eq!(world.work("dumps", &world.pipelines(&file("echo done"))?).await?.completed, 1);
    assert_eq!(lines(&world, versions).await?, early, "nothing was written a second time");
    let row = queued(&world, dump).await?;
    assert!(row["result"]["counts"]["connections"].as_u64().context("a count")? > 0, "{row}");
    Ok(())
}

/// What a stage of any kind writes under these keys becomes rows, so a program of one's own can make the insights.
#[tokio::test]
async fn a_command_can_make_the_insights() -> Result<()> {
    let world = world().await?;
    let pipelines = world.pipelines(
        "[stages.blocks]\ncommand = \"echo '[{\\\"title\\\": \\\"Forty pumps\\\", \\\"content\\\": \\\"c\\\", \\\"semantic_type\\\": \\\"fact\\\"}]'\"\n\
         [queues.dumps]\nrecord = { table = \"raw_dumps\", value = \"dump_id\", text = \"body_md\" }\n[queues.dumps.kinds]\n\"*\" = [\"blocks\"]\n",
    )?;
    capture(&world, NOTES).await?;
    assert_eq!(world.work_with("dumps", &pipelines, world.direct()?).await?.completed, 1);
    assert_eq!(lines(&world, "select title || ' ' || semantic_type from blocks").await?, ["Forty pumps fact"]);
    Ok(())
}
