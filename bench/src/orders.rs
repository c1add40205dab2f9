//! A narrow table of the user's own, attached as the README shows.

use anyhow::Result;
use gleaner::{Declaration, attach};

use crate::copied::Source;
use crate::stage::Stage;

/// Not `orders`: the measured database may already have such a table.
pub(crate) const ORDERS: Source = Source {
    queue: "gleaner_bench_orders",
    table: "public.gleaner_bench_orders",
    status: "state",
    running: "packing",
    done: "sent",
    hold: "2 minutes",
};

const DECLARATION: &str = r#"
table  = "public.gleaner_bench_orders"
result = "receipt"
hold   = "2 minutes"

[status]
column  = "state"
ready   = "new"
running = "packing"
done    = "sent"
failed  = "failed"
"#;

pub(crate) async fn set(stage: &Stage) -> Result<()> {
    let mut client = stage.connect().await?;
    strike(stage).await?;
    client
        .batch_execute(&format!(
            "create table {} (id bigserial primary key, customer text, state text default 'new', receipt jsonb)",
            ORDERS.table
        ))
        .await?;
    let declaration = Declaration::parse(DECLARATION, ORDERS.queue)?;
    attach::attach(&mut client, &declaration, DECLARATION, attach::Options::default(), &|_| ()).await?;
    Ok(())
}

/// Inserts `n` waiting orders, and nothing else.
pub(crate) async fn fill(stage: &Stage, n: usize) -> Result<()> {
    let client = stage.connect().await?;
    let table = ORDERS.table;
    client
        .batch_execute(&format!(
            "truncate {table}; insert into {table} (customer) select 'customer ' || g from generate_series(1, {n}) g; checkpoint"
        ))
        .await?;
    Ok(client.batch_execute(&format!("vacuum analyze {table}")).await?)
}

/// Also removes what an interrupted earlier run left.
pub(crate) async fn strike(stage: &Stage) -> Result<()> {
    let mut client = stage.connect().await?;
    let attached = client.query_one("select exists (select from gleaner.queue where name = $1)", &[&ORDERS.queue]).await?;
    if attached.get(0) {
        attach::detach(&mut client, ORDERS.queue, true).await?;
    }
    Ok(client.batch_execute(&format!("set client_min_messages = warning; drop table if exists {}", ORDERS.table)).await?)
}
