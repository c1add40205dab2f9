//! Rows that reject every change are mixed with the others: the rest of the queue matches the model, as if they did not exist.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use gleaner::Claim;
use gleaner::queue::Acts;
use proptest::prelude::*;

use super::act::{Act, common_acts};
use super::player::Player;
use super::rules::Model;
use super::table::{GOOD_JOBS, Table};
use super::{JOB_RULES, STEPS, runtime, try_lists};
use crate::world::world;

const CASES: u32 = 40;

/// How the trigger rejects a row.
const WAYS: [&str; 5] = [
    "raise exception 'no change to this row'",
    "return null",
    "if new.status <> old.status then raise exception 'no other status for this row'; end if",
    "if new.status <> old.status then return null; end if",
    "new.status := old.status",
];

#[derive(Debug, Clone)]
enum Step {
    Act(Act),
    /// Adds such a row.
    Bad {
        kind: u8,
        class: i16,
        age_minutes: u8,
    },
}

#[test]
fn rows_that_reject_a_change_disturb_no_other() {
    let runtime = runtime();
    let table = runtime.block_on(async {
        let w = world().await.expect("a database");
        w.never_bind_jobs().await.expect("jobs are attached without batch leases");
        w.run("create function public.reject() returns trigger language plpgsql as $$ begin return new; end $$;
               create trigger reject before update on gleaner.jobs for each row when (old.payload ? 'bad') execute function public.reject()")
            .await
            .expect("a trigger that rejects");
        let acts = Acts::of(&w.client, "jobs").await.expect("the queue is attached");
        let writer = tokio::sync::Mutex::new(w.connect().await.expect("a connection"));
        Table { names: &GOOD_JOBS, acts, client: w.client, writer }
    });
    let bad = (0..2u8, -1..3i16, 0..40u8).prop_map(|(kind, class, age_minutes)| Step::Bad { kind, class, age_minutes });
    let step = prop_oneof![6 => common_acts(false).prop_map(Step::Act), 1 => bad];
    let lists = (0..WAYS.len(), prop::collection::vec(step, 1..=STEPS));
    try_lists(CASES, lists, |(way, steps)| runtime.block_on(play(&table, WAYS[*way], steps)));
}

async fn play(table: &Table, way: &str, steps: &[Step]) -> Result<()> {
    let sql = format!("create or replace function public.reject() returns trigger language plpgsql as $$ begin {way}; return new; end $$");
    table.client.batch_execute(&sql).await?;
    let mut player = Player::new(table, Model::new(JOB_RULES, BTreeMap::new()), false);
    player.looks_further = true;
    player.begin().await?;
    for (n, step) in steps.iter().enumerate() {
        one(&mut player, step).await.with_context(|| format!("step {n}, {step:?}, where the trigger does: {way}"))?;
    }
    player.step(&Act::Drain { owner: 0, limit: 3 }).await.context("at the end")?;
    // The claim that finds due ones records them, and the next claim skips them.
    let unnoted = "select count(*) from gleaner.jobs as j where payload ? 'bad' and due_at <= clock_timestamp()
                   and not exists (select from gleaner.rejected_row as r where r.queue = 'jobs' and r.key = j.id::text and r.until > clock_timestamp())";
    for _ in 0..50 {
        let claimed = table.acts.claim(&table.client, &Claim::by("last").limit(50)).await?.items;
        // An answer may be empty because rows that reject the claim used up its rounds.
        if claimed.is_empty() && count(table, unnoted).await? == 0 {
            break;
        }
    }
    ensure!(count(table, unnoted).await? == 0, "a row that rejects its claim is not noted");
    Ok(())
}

async fn one(player: &mut Player<'_>, step: &Step) -> Result<()> {
    match step {
        Step::Act(act) => player.step(act).await?,
        Step::Bad { kind, class, age_minutes } => {
            let kind = player.table.names.kinds[usize::from(*kind)];
            let sql = "insert into gleaner.jobs (kind, priority, payload, due_at) values ($1, $2, '{\"bad\": true}', clock_timestamp() - $3 * interval '1 minute')";
            player.table.client.execute(sql, &[&kind, class, &f64::from(*age_minutes)]).await?;
        }
    }
    let changed = "select count(*) from gleaner.jobs where payload ? 'bad' and status <> 'ready'";
    ensure!(count(player.table, changed).await? == 0, "a row that rejects every change was changed");
    Ok(())
}

async fn count(table: &Table, sql: &str) -> Result<i64> {
    Ok(table.client.query_one(sql, &[]).await?.get(0))
}
