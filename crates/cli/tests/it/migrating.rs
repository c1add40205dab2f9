use std::process::Command;

use crate::support::Gleaner;

#[test]
fn migrate_dry_run_prints_sql_that_runs_and_changes_nothing() {
    let gleaner = Gleaner::empty();
    let script = gleaner.ok(&["migrate", "--dry-run"]);
    assert_eq!(gleaner.sql("select count(*) from pg_namespace where nspname = 'gleaner'"), "0", "a dry run changes nothing");
    let file = gleaner.file("review.sql", &script);
    let psql = Command::new("psql").args([gleaner.url(), "-qXv", "ON_ERROR_STOP=1", "-f", &file]).output().expect("psql");
    assert!(psql.status.success(), "{}", String::from_utf8_lossy(&psql.stderr));
    // The acts are there, on tables with the columns and indexes they need.
    gleaner.sql("insert into gleaner.jobs (kind) values ('a')");
    assert_eq!(gleaner.sql("select kind from gleaner.claim_jobs('agent')"), "a");
    assert_eq!(gleaner.sql("select count(*) > 0 from pg_indexes where tablename = 'activities' and indexdef like '%open_at%'"), "t");
}

#[test]
fn migrate_status_lists_what_is_left_to_do() {
    let gleaner = Gleaner::empty();
    let before = gleaner.run(&["migrate", "--status"]);
    assert_eq!(before.code, 1);
    assert!(before.out.contains("pending") && before.out.contains("run `gleaner migrate`"), "{}", before.out);
    assert!(gleaner.ok(&["migrate"]).contains("the schema is up to date"));
    let after = gleaner.json(&["migrate", "--status"]);
    assert_eq!(after["up_to_date"], true);
    assert!(after["steps"].as_array().is_some_and(|steps| steps.len() > 20));
    assert!(gleaner.ok(&["migrate"]).starts_with("The schema is up to date."));
    assert!(gleaner.ok(&["migrate", "--dry-run"]).contains("Nothing to do"));
}

#[test]
fn cron_registers_the_sweeps_where_pg_cron_is_and_says_that_nothing_needs_them_where_it_is_not() {
    let gleaner = Gleaner::migrated();
    assert!(gleaner.ok(&["migrate", "--cron"]).contains("Nothing needs them"));
    gleaner.sql(
        "create schema cron; create table cron.job (jobname text primary key, schedule text, command text);
         create function cron.schedule(text, text, text) returns bigint language sql as
         'insert into cron.job values ($1, $2, $3) on conflict (jobname) do update set schedule = excluded.schedule; select 1::bigint'",
    );
    let registered = gleaner.json(&["migrate", "--cron"]);
    assert_eq!(registered["cron"]["registered"], true);
    gleaner.ok(&["migrate", "--cron"]);
    assert_eq!(gleaner.sql("select command from cron.job where jobname = 'unlock-stale-activities'"), "select public.unlock_stale_locks()");
}

#[test]
fn supabase_shows_our_schema_beside_those_already_shown() {
    let gleaner = Gleaner::migrated();
    let refused = gleaner.run(&["migrate", "--supabase"]);
    assert!(refused.code == 1 && refused.err.contains("authenticator"), "{refused:?}");
    gleaner.sql("create role authenticator noinherit; alter role authenticator set pgrst.db_schemas = 'public, storage'");
    for _ in 0..2 {
        assert_eq!(gleaner.json(&["migrate", "--supabase"])["supabase"]["schemas"], serde_json::json!(["public", "storage", "gleaner"]));
    }
    let shown = gleaner.sql("select array_to_string(rolconfig, ';') from pg_roles where rolname = 'authenticator'");
    assert_eq!(shown, "pgrst.db_schemas=public, storage, gleaner");
    gleaner.sql("drop role authenticator");
}

#[test]
fn systems_are_chosen_by_name_listed_and_remembered() {
    let gleaner = Gleaner::empty();
    assert_eq!(gleaner.json(&["migrate", "--systems", "followups,runs"])["systems"], serde_json::json!(["jobs", "runs", "followups"]));
    assert_eq!(gleaner.sql("select to_regclass('public.activities') is null"), "t");
    assert!(gleaner.ok(&["migrate"]).contains("Systems here: jobs, runs, followups."));
    assert_eq!(gleaner.run(&["migrate", "--status", "--systems", "crm"]).code, 1, "what was asked for is still to come");
    let unknown = gleaner.run(&["migrate", "--systems", "cmr"]);
    assert!(unknown.code == 1 && unknown.err.contains("there is no system \"cmr\"; there are: jobs, crm"), "{unknown:?}");
    let refused = gleaner.run(&["serve"]);
    assert!(refused.code == 1 && refused.err.contains("gleaner migrate --systems crm"), "{refused:?}");
}

#[test]
fn an_existing_table_is_adopted_and_every_change_is_reported() {
    let gleaner = Gleaner::empty();
    gleaner
        .sql("create table public.execution_jobs (id uuid primary key default gen_random_uuid(), status text not null default 'queued')");
    let run = gleaner.run(&["migrate"]);
    assert_eq!(run.code, 0, "{run:?}");
    assert!(run.err.contains("public.execution_jobs: column \"config\" (jsonb) was added"), "{}", run.err);
    assert!(run.out.contains("Systems here: jobs, runs."), "{}", run.out);
}
