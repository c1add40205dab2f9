//! Two tenants with the same keys in one table, each with its own model: an act in one tenant changes nothing in the other.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use gleaner::queue::Acts;
use proptest::prelude::*;

use super::act::{Act, common_acts};
use super::player::Player;
use super::rules::Model;
use super::table::{Table, tasks};
use super::{JOB_RULES, STEPS, runtime, try_lists};
use crate::world::{World, world};

const CASES: u32 = 40;

#[derive(Debug, Clone)]
enum Step {
    Within { shop: usize, act: Act },
    Prune,
}

#[test]
fn tenants_with_the_same_keys_do_what_two_models_do() {
    let runtime = runtime();
    let tables = runtime.block_on(async {
        let w = world().await.expect("a database");
        attach(&w).await.expect("the table is attached");
        [table(&w, 1).await.expect("a tenant"), table(&w, 2).await.expect("a tenant")]
    });
    let step = prop_oneof![
        30 => (0..2usize, common_acts(false)).prop_map(|(shop, act)| Step::Within { shop, act }),
        1 => Just(Step::Prune),
    ];
    try_lists(CASES, prop::collection::vec(step, 1..=STEPS), |steps| runtime.block_on(play(&tables, steps)));
}

async fn attach(w: &World) -> Result<()> {
    w.run(
        "create table public.tasks (
             shop int not null, id bigint not null, created_at timestamptz not null default now(), finished_at timestamptz, priority smallint not null default 0,
             status text not null default 'ready', kind text not null default 'default', unique_key text, payload jsonb not null default '{}',
             progress jsonb, result jsonb, error jsonb, primary key (shop, id))",
    )
    .await?;
    let jobs = w.text("select source from gleaner.queue where name = 'jobs'").await?.context("jobs are attached")?;
    let source: Vec<&str> = jobs.lines().filter(|l| !l.starts_with("bulk") && !l.starts_with("table") && !l.starts_with("grant")).collect();
    w.attach("tasks", &format!("table = 'public.tasks'\ntenant = 'shop'\n{}", source.join("\n"))).await.map(drop)
}

async fn table(w: &World, shop: i32) -> Result<Table> {
    let client = w.connect().await?;
    let acts = Acts::of(&client, "tasks").await?.within(&client, shop.to_string()).await?;
    let writer = tokio::sync::Mutex::new(w.connect().await?);
    Ok(Table { names: Box::leak(Box::new(tasks(shop))), acts, client, writer })
}

async fn play(tables: &[Table; 2], steps: &[Step]) -> Result<()> {
    let mut shops: Vec<Player<'_>> = tables.iter().map(|t| Player::new(t, Model::new(JOB_RULES, BTreeMap::new()), false)).collect();
    for shop in &mut shops {
        shop.begin().await?;
    }
    for (n, step) in steps.iter().enumerate() {
        one(&mut shops, step).await.with_context(|| format!("step {n}, {step:?}"))?;
    }
    for shop in 0..2 {
        one(&mut shops, &Step::Within { shop, act: Act::Drain { owner: 0, limit: 3 } }).await.context("at the end")?;
    }
    Ok(())
}

async fn one(shops: &mut [Player<'_>], step: &Step) -> Result<()> {
    match step {
        // Sweeps apply to all tenants.
        Step::Within { act: Act::Recover, .. } => {
            for shop in &mut *shops {
                shop.settle().await?;
            }
            let recovered = shops[0].table.acts.recover(&shops[0].table.client).await?;
            let mut expected = 0;
            for shop in &mut *shops {
                let now = shop.now().await?;
                expected += shop.model.recover(now);
            }
            ensure!(usize::try_from(recovered)? == expected, "recovered {recovered}, the models {expected}");
        }
        Step::Prune => {
            let pruned = shops[0].table.acts.prune(&shops[0].table.client, Some(Duration::ZERO)).await?;
            let mut expected = 0;
            for shop in &mut *shops {
                expected += shop.model.rows.len();
                shop.model.rows.retain(|_, row| row.unfinished());
                expected -= shop.model.rows.len();
            }
            ensure!(usize::try_from(pruned)? == expected, "pruned {pruned}, the models {expected}");
        }
        Step::Within { shop, act } => shops[*shop].step(act).await?,
    }
    for (n, shop) in shops.iter_mut().enumerate() {
        shop.compare().await.with_context(|| format!("tenant {}", n + 1))?;
    }
    Ok(())
}
