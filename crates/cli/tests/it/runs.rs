//! Recordings from the command line: saved, queued, watched, listed, cancelled; and an agent that is killed in the middle.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;

use crate::support::{Gleaner, eventually};

const STEPS: &str = r##"{"do": "type", "selector": "#name", "text": "{{name}}"}, {"do": "assert", "selector": "#name", "text": "{{name}}", "exact": true}"##;

/// A server of one page. Lives as long as the test program.
fn page(html: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = format!("http://{}/", listener.local_addr().expect("an address"));
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || {
                let mut lines = BufReader::new(&stream).lines();
                while lines.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
                let head =
                    format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", html.len());
                let _ = (&stream).write_all(format!("{head}{html}").as_bytes());
            });
        }
    });
    address
}

#[test]
fn a_recording_is_checked_numbered_and_never_changed() {
    let gleaner = Gleaner::migrated();
    let file = gleaner.file("order.json", r#"{"title": "Order", "steps": [{"type": "navigate", "url": "https://Shop.example/x"}]}"#);
    assert!(gleaner.ok(&["runs", "save", &file]).contains("is version 1 of Order"));
    assert!(gleaner.ok(&["runs", "save", &file]).contains("is known as version 1"), "the same content is no new version");
    gleaner.file("order.json", r#"{"title": "order", "steps": [{"do": "open", "url": "https://shop.example:8443"}]}"#);
    assert_eq!(gleaner.json(&["runs", "save", &file])["version"], 2, "names are compared without case");
    assert_eq!(
        gleaner.sql("select string_agg(format || ' ' || site, ', ' order by version) from recording_versions"),
        "recorder shop.example:443, steps shop.example:8443"
    );
    let refused = gleaner.sql("do $$ begin update recording_versions set content = '{}'; exception when sqlstate 'GL002' then null; end $$; select content ->> 'title' from recording_versions where version = 1");
    assert_eq!(refused, "Order");
    for (content, why) in [
        (r#"[]"#, "an object with a list \"steps\""),
        (r#"{"steps": []}"#, "has no steps"),
        (r#"{"steps": [{"do": "open", "url": "file:///etc/passwd"}]}"#, "step 1 (open): the address begins with http"),
        (r##"{"steps": [{"do": "open", "url": "https://a"}, {"do": "type", "selector": "#a"}]}"##, "step 2 (type) needs \"text\""),
        (r#"{"steps": [{"type": "jump"}]}"#, "there is no such step; there are: change, click"),
        (r#"{"steps": [{"do": "wait"}]}"#, "needs \"selector\", \"text\" or \"ms\""),
        (r#"{"steps": [{"do": "screenshot", "retries": 99}]}"#, "\"retries\" is a number from 0 to 10"),
        (r#"{"steps": [{"do": "screenshot"}], "secrets": "pin"}"#, "\"secrets\" is a list of names"),
    ] {
        let file = gleaner.file("wrong.json", content);
        let ran = gleaner.run(&["runs", "save", &file]);
        assert!(ran.code == 1 && ran.err.contains(why), "{content}: {ran:?}");
    }
}

#[test]
fn runs_are_queued_listed_shown_and_cancelled() {
    let gleaner = Gleaner::migrated();
    let file = gleaner.file("order.json", r#"{"title": "Order", "steps": [{"do": "open", "url": "https://shop.example"}]}"#);
    let data = gleaner.file("people.csv", "name\nAda\n");
    let queued = gleaner.json(&["runs", "submit", &file, "--csv", &data, "--label", "vpn"]);
    let id = queued["id"].as_str().expect("an id");
    assert_eq!(
        gleaner.sql("select kind || ' ' || site || ' ' || csv_data from execution_jobs"),
        "browser:vpn shop.example:443 name\nAda\n"
    );
    gleaner.ok(&["runs", "submit", "order"]);
    let listed = gleaner.ok(&["runs", "list", "--status", "queued"]);
    assert!(listed.contains("Order") && listed.lines().count() == 3, "{listed}");
    assert!(gleaner.ok(&["runs", "show", id]).contains("Order, version 1\nqueued"));
    assert!(gleaner.ok(&["runs", "show", id, "--junit"]).contains("errors=\"1\""), "a run that has not ended has not passed");
    assert!(gleaner.ok(&["runs", "cancel", id]).contains("cancelled"));
    assert!(gleaner.ok(&["runs", "cancel", id]).contains("had ended"));
    assert_eq!(gleaner.run(&["runs", "cancel", "00000000-0000-4000-8000-000000000000"]).code, 1);
    let missing = gleaner.run(&["runs", "submit", "nothing.json"]);
    assert!(missing.code == 1 && missing.err.contains("no recording of that name"), "{missing:?}");
    let wrong = gleaner.file("wrong.csv", "a,b\n1\n");
    assert!(gleaner.run(&["runs", "submit", &file, "--csv", &wrong]).err.contains("not CSV"));
}

/// `gleaner up`, a page, three lines, one of which fails: what --watch shows, the exit code, and the report.
#[test]
fn submit_watches_a_run_and_exits_with_its_outcome() {
    let gleaner = Gleaner::at_home();
    let up = gleaner.command(&["up", "--detach"]).env("GLEANER_RUN_ALLOW", "127.0.0.1").output().expect("the program runs");
    assert!(up.status.success(), "{up:?}");
    let site = page("<!doctype html><title>Name</title><input id=name maxlength=3>");
    let file =
        gleaner.file("name.json", &format!(r#"{{"name": "Name", "timeout": 600, "steps": [{{"do": "open", "url": "{site}"}}, {STEPS}]}}"#));
    let data = gleaner.file("people.csv", "name\nAda\nGrace\nBob\n");
    let report = gleaner.folder.join("report.xml");
    let ran = gleaner.run(&["runs", "submit", &file, "--csv", &data, "--watch", "--junit", report.to_str().expect("plain")]);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.out.contains("failed  row 2") && ran.out.contains(r##"step 3 (assert): #name says "Gra", not "Grace""##), "{ran:?}");
    assert!(ran.out.contains("2 of 3 rows passed"), "{ran:?}");
    assert!(std::fs::read_to_string(report).expect("a report").contains(r#"tests="3" skipped="0" failures="1""#));
    let listed = gleaner.json(&["runs", "list"]);
    let shown = gleaner.ok(&["runs", "show", listed[0]["id"].as_str().expect("an id")]);
    assert!(shown.contains("3-failed.png  /v1/runs/"), "{shown}");
    let fine = gleaner.file("fine.csv", "name\nAda\n");
    let ran = gleaner.run(&["runs", "submit", &file, "--csv", &fine, "--watch"]);
    assert!(ran.code == 0 && ran.out.contains("1 of 1 row passed"), "{ran:?}");
    gleaner.ok(&["down"]);
}

/// The agent is killed in the second line. Its browser ends with it, and another agent goes on after the first line.
#[test]
fn a_killed_agents_run_is_resumed_after_its_last_line_and_its_browser_ends() {
    let gleaner = Gleaner::migrated();
    let site = page("<!doctype html><p id=there>there</p>");
    let steps = format!(r#"[{{"do": "open", "url": "{site}"}}, {{"do": "wait", "selector": "{{{{wait}}}}", "timeout": 60000}}]"#);
    let file = gleaner.file("wait.json", &format!(r#"{{"name": "Wait", "steps": {steps}}}"#));
    let data = gleaner.file("wait.csv", "wait\n#there\n#never\n");
    gleaner.ok(&["runs", "submit", &file, "--csv", &data]);
    let variables = [("GLEANER_RUN_ALLOW", "127.0.0.1"), ("GLEANER_AGENT_STATUS", "off"), ("GLEANER_AGENT_QUEUES", "runs")];
    let agent = gleaner.start_with(&["agent"], &variables);
    gleaner.until("select count(*) from run_rows", "1");
    let mark = format!("glb-{}-", agent.id());
    let browsers = || {
        let lines = std::fs::read_dir("/proc")
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| std::fs::read(entry.path().join("cmdline")).unwrap_or_default());
        lines.filter(|line| String::from_utf8_lossy(line).contains(&mark)).count()
    };
    assert!(browsers() > 0);
    let finished = gleaner.sql("select finished_at from run_rows");
    drop(agent);
    eventually("the browser to end with its agent", || browsers() == 0);
    gleaner.sql(
        "update execution_jobs set csv_data = E'wait\n#there\n#there\n';
         begin; set local role gleaner_engine; update execution_jobs set due_at = now(); commit",
    );
    let next = gleaner.start_with(&["agent"], &variables);
    gleaner.until("select status from execution_jobs", "completed");
    assert_eq!(
        gleaner.sql("select count(*) || ' ' || min(finished_at) from run_rows"),
        format!("2 {finished}"),
        "the first line was not replayed"
    );
    assert_eq!(gleaner.sql("select lost from execution_jobs"), "1");
    drop(next);
}
