//! A partitioned table whose ids repeat across partitions: each row is claimed once, and an act changes only the row that its
//! lease holds.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use gleaner::queue::Acts;
use gleaner::{Claim, Completion, Failure, Held, Outcome, Progress};
use proptest::prelude::*;
use tokio_postgres::Client;

use super::{STEPS, runtime, try_lists};
use crate::world::world;

const CASES: u32 = 40;

#[derive(Debug, Clone)]
enum Step {
    Insert {
        id: i64,
        region: usize,
        age_minutes: u8,
    },
    Claim {
        limit: i32,
        started: bool,
    },
    Complete {
        tickets: Vec<u8>,
    },
    /// Fail, snooze or progress.
    Single {
        ticket: u8,
        act: u8,
    },
    Release {
        tickets: Vec<u8>,
    },
    Age {
        minutes: u8,
    },
    Prune,
}

const REGIONS: [&str; 3] = ["east", "south", "west"];

/// What identifies a row.
type Key = (i64, String);

#[derive(Debug, Clone, PartialEq)]
struct Row {
    status: String,
    lease: i64,
    /// Microseconds since the epoch.
    due: Option<i64>,
    lost: i32,
}

impl Row {
    fn held(&self) -> bool {
        self.status == "running"
    }

    fn claimable(&self, now: i64) -> bool {
        self.status != "done" && self.due.is_some_and(|due| due <= now)
    }
}

#[test]
fn rows_of_partitions_that_share_an_id_are_worked_apart() {
    let runtime = runtime();
    let (client, acts) = runtime.block_on(async {
        let w = world().await.expect("a database");
        w.run("create table public.parcels (id bigint, region text, status text not null default 'ready', finished_at timestamptz, primary key (id, region)) partition by list (region);
               create table public.parcels_east partition of public.parcels for values in ('east');
               create table public.parcels_south partition of public.parcels for values in ('south');
               create table public.parcels_west partition of public.parcels for values in ('west')").await.expect("a table");
        w.attach("parcels", "table = 'public.parcels'\nfinished = 'finished_at'\nstatus = { column = 'status', ready = 'ready', running = 'running', done = 'done', failed = 'failed', cancelled = 'off' }").await.expect("it is attached");
        let acts = Acts::of(&w.client, "parcels").await.expect("the queue is attached");
        (w.client, acts)
    });
    let tickets = || prop::collection::vec(any::<u8>(), 1..4);
    let step = prop_oneof![
        6 => (1..4i64, 0..REGIONS.len(), 0..30u8).prop_map(|(id, region, age_minutes)| Step::Insert { id, region, age_minutes }),
        6 => (1..6i32, any::<bool>()).prop_map(|(limit, started)| Step::Claim { limit, started }),
        3 => tickets().prop_map(|tickets| Step::Complete { tickets }),
        4 => (any::<u8>(), 0..3u8).prop_map(|(ticket, act)| Step::Single { ticket, act }),
        2 => tickets().prop_map(|tickets| Step::Release { tickets }),
        3 => prop_oneof![Just(2u8), Just(20u8)].prop_map(|minutes| Step::Age { minutes }),
        1 => Just(Step::Prune),
    ];
    try_lists(CASES, prop::collection::vec(step, 1..=STEPS), |steps| {
        runtime.block_on(async {
            client.batch_execute("truncate public.parcels").await?;
            let mut run = Run { client: &client, acts: &acts, tickets: Vec::new() };
            for (n, step) in steps.iter().enumerate() {
                run.one(step).await.with_context(|| format!("step {n}, {step:?}"))?;
            }
            Ok(())
        })
    });
}

struct Run<'a> {
    client: &'a Client,
    acts: &'a Acts,
    /// Every row with the lease from its claim: most are stale.
    tickets: Vec<(Key, i64)>,
}

impl Run<'_> {
    async fn look(&self) -> Result<(BTreeMap<Key, Row>, i64)> {
        let micros = |column: &str| format!("(extract(epoch from {column}) * 1000000)::bigint");
        let sql = format!("select id, region, status, lease, {}, lost from public.parcels", micros("due_at"));
        let rows = self.client.query(&sql, &[]).await?;
        let row = |r: &tokio_postgres::Row| Row { status: r.get(2), lease: r.get(3), due: r.get(4), lost: r.get(5) };
        let rows = rows.iter().map(|r| ((r.get(0), r.get(1)), row(r))).collect();
        Ok((rows, self.client.query_one(&format!("select {}", micros("clock_timestamp()")), &[]).await?.get(0)))
    }

    fn tickets(&self, numbers: &[u8]) -> Vec<(Key, i64)> {
        let n = self.tickets.len();
        let mut chosen: Vec<(Key, i64)> =
            numbers.iter().filter(|_| n > 0).map(|i| self.tickets[n - 1 - usize::from(*i) % n.min(8)].clone()).collect();
        chosen.sort();
        chosen.dedup();
        chosen
    }

    async fn one(&mut self, step: &Step) -> Result<()> {
        let (before, _) = self.look().await?;
        match step {
            Step::Insert { id, region, age_minutes } => {
                let sql = "insert into public.parcels (id, region, due_at) values ($1, $2, clock_timestamp() - $3 * interval '1 minute') on conflict do nothing";
                self.client.execute(sql, &[id, &REGIONS[*region], &f64::from(*age_minutes)]).await?;
            }
            Step::Claim { limit, started } => self.claim(&before, *limit, *started).await?,
            Step::Complete { tickets } => {
                let tickets = self.tickets(tickets);
                let done: Vec<Completion> =
                    tickets.iter().map(|((id, _), lease)| Completion::new(Held::new(id.to_string(), *lease), None)).collect();
                self.acts.complete(self.client, &done).await?;
                self.only(&before, &tickets, "done").await?;
            }
            Step::Single { ticket, act } => {
                for (key, lease) in self.tickets(&[*ticket]) {
                    let held = Held::new(key.0.to_string(), lease);
                    let (answer, status) = match act {
                        0 => (self.acts.fail(self.client, &held, &Failure::new("it broke")).await?, "failed"),
                        1 => (self.acts.snooze(self.client, &held, Duration::from_secs(60)).await?, "ready"),
                        _ => (self.acts.progress(self.client, &held, &Progress::stage("halfway")).await?.0, "running"),
                    };
                    let was_held = before.get(&key).is_some_and(|r| r.held() && r.lease == lease);
                    ensure!((answer.outcome == Outcome::Done) == was_held, "held: {was_held}, the answer is {answer:?}");
                    self.only(&before, &[(key, lease)], status).await?;
                }
            }
            Step::Release { tickets } => {
                let tickets = self.tickets(tickets);
                let held: Vec<Held> = tickets.iter().map(|((id, _), lease)| Held::new(id.to_string(), *lease)).collect();
                let answers = self.acts.release(self.client, &held).await?;
                let held = tickets.iter().filter(|(key, lease)| before.get(key).is_some_and(|r| r.held() && r.lease == *lease)).count();
                let done = answers.iter().filter(|a| a.outcome == Outcome::Done).count();
                ensure!(done == held, "{held} were held, {done} released");
                self.only(&before, &tickets, "ready").await?;
            }
            Step::Age { minutes } => {
                let sql = format!(
                    "begin; set local session_replication_role = replica;
                     update public.parcels set due_at = due_at - interval '{minutes} minutes', deadline_at = deadline_at - interval '{minutes} minutes'; commit"
                );
                self.client.batch_execute(&sql).await?;
            }
            Step::Prune => {
                self.acts.prune(self.client, Some(Duration::ZERO)).await?;
                let (after, _) = self.look().await?;
                let dead = |row: &Row| row.status == "done" || row.due.is_none();
                ensure!(before.into_iter().filter(|(_, row)| !dead(row)).eq(after), "prune deletes what is finished, and nothing else");
            }
        }
        Ok(())
    }

    /// Each row at most once, in the right order. Nothing else changes except rows that ended because they lost too many leases.
    async fn claim(&mut self, before: &BTreeMap<Key, Row>, limit: i32, started: bool) -> Result<()> {
        self.client.batch_execute("select set_config('gleaner.cursor_parcels', '', false)").await?;
        let request = uuid::Uuid::new_v4();
        let sql = "select id, region, lease from gleaner.claim_parcels('ann', $1, p_started => $2, p_request => $3)";
        let given = self.client.query(sql, &[&limit, &started, &request]).await?;
        let given: Vec<(Key, i64)> = given.iter().map(|r| ((r.get(0), r.get(1)), r.get(2))).collect();
        let (after, now) = self.look().await?;
        let mut keys: Vec<&Key> = given.iter().map(|(key, _)| key).collect();
        let mut line: Vec<(i64, &Key)> =
            before.iter().filter(|(_, r)| r.claimable(now)).map(|(key, r)| (r.due.unwrap_or(0), key)).collect();
        line.sort_by_key(|(due, key)| (*due, key.0));
        if before.values().filter(|r| r.claimable(now)).all(|r| !r.held() && r.lost == 0) {
            let expected: Vec<i64> = line.iter().take(usize::try_from(limit)?).map(|(_, key)| key.0).collect();
            ensure!(keys.iter().map(|key| key.0).eq(expected.iter().copied()), "claimed {keys:?}, in the line are {line:?}");
        }
        for (key, lease) in &given {
            ensure!(before.get(key).is_some_and(|r| r.claimable(now)), "{key:?} was not there to be claimed");
            ensure!(after[key].held() && after[key].lease == *lease, "{key:?} is not held with the lease it was given out with");
            ensure!(
                !self.tickets.iter().any(|((id, _), other)| *id == key.0 && other == lease),
                "two rows with id {} share a lease",
                key.0
            );
        }
        for (key, row) in &after {
            let ended = row.status == "failed" && row.due.is_none();
            ensure!(given.iter().any(|(k, _)| k == key) || ended || before.get(key) == Some(row), "{key:?} changed and was not handed out");
        }
        let ended = after.iter().any(|(key, row)| before.get(key) != Some(row) && !row.held());
        ensure!(!given.is_empty() || line.is_empty() || ended, "nothing was claimed of {line:?}");
        keys.sort();
        keys.dedup();
        ensure!(keys.len() == given.len(), "a row was handed out twice: {given:?}");
        let mut leases: Vec<(i64, i64)> = given.iter().map(|((id, _), lease)| (*id, *lease)).collect();
        leases.sort_unstable();
        leases.dedup();
        ensure!(leases.len() == given.len(), "two rows with one id share a lease: {given:?}");
        // The answer may have been lost: the same request returns the same rows.
        let again = self.client.query(sql, &[&limit, &started, &request]).await?;
        let again: Vec<(Key, i64)> = again.iter().map(|r| ((r.get(0), r.get(1)), r.get(2))).collect();
        ensure!(given.is_empty() || again == given, "the repeated claim gave {again:?}, the first {given:?}");
        self.tickets.extend(if given.is_empty() { again } else { given });
        Ok(())
    }

    /// Only the rows that these leases held have changed, and to `status`.
    async fn only(&self, before: &BTreeMap<Key, Row>, tickets: &[(Key, i64)], status: &str) -> Result<()> {
        let (after, _) = self.look().await?;
        for (key, row) in &after {
            let was = &before[key];
            let held = was.held() && tickets.iter().any(|(k, lease)| k == key && *lease == was.lease);
            let fits = if held { row.status == status } else { row == was };
            ensure!(fits, "{key:?} was {was:?} and is {row:?}, with {tickets:?}");
        }
        Ok(())
    }
}

/// A claim through the library returns such rows, too.
#[tokio::test]
async fn the_library_claims_rows_that_share_an_id() -> Result<()> {
    let w = world().await?;
    w.run("create table public.twins (id bigint, region text, status text not null default 'ready', primary key (id, region)) partition by list (region);
           create table public.twins_rest partition of public.twins default")
        .await?;
    w.attach(
        "twins",
        "table = 'public.twins'\nstatus = { column = 'status', ready = 'ready', running = 'running', done = 'done', failed = 'failed', cancelled = 'off' }",
    )
    .await?;
    w.run("insert into public.twins (id, region) values (1, 'a'), (1, 'b')").await?;
    let queue = w.queue("twins").await?;
    let items = queue.claim(&Claim::by("ann").limit(5)).await?.items;
    ensure!(items.len() == 2, "{items:?}");
    queue.complete(&[Completion::new(items[0].held(), None)]).await?;
    ensure!(w.count("select count(*) from public.twins where status = 'done'").await? == 1, "one completion ends one row");
    Ok(())
}
