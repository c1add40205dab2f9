use std::io::Write as _;
use std::process::Stdio;

use serde_json::json;

use crate::support::{Gleaner, Ran};

/// Runs it with something to read.
fn with_input(gleaner: &Gleaner, args: &[&str], input: &str) -> Ran {
    let mut command = gleaner.command(args);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program runs");
    child.stdin.take().expect("piped").write_all(input.as_bytes()).expect("it reads");
    Ran::from(child.wait_with_output().expect("it ends"))
}

#[test]
fn a_user_is_added_with_a_password_that_is_not_on_the_command_line() {
    let gleaner = Gleaner::migrated();
    let ran = with_input(&gleaner, &["users", "add", "Ada@Example.com", "--admin", "--password-stdin"], "correct horse battery\n");
    assert!(ran.code == 0 && ran.out.contains("ada@example.com") && ran.out.contains("administrator"), "{ran:?}");
    assert!(!ran.out.contains("battery"), "what was given is not repeated: {ran:?}");
    assert_eq!(gleaner.sql("select administrator from sales s join auth.users u on u.id = s.user_id"), "t");
    assert!(gleaner.sql("select encrypted_password from auth.users").starts_with("$argon2id$"));
    for (input, told) in [("\n", "no password on standard input"), ("short\n", "at least 8"), ("password123\n", "easy to guess")] {
        let ran = with_input(&gleaner, &["users", "add", "bob@example.com", "--password-stdin"], input);
        assert!(ran.code == 1 && ran.err.contains(told), "{ran:?}");
    }
    let again = gleaner.run(&["users", "add", "ada@example.com"]);
    assert!(again.code == 1 && again.err.contains("is a user already"), "{again:?}");
    let wrong = gleaner.run(&["users", "add", "ada"]);
    assert!(wrong.code == 1 && wrong.err.contains("invalid format"), "{wrong:?}");
}

#[test]
fn a_generated_password_is_printed_once() {
    let gleaner = Gleaner::migrated();
    let added = gleaner.json(&["users", "add", "bob@example.com"]);
    let password = added["password"].as_str().expect("told").to_owned();
    assert_eq!((password.len(), &added["administrator"]), (27, &json!(false)));
    assert!(!gleaner.ok(&["users", "list"]).contains(&password));
    let quiet = gleaner.ok(&["users", "passwd", "bob@example.com", "-q"]);
    assert!(quiet.contains("password  "), "whoever wants it quiet needs it all the same: {quiet}");
    assert_eq!(with_input(&gleaner, &["users", "passwd", "bob@example.com", "--password-stdin"], "another good one").code, 0);
    assert!(gleaner.run(&["users", "passwd", "nobody@example.com"]).err.contains("there is no user nobody@example.com"));
}

#[test]
fn users_are_listed_disabled_and_enabled() {
    let gleaner = Gleaner::migrated();
    gleaner.ok(&["users", "add", "ada@example.com", "--admin"]);
    gleaner.ok(&["users", "add", "bob@example.com"]);
    gleaner.sql("insert into activities (type, sales_id) select 'call', id from sales where email = 'bob@example.com'");
    let disabled = gleaner.json(&["users", "disable", "bob@example.com"]);
    assert_eq!((&disabled["state"], &disabled["left"]["activities"]), (&json!("disabled"), &json!(1)));
    assert!(gleaner.ok(&["users", "disable", "bob@example.com"]).contains("--assign-to EMAIL"), "it offers to hand the work over");
    let table = gleaner.ok(&["users", "list"]);
    let bob = table.lines().find(|line| line.starts_with("bob")).unwrap_or_default();
    assert!(bob.contains("disabled") && bob.contains("member") && bob.contains("never"), "{table}");
    let handed = gleaner.json(&["users", "disable", "bob@example.com", "--assign-to", "ada@example.com"]);
    assert_eq!((&handed["assigned"]["activities"], &handed["left"]), (&json!(1), &json!({})));
    assert_eq!(gleaner.json(&["users", "enable", "bob@example.com"])["state"], "active");
    assert_eq!(gleaner.json(&["users", "list"])[1]["state"], "active");
}

#[test]
fn links_are_printed_for_the_address_the_server_is_known_by() {
    let gleaner = Gleaner::migrated();
    let link = gleaner.ok(&["users", "invite", "carol@example.com", "--base-url", "https://crm.example.com/"]);
    assert!(link.starts_with("https://crm.example.com/invite#token="), "{link}");
    assert_eq!(link.lines().count(), 1, "for pipes the link alone");
    let base = ["--base-url", "https://crm.example.com"];
    assert_ne!(gleaner.ok(&[&["users", "invite", "carol@example.com"][..], &base].concat()), link, "whoever lost it gets another");
    assert!(
        gleaner.json(&[&["users", "reset", "carol@example.com"][..], &base].concat())["link"]
            .as_str()
            .is_some_and(|link| link.contains("/reset#token="))
    );
    assert!(gleaner.run(&[&["users", "reset", "nobody@example.com"][..], &base].concat()).err.contains("there is no user"));
}

#[test]
fn the_first_up_prints_an_administrator_and_the_next_does_not() {
    let gleaner = Gleaner::empty();
    let first = gleaner.json(&["up"]);
    let admin = &first["administrator"];
    assert_eq!(admin["email"], "admin@localhost");
    assert!(admin["password"].as_str().is_some_and(|password| password.len() == 27), "{first}");
    assert!(gleaner.json(&["up"])["administrator"].is_null());
    assert_eq!(gleaner.json(&["users", "list"])[0]["administrator"], true);
}

#[test]
fn users_of_a_platform_are_the_platforms() {
    let gleaner = Gleaner::empty();
    gleaner.sql("create schema auth; create table auth.users (id uuid primary key, email text)");
    assert!(gleaner.json(&["up"])["administrator"].is_null());
    let ran = gleaner.run(&["users", "list"]);
    assert!(ran.code == 1 && ran.err.contains("Supabase"), "{ran:?}");
}

#[test]
fn keys_of_programs_are_printed_once_listed_and_revoked() {
    let gleaner = Gleaner::migrated();
    let key = gleaner.ok(&["keys", "add", "whisper", "--queue", "activities", "--kind", "call", "-q"]);
    assert!(key.starts_with("sb_secret_") && key.trim().len() == 53, "for pipes the key alone: {key}");
    let listed = gleaner.json(&["keys", "list"]);
    assert_eq!(
        (&listed[0]["queues"], &listed[0]["kinds"], &listed[0]["state"]),
        (&json!(["activities"]), &json!(["call"]), &json!("good"))
    );
    assert!(!listed.to_string().contains(key.trim()));
    let table = gleaner.ok(&["keys", "list"]);
    assert!(table.contains("whisper") && table.contains("worker") && table.contains("activities"), "{table}");
    for (args, told) in [
        (&["keys", "add", "whisper"][..], "already"),
        (&["keys", "add", "x", "--queue", "nonsense"], "there is no queue"),
        (&["keys", "add", "x", "--role", "service", "--kind", "call"], "narrow"),
        (&["keys", "add", "x", "--valid", "soon"], "not a length of time"),
        (&["keys", "add", " "], "needs a name"),
        (&["keys", "revoke", "nobody"], "no living key"),
    ] {
        let ran = gleaner.run(args);
        assert!(ran.code == 1 && ran.err.contains(told), "{args:?}: {ran:?}");
    }
    gleaner.ok(&["keys", "revoke", key.trim()]);
    assert_eq!(gleaner.json(&["keys", "list"])[0]["state"], "revoked");
    assert!(gleaner.ok(&["keys", "add", "web", "--role", "anon", "--valid", "1 day"]).starts_with("sb_publishable_"));
}
