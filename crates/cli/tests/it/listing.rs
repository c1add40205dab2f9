use serde_json::Value;

use crate::support::Gleaner;

/// One item in each state.
fn of_every_state() -> Gleaner {
    let gleaner = Gleaner::migrated();
    gleaner.sql(
        "insert into gleaner.jobs (kind, payload) values ('cancelled', '{}'), ('dead', '{}'), ('failed', '{}'), ('done', '{}'), ('running', '{}');
         select gleaner.cancel_jobs(array[1], 'not needed');
         select gleaner.bury_jobs(array[2], 'never mind');
         select gleaner.fail_jobs(id, lease, 'it broke') from gleaner.claim_jobs('agent', 1, p_kinds => '{failed}');
         select gleaner.complete_jobs(id, lease, '{\"ok\": true}') from gleaner.claim_jobs('agent', 1, p_kinds => '{done}');
         select gleaner.progress_jobs(id, lease, 'cutting', 40) from gleaner.claim_jobs('agent', 1, p_kinds => '{running}');
         insert into gleaner.jobs (kind, due_at) values ('scheduled', now() + interval '1 hour');
         insert into gleaner.jobs (kind, payload) values ('ready', '{\"to\": \"\\u001b[2Jada\"}')",
    );
    gleaner
}

#[test]
fn items_are_listed_by_state() {
    let gleaner = of_every_state();
    for state in ["ready", "running", "scheduled", "failed", "dead", "done", "cancelled"] {
        let listed = gleaner.json(&["items", "list", "jobs", "--state", state]);
        let kinds: Vec<&str> = listed.as_array().into_iter().flatten().filter_map(|item| item["kind"].as_str()).collect();
        assert_eq!(kinds, [state], "{listed}");
        assert_eq!(listed[0]["state"], state);
    }
    assert_eq!(gleaner.json(&["items", "list", "jobs"]).as_array().map(Vec::len), Some(7));
    assert_eq!(gleaner.json(&["items", "list", "jobs", "--limit", "2"])[0]["kind"], "ready", "the newest first");
    assert_eq!(gleaner.json(&["items", "list", "jobs", "--kind", "dead"])[0]["error"]["message"], "never mind");
    assert!(gleaner.run(&["items", "list", "jobs", "--owner", "7"]).err.contains("has no owners"));
    assert!(gleaner.ok(&["items", "list", "runs"]).contains("is empty"));
    assert!(gleaner.ok(&["items", "list", "jobs", "--kind", "x"]).contains("No such items"));
}

#[test]
fn the_table_is_for_people() {
    let gleaner = of_every_state();
    let table = gleaner.ok(&["items", "list", "jobs"]);
    let line = |word: &str| table.lines().find(|line| line.contains(word)).unwrap_or_default().to_owned();
    assert!(line("running").contains("40% cutting held by agent"), "{table}");
    assert!(
        line("failed").contains("it broke") && line("scheduled").contains("in 60 min") && line("done").contains(r#"{"ok":true}"#),
        "{table}"
    );
    assert!(!table.contains('\u{1b}'), "neither colours in a pipe nor a payload's escape codes: {table}");
    let queues = gleaner.ok(&["queues"]);
    let jobs = queues.lines().find(|line| line.starts_with("jobs")).expect("jobs");
    assert_eq!(jobs.split_whitespace().take(8).collect::<Vec<_>>(), ["jobs", "gleaner.jobs", "1", "1", "1", "1", "1", "2"], "{queues}");
}

#[test]
fn every_listing_and_act_answers_scripts_in_json() {
    let gleaner = of_every_state();
    let keys = |value: &Value| value.as_object().map(|o| o.keys().cloned().collect::<Vec<_>>().join(" ")).unwrap_or_default();
    let item = "agent attempts created_at due_at due_in error id kind lost owner payload progress result state status";
    assert_eq!(keys(&gleaner.json(&["items", "list", "jobs"])[0]), item);
    for queue in ["activities", "dumps", "runs", "followups"] {
        assert_eq!(gleaner.json(&["items", "list", queue]), serde_json::json!([]));
    }
    let queues = gleaner.json(&["queues"]);
    let queue = "broken capped dead expired failed finished finished_estimated oldest_due_seconds queue ready running scheduled table";
    assert_eq!(keys(&queues[0]), queue);
    let shown = gleaner.json(&["items", "show", "jobs", "1"]);
    assert_eq!((&shown["row"]["kind"], &shown["audit"][0]["act"]), (&"cancelled".into(), &"cancel".into()));
    assert_eq!(gleaner.json(&["items", "explain", "jobs", "7"])["claimable"], true);
    for (args, outcome) in [
        (&["items", "requeue", "jobs", "1"][..], "done"),
        (&["items", "requeue", "jobs", "1"], "already"),
        (&["items", "bury", "jobs", "1"], "done"),
    ] {
        let answer = gleaner.json(args);
        assert_eq!((keys(&answer[0]).as_str(), answer[0]["outcome"].as_str()), ("id outcome status", Some(outcome)), "{args:?}");
    }
    let cancelled = gleaner.json(&["items", "cancel", "jobs", "--where", "kind=ready", "--reason", "enough"]);
    assert_eq!(cancelled[0]["status"], "cancelled");
    for args in [
        &["status"][..],
        &["migrate"],
        &["migrate", "--status"],
        &["enqueue", "jobs", "{}"],
        &["prune", "jobs"],
        &["prune", "--all"],
        &["prune", "dumps", "--older-than", "1 day"],
        &["recover", "jobs"],
        &["sql", "jobs"],
        &["up"],
    ] {
        gleaner.json(args);
    }
}

#[test]
fn an_item_that_is_not_there_is_an_error() {
    let gleaner = of_every_state();
    for args in [&["items", "show", "jobs", "99"][..], &["items", "explain", "jobs", "99"]] {
        let ran = gleaner.run(args);
        assert!(ran.code == 1 && ran.err.contains("no item 99"), "{ran:?}");
    }
    let ran = gleaner.run(&["items", "requeue", "jobs", "1", "99"]);
    assert!(ran.code == 1 && ran.out.contains("no such item") && ran.out.contains("requeued"), "{ran:?}");
    let ran = gleaner.run(&["items", "requeue", "jobs", "ninety"]);
    assert!(ran.code == 1 && ran.err.contains("ninety"), "{ran:?}");
}

#[test]
fn an_unknown_queue_names_the_known_ones() {
    let gleaner = Gleaner::migrated();
    for args in [
        &["items", "list", "job"][..],
        &["items", "show", "job", "1"],
        &["items", "requeue", "job", "1"],
        &["enqueue", "job", "{}"],
        &["work", "job", "--exec", "true"],
        &["sql", "job"],
        &["detach", "job"],
        &["prune", "job"],
        &["recover", "job"],
    ] {
        let ran = gleaner.run(args);
        assert!(ran.code == 1 && ran.err.contains("activities, dumps, followups, jobs, polls, runs, schedules"), "{args:?}: {ran:?}");
    }
}

#[test]
fn explain_says_why_an_item_is_not_claimed() {
    let gleaner = of_every_state();
    assert!(gleaner.ok(&["items", "explain", "jobs", "6"]).contains("scheduled, not claimable now: it is due in"));
    assert!(gleaner.ok(&["items", "explain", "jobs", "5"]).contains("agent holds it"));
    gleaner.sql(
        "insert into sales (id, first_name, last_name, email, user_id) values (7, 'Ada', '', 'a@example.com', gen_random_uuid());
         insert into activities (type, sales_id) values ('call', 7)",
    );
    let id = gleaner.sql("select id from activities");
    assert!(gleaner.ok(&["items", "explain", "activities", &id]).contains("its owner 7 has first right"));
    assert!(gleaner.ok(&["items", "explain", "activities", &id, "--owner", "7"]).contains("claimable now by owner 7"));
    assert_eq!(gleaner.json(&["items", "assign", "activities", &id, "--no-owner"])[0]["outcome"], "done");
    assert_eq!(gleaner.json(&["items", "explain", "activities", &id])["class"], "global");
}

#[test]
fn a_queue_that_cannot_be_used_is_shown_as_broken_and_hides_no_other() {
    let gleaner = Gleaner::migrated();
    gleaner.sql(
        "drop table public.execution_jobs cascade; alter table public.scheduled_actions drop column status cascade;
         update gleaner.queue set declaration = '{\"table\": 5}' where name = 'dumps'",
    );
    let listed = gleaner.run(&["queues"]);
    assert_eq!(listed.code, 0, "{listed:?}");
    for part in [
        "broken runs: its table public.execution_jobs is gone; put it back, or run `gleaner detach runs`",
        "broken followups: its table public.scheduled_actions has no column status any more",
        "broken dumps: its stored declaration cannot be read",
    ] {
        assert!(listed.out.contains(part), "{part:?} is not in: {}", listed.out);
    }
    assert!(listed.out.lines().any(|line| line.starts_with("jobs")), "{}", listed.out);
    let broken: Vec<_> = gleaner.json(&["queues"]).as_array().into_iter().flatten().map(|q| q["broken"].is_string()).collect();
    assert_eq!(broken, [false, true, true, false, false, true, false], "activities, dumps, followups, jobs, polls, runs, schedules");
    let status = gleaner.run(&["status"]);
    assert!(status.code == 0 && status.out.contains("broken queue runs: its table"), "{status:?}");
    assert_eq!(gleaner.json(&["status"])["broken_queues"].as_array().map(Vec::len), Some(3));
}
