//! What an agent is told, and what it says.

use std::process::Stdio;

use nix::sys::signal::Signal;

use super::Team;
use crate::support::{Gleaner, Ran};

#[test]
fn print_config_says_where_each_setting_came_from() {
    let gleaner = Gleaner::migrated();
    std::fs::create_dir_all(gleaner.home()).expect("a folder");
    std::fs::write(gleaner.home().join("agent.toml"), "prefetch = 2\n[poll]\nbase = \"1s\"\n").expect("a file");
    let mut command = gleaner.command(&["agent", "run", "--print-config", "--json", "--concurrency", "9"]);
    let ran = Ran::from(command.env("GLEANER_AGENT_GRACE", "5s").output().expect("runs"));
    let all: serde_json::Value = serde_json::from_str(&ran.out).expect("JSON");
    let setting = |key: &str| {
        let found = all.as_array().into_iter().flatten().find(|setting| setting["key"] == key).unwrap_or_else(|| panic!("{key} in {all}"));
        (found["value"].as_str().unwrap_or_default().to_owned(), found["from"].as_str().unwrap_or_default().to_owned())
    };
    let file = gleaner.home().join("agent.toml").display().to_string();
    assert_eq!(setting("concurrency"), ("9".into(), "flag".into()));
    assert_eq!(setting("grace"), ("5s".into(), "GLEANER_AGENT_GRACE".into()));
    assert_eq!(setting("poll.base"), ("1s".into(), file));
    assert_eq!(setting("wake"), ("hybrid".into(), "default".into()));
    assert_eq!(setting("database_url").1, "DATABASE_URL");
    assert!(gleaner.ok(&["agent", "run", "--print-config"]).contains("a new one at each start"));
}

#[test]
fn a_mistake_in_the_file_is_reported_with_a_suggestion() {
    let gleaner = Gleaner::migrated();
    let file = gleaner.file("mine.toml", "concurency = 2\n");
    let ran = gleaner.run(&["agent", "--config", &file, "--grace", "soon"]);
    assert_eq!(ran.code, 1);
    assert!(ran.err.contains("mine.toml") && ran.err.contains("did you mean \"concurrency\"") && ran.err.contains("--grace"), "{ran:?}");
    let gone = gleaner.run(&["agent", "--config", "/nowhere/agent.toml"]);
    assert!(gone.code == 1 && gone.err.contains("/nowhere/agent.toml"), "{gone:?}");
}

#[test]
fn an_agent_until_empty_ends_when_nothing_is_due() {
    let team = Team::new();
    team.go();
    let ada = team.person("ada");
    for _ in 0..3 {
        team.activity(&ada, "note", 0.0);
    }
    let args = ["agent", "run", "--owner", &ada, "--pipelines", &team.pipelines, "--status", "off", "--json"];
    let run = |more: &str| {
        let ran = team.gleaner.run(&[&args[..], &[more]].concat());
        assert_eq!(ran.code, 0, "{ran:?}");
        let end: serde_json::Value =
            ran.out.lines().last().and_then(|line| serde_json::from_str(line).ok()).unwrap_or_else(|| panic!("{ran:?}"));
        end["completed"].as_u64()
    };
    assert_eq!((run("--once"), run("--until-empty"), run("--until-empty")), (Some(1), Some(2), Some(0)));
}

#[test]
fn status_and_watch_show_what_runs() {
    let team = Team::new();
    let ada = team.person("ada");
    let agent = team.agent("ada", &ada, &[]);
    let item = team.activity(&ada, "note", 0.0);
    team.until_begun(&item);
    let shown = team.gleaner.ok(&["agent", "status"]);
    for part in ["ada  processing 1", "http://127.0.0.1:", "activities", &item, "work"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let mut watch = team.gleaner.start(&["agent", "watch", "ada"]);
    assert!(watch.out_until("processing 1").contains("0 completed"));
    team.go();
    watch.out_until("idle  0 pending  1 completed");
    agent.signal(Signal::SIGTERM);
    agent.end();
    let ended = watch.end();
    assert!(ended.code == 1 && ended.err.contains("does not answer"), "it ends with the agent: {ended:?}");
}

#[test]
fn several_agents_are_distinguished_by_name() {
    let team = Team::new();
    let nobody = team.gleaner.run(&["agent", "pause"]);
    assert!(nobody.code == 1 && nobody.err.contains("no agent runs") && nobody.err.contains("`gleaner agent`"), "{nobody:?}");
    let ada = team.person("ada");
    let (_a, _b) = (team.agent("ada", &ada, &[]), team.agent("bob", &ada, &[]));
    let unclear = team.gleaner.run(&["agent", "pause"]);
    assert!(unclear.code == 1 && unclear.err.contains("ada, bob"), "{unclear:?}");
    assert!(team.gleaner.run(&["agent", "pause", "eve"]).err.contains("no agent is named \"eve\""));
    team.gleaner.ok(&["agent", "pause", "bob"]);
    let states: Vec<String> =
        team.gleaner.json(&["agent", "status"]).as_array().into_iter().flatten().map(|view| view["state"].to_string()).collect();
    assert_eq!(states, ["\"idle\"", "\"paused\""]);
    let twice = team.gleaner.command(&["agent", "--name", "ada", "--status", "127.0.0.1:0"]).stdin(Stdio::null()).output().expect("runs");
    assert!(String::from_utf8_lossy(&twice.stderr).contains("runs already"), "{twice:?}");
}
