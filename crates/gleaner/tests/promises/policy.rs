//! The owner's current row decides when other agents may claim the work, and whether at all.

use anyhow::{Context as _, Result};
use gleaner::{Claim, Failure, Outcome, Progress, Queue};

use crate::hands::{activity, claim_anew, claimable_by, refused};
use crate::world::{World, keys, outcomes, world};

struct Field {
    world: World,
    queue: Queue,
    owner: i64,
    thief: i64,
}

/// An owner who shares after five minutes, and another user with an agent (the thief).
async fn field() -> Result<Field> {
    let world = world().await?;
    let (owner, thief) = (world.person("owner", 5, true).await?, world.person("thief", 5, true).await?);
    let queue = world.queue("activities").await?;
    Ok(Field { world, queue, owner, thief })
}

impl Field {
    async fn policy(&self, set: &str) -> Result<()> {
        self.world.run(&format!("update sales set {set} where id = {}", self.owner)).await
    }

    /// The rows that the thief would get, by every way to claim another owner's work.
    async fn stealable(&self) -> Result<Vec<String>> {
        let batch = claimable_by(&self.world, &self.queue, Some(self.thief)).await?;
        let mut client = self.world.connect().await?;
        let tx = client.transaction().await?;
        let kinds = Claim::by("a look").owner(self.thief).limit(1000).kinds(["call", "sms", "email"]);
        let by_kind = keys(&self.queue.acts().claim(&tx, &kinds).await?.items);
        assert_eq!(by_kind.is_empty(), batch.is_empty(), "with kinds and without");
        assert!(by_kind.iter().all(|key| batch.contains(key)), "with kinds and without");
        tx.rollback().await?;
        let nobody = claimable_by(&self.world, &self.queue, None).await?;
        assert_eq!(nobody, batch, "for an agent of nobody");

        let agent = self.world.signed_in(self.thief, "laptop").await?;
        let by_functions =
            "select array(select id::text from claim_stale_activity()) || array(select id::text from claim_next_pending_activity(null))";
        agent.batch_execute("begin").await?;
        let row = agent.query_one(by_functions, &[]).await?;
        let mut stolen: Vec<String> = row.get(0);
        agent.batch_execute("rollback").await?;
        stolen.retain(|key| !batch.contains(key));
        assert!(stolen.is_empty(), "the functions of the CRM steal {stolen:?}");
        Ok(batch)
    }

    /// Whether `explain` gives the same answer for the thief.
    async fn explained(&self, key: &str) -> Result<bool> {
        let explained = self.queue.explain(key, Some(&self.thief.to_string())).await?.context("explained")?;
        Ok(explained["claimable"] == true)
    }

    async fn no_other_agent_gets(&self, key: &str) -> Result<()> {
        for _ in 0..3 {
            assert!(self.stealable().await?.is_empty());
            assert!(!self.explained(key).await?);
            self.world.age("activities", "1 day").await?;
        }
        assert_eq!(claimable_by(&self.world, &self.queue, Some(self.owner)).await?, [key], "its owner can");
        Ok(())
    }
}

/// Half a second before the threshold passes a thief starts to claim repeatedly. It gets the row only after the threshold.
#[tokio::test]
async fn an_owners_threshold_holds_to_the_very_second() -> Result<()> {
    let f = field().await?;
    let key = f.world.activity(Some(f.owner), "call", 5.0 - 0.5 / 60.0).await?;
    let client = f.world.connect().await?;
    let claim = Claim::by("thief").owner(f.thief);
    let stolen = loop {
        if let Some(item) = f.queue.acts().claim(&client, &claim).await?.items.pop() {
            break item;
        }
    };
    assert_eq!(stolen.key, key);
    let late: f64 = f
        .world
        .client
        .query_one("select extract(epoch from locked_at - created_at - interval '5 minutes')::float8 from activities", &[])
        .await?
        .get(0);
    assert!(late >= 0.0, "stolen {} s too early", -late);
    assert!(late < 5.0, "nobody could take it for {late} s after its time");
    Ok(())
}

#[tokio::test]
async fn a_raised_threshold_holds_at_once_for_rows_that_wait() -> Result<()> {
    let f = field().await?;
    let key = f.world.activity(Some(f.owner), "call", 6.0).await?;
    assert_eq!(f.stealable().await?, [key.as_str()]);
    f.policy("stale_threshold_minutes = 30").await?;
    assert!(f.stealable().await?.is_empty());
    assert!(!f.explained(&key).await?);
    // A claim that is committed, not rolled back: the row was refused and stamped again.
    assert!(claim_anew(&f.world, &f.queue, "thief", Some(f.thief), 10).await?.is_empty());
    f.world.age("activities", "23 minutes").await?;
    assert!(f.stealable().await?.is_empty());
    f.world.age("activities", "61 seconds").await?;
    assert_eq!(f.stealable().await?, [key.as_str()]);
    assert!(f.explained(&key).await?);
    Ok(())
}

#[tokio::test]
async fn a_lowered_threshold_holds_at_once_for_rows_that_wait() -> Result<()> {
    let f = field().await?;
    let key = f.world.activity(Some(f.owner), "call", 3.0).await?;
    assert!(f.stealable().await?.is_empty());
    f.policy("stale_threshold_minutes = 2").await?;
    assert!(f.explained(&key).await?);
    assert_eq!(f.stealable().await?, [key]);
    f.policy("stale_threshold_minutes = 0").await?;
    let fresh = f.world.activity(Some(f.owner), "sms", 0.0).await?;
    assert!(f.stealable().await?.contains(&fresh), "no threshold at all");
    Ok(())
}

#[tokio::test]
async fn work_made_private_while_it_waits_is_private_at_once_and_shared_again_at_once() -> Result<()> {
    let f = field().await?;
    let key = f.world.activity(Some(f.owner), "call", 60.0).await?;
    assert_eq!(f.stealable().await?, [key.as_str()]);
    f.policy("allow_remote_processing = false").await?;
    assert!(f.stealable().await?.is_empty());
    assert!(claim_anew(&f.world, &f.queue, "thief", Some(f.thief), 10).await?.is_empty());
    f.no_other_agent_gets(&key).await?;
    f.policy("allow_remote_processing = true").await?;
    assert!(f.explained(&key).await?);
    assert_eq!(f.stealable().await?, [key]);

    // Also rows that were stamped while it was private.
    f.policy("allow_remote_processing = false").await?;
    let born_private = f.world.activity(Some(f.owner), "sms", 10.0).await?;
    f.policy("allow_remote_processing = true").await?;
    assert!(f.stealable().await?.contains(&born_private));
    Ok(())
}

/// The row is inserted under the old policy and committed under the new one.
#[tokio::test]
async fn an_insert_open_while_its_owner_turns_private_is_private_when_it_commits() -> Result<()> {
    let f = field().await?;
    let writer = f.world.connect().await?;
    writer.batch_execute("begin").await?;
    let sql = format!(
        "insert into activities (sales_id, type, created_at) values ({}, 'call', now() - interval '1 hour') returning id::text",
        f.owner
    );
    let key: String = writer.query_one(&sql, &[]).await?.get(0);
    f.policy("allow_remote_processing = false").await?;
    writer.batch_execute("commit").await?;
    f.no_other_agent_gets(&key).await
}

#[tokio::test]
async fn work_reassigned_to_a_private_owner_is_private() -> Result<()> {
    let f = field().await?;
    f.policy("allow_remote_processing = false").await?;
    let sharing = f.world.person("sharing", 5, true).await?;
    for (from, by_act) in [(None, false), (None, true), (Some(sharing), false), (Some(sharing), true)] {
        let key = f.world.activity(from, "call", 60.0).await?;
        assert_eq!(f.stealable().await?, [key.as_str()]);
        if by_act {
            let answers = f.queue.assign(&[&key], Some(&f.owner.to_string())).await?;
            assert_eq!(outcomes(&answers), [Outcome::Done]);
        } else {
            f.world.run(&format!("update activities set sales_id = {} where id = '{key}'", f.owner)).await?;
        }
        f.no_other_agent_gets(&key).await?;
        f.world.run("delete from activities").await?;
    }
    Ok(())
}

#[tokio::test]
async fn work_reassigned_to_a_sharing_owner_obeys_its_threshold() -> Result<()> {
    let f = field().await?;
    let patient = f.world.person("patient", 60, true).await?;
    for by_act in [false, true] {
        let key = f.world.activity(None, "call", 10.0).await?;
        if by_act {
            f.queue.assign(&[&key], Some(&patient.to_string())).await?;
        } else {
            f.world.run(&format!("update activities set sales_id = {patient}")).await?;
        }
        assert!(f.stealable().await?.is_empty());
        f.world.age("activities", "51 minutes").await?;
        assert_eq!(f.stealable().await?, [key.as_str()]);
        f.queue.assign(&[&key], None).await?;
        assert_eq!(f.stealable().await?, [key], "given to everybody");
        f.world.run("delete from activities").await?;
    }
    Ok(())
}

/// A running row gets a new owner while its holder keeps it; its next holder is decided by the new owner's policy.
#[tokio::test]
async fn running_work_reassigned_to_a_private_owner_stays_private_after_a_crash() -> Result<()> {
    let f = field().await?;
    f.policy("allow_remote_processing = false").await?;
    for by_act in [false, true] {
        let key = f.world.activity(None, "call", 1.0).await?;
        let item = claim_anew(&f.world, &f.queue, "thief", Some(f.thief), 1).await?.pop().context("nobody's")?;
        if by_act {
            f.queue.assign(&[&key], Some(&f.owner.to_string())).await?;
        } else {
            f.world.run(&format!("update activities set sales_id = {}", f.owner)).await?;
        }
        assert_eq!(activity(&f.world, &key).await?["lease"], item.lease, "still held");
        f.world.age("activities", "10 minutes").await?;
        f.no_other_agent_gets(&key).await?;
        f.world.run("delete from activities").await?;
    }
    Ok(())
}

/// There is no policy to read, so no other agent may claim it: only an agent of that owner.
#[tokio::test]
async fn work_of_an_owner_without_a_row_is_private() -> Result<()> {
    let f = field().await?;
    f.world.run("alter table activities drop constraint activities_sales_id_fkey").await?;
    let key = f.world.activity(Some(4711), "call", 60.0).await?;
    for _ in 0..2 {
        assert!(f.stealable().await?.is_empty());
        f.world.age("activities", "1 day").await?;
    }
    assert_eq!(claimable_by(&f.world, &f.queue, Some(4711)).await?, [key]);
    Ok(())
}

/// Every act that moves the times of a private row, and the crash that follows it.
#[tokio::test]
async fn a_private_owners_crashed_agent_leaves_the_row_to_its_owner_alone() -> Result<()> {
    let f = field().await?;
    f.policy("allow_remote_processing = false").await?;
    let key = f.world.activity(Some(f.owner), "call", 60.0).await?;
    for act in ["crash", "progress", "fail", "snooze", "release", "recover"] {
        let item =
            claim_anew(&f.world, &f.queue, "owner's agent", Some(f.owner), 1).await?.pop().with_context(|| format!("before {act}"))?;
        match act {
            "progress" => drop(f.queue.progress(&item.held(), &Progress::stage("x")).await?),
            "fail" => drop(f.queue.fail(&item.held(), &Failure::new("no")).await?),
            "snooze" => drop(f.queue.snooze(&item.held(), std::time::Duration::from_secs(60)).await?),
            "release" => drop(f.queue.release(&[item.held()]).await?),
            _ => {}
        }
        f.world.age("activities", "3 hours").await?;
        if act == "recover" {
            f.queue.recover().await?;
        }
        assert!(f.stealable().await?.is_empty(), "after {act}");
        assert!(f.queue.explain(&key, Some(&f.thief.to_string())).await?.is_some_and(|e| e["claimable"] == false), "after {act}");
        // Attempts and lost leases are not tested here.
        f.world
            .run("set role gleaner_engine; update activities set attempts = 0, lost = 0, started = 0, created_at = now(); reset role")
            .await?;
    }
    f.no_other_agent_gets(&key).await
}

/// The same by plain writers: claim, crash, sweep, plain failure, plain reset.
#[tokio::test]
async fn a_private_owners_plain_agent_leaves_the_row_to_its_owner_alone() -> Result<()> {
    let f = field().await?;
    f.policy("allow_remote_processing = false").await?;
    let key = f.world.activity(Some(f.owner), "call", 60.0).await?;
    let agent = f.world.signed_in(f.owner, "laptop").await?;
    for act in ["crash", "sweep", "fail", "reset"] {
        assert_eq!(crate::hands::claim_by_function(&agent, f.owner).await?, Some(key.clone()), "before {act}");
        match act {
            "fail" => drop(crate::hands::fail_plainly(&agent, &key).await?),
            "reset" => drop(agent.execute(&format!("update activities set processing_status = 'raw' where id = '{key}'"), &[]).await?),
            _ => {}
        }
        f.world.age("activities", "3 hours").await?;
        if act == "sweep" {
            agent.batch_execute("select unlock_stale_locks()").await?;
        }
        assert!(f.stealable().await?.is_empty(), "after {act}");
    }
    f.no_other_agent_gets(&key).await
}

/// A thief holds the row when its owner turns private. After releasing it, the thief cannot claim it again.
#[tokio::test]
async fn stolen_work_returns_to_an_owner_who_became_private() -> Result<()> {
    let f = field().await?;
    let key = f.world.activity(Some(f.owner), "call", 60.0).await?;
    let item = claim_anew(&f.world, &f.queue, "thief", Some(f.thief), 1).await?.pop().context("stale")?;
    f.policy("allow_remote_processing = false").await?;
    f.queue.release(&[item.held()]).await?;
    f.no_other_agent_gets(&key).await
}

/// Its owner's threshold passed long ago: a row that is released or fails is open to all agents from its next due time on, no later.
#[tokio::test]
async fn stale_work_given_back_is_open_to_all_as_soon_as_it_is_due() -> Result<()> {
    let f = field().await?;
    let key = f.world.activity(Some(f.owner), "call", 60.0).await?;
    for act in ["release", "snooze", "fail"] {
        let item = claim_anew(&f.world, &f.queue, "thief", Some(f.thief), 1).await?.pop().with_context(|| format!("before {act}"))?;
        match act {
            "release" => drop(f.queue.release(&[item.held()]).await?),
            "snooze" => {
                f.queue.snooze(&item.held(), std::time::Duration::from_secs(60)).await?;
                f.world.age("activities", "61 seconds").await?;
            }
            _ => {
                f.queue.fail(&item.held(), &Failure::new("no")).await?;
                f.world.age("activities", "37 seconds").await?;
            }
        }
        assert!(f.explained(&key).await?, "after {act}");
        assert_eq!(f.stealable().await?, [key.as_str()], "after {act}");
    }
    Ok(())
}

/// Fresh work that the owner's own agent releases keeps the rest of its head start.
#[tokio::test]
async fn fresh_work_given_back_keeps_its_owners_head_start() -> Result<()> {
    let f = field().await?;
    let key = f.world.activity(Some(f.owner), "call", 1.0).await?;
    let item = claim_anew(&f.world, &f.queue, "owner's agent", Some(f.owner), 1).await?.pop().context("own")?;
    f.queue.release(&[item.held()]).await?;
    assert!(f.stealable().await?.is_empty());
    f.world.age("activities", "230 seconds").await?;
    assert!(f.stealable().await?.is_empty());
    f.world.age("activities", "11 seconds").await?;
    assert_eq!(f.stealable().await?, [key]);
    Ok(())
}

#[tokio::test]
async fn an_owner_with_unfinished_rows_cannot_be_deleted_before_they_are_assigned() -> Result<()> {
    let f = field().await?;
    f.policy("allow_remote_processing = false").await?;
    let key = f.world.activity(Some(f.owner), "call", 60.0).await?;
    let delete = format!("delete from sales where id = {}", f.owner);
    // A foreign key violation; since PostgreSQL 18 a restricted deletion has a code of its own.
    let code = refused(&f.world.client, &delete).await?;
    assert!(["23503", "23001"].contains(&code.as_str()), "{code}");
    assert!(f.stealable().await?.is_empty());
    f.queue.assign(&[&key], Some(&f.thief.to_string())).await?;
    f.world.run(&delete).await?;
    assert_eq!(claimable_by(&f.world, &f.queue, Some(f.thief)).await?, [key]);
    Ok(())
}

/// The threshold runs from the creation of the row, whatever its due time is and however the row was added.
#[tokio::test]
async fn a_due_time_neither_shortens_nor_stretches_an_owners_threshold() -> Result<()> {
    let f = field().await?;
    for (due, by_act) in [("-1 hour", true), ("-1 hour", false), ("3 minutes", true), ("3 minutes", false)] {
        let due_at = f.world.text(&format!("select (now() + interval '{due}')::text")).await?;
        if by_act {
            f.queue.enqueue(&[serde_json::json!({"sales_id": f.owner, "type": "call", "due_at": due_at})]).await?;
        } else {
            let sql = "insert into activities (sales_id, type, due_at) values ($1, 'call', ($2::text)::timestamptz)";
            f.world.client.execute(sql, &[&f.owner, &due_at]).await?;
        }
        let key = f.world.text("select id::text from activities").await?.context("a row")?;
        f.world.age("activities", "280 seconds").await?;
        assert!(!f.explained(&key).await?, "due {due}, by act: {by_act}");
        assert!(f.stealable().await?.is_empty(), "due {due}, by act: {by_act}");
        f.world.age("activities", "21 seconds").await?;
        assert!(f.explained(&key).await?, "due {due}, by act: {by_act}");
        assert_eq!(f.stealable().await?, [key], "due {due}, by act: {by_act}");
        f.world.run("delete from activities").await?;
    }
    Ok(())
}
