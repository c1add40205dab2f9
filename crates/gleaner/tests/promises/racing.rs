//! Many agents at once: no row is ever claimed twice.

use std::collections::BTreeSet;

use anyhow::Result;
use futures_util::future::try_join_all;
use gleaner::{Claim, Queue};

use crate::hands::{claim_by_function, complete_plainly};
use crate::world::{World, jobs, keys, world};

/// Two hundred claims at once on twenty-five connections, then claims for the rows that were skipped because they were locked.
async fn race(world: &World, queue_name: &str, owners: &[Option<i64>]) -> Result<(Vec<String>, usize)> {
    let pool = gleaner::pool(world.url(), 25)?;
    let queue = Queue::open(&pool, queue_name).await?;
    let claims: Vec<Claim> = (0..200)
        .map(|n| {
            let mut claim = Claim::by(format!("agent {n}")).limit(1 + n % 4);
            claim.owner = owners[n as usize % owners.len()].map(|o| o.to_string());
            claim
        })
        .collect();
    let answers = try_join_all(claims.iter().map(|c| queue.claim(c))).await?;
    let mut handed_out: Vec<String> = answers.iter().flat_map(|a| keys(&a.items)).collect();
    let in_the_race = handed_out.len();
    for owner in owners {
        loop {
            let rest = world.claim(&queue, "the last one", *owner, 1000).await?;
            if rest.is_empty() {
                break;
            }
            handed_out.extend(keys(&rest));
        }
    }
    Ok((handed_out, in_the_race))
}

#[tokio::test]
async fn two_hundred_racing_claimers_never_share_a_row_of_jobs() -> Result<()> {
    let world = world().await?;
    let queue = world.queue("jobs").await?;
    let mut items = jobs("call", 200);
    items.extend(jobs("mail", 200));
    for (n, item) in items.iter_mut().enumerate() {
        item["priority"] = serde_json::json!(n % 4);
    }
    queue.enqueue(&items).await?;

    let (handed_out, in_the_race) = race(&world, "jobs", &[None]).await?;
    assert_eq!(handed_out.len(), 400, "every row, and none twice");
    assert_eq!(handed_out.iter().collect::<BTreeSet<_>>().len(), 400);
    assert!(in_the_race > 100, "only {in_the_race} rows were handed out in the race: it was none");
    Ok(())
}

#[tokio::test]
async fn two_hundred_racing_claimers_never_share_a_row_of_activities() -> Result<()> {
    let world = world().await?;
    let (ann, bob) = (world.person("ann", 5, true).await?, world.person("bob", 5, true).await?);
    // A third each: Ann's, Bob's, without an owner. All of them are stale, so that every class of every claimer meets every row.
    world
        .run(&format!(
            "insert into activities (sales_id, type, raw_data, created_at)
             select (array[{ann}, {bob}, null])[1 + n % 3], (array['call', 'sms', 'email'])[1 + n / 3 % 3], '{{}}', now() - interval '1 hour'
             from generate_series(1, 360) as n"
        ))
        .await?;

    let (handed_out, in_the_race) = race(&world, "activities", &[Some(ann), Some(bob), None]).await?;
    assert_eq!(handed_out.len(), 360, "every row, and none twice");
    assert_eq!(handed_out.iter().collect::<BTreeSet<_>>().len(), 360);
    assert!(in_the_race > 100, "only {in_the_race} rows were handed out in the race: it was none");
    Ok(())
}

/// The same race through `claim_next_pending_activity`, one row each, completed by plain updates.
#[tokio::test]
async fn racing_plain_agents_complete_each_row_once() -> Result<()> {
    let world = world().await?;
    world.run("insert into activities (type, raw_data) select 'sms', '{}' from generate_series(1, 60)").await?;
    let mut owners = Vec::new();
    for name in ["ann", "bob", "cleo", "dan"] {
        owners.push(world.person(name, 5, true).await?);
    }
    let agents = try_join_all(owners.iter().map(|owner| async {
        let client = world.signed_in(*owner, "laptop").await?;
        let mut done = 0;
        while let Some(key) = claim_by_function(&client, *owner).await? {
            done += complete_plainly(&client, &key, "by an agent").await?;
        }
        anyhow::Ok(done)
    }))
    .await?;
    assert_eq!(agents.iter().sum::<u64>(), 60, "each row completed by the one who held it: {agents:?}");
    assert_eq!(world.count("select count(*) from activities where processing_status = 'completed'").await?, 60);
    Ok(())
}
