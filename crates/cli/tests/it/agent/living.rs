//! How an agent begins, rests, loses its database and ends.

use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use serde_json::Value;

use super::{QUICK, Team, never_within};
use crate::support::{Gleaner, eventually};

fn state(team: &Team, item: &str) -> String {
    team.gleaner.sql(&format!("select processing_status || ' ' || attempts from activities where id = '{item}'"))
}

#[test]
fn a_graceful_stop_gives_back_what_did_not_finish_and_burns_no_attempt() {
    let team = Team::new();
    let ada = team.person("ada");
    let agent = team.agent("ada", &ada, &["--grace", "300ms"]);
    let item = team.activity(&ada, "note", 0.0);
    team.until_begun(&item);
    agent.signal(Signal::SIGINT);
    let ended = agent.end();
    assert_eq!(ended.code, 0, "{ended:?}");
    assert!(ended.err.contains("1 item may finish") && ended.err.contains("1 given back"), "{ended:?}");
    assert_eq!(state(&team, &item), "raw 0");
    team.go();
}

#[test]
fn a_graceful_stop_lets_what_runs_finish() {
    let team = Team::new();
    let ada = team.person("ada");
    let mut agent = team.agent("ada", &ada, &["--grace", "1min"]);
    let item = team.activity(&ada, "note", 0.0);
    team.until_begun(&item);
    agent.signal(Signal::SIGTERM);
    agent.err_until("1 item may finish");
    team.go();
    let ended = agent.end();
    assert_eq!(ended.code, 0, "{ended:?}");
    assert_eq!(state(&team, &item), "completed 0");
}

#[test]
fn the_second_ctrl_c_gives_everything_back_at_once() {
    let team = Team::new();
    let ada = team.person("ada");
    let mut agent = team.agent("ada", &ada, &["--grace", "1h"]);
    let item = team.activity(&ada, "note", 0.0);
    team.until_begun(&item);
    agent.signal(Signal::SIGINT);
    agent.err_until("Ctrl-C again");
    let began = Instant::now();
    agent.signal(Signal::SIGINT);
    let ended = agent.end();
    assert!(ended.code == 130 && began.elapsed() < Duration::from_secs(10), "{ended:?}");
    assert_eq!(state(&team, &item), "raw 0");
    team.go();
}

#[test]
fn a_paused_agent_takes_nothing_until_it_is_resumed() {
    let team = Team::new();
    team.go();
    let ada = team.person("ada");
    let _agent = team.agent("ada", &ada, &[]);
    assert_eq!(team.gleaner.json(&["agent", "pause"])["state"], "paused");
    let item = team.activity(&ada, "note", 0.0);
    never_within(Duration::from_secs(1), "a paused agent took work", || !team.did().is_empty());
    let status = team.gleaner.json(&["agent", "status"]);
    assert_eq!((&status[0]["state"], &status[0]["health"]["healthy"]), (&"paused".into(), &true.into()), "paused is healthy: {status}");
    assert!(team.gleaner.ok(&["agent", "resume", "ada", "--concurrency", "2"]).contains("ada"));
    team.until_completed(&item);
    assert_eq!(team.gleaner.json(&["agent", "status"])[0]["concurrency"], 2);
}

#[test]
fn an_agent_finds_the_database_of_its_home_again() {
    let gleaner = Gleaner::at_home();
    // In a home without any data an agent would end.
    gleaner.ok(&["up", "--detach", "--no-agent"]);
    gleaner.ok(&["down"]);
    let args = [&["agent", "--status", "127.0.0.1:0"][..], &QUICK].concat();
    let mut agent = gleaner.start(&args);
    agent.out_until("Ctrl-C");
    // Nothing runs there yet.
    let status = || -> (i32, Value) {
        let ran = gleaner.run(&["agent", "status", "--json"]);
        (ran.code, serde_json::from_str::<Value>(&ran.out).ok().and_then(|mut all| all.get_mut(0).map(Value::take)).unwrap_or_default())
    };
    eventually("it to say that its place is away", || status().1["state"] == "offline");
    assert_eq!(status().0, 1, "not well");
    for _ in 0..2 {
        gleaner.ok(&["up", "--detach", "--no-agent"]);
        eventually("it to be well", || status().0 == 0);
        gleaner.ok(&["down"]);
        eventually("it to be unwell", || {
            let (code, view) = status();
            code == 1 && view["state"] == "offline" && view["polling"]["consecutive_errors"].as_u64() >= Some(5)
        });
    }
    agent.signal(Signal::SIGTERM);
    assert_eq!(agent.end().code, 0);
}

/// Waiting does not mend a wrong name or password: whoever starts it should hear so, and not have to look for it on a page.
#[test]
fn workers_and_agents_whose_login_is_rejected_end_at_the_start_and_say_what_to_check() {
    let gleaner = Gleaner::migrated();
    let elsewhere = gleaner.url().replacen(&gleaner.sql("select current_database()"), "no_such_database", 1);
    for args in [&["agent", "run", "--status", "127.0.0.1:0"][..], &["agent", "run", "--once"], &["work", "jobs", "--exec", "true"]] {
        let began = Instant::now();
        let ran = gleaner.start_with(args, &[("DATABASE_URL", &elsewhere)]).end();
        assert_eq!(ran.code, 1, "{ran:?}");
        assert!(ran.err.contains("\"no_such_database\" does not exist (3D000)") && ran.err.contains("Check the name"), "{ran:?}");
        assert!(began.elapsed() < Duration::from_secs(20), "{ran:?}");
    }
}

/// Whatever wakes it, a row that any program inserts is begun within a second: there is nothing to warn of.
#[test]
fn an_agent_starts_without_a_warning_about_notifications() {
    let gleaner = Gleaner::migrated();
    let mut agent = gleaner.start(&["agent", "run", "--status", "127.0.0.1:0"]);
    agent.out_until("Ctrl-C");
    eventually("it to be well", || gleaner.run(&["agent", "status", "-q"]).code == 0);
    agent.signal(Signal::SIGTERM);
    let err = agent.end().err;
    assert!(!err.contains("WARN") && !err.contains("pg_notify"), "{err}");
}

#[test]
fn up_runs_an_agent_unless_no_agent_is_given() {
    let gleaner = Gleaner::at_home();
    let up = gleaner.start(&["up", "--detach", "--json"]).end();
    let up: Value = serde_json::from_str(&up.out).unwrap_or_else(|_| panic!("{up:?}"));
    let status = gleaner.json(&["agent", "status"]);
    assert_eq!((&up["AGENT_URL"], &status[0]["pid"]), (&status[0]["url"], &up["pid"]), "{up} {status}");
    // What arrives is worked, with no model and no settings.
    let url = up["DB_URL"].as_str().expect("a database");
    let psql = |sql: &str| crate::support::shell(&format!("psql '{url}' -Atc \"{sql}\""), &gleaner.home()).out.trim().to_owned();
    psql(
        "insert into activities (type, raw_data) values ('note', '{\\\"source_type\\\": \\\"text\\\", \\\"content\\\": \\\"Please call Ada at 10.\\\"}')",
    );
    eventually("the note to be read", || psql("select processing_status from activities") == "completed");
    assert!(psql("select processed_data from activities").contains("language"));
    gleaner.ok(&["down"]);
    assert!(gleaner.run(&["agent", "status"]).err.contains("no agent runs"));

    let quiet = gleaner.json(&["up", "--detach", "--no-agent"]);
    assert!(quiet["AGENT_URL"].is_null(), "{quiet}");
    assert_eq!(gleaner.run(&["agent", "status"]).code, 1);
}
