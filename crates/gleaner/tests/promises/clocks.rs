//! Only the database's clock is used.

use anyhow::{Context as _, Result};
use gleaner::Claim;

use crate::hands::{claim_anew, claimable_by, seconds_until};
use crate::world::{keys, world};

/// A caller cannot pass the current time to an act: the acts take durations. Only an act meant for a certain time takes a time
/// (`snooze`; `enqueue` in the item itself).
#[tokio::test]
async fn no_act_takes_the_callers_time() -> Result<()> {
    let world = world().await?;
    let rows = world
        .client
        .query(
            "select distinct regexp_replace(p.proname, '_(activities|jobs|dumps|runs|followups|schedules|polls)(_matching)?$', '')
             from pg_proc as p, unnest(p.proargtypes::oid[]) as t
             where p.pronamespace = 'gleaner'::regnamespace
               and has_function_privilege('service_role', p.oid, 'execute')
               -- Not an act: its time is a place in the feed.
               and p.proname <> 'match_words'
               and t in ('timestamptz'::regtype, 'timestamp'::regtype, 'date'::regtype, 'time'::regtype)",
            &[],
        )
        .await?;
    assert_eq!(rows.iter().map(|r| r.get::<_, String>(0)).collect::<Vec<_>>(), ["reschedule", "snooze"]);
    Ok(())
}

/// Plain writers write their own clock into `started_at` and `locked_at`. If it is a day off in either direction, the lease is as
/// long as ever: no agent gets the row before its end, and any agent after it.
#[tokio::test]
async fn a_worker_whose_clock_is_a_day_off_changes_nothing() -> Result<()> {
    for off in ["-1 day", "1 day"] {
        let world = world().await?;
        let me = world.person("me", 5, true).await?;
        let agent = world.signed_in(me, "laptop").await?;
        let service = world.service().await?;
        world.run("insert into execution_jobs (config) values ('{}')").await?;
        let key = world.activity(Some(me), "call", 0.0).await?;

        let claims = [
            service.execute(&format!("update execution_jobs set status = 'running', started_at = now() + interval '{off}' where status = 'queued'"), &[]).await?,
            agent.execute(&format!("update activities set processing_status = 'processing', locked_by = auth.uid(), locked_at = now() + interval '{off}' where processing_status = 'raw'"), &[]).await?,
        ];
        assert_eq!(claims, [1, 1]);
        let run = world.text("select id::text from execution_jobs").await?.context("a run")?;
        for (queue, table, key, minutes) in [("runs", "execution_jobs", &run, 30.0), ("activities", "activities", &key, 5.0)] {
            let left = seconds_until(&world, table, key, "due_at").await?;
            assert!((minutes * 60.0 - 20.0..=minutes * 60.0).contains(&left), "{queue}, {off}: {left} s");
            let queue = world.queue(queue).await?;
            assert!(claimable_by(&world, &queue, None).await?.is_empty(), "{off}");
            assert_eq!(queue.recover().await?, 0, "{off}: a sweep does not believe it either");
        }

        // It reports progress with the same clock, and finishes.
        agent.execute(&format!("update activities set locked_at = now() + interval '{off}'"), &[]).await?;
        let left = seconds_until(&world, "activities", &key, "due_at").await?;
        assert!(left <= 300.0, "{off}: {left}");
        assert_eq!(crate::hands::complete_plainly(&agent, &key, "fine").await?, 1);
        world.age("activities", "2 days").await?;
        assert!(claimable_by(&world, &world.queue("activities").await?, Some(me)).await?.is_empty());
    }
    Ok(())
}

/// The only part of a session's environment that reaches the database is its time zone, and it affects nothing.
#[tokio::test]
async fn sessions_in_three_time_zones_agree_on_who_is_stale() -> Result<()> {
    let world = world().await?;
    let (me, other) = (world.person("me", 5, true).await?, world.person("other", 5, true).await?);
    let zones = ["America/New_York", "Asia/Tokyo", "UTC"];
    // Inserted by sessions of each time zone, fresh and stale.
    let mut stale = Vec::new();
    for zone in zones {
        let writer = world.connect().await?;
        writer.batch_execute(&format!("set timezone = '{zone}'")).await?;
        writer.execute(&format!("insert into activities (sales_id, type) values ({other}, 'sms')"), &[]).await?;
        let sql = format!(
            "insert into activities (sales_id, type, created_at) values ({other}, 'sms', now() - interval '6 minutes') returning id::text"
        );
        stale.push(writer.query_one(&sql, &[]).await?.get::<_, String>(0));
    }
    let queue = world.queue("activities").await?;
    for zone in zones {
        let mut reader = world.connect().await?;
        reader.batch_execute(&format!("set timezone = '{zone}'; set datestyle = 'SQL, DMY'")).await?;
        let tx = reader.transaction().await?;
        let got = queue.acts().claim(&tx, &Claim::by("a").owner(me).limit(10)).await?.items;
        assert_eq!(keys(&got), stale, "{zone}");
        for item in &got {
            assert!((290..=300).contains(&item.lease_for.as_secs()), "{zone}: {:?}", item.lease_for);
        }
        tx.rollback().await?;
        for key in &stale {
            let explained = queue.acts().explain(&reader, key, Some(&me.to_string())).await?.context("explained")?;
            assert_eq!(explained["claimable"], true, "{zone}");
        }
    }
    Ok(())
}

/// A column without a time zone is read in the declared zone, whatever zone the session has.
#[tokio::test]
async fn a_timestamp_without_zone_is_read_through_the_declared_zone() -> Result<()> {
    let world = world().await?;
    world
        .run(
            "create table public.letters (id bigint primary key, state text not null default 'new', owner bigint references public.sales (id),
                created timestamp not null default (now() at time zone 'utc'), held_at timestamp)",
        )
        .await?;
    world
        .attach(
            "letters",
            r#"
            table = "public.letters"
            created = "created"
            status = { column = "state", ready = "new", running = "open", done = "sent", failed = "bad", cancelled = "off" }
            owner = { column = "owner", table = "public.sales", open_after = "stale_threshold_minutes", shared = "allow_remote_processing" }
            holder = { at = "held_at" }
            "#,
        )
        .await?;
    let other = world.person("other", 5, true).await?;
    for (n, zone) in ["America/New_York", "Asia/Tokyo", "UTC"].into_iter().enumerate() {
        let writer = world.connect().await?;
        let (fresh, stale) = (2 * n, 2 * n + 1);
        writer
            .batch_execute(&format!(
                "set timezone = '{zone}';
                 insert into public.letters (id, owner) values ({fresh}, {other});
                 insert into public.letters (id, owner, created) values ({stale}, {other}, (now() at time zone 'utc') - interval '6 minutes')"
            ))
            .await?;
    }
    let queue = world.queue("letters").await?;
    for zone in ["America/New_York", "Asia/Tokyo", "UTC"] {
        let mut reader = world.connect().await?;
        reader.batch_execute(&format!("set timezone = '{zone}'")).await?;
        let tx = reader.transaction().await?;
        assert_eq!(keys(&queue.acts().claim(&tx, &Claim::by("a").limit(10)).await?.items), ["1", "3", "5"], "{zone}");
        let off: f64 = tx
            .query_one("select max(abs(extract(epoch from held_at - (now() at time zone 'utc'))))::float8 from public.letters", &[])
            .await?
            .get(0);
        assert!(off < 60.0, "{zone}: held_at is {off} s off");
        tx.rollback().await?;
    }
    assert_eq!(claim_anew(&world, &queue, "a", Some(other), 10).await?.len(), 6);
    Ok(())
}
