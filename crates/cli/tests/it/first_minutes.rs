//! The first start and the next ones: what a home keeps, what commands say when nothing runs, and how a stop ends.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::serving::{ask, serve};
use crate::support::{Gleaner, Ran, free_address, shell};

fn api(up: &Value) -> String {
    up["API_URL"].as_str().expect("an address").to_owned()
}

/// Webhook URLs, sessions, invitations and DB_URL name these addresses.
#[test]
fn a_home_keeps_its_port_and_its_socket_from_start_to_start() {
    let gleaner = Gleaner::at_home_that_chooses_its_port();
    let address = free_address();
    let first = gleaner.json(&["up", "--detach", "--no-agent", "--listen", &address]);
    gleaner.ok(&["down"]);
    let second = gleaner.json(&["up", "--detach", "--no-agent"]);
    assert_eq!(api(&second), format!("http://{address}"));
    assert_eq!((&first["API_URL"], &first["DB_URL"]), (&second["API_URL"], &second["DB_URL"]));
    gleaner.ok(&["down"]);

    // Another program has it now: no other port is taken in silence.
    let taken = TcpListener::bind(&address).expect("the port is free");
    let refused = gleaner.run(&["up", "--detach", "--no-agent"]);
    assert_eq!(refused.code, 1, "{refused:?}");
    assert!(refused.err.contains(&address) && refused.err.contains("keeps port") && refused.err.contains("--listen"), "{refused:?}");
    assert_eq!(gleaner.run(&["status", "-q"]).code, 1, "PostgreSQL was stopped again");
    drop(taken);
    assert_eq!(api(&gleaner.json(&["up", "--detach", "--no-agent"])), format!("http://{address}"));
}

#[test]
fn the_port_that_a_first_start_chose_is_kept() {
    let gleaner = Gleaner::at_home_that_chooses_its_port();
    let up = gleaner.json(&["up", "--detach", "--no-agent"]);
    let kept = std::fs::read_to_string(gleaner.home().join("port")).expect("a kept port");
    assert_eq!(api(&up), format!("http://127.0.0.1:{}", kept.trim()));
}

#[test]
fn no_command_guesses_where_a_server_listens() {
    let gleaner = Gleaner::migrated();
    let nothing_runs = |ran: &Ran| ran.code == 1 && ran.err.contains("no server runs in");
    let invite = gleaner.run(&["users", "invite", "carol@example.com"]);
    assert!(nothing_runs(&invite) && invite.err.contains("--base-url"), "{invite:?}");
    assert!(gleaner.json(&["users", "list"]).as_array().is_some_and(Vec::is_empty), "no user without a link");

    let added = gleaner.json(&["channels", "add", "Phone", "--provider", "twilio", "--set", "auth_token=abc"]);
    assert!(added["webhook_url"].is_null(), "{added}");
    let shown = gleaner.run(&["channels", "show", "Phone", "--reveal"]);
    assert!(!shown.out.contains("http://") && !shown.err.contains("http://"), "{shown:?}");
    let tested = gleaner.run(&["channels", "test", "Phone"]);
    assert!(nothing_runs(&tested) && tested.err.contains("gleaner serve"), "{tested:?}");

    // With a server they read where it is.
    let (_served, api) = serve(&gleaner);
    let link = gleaner.ok(&["users", "invite", "carol@example.com"]);
    assert!(link.starts_with(&format!("{api}/invite#token=")), "{link}");
}

#[test]
fn status_wait_succeeds_only_with_schema_and_server() {
    let gleaner = Gleaner::empty();
    let wait = ["status", "--wait", "--timeout", "0"];
    assert_eq!(gleaner.run(&["status", "-q"]).code, 0, "the database answers");
    let unmigrated = gleaner.run(&wait);
    assert!(unmigrated.code == 1 && unmigrated.err.contains("schema"), "{unmigrated:?}");
    gleaner.ok(&["migrate"]);
    let unserved = gleaner.run(&wait);
    assert!(unserved.code == 1 && unserved.err.contains("no server runs in"), "{unserved:?}");
    let waiting = gleaner.start(&["status", "--wait", "-o", "env"]);
    let (_served, api) = serve(&gleaner);
    let waited = waiting.end();
    assert!(waited.code == 0 && waited.out.contains(&format!("API_URL=\"{api}\"")), "{waited:?}");
}

#[test]
fn a_second_server_in_a_home_leaves_the_record_of_the_first() {
    let gleaner = Gleaner::migrated();
    let (first, api) = serve(&gleaner);
    let recorded = || gleaner.json(&["status"])["API_URL"].clone();

    // Without an address of its own there is nothing it could serve.
    let refused = gleaner.run(&["serve"]);
    assert!(refused.code == 1 && refused.err.contains(&api) && refused.err.contains("pid"), "{refused:?}");
    let mut up = gleaner.command(&["up"]);
    let up = Ran::from(up.env_remove("DATABASE_URL").output().expect("runs"));
    assert!(up.code == 1 && up.err.contains(&api) && up.err.contains("pid"), "{up:?}");

    let (mut second, beside) = serve(&gleaner);
    assert!(second.err_until("already").contains(&api));
    assert_eq!((ask(&beside, "GET /ready", "").0, recorded()), (200, api.as_str().into()));
    second.signal(Signal::SIGTERM);
    assert_eq!(second.end().code, 0);
    assert_eq!(recorded(), api.as_str());

    // A record without its process is none.
    first.signal(Signal::SIGKILL);
    first.end();
    assert!(recorded().is_null());
    let (_third, api) = serve(&gleaner);
    assert_eq!(recorded(), api.as_str());
}

#[test]
fn an_agent_in_an_empty_home_ends_with_the_hint_to_sign_in() {
    let gleaner = Gleaner::at_home();
    for args in [&["agent"][..], &["agent", "run", "--until-empty"]] {
        let ran = gleaner.run(args);
        assert!(ran.code == 1 && ran.err.contains("gleaner agent login") && ran.err.contains("gleaner up"), "{args:?}: {ran:?}");
    }
}

#[test]
fn a_stop_does_not_wait_for_requests_that_are_half_sent() {
    let gleaner = Gleaner::migrated();
    let (served, api) = serve(&gleaner);
    let connect = |text: &str| {
        let mut stream = TcpStream::connect(api.strip_prefix("http://").expect("an address")).expect("it listens");
        stream.write_all(text.as_bytes()).expect("it reads");
        stream
    };
    let mut head = connect("POST /functions/v1/ingest-activity?key=x HTTP/1.1\r\nhost: x\r\n");
    let mut body = connect(
        "POST /auth/v1/token?grant_type=password HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{",
    );
    // The server has accepted both once it has answered a later one.
    assert_eq!(ask(&api, "GET /ready", "").0, 200);
    let began = Instant::now();
    served.signal(Signal::SIGTERM);
    let ended = served.end();
    assert_eq!(ended.code, 0, "{ended:?}");
    // Far below the thirty seconds that an answer may take.
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    for stream in [&mut head, &mut body] {
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest);
    }
}

#[test]
fn a_first_start_prints_no_warning_and_one_screen_that_says_where_to_look() {
    let gleaner = Gleaner::at_home();
    let mut up = gleaner.start(&["up"]);
    let said = up.out_until("Ctrl-C stops");
    for place in ["url ", "api ", "agent ", "home ", "admin ", "gleaner logs", "gleaner status"] {
        assert!(said.contains(place), "{place}: {said}");
    }
    up.signal(Signal::SIGTERM);
    let ended = up.end();
    let lines = said.lines().count() + ended.err.lines().count();
    assert!(lines <= 24, "{lines} lines: {said}{}", ended.err);
    for word in ["WARN", "ERROR", "warning", "not set"] {
        assert!(!said.contains(word) && !ended.err.contains(word), "{word}: {said}{}", ended.err);
    }
}

#[test]
fn up_restarts_a_postgresql_that_was_upgraded_under_it() {
    let gleaner = Gleaner::at_home();
    let found = gleaner_postgres::Installation::find().expect("a PostgreSQL");
    let bin = gleaner.folder.join("bin");
    std::fs::create_dir(&bin).expect("a folder");
    std::os::unix::fs::symlink(found.program("initdb"), bin.join("initdb")).expect("a link");
    // A script in place of the executable, which would look for its libraries beside it.
    let install = || {
        let (program, dir) = (found.program("postgres"), bin.display());
        let line = format!(
            "printf '#!/bin/sh\\nexec {} \"$@\"\\n' > {dir}/new && chmod 755 {dir}/new && mv {dir}/new {dir}/postgres",
            program.display()
        );
        assert_eq!(shell(&line, &gleaner.home()).code, 0);
    };
    install();
    let mut up = gleaner.start_with(&["up", "--no-agent"], &[("GLEANER_PG_BIN", bin.to_str().expect("plain"))]);
    up.out_until("Ctrl-C stops");
    let before = gleaner.json(&["status"]);
    install();
    up.err_until("is ready. The server");
    let after = gleaner.json(&["status", "--wait"]);
    assert_eq!((&before["DB_URL"], &before["API_URL"]), (&after["DB_URL"], &after["API_URL"]));
    assert_ne!(before["server"]["pid"], after["server"]["pid"]);
    up.signal(Signal::SIGTERM);
    assert_eq!(up.end().code, 0);
}
