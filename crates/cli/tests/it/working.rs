use std::path::Path;

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::support::{Gleaner, eventually};

fn item(gleaner: &Gleaner, id: &str) -> Value {
    gleaner.json(&["items", "show", "jobs", id])
}

#[test]
fn what_is_enqueued_is_worked_and_shown_as_done() {
    let gleaner = Gleaner::migrated();
    gleaner.ok(&["enqueue", "jobs", "--kind", "add", r#"{"a": 2, "b": 3}"#]);
    gleaner.ok(&["enqueue", "jobs", "--kind", "text", "{}"]);
    let exec = r#"if [ "$GLEANER_KIND" = add ]; then tee input.json | sed 's/.*/{"sum": 5}/'; else echo plain words; fi"#;
    let mut work = gleaner.command(&["work", "jobs", "--until-empty", "--exec", exec]);
    let ran = work.current_dir(&gleaner.folder).output().expect("runs");
    assert!(ran.status.success(), "{ran:?}");
    let done = item(&gleaner, "1");
    assert_eq!((&done["state"], &done["result"]), (&"done".into(), &serde_json::json!({"sum": 5})));
    assert_eq!(item(&gleaner, "2")["result"]["text"], "plain words");
    let input: Value = serde_json::from_slice(&std::fs::read(gleaner.folder.join("input.json")).expect("written")).expect("JSON");
    assert_eq!(
        (&input["queue"], &input["id"], &input["kind"], &input["attempts"]),
        (&"jobs".into(), &"1".into(), &"add".into(), &0.into())
    );
    assert_eq!((&input["payload"]["b"], input["lease"].is_i64()), (&3.into(), true));
    assert!(gleaner.run(&["work", "jobs", "--once", "--exec", "true"]).err.contains("Nothing is due in jobs"));
}

#[test]
fn the_exit_code_decides_whether_there_is_another_try() {
    let gleaner = Gleaner::migrated();
    for code in ["1", "65", "75"] {
        gleaner.ok(&["enqueue", "jobs", "--kind", code]);
    }
    let exec = r#"echo first >&2; echo "broken $GLEANER_KIND" >&2; exit $GLEANER_KIND"#;
    gleaner.ok(&["work", "jobs", "--until-empty", "--exec", exec]);
    for (id, state, category) in [("1", "failed", "ExitStatus"), ("2", "dead", "DataError"), ("3", "failed", "TemporaryFailure")] {
        let item = item(&gleaner, id);
        assert_eq!((item["state"].as_str(), item["attempts"].as_i64()), (Some(state), Some(1)), "{item}");
        assert_eq!(item["error"]["type"].as_str(), Some(category), "{item}");
        assert!(item["error"]["message"].as_str().is_some_and(|m| m.starts_with("first\nbroken ")), "{item}");
    }
    gleaner.ok(&["enqueue", "jobs", "--kind", "killed"]);
    gleaner.ok(&["work", "jobs", "--kinds", "killed", "--until-empty", "--exec", "kill -9 $$"]);
    assert_eq!(item(&gleaner, "4")["error"]["message"], "the command was ended by signal 9");
}

#[test]
fn progress_is_seen_while_the_command_runs() {
    let gleaner = Gleaner::migrated();
    gleaner.ok(&["enqueue", "jobs", "--kind", "slow"]);
    let go = gleaner.folder.join("go");
    let exec = format!(
        r#"echo 'progress: 40 half way there' >&2; echo '{{"partial": {{"part": 1}}}}' >&2; while [ ! -e {} ]; do sleep 0.02; done; echo '{{"end": 2}}'"#,
        go.display()
    );
    let work = gleaner.start(&["work", "jobs", "--once", "--exec", &exec]);
    gleaner.until("select progress ->> 'stage' || (progress ->> 'percent') || (result ->> 'part') from gleaner.jobs", "half way there401");
    std::fs::write(&go, "").expect("a file");
    assert_eq!(work.end().code, 0);
    assert_eq!(item(&gleaner, "1")["result"], serde_json::json!({"part": 1, "end": 2}));
}

#[test]
fn cancelling_ends_the_command_with_all_it_started() {
    let gleaner = Gleaner::migrated();
    gleaner.ok(&["enqueue", "jobs", "--kind", "endless"]);
    let pids = gleaner.folder.join("pids");
    let exec = format!("sleep 600 & echo $! > {}; echo $$ >> {0}; wait", pids.display());
    let mut work = gleaner.start(&["work", "jobs", "--exec", &exec]);
    let running = || -> Vec<String> { std::fs::read_to_string(&pids).unwrap_or_default().lines().map(str::to_owned).collect() };
    eventually("both processes", || running().len() == 2);
    gleaner.ok(&["items", "cancel", "jobs", "1"]);
    work.out_until("cancelled or taken away");
    for pid in running() {
        eventually("the processes to be gone", || !is_alive(&pid));
    }
    assert_eq!(item(&gleaner, "1")["state"], "cancelled");
    work.signal(Signal::SIGTERM);
    assert_eq!(work.end().code, 0);
}

fn is_alive(pid: &str) -> bool {
    // A zombie nobody has waited for yet is dead enough.
    std::fs::read_to_string(Path::new("/proc").join(pid).join("stat")).is_ok_and(|stat| !stat.contains(") Z"))
}

#[test]
fn ctrl_c_lets_running_commands_finish() {
    let gleaner = Gleaner::migrated();
    gleaner.ok(&["enqueue", "jobs", "--kind", "slow"]);
    let go = gleaner.folder.join("go");
    let exec = format!("echo begun >&2; while [ ! -e {} ]; do sleep 0.02; done", go.display());
    let mut work = gleaner.start(&["work", "jobs", "--exec", &exec]);
    work.err_until("] begun");
    gleaner.ok(&["enqueue", "jobs", "--kind", "next"]);
    work.signal(Signal::SIGINT);
    work.err_until("Finishing 1 item");
    std::fs::write(&go, "").expect("a file");
    assert_eq!(work.end().code, 0);
    assert_eq!((&item(&gleaner, "1")["state"], &item(&gleaner, "2")["state"]), (&"done".into(), &"ready".into()));
}

#[test]
fn what_does_not_finish_in_time_is_given_back_without_burning_an_attempt() {
    let gleaner = Gleaner::migrated();
    for (again, code) in [(false, 0), (true, 130)] {
        gleaner.ok(&["enqueue", "jobs", "--kind", "endless"]);
        let pid = gleaner.folder.join(format!("pid-{again}"));
        let exec = format!("echo $$ > {}; echo begun >&2; exec sleep 600", pid.display());
        let mut work = gleaner.start(&["work", "jobs", "--exec", &exec, "--grace", if again { "600" } else { "0" }]);
        work.err_until("] begun");
        work.signal(Signal::SIGINT);
        if again {
            work.err_until("Finishing 1 item");
            work.signal(Signal::SIGINT);
        }
        let ended = work.end();
        assert_eq!(ended.code, code, "{ended:?}");
        assert!(ended.err.contains("given back"), "{ended:?}");
        let pid = std::fs::read_to_string(pid).expect("written");
        assert!(!is_alive(pid.trim()));
        assert_eq!(gleaner.sql("select string_agg(distinct status || attempts || lost, ',') from gleaner.jobs"), "ready00");
    }
}

#[test]
fn a_reader_that_goes_away_ends_the_worker_in_order() {
    let gleaner = Gleaner::migrated();
    for _ in 0..20 {
        gleaner.ok(&["enqueue", "jobs", "{}"]);
    }
    let mut work = gleaner.start(&["work", "jobs", "--exec", "sleep 0.05"]);
    work.out_until("done");
    work.close_out();
    assert_eq!(work.end().code, 0);
    assert_eq!(gleaner.sql("select count(*) from gleaner.jobs where status = 'running'"), "0");
    assert_ne!(gleaner.sql("select count(*) from gleaner.jobs where status = 'ready'"), "0");
}

#[test]
fn only_as_many_run_as_were_allowed_and_only_once_when_asked() {
    let gleaner = Gleaner::migrated();
    for _ in 0..4 {
        gleaner.ok(&["enqueue", "jobs", "--kind", "pair"]);
    }
    gleaner.ok(&["work", "jobs", "--once", "--concurrency", "4", "--exec", "true"]);
    assert_eq!(gleaner.sql("select count(*) from gleaner.jobs where status = 'done'"), "1");
    // Each waits for the other: with one at a time neither would end.
    let exec = format!("touch {0}/$GLEANER_ID; while [ $(ls {0} | wc -l) -lt 3 ]; do sleep 0.02; done", gleaner.folder.display());
    gleaner.ok(&["work", "jobs", "--until-empty", "--concurrency", "3", "--exec", &exec]);
    assert_eq!(gleaner.sql("select count(*) from gleaner.jobs where status = 'done'"), "4");
}

#[test]
fn a_notification_wakes_a_waiting_worker() {
    let gleaner = Gleaner::migrated();
    let mut work = gleaner.start(&["work", "jobs", "--exec", "echo heard", "--json"]);
    work.err_until("Working jobs");
    gleaner.until(
        "select count(*) from pg_stat_activity where query = 'listen gleaner' and state = 'idle' and datname = current_database()",
        "1",
    );
    // Its first look may still be under way; the second item must be heard, for the next poll is half a minute off.
    for kind in ["first", "second"] {
        gleaner.ok(&["enqueue", "jobs", "--kind", kind]);
        let line = work.out_until(kind);
        let event: Value = serde_json::from_str(line.lines().last().expect("a line")).expect("JSON");
        assert_eq!((&event["event"], &event["result"]["text"]), (&"done".into(), &"heard".into()));
    }
}

#[test]
fn a_mistake_in_the_command_costs_no_attempt() {
    let gleaner = Gleaner::migrated();
    gleaner.ok(&["enqueue", "jobs", "--kind", "a"]);
    for exec in ["no-such-command --flag", "if true; then", ""] {
        let ran = gleaner.run(&["work", "jobs", "--until-empty", "--exec", exec]);
        assert_eq!(ran.code, 1, "{exec}: {ran:?}");
    }
    assert_eq!(item(&gleaner, "1")["attempts"], 0);
}

#[test]
fn a_command_need_not_read_what_it_is_given_nor_close_what_it_leaves_behind() {
    let gleaner = Gleaner::migrated();
    let large = "x".repeat(2_000_000);
    let file = gleaner.file("large.jsonl", &format!("{{\"text\": \"{large}\"}}\n"));
    gleaner.ok(&["enqueue", "jobs", "--file", &file]);
    gleaner.ok(&["work", "jobs", "--once", "--exec", "exit 0"]);
    assert_eq!(item(&gleaner, "1")["state"], "done");
    gleaner.ok(&["enqueue", "jobs", "--file", &file]);
    gleaner.ok(&["work", "jobs", "--once", "--exec", "cat"]);
    assert_eq!(gleaner.sql("select length(result -> 'payload' ->> 'text') from gleaner.jobs where id = 2"), "2000000");
}
