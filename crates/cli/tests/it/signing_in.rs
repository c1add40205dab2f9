use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Stdio;

use crate::support::{Gleaner, Ran};

const PASSWORD: &str = "correct horse battery";

/// Runs it with something to read, on a laptop that knows neither database nor home of the server.
fn on_laptop(gleaner: &Gleaner, args: &[&str], input: &str) -> Ran {
    let mut command = gleaner.command(args);
    command.env("GLEANER_HOME", gleaner.folder.join("laptop")).env_remove("DATABASE_URL");
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program runs");
    let _ = child.stdin.take().expect("piped").write_all(input.as_bytes());
    Ran::from(child.wait_with_output().expect("it ends"))
}

#[test]
fn a_person_signs_in_from_a_laptop_and_out_again() {
    let gleaner = Gleaner::migrated();
    let add = ["users", "add", "ada@example.com", "--password-stdin"];
    let mut child = gleaner.command(&add).stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("the program runs");
    child.stdin.take().expect("piped").write_all(PASSWORD.as_bytes()).expect("it reads");
    assert!(child.wait().expect("it ends").success());
    let mut server = gleaner.start(&["serve", "--listen", "127.0.0.1:0"]);
    server.out_until("health");
    let told = gleaner.ok(&["status", "-o", "env"]);
    let (url, key) = (value(&told, "API_URL"), value(&told, "ANON_KEY"));

    let ran = on_laptop(&gleaner, &["agent", "login", "--email", "ada@example.com", "--password-stdin"], PASSWORD);
    assert!(ran.code == 1 && ran.err.contains("--url"), "{ran:?}");
    let login = ["agent", "login", "--url", &url, "--anon-key", &key, "--email", "ada@example.com", "--password-stdin"];
    let wrong = on_laptop(&gleaner, &login, "not the password\n");
    assert!(wrong.code == 1 && wrong.err.contains("check the address and the password"), "{wrong:?}");
    let folder = gleaner.folder.join("laptop/agent/sessions");
    assert!(!folder.exists());

    let ran = on_laptop(&gleaner, &login, &format!("{PASSWORD}\n"));
    assert!(ran.code == 0 && ran.out.contains("signed in") && ran.out.contains("owner    1"), "{ran:?}");
    assert!(!ran.out.contains("battery") && !ran.err.contains("battery"), "{ran:?}");
    let file = std::fs::read_dir(&folder)
        .expect("kept")
        .map(|file| file.expect("a file").path())
        .find(|path| path.extension() == Some("json".as_ref()));
    let file = file.expect("kept");
    assert_eq!(std::fs::metadata(&file).expect("kept").permissions().mode() & 0o777, 0o600);
    assert!(!std::fs::read_to_string(&file).expect("kept").contains("battery"), "the password is kept nowhere");

    // The next time the file knows where.
    let again = on_laptop(&gleaner, &["agent", "login", "--json", "--email", "ada@example.com", "--password-stdin"], PASSWORD);
    assert!(again.code == 0 && again.out.contains("\"sales_id\": \"1\""), "{again:?}");

    let out = on_laptop(&gleaner, &["agent", "logout"], "");
    assert!(out.code == 0 && out.out.contains("signed out") && !file.exists(), "{out:?}");
    assert_eq!(gleaner.sql("select count(*) from auth.sessions"), "1", "the sign-in before the last one stands until it ends");
    assert!(on_laptop(&gleaner, &["agent", "logout"], "").out.contains("not signed in"));
}

/// A laptop that works for two projects has a session for each.
#[test]
fn a_person_is_signed_in_to_several_projects_at_once() {
    let projects = [Gleaner::migrated(), Gleaner::migrated()];
    let laptop = &projects[0];
    let mut servers = Vec::new();
    let mut urls = Vec::new();
    for gleaner in &projects {
        let add = ["users", "add", "ada@example.com", "--password-stdin"];
        let mut child = gleaner.command(&add).stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("the program runs");
        child.stdin.take().expect("piped").write_all(PASSWORD.as_bytes()).expect("it reads");
        assert!(child.wait().expect("it ends").success());
        let mut server = gleaner.start(&["serve", "--listen", "127.0.0.1:0"]);
        server.out_until("health");
        servers.push(server);
        let told = gleaner.ok(&["status", "-o", "env"]);
        let (url, key) = (value(&told, "API_URL"), value(&told, "ANON_KEY"));
        let login = ["agent", "login", "--url", &url, "--anon-key", &key, "--email", "ada@example.com", "--password-stdin"];
        assert_eq!(on_laptop(laptop, &login, PASSWORD).code, 0);
        urls.push(url);
    }
    let there = || -> Vec<String> {
        let ran = on_laptop(laptop, &["agent", "status", "--sessions", "--json"], "");
        let all: serde_json::Value = serde_json::from_str(&ran.out).unwrap_or_else(|_| panic!("{ran:?}"));
        assert!(!ran.out.contains("token\""), "{ran:?}");
        all.as_array().expect("an array").iter().map(|kept| kept["url"].as_str().expect("a URL").to_owned()).collect()
    };
    let mut sorted = there();
    sorted.sort();
    urls.sort();
    assert_eq!(sorted, urls);
    let listed = on_laptop(laptop, &["agent", "status"], "");
    assert!(urls.iter().all(|url| listed.out.contains(url.as_str())) && listed.out.contains("ada@example.com"), "{listed:?}");
    // Each is used for its own server, and for no other.
    for url in &urls {
        let mut agent = laptop.command(&["agent", "run", "--until-empty", "--queues", "activities", "--url", url]);
        let ran = agent.env("GLEANER_HOME", laptop.folder.join("laptop")).env_remove("DATABASE_URL").output().expect("it runs");
        assert!(ran.status.success(), "{url}: {}", String::from_utf8_lossy(&ran.stderr));
    }
    let which = on_laptop(laptop, &["agent", "logout"], "");
    assert!(which.code == 1 && urls.iter().all(|url| which.err.contains(url.as_str())), "{which:?}");
    let out = on_laptop(laptop, &["agent", "logout", &format!("{}/", urls[0])], "");
    assert!(out.code == 0 && out.out.contains(&urls[0]), "{out:?}");
    assert_eq!(there(), [urls[1].clone()]);
    assert_eq!(on_laptop(laptop, &["agent", "logout", "--all"], "").code, 0);
    assert_eq!(on_laptop(laptop, &["agent", "status", "--sessions"], "").code, 1);
}

/// What a line `NAME="value"` says.
fn value(lines: &str, name: &str) -> String {
    let found = lines.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
    found.expect("it is told").trim_matches('"').to_owned()
}
