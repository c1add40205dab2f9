use std::fmt::Write as _;
use std::io::Write as _;
use std::process::Stdio;

use crate::support::Gleaner;

#[test]
fn json_is_the_payload_of_a_job_and_the_columns_of_any_other_item() {
    let gleaner = Gleaner::migrated();
    gleaner.ok(&["enqueue", "jobs", "--kind", "mail", r#"{"to": "ada"}"#]);
    assert_eq!(gleaner.sql("select kind || payload::text from gleaner.jobs"), r#"mail{"to": "ada"}"#);
    gleaner.ok(&["enqueue", "jobs", "--as", "columns", r#"{"kind": "report", "payload": {"month": 7}}"#]);
    assert_eq!(gleaner.sql("select payload ->> 'month' from gleaner.jobs where kind = 'report'"), "7");
    let queued = gleaner.json(&["enqueue", "runs", "--as", "payload", r#"{"suite": "all"}"#]);
    assert_eq!(queued[0]["outcome"], "enqueued", "{queued}");
    assert_eq!(gleaner.sql("select config ->> 'suite' from execution_jobs"), "all");
    let wrong = gleaner.run(&["enqueue", "jobs", "{to: ada}"]);
    assert!(wrong.code == 1 && wrong.err.contains("neither JSON"), "{wrong:?}");
    assert!(gleaner.run(&["enqueue", "jobs"]).err.contains("nothing to enqueue"));
    assert!(gleaner.run(&["enqueue", "dumps", "--kind", "x", "{}"]).err.contains("has no kinds"));
    assert!(gleaner.run(&["enqueue", "runs", "nonsense=1"]).err.contains("no such column"));
}

#[test]
fn an_item_can_wait_and_take_its_place_in_line() {
    let gleaner = Gleaner::migrated();
    gleaner.ok(&["enqueue", "jobs", "--kind", "later", "--in", "5 minutes"]);
    gleaner.ok(&["enqueue", "jobs", "--kind", "urgent", "--priority", "2"]);
    gleaner.ok(&["enqueue", "jobs", "--kind", "idle", "--priority", "-1"]);
    assert_eq!(
        gleaner.sql(
            "select due_at - clock_timestamp() between interval '4 minutes' and interval '5 minutes' from gleaner.jobs where kind = 'later'"
        ),
        "t"
    );
    assert_eq!(gleaner.sql("select string_agg(priority::text, ',' order by id) from gleaner.jobs"), "0,2,-1");
    assert!(gleaner.run(&["enqueue", "jobs", "--in", "soonish", "{}"]).err.contains("'5 minutes'"));
    // A queue with an appointment of its own keeps it there.
    gleaner.sql("create table meetings (id bigint primary key, at timestamptz, state text default 'a')");
    let status = r#"status = { column = "state", ready = "a", running = "b", done = "c", failed = "d" }"#;
    let file = gleaner.file("meetings.toml", &format!("table = \"public.meetings\"\ndue = \"at\"\n{status}\n"));
    gleaner.ok(&["attach", &file]);
    gleaner.ok(&["enqueue", "meetings", "--in", "1 hour", "id=1"]);
    assert_eq!(gleaner.sql("select at > now() + interval '59 minutes' from meetings"), "t");
}

#[test]
fn one_unique_key_waits_once() {
    let gleaner = Gleaner::migrated();
    let sync =
        |more: &[&str]| gleaner.json(&[&["enqueue", "jobs", "--kind", "sync", "unique_key=17"], more].concat())[0]["outcome"].clone();
    assert_eq!(sync(&[]), "enqueued");
    assert_eq!(sync(&[]), "standing");
    assert_eq!(sync(&["--replace", r#"{"n": 2}"#]), "replaced");
    assert_eq!(gleaner.sql("select string_agg(payload::text, ',') from gleaner.jobs"), r#"{"n": 2}"#);
}

#[test]
fn a_file_of_thousands_is_enqueued_all_or_nothing() {
    let gleaner = Gleaner::migrated();
    let mut lines = String::new();
    for n in 0..12_000 {
        writeln!(lines, r#"{{"n": {n}, "text": "tab\tand \\ slash"}}"#).expect("text");
    }
    let broken = gleaner.file("broken.jsonl", &format!("{lines}not json\n"));
    let refused = gleaner.run(&["enqueue", "jobs", "--file", &broken]);
    assert!(refused.code == 1 && refused.err.contains("line 12001") && refused.err.contains("nothing was enqueued"), "{refused:?}");
    assert_eq!(gleaner.sql("select count(*) from gleaner.jobs"), "0");

    let whole = gleaner.file("whole.jsonl", &lines);
    assert_eq!(gleaner.json(&["enqueue", "jobs", "--kind", "bulk", "--file", &whole])["enqueued"], 12_000);
    let seen = "select count(distinct payload ->> 'n') || max(payload ->> 'text') || min(kind) from gleaner.jobs";
    assert_eq!(gleaner.sql(seen), "12000tab\tand \\ slashbulk");
}

#[test]
fn lines_may_come_from_a_pipe_and_need_not_be_alike() {
    let gleaner = Gleaner::migrated();
    let mut command = gleaner.command(&["enqueue", "jobs", "--as", "columns", "--file", "-", "--json"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("runs");
    let lines = "{\"kind\": \"a\", \"unique_key\": \"1\"}\n\n{\"payload\": [1]}\n{\"kind\": \"a\", \"unique_key\": \"1\"}\n";
    child.stdin.take().expect("piped").write_all(lines.as_bytes()).expect("written");
    let output = child.wait_with_output().expect("ends");
    let counts: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!((&counts["enqueued"], &counts["standing"]), (&2.into(), &1.into()));
}
