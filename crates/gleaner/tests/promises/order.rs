//! Which agent gets which row, and in which order.

use anyhow::Result;
use gleaner::Claim;

use crate::hands::{claim_anew, claimable_by};
use crate::world::{jobs, keys, world};

#[tokio::test]
async fn claim_order_is_own_then_global_then_stale_exactly() -> Result<()> {
    let world = world().await?;
    let (me, other, private) =
        (world.person("me", 5, true).await?, world.person("other", 5, true).await?, world.person("private", 5, false).await?);
    let stale = world.activity(Some(other), "call", 30.0).await?;
    let older_stale = world.activity(Some(other), "sms", 60.0).await?;
    let global = world.activity(None, "email", 1.0).await?;
    let older_global = world.activity(None, "sms", 2.0).await?;
    let mine = world.activity(Some(me), "note", 0.0).await?;
    let older_mine = world.activity(Some(me), "call", 1.0).await?;
    let _fresh_of_other = world.activity(Some(other), "call", 1.0).await?;
    let _kept_private = world.activity(Some(private), "call", 600.0).await?;

    let queue = world.queue("activities").await?;
    let got = world.claim(&queue, "a", Some(me), 100).await?;
    assert_eq!(keys(&got), [older_mine, mine, older_global, global, older_stale, stale]);
    assert!(world.claim(&queue, "a", Some(me), 100).await?.is_empty());
    Ok(())
}

/// Single claims return the same order as a batch.
#[tokio::test]
async fn single_claims_come_in_the_order_of_a_batch() -> Result<()> {
    let world = world().await?;
    let (me, other) = (world.person("me", 5, true).await?, world.person("other", 5, true).await?);
    let mut expected = Vec::new();
    for (owner, ages) in [(Some(me), [30.0, 2.0, 1.0]), (None, [90.0, 3.0, 0.5]), (Some(other), [60.0, 20.0, 6.0])] {
        for (kind, age) in ["sms", "call", "email"].into_iter().zip(ages) {
            expected.push(world.activity(owner, kind, age).await?);
        }
    }
    let queue = world.queue("activities").await?;
    assert_eq!(claimable_by(&world, &queue, Some(me)).await?, expected, "as a batch");
    let client = world.connect().await?;
    let mut got = Vec::new();
    while let Some(item) = queue.acts().claim(&client, &Claim::by("a").owner(me)).await?.items.pop() {
        got.push(item.key);
    }
    assert_eq!(got, expected, "one at a time");
    Ok(())
}

/// A claim of one row locks that row only: while it is open, other claims get the first rows of every other kind.
#[tokio::test]
async fn a_claim_of_one_row_locks_no_other_row() -> Result<()> {
    let world = world().await?;
    let mut expected = Vec::new();
    for (kind, age) in [("sms", 3.0), ("call", 2.0), ("email", 1.0)] {
        expected.push(world.activity(None, kind, age).await?);
    }
    let activities = world.queue("activities").await?;
    let mut first = world.connect().await?;
    let open = first.transaction().await?;
    let one = activities.acts().claim(&open, &Claim::by("a")).await?.items;
    assert_eq!(keys(&one), expected[..1]);
    assert_eq!(keys(&world.claim(&activities, "b", None, 10).await?), expected[1..], "of activities");
    open.rollback().await?;

    let queue = world.queue("jobs").await?;
    for kind in ["mail", "report", "sync"] {
        queue.enqueue(&jobs(kind, 1)).await?;
    }
    let open = first.transaction().await?;
    assert_eq!(queue.acts().claim(&open, &Claim::by("a")).await?.items.len(), 1);
    assert_eq!(world.claim(&queue, "b", None, 10).await?.len(), 2, "of jobs");
    Ok(())
}

/// A row that lost a holder is claimed alone. Its place in a batch goes to the next row of its class, not to another class.
#[tokio::test]
async fn a_row_that_travels_alone_lets_no_other_class_go_before_its_own() -> Result<()> {
    let world = world().await?;
    let (me, other) = (world.person("me", 5, true).await?, world.person("other", 5, true).await?);
    let queue = world.queue("activities").await?;
    let lost = world.activity(Some(me), "call", 0.0).await?;
    queue.claim(&Claim::by("dies").owner(me).started()).await?;
    world.age("activities", "10 minutes").await?;
    let older = world.activity(Some(me), "call", 30.0).await?;
    let newer = world.activity(Some(me), "call", 1.0).await?;
    let global = world.activity(None, "call", 1.0).await?;
    let stale = world.activity(Some(other), "call", 60.0).await?;
    assert_eq!(keys(&claim_anew(&world, &queue, "a", Some(me), 2).await?), [older, newer]);
    assert_eq!(keys(&claim_anew(&world, &queue, "a", Some(me), 2).await?), [lost]);
    assert_eq!(keys(&claim_anew(&world, &queue, "a", Some(me), 2).await?), [global, stale]);
    Ok(())
}

#[tokio::test]
async fn only_the_kinds_asked_for_are_claimed_in_the_same_order() -> Result<()> {
    let world = world().await?;
    let (me, other) = (world.person("me", 5, true).await?, world.person("other", 5, true).await?);
    let mut expected = Vec::new();
    for (owner, age) in [(Some(me), 1.0), (None, 2.0), (Some(other), 9.0)] {
        world.activity(owner, "call", age + 1.0).await?;
        expected.push(world.activity(owner, "sms", age + 0.5).await?);
        expected.push(world.activity(owner, "email", age).await?);
    }
    let queue = world.queue("activities").await?;
    let got = queue.claim(&Claim::by("no ears").owner(me).limit(10).kinds(["email", "sms", "fax"])).await?.items;
    assert_eq!(keys(&got), expected);
    assert!(queue.claim(&Claim::by("no ears").owner(me).kinds(["email", "sms"])).await?.items.is_empty());
    assert_eq!(queue.claim(&Claim::by("ears").owner(me).limit(10).kinds(["call"])).await?.items.len(), 3);
    Ok(())
}

#[tokio::test]
async fn rows_of_one_due_time_come_by_key() -> Result<()> {
    let world = world().await?;
    let queue = world.queue("jobs").await?;
    world.run("insert into gleaner.jobs (id, due_at) select n, now() - interval '1 minute' from generate_series(30, 1, -1) as n").await?;
    world
        .run("insert into gleaner.jobs (id, due_at) select 100 + n, now() - n * interval '2 minutes' from generate_series(1, 3) as n")
        .await?;
    let mut expected: Vec<String> = vec!["103".into(), "102".into(), "101".into()];
    expected.extend((1..=30).map(|n| n.to_string()));
    assert_eq!(claimable_by(&world, &queue, None).await?, expected);
    let mut got = Vec::new();
    for limit in [1, 5, 2, 100] {
        got.extend(keys(&world.claim(&queue, "a", None, limit).await?));
    }
    assert_eq!(got, expected);
    Ok(())
}

/// Each class is ten minutes ahead of the next: urgent rows first, and the last class late but never starved.
#[tokio::test]
async fn urgent_work_goes_first_and_the_low_classes_are_served_in_the_end() -> Result<()> {
    let world = world().await?;
    let queue = world.queue("jobs").await?;
    let job = async |priority: i32, minutes: i32, kind: &str| {
        let sql = format!(
            "insert into gleaner.jobs (priority, kind, due_at)
             values ({priority}, '{kind}', now() - interval '{minutes} minutes') returning id::text"
        );
        anyhow::Ok(world.text(&sql).await?.unwrap_or_default())
    };
    let fresh = [job(2, 0, "a").await?, job(1, 0, "b").await?, job(0, 0, "a").await?, job(-1, 0, "b").await?];
    let low_waited_29 = job(-1, 29, "a").await?;
    let low_waited_31 = job(-1, 31, "b").await?;
    let normal_waited_15 = job(0, 15, "a").await?;
    let beyond_the_classes = job(7, 2, "a").await?;

    let expected = [
        beyond_the_classes, // the nearest class is 2: due two minutes ago, no handicap
        low_waited_31,      // 31 minutes outweigh three head starts
        fresh[0].clone(),   // 2, now
        low_waited_29,      // one minute short of three head starts
        normal_waited_15,   // two head starts less 15 minutes
        fresh[1].clone(),
        fresh[2].clone(),
        fresh[3].clone(),
    ];
    assert_eq!(claimable_by(&world, &queue, None).await?, expected);
    let client = world.connect().await?;
    let mut got = Vec::new();
    while let Some(item) = queue.acts().claim(&client, &Claim::by("a")).await?.items.pop() {
        got.push(item.key);
    }
    assert_eq!(got, expected, "one at a time");
    Ok(())
}

/// However much urgent work keeps coming, a low job is claimed once the head starts are used up.
#[tokio::test]
async fn a_flood_of_urgent_work_does_not_starve_the_rest() -> Result<()> {
    let world = world().await?;
    let queue = world.queue("jobs").await?;
    let low = world.text("insert into gleaner.jobs (priority) values (-1) returning id::text").await?.unwrap_or_default();
    for minutes in (0..=40).step_by(5) {
        world.run("insert into gleaner.jobs (priority) select 2 from generate_series(1, 10)").await?;
        let got = keys(&claim_anew(&world, &queue, "a", None, 3).await?);
        assert_eq!(got.len(), 3);
        if got.contains(&low) {
            assert!(minutes >= 30, "served after {minutes} minutes, ahead of its turn");
            return Ok(());
        }
        // Claimed rows are finished; the rest of the urgent rows keep waiting.
        world.run("delete from gleaner.jobs where status = 'running'").await?;
        world.age("jobs", "5 minutes").await?;
        world.run("delete from gleaner.jobs where priority = 2").await?;
    }
    anyhow::bail!("a low job starved")
}

/// Own work at any age; work without an owner as soon as it is due.
#[tokio::test]
async fn an_agent_without_an_owner_takes_unowned_and_stale_rows() -> Result<()> {
    let world = world().await?;
    let other = world.person("other", 5, true).await?;
    world.activity(Some(other), "sms", 1.0).await?;
    let stale = world.activity(Some(other), "sms", 6.0).await?;
    let global = world.activity(None, "sms", 0.0).await?;
    let queue = world.queue("activities").await?;
    assert_eq!(claimable_by(&world, &queue, None).await?, [global, stale]);
    Ok(())
}

/// An empty answer says how long until a row is due, by the database's clock.
#[tokio::test]
async fn an_empty_claim_says_how_long_to_wait() -> Result<()> {
    let world = world().await?;
    let queue = world.queue("activities").await?;
    let (me, other) = (world.person("me", 5, true).await?, world.person("other", 10, true).await?);
    assert_eq!(queue.claim(&Claim::by("a").owner(me)).await?.next_due_in, None, "nothing waits");
    world.activity(Some(other), "sms", 4.0).await?;
    let wait = queue.claim(&Claim::by("a").owner(me)).await?.next_due_in.map(|d| d.as_secs());
    assert!(wait.is_some_and(|s| (350..=360).contains(&s)), "the other's threshold passes in six minutes: {wait:?}");
    queue
        .enqueue(&[serde_json::json!({"type": "sms", "due_at": world.text("select (now() + interval '2 minutes')::text").await?})])
        .await?;
    let wait = queue.claim(&Claim::by("a").owner(me)).await?.next_due_in.map(|d| d.as_secs());
    assert!(wait.is_some_and(|s| (110..=120).contains(&s)), "scheduled in two minutes: {wait:?}");
    assert_eq!(queue.claim(&Claim::by("a").owner(me).kinds(["call"])).await?.next_due_in, None, "no calls");
    Ok(())
}

/// Statistics for a single row make the planner start at the table: the order of the rows is still kept.
#[tokio::test]
async fn rows_are_handed_out_in_order_whatever_the_planner_believes_of_the_table() -> Result<()> {
    let world = world().await?;
    let queue = world.queue("jobs").await?;
    world.run("insert into gleaner.jobs (id, status, due_at) values (1, 'done', null)").await?;
    world.run("vacuum (analyze) gleaner.jobs").await?;
    world.run("insert into gleaner.jobs (id, due_at) values (30, now()), (10, now() - interval '1 minute'), (20, now() - interval '2 minutes')").await?;
    assert_eq!(keys(&world.claim(&queue, "a", None, 3).await?), ["20", "10", "30"]);
    Ok(())
}

/// A session that fills its batches does not look up the existing kinds at every claim. A kind it has not seen waits a second at most.
#[tokio::test]
async fn a_kind_that_had_no_rows_is_found_within_a_second_by_a_busy_session() -> Result<()> {
    let world = world().await?;
    let queue = world.queue("jobs").await?;
    queue.enqueue(&jobs("busy", 640)).await?;
    let acts = gleaner::Acts::of(&world.client, "jobs").await?;
    let claim = Claim::by("a").limit(64);
    for _ in 0..3 {
        assert_eq!(acts.claim(&world.client, &claim).await?.items.len(), 64);
    }
    queue.enqueue(&[serde_json::json!({"kind": "new", "due_at": "2020-01-01T00:00:00Z"})]).await?;
    // A lookup that was slow on a busy machine is remembered for longer than a second.
    for _ in 0..6 {
        tokio::time::sleep(std::time::Duration::from_millis(1100)).await;
        let items = acts.claim(&world.client, &claim).await?.items;
        assert_eq!(items.len(), 64);
        if items.first().and_then(|i| i.kind.as_deref()) == Some("new") {
            return Ok(());
        }
    }
    anyhow::bail!("the new kind, which is the oldest, was not found")
}

/// The index stores a kind as a number, and these two have the same: constructed for this test, by inverting the hash.
#[tokio::test]
async fn two_kinds_with_one_number_are_two_kinds() -> Result<()> {
    let world = world().await?;
    let queue = world.queue("jobs").await?;
    let (one, other) = ("transcribing", "WVfyXbhoxmlm");
    let alike = world.text(&format!("select (hashtextextended('{one}', 0) = hashtextextended('{other}', 0))::text")).await?;
    assert_eq!(alike.as_deref(), Some("true"));
    for kind in [one, other, one] {
        queue.enqueue(&jobs(kind, 1)).await?;
    }
    let claim = |kind: &str| Claim::by("a").limit(10).kinds([kind]);
    let got = queue.claim(&claim(other)).await?.items;
    assert_eq!(got.iter().map(|i| i.kind.as_deref()).collect::<Vec<_>>(), [Some(other)]);
    assert_eq!(queue.claim(&claim(other)).await?.next_due_in.map(|d| d.as_secs() > 60), Some(true), "the other kind is due, this one held");
    queue.release(&[got[0].held()]).await?;
    assert_eq!(queue.cancel_matching(&serde_json::json!({"kind": one}), None).await?.len(), 2);
    let left = queue.claim(&Claim::by("takes anything").limit(10)).await?.items;
    assert_eq!(keys(&left), [got[0].key.clone()]);
    Ok(())
}

/// A large claim leaves a cursor at its last row. A started row that it skipped is before the cursor, and is still the next to be
/// claimed.
#[tokio::test]
async fn a_row_that_a_large_claim_passed_over_comes_first_in_the_next() -> Result<()> {
    let world = world().await?;
    let queue = world.queue("activities").await?;
    let lost = world.activity(None, "call", 1.0).await?;
    queue.claim(&Claim::by("dies").started()).await?;
    world.age("activities", "10 minutes").await?;
    world
        .run("insert into activities (type, raw_data, created_at) select 'call', '{}', now() - n * interval '5 minutes' from generate_series(1, 300) n")
        .await?;
    let client = world.connect().await?;
    let passed_over = queue.acts().claim(&client, &Claim::by("a").limit(300)).await?.items;
    assert!(passed_over.len() == 300 && !keys(&passed_over).contains(&lost), "{} rows, without the one that goes alone", passed_over.len());
    world.run("insert into activities (type, raw_data) values ('call', '{}')").await?;
    assert_eq!(keys(&queue.acts().claim(&client, &Claim::by("a").limit(300)).await?.items), [lost]);
    Ok(())
}

/// A row that must be claimed alone is skipped. The rows of other owners after it are claimed.
#[tokio::test]
async fn a_stale_row_that_goes_alone_does_not_end_the_search_for_stale_rows() -> Result<()> {
    let world = world().await?;
    let (other, third) = (world.person("other", 5, true).await?, world.person("third", 5, true).await?);
    let queue = world.queue("activities").await?;
    let lost = world.activity(Some(other), "call", 60.0).await?;
    let stale = world.activity(Some(third), "call", 50.0).await?;
    queue.claim(&Claim::by("dies").started()).await?;
    let given = queue.claim(&Claim::by("gives back")).await?;
    world.age("activities", "10 minutes").await?;
    queue.release(&[given.items[0].held()]).await?;
    let global = world.activity(None, "call", 1.0).await?;
    assert_eq!(keys(&claim_anew(&world, &queue, "a", None, 2).await?), [global, stale]);
    assert_eq!(keys(&claim_anew(&world, &queue, "a", None, 2).await?), [lost]);
    Ok(())
}
