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

#[tokio::test]
async fn signed_in_users_work_and_do_not_operate() -> Result<()> {
    let world = world().await?;
    let me = world.person("me", 5, true).await?;
    let key = world.activity(Some(me), "call", 1.0).await?;
    let agent = world.signed_in(me, "laptop").await?;
    for sql in [
        format!("select gleaner.requeue_activities(array['{key}']::uuid[])"),
        format!("select gleaner.bury_activities(array['{key}']::uuid[])"),
        format!("select gleaner.assign_activities(array['{key}']::uuid[], {me})"),
        format!("select gleaner.cancel_activities(array['{key}']::uuid[])"),
        "select gleaner.cancel_activities_matching('{\"type\": \"call\"}')".to_owned(),
        "select gleaner.enqueue_activities('{}')".to_owned(),
        "select gleaner.recover_activities()".to_owned(),
        "select gleaner.stats_activities()".to_owned(),
        "select gleaner.claim_jobs('x')".to_owned(),
        "select gleaner.claim_runs('x')".to_owned(),
        "select fn_claim_next_dumps('x')".to_owned(),
        "select claim_due_actions()".to_owned(),
        "select mark_processing(gen_random_uuid())".to_owned(),
        "select * from gleaner.jobs".to_owned(),
        "select * from gleaner.late_result".to_owned(),
        "delete from activities".to_owned(),
    ] {
        assert_eq!(refused(&agent, &sql).await?, "42501", "{sql}");
    }
    // No role may call the internal functions of the acts, not even the service key.
    let inner = world
        .text(
            "select string_agg(p.oid::regprocedure::text, ', ') from pg_proc as p
             where p.pronamespace = 'gleaner'::regnamespace
               and p.proname ~ '^(own|open|rest|put_back|dead_letter|fill|adapt)_'
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
