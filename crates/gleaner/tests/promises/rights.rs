//! Which role may call which function, and for which owner.

use anyhow::{Context as _, Result};
use gleaner::Claim;

use crate::hands::{claim_by_function, refused};
use crate::world::{keys, world};

/// The owner that a caller names is not trusted.
#[tokio::test]
async fn a_signed_in_user_cannot_claim_with_anothers_owner_id() -> Result<()> {
    let world = world().await?;
    let (me, private) = (world.person("me", 5, true).await?, world.person("private", 5, false).await?);
    let theirs = world.activity(Some(private), "call", 600.0).await?;
    let my_agent = world.signed_in(me, "laptop").await?;
    for sql in [
        format!("select claim_next_pending_activity({private})"),
        format!("select gleaner.claim_activities('me', p_owner => {private})"),
        format!("select gleaner.next_due_activities({private})"),
        format!("select gleaner.explain_activities('{theirs}', {private})"),
    ] {
        assert_eq!(refused(&my_agent, &sql).await?, "42501", "{sql}");
    }
    assert_eq!(world.count("select count(*) from activities where processing_status = 'raw'").await?, 1);

    // A user may claim as itself, and omitting the owner means itself.
    let mine = world.activity(Some(me), "call", 0.0).await?;
    let queue = world.queue("activities").await?;
    assert_eq!(keys(&queue.acts().claim(&my_agent, &Claim::by("me")).await?.items), [mine]);
    assert_eq!(claim_by_function(&my_agent, me).await?, None);
    // The service key may act for any owner it names.
    assert_eq!(claim_by_function(&world.service().await?, private).await?, Some(theirs));
    Ok(())
}

#[tokio::test]
async fn a_signed_in_user_neither_sees_nor_touches_a_private_row() -> Result<()> {
    let world = world().await?;
    let (me, private) = (world.person("me", 5, true).await?, world.person("private", 5, false).await?);
    let theirs = world.activity(Some(private), "call", 600.0).await?;
    let my_agent = world.signed_in(me, "laptop").await?;
    assert_eq!(my_agent.execute("select 1 from activities", &[]).await?, 0);
    assert_eq!(my_agent.execute("update activities set processing_status = 'processing'", &[]).await?, 0);
    assert_eq!(my_agent.execute(&format!("update activities set sales_id = {me}"), &[]).await?, 0);
    let explained: Option<serde_json::Value> =
        my_agent.query_one(&format!("select gleaner.explain_activities('{theirs}')"), &[]).await?.get(0);
    assert_eq!(explained, None, "the same answer as for a row that is not there");
    Ok(())
}

#[tokio::test]
async fn anon_can_call_no_act_and_no_function_of_the_systems() -> Result<()> {
    let world = world().await?;
    let open = world
        .text(
            "select string_agg(p.oid::regprocedure::text, ', ') from pg_proc as p
             where p.pronamespace in ('gleaner'::regnamespace, 'public'::regnamespace)
               and has_function_privilege('anon', p.oid, 'execute')
               and has_schema_privilege('anon', p.pronamespace, 'usage')",
        )
        .await?;
    assert_eq!(open, None, "open to everybody");
    world.activity(None, "call", 1.0).await?;
    let anon = world.connect().await?;
    anon.batch_execute("set role anon; select set_config('request.jwt.claims', '{\"role\": \"anon\"}', false)").await?;
    for sql in [
        "select gleaner.claim_activities('x')",
        "select gleaner.claim_jobs('x')",
        "select gleaner.enqueue_jobs('{}')",
        "select claim_next_pending_activity(null)",
        "select claim_stale_activity()",
        "select unlock_stale_locks()",
        "select fn_claim_next_dumps('x')",
        "select claim_due_actions()",
        "update activities set processing_status = 'completed'",
        "select * from activities",
        "select * from gleaner.jobs",
    ] {
        assert_eq!(refused(&anon, sql).await?, "42501", "{sql}");
    }
    Ok(())
}

/// What only an administrator may do, a member cannot, by any act.
#[tokio::test]
async fn a_member_operates_own_and_unowned_rows_and_an_administrator_every_row() -> Result<()> {
    let world = world().await?;
    let (me, other) = (world.person("me", 5, true).await?, world.person("other", 5, true).await?);
    let administrator = world.person("ada", 5, true).await?;
    world.run(&format!("update sales set administrator = true where id = {administrator}")).await?;
    let acts = |key: &str| {
        [
            format!("select outcome from gleaner.requeue_activities(array['{key}']::uuid[])"),
            format!("select outcome from gleaner.reschedule_activities(array['{key}']::uuid[], now() + interval '1 hour')"),
            format!("select outcome from gleaner.assign_activities(array['{key}']::uuid[], {me})"),
            format!("select outcome from gleaner.bury_activities(array['{key}']::uuid[], 'spam')"),
        ]
    };
    let (member, ada) = (world.signed_in(me, "laptop").await?, world.signed_in(administrator, "desk").await?);
    let theirs = world.activity(Some(other), "call", 1.0).await?;
    for sql in acts(&theirs) {
        assert_eq!(refused(&member, &sql).await?, "42501", "{sql}");
    }
    assert_eq!(refused(&member, "select gleaner.cancel_activities_matching('{\"type\": \"call\"}')").await?, "42501");
    // One row of another owner is enough, and then nothing changes.
    let mine = world.activity(Some(me), "call", 1.0).await?;
    assert_eq!(refused(&member, &format!("select gleaner.cancel_activities(array['{mine}', '{theirs}']::uuid[])")).await?, "42501");
    assert_eq!(world.count("select count(*) from activities where processing_status = 'raw'").await?, 2);
    assert_eq!(world.count("select count(*) from gleaner.audit").await?, 0);

    let unowned = world.activity(None, "call", 1.0).await?;
    for (caller, key) in [(&member, &mine), (&member, &unowned), (&ada, &theirs)] {
        for sql in acts(key) {
            let rows = caller.query(&sql, &[]).await.with_context(|| sql.clone())?;
            assert_eq!(rows.len(), 1, "{sql}");
        }
        assert_eq!(
            world
                .text(&format!("select string_agg(act, ' ' order by id) from gleaner.audit where key = '{key}'"))
                .await?
                .unwrap_or_default(),
            if key == &mine { "reschedule bury" } else { "reschedule assign bury" }
        );
    }
    let who = format!(
        "select count(*) from gleaner.audit as a join sales as s on a.caller like s.user_id || '/%' where a.key = '{theirs}' and s.id = {administrator}"
    );
    assert_eq!(world.count(&who).await?, 3, "the audit says who");
    Ok(())
}

#[tokio::test]
async fn administrators_operate_queues_that_members_do_not_see() -> Result<()> {
    let world = world().await?;
    let (me, administrator) = (world.person("me", 5, true).await?, world.person("ada", 5, true).await?);
    world
        .run(&format!(
            "update sales set administrator = true where id = {administrator}; insert into gleaner.jobs (kind) values ('report')"
        ))
        .await?;
    let (member, ada) = (world.signed_in(me, "laptop").await?, world.signed_in(administrator, "desk").await?);
    for sql in [
        "select from gleaner.cancel_jobs((select array_agg(id) from pg_temp.seen))",
        "select from gleaner.explain_jobs(1)",
        "select from gleaner.stats_jobs()",
        "select from gleaner.prune_jobs()",
    ] {
        for (caller, may) in [(&member, false), (&ada, true)] {
            caller.batch_execute("create temp table if not exists seen as select 1::bigint as id").await?;
            match caller.query(sql, &[]).await {
                Ok(_) => assert!(may, "a member: {sql}"),
                Err(error) => assert_eq!((error.code().map(|c| c.code()), may), (Some("42501"), false), "{sql}: {error}"),
            }
        }
    }
    // Disabled is disabled at once, whatever the token says.
    world.run(&format!("update sales set disabled = true where id = {administrator}")).await?;
    assert_eq!(refused(&ada, "select from gleaner.stats_jobs()").await?, "42501");
    Ok(())
}

#[tokio::test]
async fn what_a_person_pruned_is_in_the_audit_with_how_many() -> Result<()> {
    let world = world().await?;
    let administrator = world.person("ada", 5, true).await?;
    world.run(&format!("update sales set administrator = true where id = {administrator}")).await?;
    world
        .run(
            "insert into execution_jobs (recording_id) select 'old' from generate_series(1, 3);
             begin; set local role gleaner_engine;
             update execution_jobs set status = 'completed', due_at = null, completed_at = now() - interval '1 year'; commit",
        )
        .await?;
    let ada = world.signed_in(administrator, "desk").await?;
    ada.query("select gleaner.prune_runs(100, '30 days')", &[]).await?;
    assert_eq!(world.text("select detail ->> 'count' from gleaner.audit where act = 'prune'").await?.as_deref(), Some("3"));
    Ok(())
}

#[tokio::test]
async fn a_row_gets_another_due_time_unless_it_is_held_or_finished() -> Result<()> {
    let world = world().await?;
    let service = world.service().await?;
    let key = world.activity(None, "call", 1.0).await?;
    let move_it = format!("select outcome from gleaner.reschedule_activities(array['{key}']::uuid[], now() + interval '1 hour')");
    let outcome = async || Ok::<String, anyhow::Error>(service.query_one(&move_it, &[]).await?.get(0));
    assert_eq!(outcome().await?, "done");
    assert!(service.query("select from gleaner.claim_activities('a')", &[]).await?.is_empty(), "it waits");
    service.query(&format!("select from gleaner.reschedule_activities(array['{key}']::uuid[], now())"), &[]).await?;
    assert_eq!(service.query("select from gleaner.claim_activities('a')", &[]).await?.len(), 1);
    assert_eq!(outcome().await?, "lost", "its holder has it");
    service.query(&format!("select from gleaner.cancel_activities(array['{key}']::uuid[])"), &[]).await?;
    assert_eq!(outcome().await?, "already", "it is finished");
    // The declared due time moves with it.
    world.run("insert into scheduled_actions (prospect_id, action_type, scheduled_for) values ('x', 'email', now())").await?;
    service
        .query("select from gleaner.reschedule_followups((select array_agg(id) from scheduled_actions), '2030-01-01T09:00:00Z')", &[])
        .await?;
    assert_eq!(
        world
            .count("select count(*) from scheduled_actions where scheduled_for = '2030-01-01T09:00:00Z' and due_at = scheduled_for")
            .await?,
        1
    );
    Ok(())
}

#[tokio::test]
async fn signed_in_users_do_not_enqueue_recover_or_work_what_is_not_theirs() -> Result<()> {
    let world = world().await?;
    let me = world.person("me", 5, true).await?;
    let agent = world.signed_in(me, "laptop").await?;
    for sql in [
        "select gleaner.enqueue_activities('{}')",
        "select gleaner.recover_activities()",
        "select gleaner.claim_jobs('x')",
        "select gleaner.claim_runs('x')",
        "select fn_claim_next_dumps('x')",
        "select claim_due_actions()",
        "select mark_processing(gen_random_uuid())",
        "select * from gleaner.jobs",
        "delete from activities",
        "insert into gleaner.audit (queue, key, act, caller) values ('a', 'b', 'c', 'd')",
    ] {
        assert_eq!(refused(&agent, sql).await?, "42501", "{sql}");
    }
    // No role may call the internal functions of the acts, not even the service key.
    let inner = world
        .text(
            "select string_agg(p.oid::regprocedure::text, ', ') from pg_proc as p
             where p.pronamespace = 'gleaner'::regnamespace
               and p.proname ~ '^(own|open|settle|lock|lose|operate|put_back|find|first|take_each|state|dead_letter|adapt|admit)_'
               and (has_function_privilege('authenticated', p.oid, 'execute') or has_function_privilege('service_role', p.oid, 'execute'))",
        )
        .await?;
    assert_eq!(inner, None);
    Ok(())
}

/// Whatever set it: a token that does not name the service role is never trusted about its owner.
#[tokio::test]
async fn a_token_takes_trust_away_from_a_direct_login() -> Result<()> {
    let world = world().await?;
    let (me, private) = (world.person("me", 5, true).await?, world.person("private", 5, false).await?);
    world.activity(Some(private), "call", 600.0).await?;
    let uid = world.text(&format!("select user_id::text from sales where id = {me}")).await?.context("a user")?;
    let login = world.connect().await?;
    login
        .batch_execute(&format!("select set_config('request.jwt.claims', '{{\"role\": \"authenticated\", \"sub\": \"{uid}\"}}', false)"))
        .await?;
    assert_eq!(refused(&login, &format!("select claim_next_pending_activity({private})")).await?, "42501");
    Ok(())
}
