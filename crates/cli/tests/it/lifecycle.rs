use std::process::Command;

use nix::sys::signal::Signal;

use crate::support::{GLEANER, Gleaner, shell};

#[test]
fn up_prints_what_to_try_next_and_stops_cleanly_on_sigterm() {
    let gleaner = Gleaner::at_home();
    let mut up = gleaner.start(&["up"]);
    let said = up.out_until("Ctrl-C stops");
    let (_, hints) = said.split_once("Try next").expect("hints");
    // The hints are a session that works, line by line, as it stands.
    let lines: Vec<&str> = hints.lines().filter(|line| line.starts_with("  ")).map(str::trim).collect();
    assert!(lines.len() >= 5, "{said}");
    for line in &lines {
        let ran = shell(line, &gleaner.home());
        assert_eq!(ran.code, 0, "{line}: {ran:?}");
    }
    let listed = gleaner.json(&["items", "list", "jobs"]);
    assert_eq!((listed[0]["state"].as_str(), listed[0]["result"]["text"].as_str()), (Some("done"), Some("Hello from item 1")));

    up.signal(Signal::SIGTERM);
    let ended = up.end();
    assert_eq!(ended.code, 0, "{ended:?}");
    assert!(ended.err.contains("The data stays"), "{ended:?}");
    let status = gleaner.run(&["status", "-o", "json"]);
    assert_eq!(status.code, 1);
    let status: serde_json::Value = serde_json::from_str(&status.out).expect("JSON");
    assert_eq!((&status["running"], &status["server"], &status["initialised"]), (&false.into(), &().into(), &true.into()));
}

#[test]
fn two_homes_run_side_by_side() {
    let (one, other) = (Gleaner::at_home(), Gleaner::at_home());
    let (first, second) = (one.json(&["up", "--detach"]), other.json(&["up", "--detach"]));
    assert_ne!(first["DB_URL"], second["DB_URL"]);
    one.ok(&["enqueue", "jobs", "--kind", "mine"]);
    assert_eq!(one.json(&["items", "list", "jobs"]).as_array().map(Vec::len), Some(1));
    assert_eq!(other.json(&["items", "list", "jobs"]).as_array().map(Vec::len), Some(0));
    one.ok(&["down"]);
    assert_eq!(one.run(&["status", "-q"]).code, 1);
    assert_eq!(other.run(&["status", "-q"]).code, 0);
}

#[test]
fn after_kill_9_of_up_the_next_up_has_the_data() {
    let gleaner = Gleaner::at_home();
    let mut up = gleaner.start(&["up"]);
    up.out_until("Ctrl-C stops");
    gleaner.ok(&["enqueue", "jobs", "--kind", "precious"]);
    up.signal(Signal::SIGKILL);
    up.end();

    let mut up = gleaner.start(&["up"]);
    up.out_until("Ctrl-C stops");
    assert_eq!(gleaner.json(&["items", "list", "jobs"])[0]["kind"], "precious");
    up.signal(Signal::SIGINT);
    assert_eq!(up.end().code, 0);
}

#[test]
fn up_detach_returns_when_ready_and_status_says_where() {
    let gleaner = Gleaner::at_home();
    gleaner.ok(&["up", "--detach"]);

    // What `status -o env` prints is for eval, and psql connects with it.
    let line = format!("eval \"$({GLEANER} status -o env)\" && psql \"$DB_URL\" -Atc 'select count(*) from gleaner.queue'");
    let asked = shell(&line, &gleaner.home());
    assert_eq!((asked.code, asked.out.trim()), (0, "7"), "{asked:?}");
    assert!(gleaner.ok(&["status"]).contains("gleaner down"));
    assert!(gleaner.ok(&["logs"]).contains("ready to accept connections"));

    // Starting again says that it runs: no error in the background, an error in the foreground.
    assert!(gleaner.ok(&["up", "--detach"]).contains("running already"));
    let again = gleaner.run(&["up"]);
    assert_eq!(again.code, 1);
    assert!(again.err.contains("already running") && again.err.contains("pid") && again.err.contains("postgresql://"), "{again:?}");

    let refused = gleaner.run(&["reset", "--yes"]);
    assert_eq!(refused.code, 1);
    assert!(refused.err.contains("gleaner down"), "{refused:?}");
    assert!(gleaner.ok(&["down"]).contains("The data stays"));
    assert!(gleaner.ok(&["down"]).contains("Nothing was running"));

    let asked = gleaner.run(&["reset"]);
    assert!(asked.code == 1 && asked.err.contains("--yes"), "nobody is there to ask: {asked:?}");
    gleaner.ok(&["reset", "--yes"]);
    assert_eq!(gleaner.run(&["status", "--json"]).code, 1);
    assert!(!gleaner.home().join("postgres").exists());
}

#[test]
fn two_starts_at_once_make_one_server_and_both_succeed() {
    let gleaner = Gleaner::at_home();
    let (one, other) = (gleaner.start(&["up", "--detach", "--json"]), gleaner.start(&["up", "--detach", "--json"]));
    let (one, other) = (one.end(), other.end());
    assert_eq!((one.code, one.err.as_str(), other.code, other.err.as_str()), (0, "", 0, ""));
    let mut said = [one, other].map(|ran| serde_json::from_str::<serde_json::Value>(&ran.out).unwrap_or_else(|_| panic!("{ran:?}")));
    let told = said.each_mut().map(|said| said["administrator"].take());
    assert_eq!(told.iter().filter(|administrator| administrator.is_object()).count(), 1, "one of them tells: {told:?}");
    assert_eq!(said[0], said[1]);
}

#[test]
fn a_failed_start_in_the_background_is_reported_in_the_terminal() {
    let gleaner = Gleaner::at_home();
    std::fs::create_dir_all(gleaner.home().join("postgres")).expect("a folder");
    std::fs::write(gleaner.home().join("postgres/letter.txt"), "not a database").expect("a file");
    let failed = gleaner.run(&["up", "--detach"]);
    assert_eq!(failed.code, 1);
    assert!(failed.err.contains("error: ") && failed.err.contains("GLEANER_HOME"), "{failed:?}");
}

#[test]
fn without_a_database_the_error_says_what_to_do() {
    let gleaner = Gleaner::at_home();
    for args in [&["queues"][..], &["enqueue", "jobs", "--kind", "a"], &["work", "jobs", "--exec", "true"], &["migrate"], &["sql", "jobs"]]
    {
        let ran = gleaner.run(args);
        assert_eq!(ran.code, 1);
        assert!(ran.err.contains("`gleaner up`") && ran.err.contains("DATABASE_URL"), "{args:?}: {ran:?}");
    }
    let mut unreachable = gleaner.command(&["queues"]);
    let ran = unreachable.env("DATABASE_URL", "postgresql://x@/x?host=/nowhere").output().expect("runs");
    assert!(String::from_utf8_lossy(&ran.stderr).contains("Check DATABASE_URL"), "{ran:?}");
}

#[test]
fn up_with_a_database_url_migrates_it_and_ends() {
    let gleaner = Gleaner::empty();
    let said = gleaner.ok(&["up"]);
    assert!(said.contains("DATABASE_URL is set") && said.contains("Try next"), "{said}");
    assert_eq!(gleaner.json(&["queues"]).as_array().map(Vec::len), Some(7));
    assert!(gleaner.ok(&["status"]).contains("migrated"));
    for args in [&["down"][..], &["reset", "--yes"], &["logs"]] {
        assert!(gleaner.run(args).err.contains("not ours"), "{args:?}");
    }
    // No private server came of it.
    let private =
        Command::new(GLEANER).arg("status").env("GLEANER_HOME", gleaner.home()).env_remove("DATABASE_URL").output().expect("runs");
    assert_eq!(private.status.code(), Some(1));
}
