//! Rows that reject every change come first: the others are still claimed, and the rejection is recorded.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use gleaner::{Claim, Queue};

use crate::world::{World, world};

/// A user's trigger that rejects changes to the rows marked `bad`.
fn trigger(when: &str, body: &str) -> String {
    format!(
        "create function public.stand_in_the_way() returns trigger language plpgsql as $$ begin
             if old.payload ? 'bad' then {body} end if;
             return new;
         end $$;
         create trigger stand_in_the_way {when} update on gleaner.jobs for each row execute function public.stand_in_the_way()"
    )
}

const NOT_VALID: &str = "alter table gleaner.jobs add constraint no_bad check (not payload ? 'bad') not valid";

/// The ways in which a row can reject a change, each with the SQL to run once the bad rows are inserted.
fn refusals() -> Vec<(&'static str, String)> {
    vec![
        ("a check that does not hold", NOT_VALID.to_owned()),
        ("a trigger that swallows", trigger("before", "return null;")),
        ("a trigger that raises", trigger("before", "raise exception 'not on my watch';")),
        ("a trigger that raises a code of its own", trigger("before", "raise exception 'not on my watch' using errcode = 'MY001';")),
        ("a trigger that raises afterwards", trigger("after", "raise exception 'too late';")),
        ("a trigger that is broken", trigger("before", "perform * from a_table_that_was_dropped;")),
    ]
}

/// `bad` rows first, `good` ones after them, spread over two kinds.
async fn line(w: &World, bad: i32, good: i32, kinds: [&str; 2]) -> Result<Queue> {
    w.client
        .execute(
            "insert into gleaner.jobs (kind, payload, due_at)
             select $3::text, '{\"bad\": true}'::jsonb, now() - interval '1 hour' + n * interval '1 second' from generate_series(1, $1::int) n
             union all
             select case when n % 2 = 0 then $3::text else $4::text end, '{}'::jsonb, now() - interval '10 minutes' + n * interval '1 second' from generate_series(1, $2::int) n",
            &[&bad, &good, &kinds[0], &kinds[1]],
        )
        .await?;
    w.queue("jobs").await
}

/// Claims until nothing is returned, as a worker would. Each returned row must really be held, and only once.
async fn drain(w: &World, queue: &Queue, limit: i32) -> Result<usize> {
    let mut seen = HashSet::new();
    loop {
        let begun = Instant::now();
        let claimed = queue.claim(&Claim::by("worker").limit(limit)).await?;
        ensure!(begun.elapsed() < Duration::from_secs(5), "the claim took {:?}", begun.elapsed());
        if claimed.items.is_empty() {
            return Ok(seen.len());
        }
        for item in &claimed.items {
            ensure!(seen.insert(item.key.clone()), "{} was handed out twice", item.key);
            let held = w
                .count(&format!(
                    "select count(*) from gleaner.jobs where id = {} and status = 'running' and lease = {}",
                    item.key, item.lease
                ))
                .await?;
            ensure!(held == 1, "{} was handed out with lease {}, and is not held with it", item.key, item.lease);
        }
    }
}

async fn noted(w: &World) -> Result<i64> {
    w.count("select count(*) from gleaner.rejected_row as o join gleaner.jobs as j on j.id::text = o.key where o.queue = 'jobs' and j.payload ? 'bad'").await
}

#[tokio::test]
async fn one_bad_row_does_not_block_the_queue() -> Result<()> {
    for (what, refusal) in refusals() {
        for limit in [1, 3, 50] {
            let w = world().await?;
            let queue = line(&w, 1, 20, ["a", "a"]).await?;
            w.run(&refusal).await?;
            let worked = drain(&w, &queue, limit).await.map_err(|e| e.context(format!("{what}, {limit} at a time")))?;
            assert_eq!(worked, 20, "{what}, {limit} at a time: the rest is worked");
            assert_eq!(noted(&w).await?, 1, "{what}, {limit} at a time: the rejected row is noted");
        }
    }
    Ok(())
}

/// As many rejected rows as a batch holds, in the oldest lane: the other lane is still served.
#[tokio::test]
async fn a_batch_of_bad_rows_does_not_block_the_other_kinds() -> Result<()> {
    for (what, refusal) in refusals() {
        let w = world().await?;
        let queue = line(&w, 4, 20, ["a", "b"]).await?;
        w.run("delete from gleaner.jobs where kind = 'a' and not payload ? 'bad'").await?;
        w.run(&refusal).await?;
        let worked = drain(&w, &queue, 4).await.map_err(|e| e.context(what))?;
        assert_eq!(worked, 10, "{what}: the other kind is worked");
        assert_eq!(noted(&w).await?, 4, "{what}: the rejected rows are noted");
    }
    Ok(())
}

#[tokio::test]
async fn a_bad_row_alone_is_an_empty_answer_and_a_quick_one() -> Result<()> {
    for (what, refusal) in refusals() {
        let w = world().await?;
        let queue = line(&w, 1, 0, ["a", "a"]).await?;
        w.run(&refusal).await?;
        assert_eq!(drain(&w, &queue, 10).await.map_err(|e| e.context(what))?, 0, "{what}");
        assert_eq!(noted(&w).await?, 1, "{what}");
        // The row is skipped for a while: a caller that asks when to come back does not get "now".
        let again = queue.claim(&Claim::by("worker").limit(10)).await?;
        assert!(again.items.is_empty() && again.next_due_in != Some(Duration::ZERO), "{what}: {again:?}");
    }
    Ok(())
}

/// A row that must be buried and rejects that too: the claim neither fails nor loops.
#[tokio::test]
async fn a_poison_row_that_cannot_be_buried_does_not_block_the_line() -> Result<()> {
    for (what, refusal) in refusals() {
        let w = world().await?;
        let queue = line(&w, 2, 20, ["a", "b"]).await?;
        w.run("begin; set local role gleaner_engine; update gleaner.jobs set status = 'running', started = 1, lost = 2, lease = 1 where payload ? 'bad'; commit").await?;
        w.run(&refusal).await?;
        let worked = tokio::time::timeout(Duration::from_secs(20), drain(&w, &queue, 7)).await;
        let worked = worked.unwrap_or_else(|_| panic!("{what}: the claim never came back"));
        assert_eq!(worked.map_err(|e| e.context(what))?, 20, "{what}: the rest is worked");
        assert_eq!(noted(&w).await?, 2, "{what}: the rejected rows are noted");
    }
    Ok(())
}

/// The check is valid, and so is every row, until a claim changes the status: the table does not show it beforehand.
#[tokio::test]
async fn a_check_that_holds_until_the_claim_does_not_block_the_line() -> Result<()> {
    for limit in [1, 50] {
        let w = world().await?;
        let queue = line(&w, 2, 20, ["a", "b"]).await?;
        w.run("alter table gleaner.jobs add constraint no_bad check (status <> 'running' or not payload ? 'bad')").await?;
        assert_eq!(drain(&w, &queue, limit).await?, 20);
        assert_eq!(noted(&w).await?, 2);
    }
    Ok(())
}

/// A unique index of the user's lets one of the rows run at a time: the others wait for it, and block no other row.
#[tokio::test]
async fn a_unique_index_over_running_rows_does_not_block_the_line() -> Result<()> {
    let w = world().await?;
    let queue = line(&w, 3, 20, ["a", "b"]).await?;
    w.run("create unique index one_at_a_time on gleaner.jobs ((payload ->> 'bad')) where status = 'running'").await?;
    assert_eq!(drain(&w, &queue, 50).await?, 21);
    assert_eq!(noted(&w).await?, 2);
    Ok(())
}

/// A row whose owner's policy has become stricter gets a later time during the claim. If it rejects that, it is skipped.
#[tokio::test]
async fn a_refused_row_that_cannot_be_mended_does_not_block_thieves() -> Result<()> {
    for (what, body) in [("raises", "raise exception 'not on my watch';"), ("swallows", "return null;")] {
        let w = world().await?;
        let strict = w.person("strict", 5, true).await?;
        let easy = w.person("easy", 5, true).await?;
        let bad = w.activity(Some(strict), "call", 60.0).await?;
        let mut good = Vec::new();
        for age in [50.0, 40.0, 30.0] {
            good.push(w.activity(Some(easy), "call", age).await?);
        }
        w.run(&format!("update sales set allow_remote_processing = false where id = {strict}")).await?;
        w.run(&format!(
            "create function public.stand_in_the_way() returns trigger language plpgsql as $$ begin if old.id = '{bad}' then {body} end if; return new; end $$;
             create trigger stand_in_the_way before update on activities for each row execute function public.stand_in_the_way()"
        ))
        .await?;
        let queue = w.queue("activities").await?;
        let mut worked = Vec::new();
        loop {
            let items = w.claim(&queue, "thief", None, 2).await.map_err(|e| e.context(format!("a trigger that {what}")))?;
            if items.is_empty() {
                break;
            }
            worked.extend(items.into_iter().map(|i| i.key));
        }
        assert_eq!(worked, good, "a trigger that {what}");
    }
    Ok(())
}

/// A claim uses the fast path, which assumes that every change succeeds, only if nothing can reject one. An index that the claim
/// does not write to cannot.
#[tokio::test]
async fn only_indexes_that_a_claim_writes_make_it_take_rows_one_by_one() -> Result<()> {
    let world = world().await?;
    let plain = async || {
        world.text("select gleaner.is_plain('public.activities', '{due_at,lease,processing_status,locked_by,metadata}', 'processing_status')::text").await
    };
    assert_eq!(plain().await?.as_deref(), Some("true"), "as we ship it, with one activity per event");
    for (definition, expected) in [
        ("unique index i on activities (raw_data, type)", "true"),
        ("unique index i on activities (type) where contact_id is not null", "true"),
        ("unique index i on activities (locked_by)", "false"),
        ("unique index i on activities (type) where processing_status = 'processing'", "false"),
        ("unique index i on activities ((metadata ->> 'one'))", "false"),
        ("unique index i on activities (type, (lease % 7))", "false"),
        ("unique index i on activities (type) where activities is not null", "false"),
        ("index i on activities (locked_by)", "true"),
    ] {
        world.run(&format!("create {definition}")).await?;
        assert_eq!(plain().await?.as_deref(), Some(expected), "{definition}");
        world.run("drop index i").await?;
    }
    world.run("alter table activities add constraint one unique (locked_by, type)").await?;
    assert_eq!(plain().await?.as_deref(), Some("false"));
    Ok(())
}
