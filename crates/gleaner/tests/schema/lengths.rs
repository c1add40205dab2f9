//! Rendered SQL stays readable: limits the length of functions and of a whole queue.

use anyhow::{Context as _, Result};

use crate::world::{World, world};

/// The limit for everything that `gleaner sql orders` prints, for the table of the README.
const MOST_LINES: usize = 750;

/// The functions of a queue and their number of lines, from `create` to the end of the body.
async fn functions(world: &World, queue: &str) -> Result<Vec<(String, usize)>> {
    let sql = rendered(world, queue).await?;
    let parts = sql.split("\ncreate or replace function gleaner.").skip(1);
    let function = |part: &str| {
        let (text, _) = part.split_once("\n$gleaner$;").context("a function without an end")?;
        Ok((text.split('(').next().unwrap_or_default().to_owned(), text.lines().count() + 1))
    };
    parts.map(function).collect()
}

async fn rendered(world: &World, queue: &str) -> Result<String> {
    world.text(&format!("select rendered from gleaner.queue where name = '{queue}'")).await?.context("the queue is attached")
}

#[tokio::test]
async fn no_function_is_longer_than_a_reader_holds_in_mind() -> Result<()> {
    let world = world().await?;
    world.run("create table orders (id bigserial primary key, customer text, state text default 'new', receipt jsonb)").await?;
    let declaration = "table = 'public.orders'\nresult = 'receipt'\nhold = '2 minutes'\n[status]\ncolumn = 'state'\nready = 'new'\nrunning = 'packing'\ndone = 'sent'\nfailed = 'failed'\n";
    world.attach("orders", declaration).await?;
    let mut too_long = Vec::new();
    for queue in ["orders", "jobs", "activities", "polls", "dumps", "runs", "followups", "schedules"] {
        for (name, lines) in functions(&world, queue).await? {
            let most = if name == "claim_orders" { 70 } else { 120 };
            if lines > most {
                too_long.push(format!("{name} has {lines} lines, at most {most}"));
            }
        }
    }
    let all = rendered(&world, "orders").await?.lines().count();
    if all > MOST_LINES {
        too_long.push(format!("`gleaner sql orders` has {all} lines, at most {MOST_LINES}"));
    }
    assert_eq!(too_long, Vec::<String>::new());
    Ok(())
}
