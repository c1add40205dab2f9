//! `gleaner channels`: from a file with a token to a URL for the sender, and never a secret where it does not belong.

use std::io::Write as _;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::support::{Gleaner, Ran};

const TOKEN: &str = "00112233445566778899aabbccddeeff";
const KEY_ONE: &str = "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=";
const KEY_TWO: &str = "AgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgI=";

/// Runs it with variables and something on standard input.
fn run(gleaner: &Gleaner, args: &[&str], variables: &[(&str, &str)], stdin: &str) -> Ran {
    let mut command = gleaner.command(args);
    command.envs(variables.iter().copied()).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program runs");
    // Those that do not read may have ended.
    let _ = child.stdin.take().expect("piped").write_all(stdin.as_bytes());
    Ran::from(child.wait_with_output().expect("it ends"))
}

fn read(ran: &Ran) -> Value {
    assert_eq!(ran.code, 0, "{ran:?}");
    serde_json::from_str(&ran.out).unwrap_or_else(|error| panic!("{error}: {ran:?}"))
}

fn ada(gleaner: &Gleaner) {
    gleaner.sql("insert into sales (first_name, email) values ('Ada', 'ada@example.com')");
}

#[test]
fn a_channel_lives_from_add_to_delete() {
    let gleaner = Gleaner::migrated();
    ada(&gleaner);
    let token = gleaner.file("token.txt", &format!("{TOKEN}\n"));
    let base = [("PUBLIC_BASE_URL", "https://hooks.acme.example/")];
    let set = format!("auth_token=@{token}");
    let args = ["channels", "add", "US support", "--provider", "twilio", "--set", &set, "--owner", "ada@example.com", "-o", "json"];
    let added = read(&run(&gleaner, &args, &base, ""));
    let key = added["ingestion_key"].as_str().expect("a key").to_owned();
    assert_eq!(added["webhook_url"], json!(format!("https://hooks.acme.example/functions/v1/ingest-activity?key={key}")));
    assert!(added["url_with_overrides"].as_str().is_some_and(|url| url.ends_with("#rc=3&rp=all")));
    assert!(added["id"].as_str().is_some_and(|id| id.len() == 36));

    let listed = gleaner.json(&["channels", "list"]);
    assert_eq!((&listed[0]["owner"], &listed[0]["settings"]["auth_token"]), (&json!("ada@example.com"), &json!("********")));
    assert!(gleaner.ok(&["channels", "list"]).contains("US support"));
    let shown = gleaner.ok(&["channels", "show", "US support"]);
    assert!(shown.contains("********") && !shown.contains(TOKEN) && !shown.contains(&key), "{shown}");
    // The URL is known by the base it was given.
    let revealed = run(&gleaner, &["channels", "show", "US support", "--reveal"], &base, "").out;
    assert!(revealed.contains(TOKEN) && revealed.contains(&key) && revealed.contains("#rc=3&rp=all"), "{revealed}");

    gleaner.ok(&["channels", "set", "US support", "--name", "Support", "--set", "default_region=GB", "--no-owner"]);
    let shown = gleaner.json(&["channels", "show", "Support", "--reveal"]);
    assert_eq!((&shown["settings"], &shown["owner"]), (&json!({"auth_token": TOKEN, "default_region": "GB"}), &Value::Null));
    let rotated = gleaner.json(&["channels", "rotate", "Support"]);
    assert_ne!(rotated["ingestion_key"], json!(key));
    let args = ["channels", "rotate", "Support", "--secret", "auth_token", "--to", "-", "--keep-for", "2 hours"];
    assert_eq!(run(&gleaner, &args, &[], "ffeeddccbbaa99887766554433221100").code, 0);
    let shown = gleaner.json(&["channels", "show", "Support", "--reveal"]);
    assert_eq!(shown["settings"]["auth_token_previous"], json!(TOKEN));
    assert!(shown["secrets_expire"]["auth_token_previous"].is_string());

    gleaner.ok(&["channels", "pause", "Support"]);
    assert!(gleaner.ok(&["channels", "list"]).contains("paused"));
    gleaner.ok(&["channels", "resume", "Support"]);
    assert_eq!(gleaner.run(&["channels", "delete", "Support"]).code, 1, "there is no terminal to ask");
    gleaner.ok(&["channels", "delete", "Support", "--yes"]);
    assert!(gleaner.ok(&["channels", "list"]).contains("gleaner channels add"), "an empty list says what to do");
}

#[test]
fn secrets_come_from_files_pipes_and_variables_and_show_up_nowhere() {
    let gleaner = Gleaner::migrated();
    let password = gleaner.file("password", "pass-from-file\n");
    let loud = [("RUST_LOG", "trace"), ("HOOK_SECRET", "secret-from-variable")];
    let file = format!("basic_auth.password=@{password}");
    let mut said = String::new();
    for (args, stdin) in [
        (vec!["channels", "add", "Mail", "--provider", "postmark", "--set", "basic_auth.username=gleaner", "--set", &file], ""),
        (vec!["channels", "add", "Hook", "--provider", "generic", "--set", "scheme=hub-sha256", "--set-env", "secret=HOOK_SECRET"], ""),
        (vec!["channels", "add", "Phone", "--provider", "twilio", "--set", "auth_token=-"], "token-from-pipe\r\n"),
        (vec!["channels", "list", "-vv"], ""),
        (vec!["channels", "show", "Mail", "-vv"], ""),
        (vec!["channels", "set", "Mail", "--set", "colour=pass-from-file"], ""),
        (vec!["channels", "rotate", "Hook", "--secret", "scheme", "--to", "secret-from-variable"], ""),
        (vec!["channels", "reseal", "--json"], ""),
    ] {
        let ran = run(&gleaner, &args, &loud, stdin);
        said += &format!("{}{}", ran.out, ran.err);
    }
    for secret in ["pass-from-file", "secret-from-variable", "token-from-pipe"] {
        assert!(!said.contains(secret), "{secret}: {said}");
    }
    let secret = |name: &str| gleaner.json(&["channels", "show", name, "--reveal"])["settings"].clone();
    assert_eq!(secret("Mail"), json!({"basic_auth": {"username": "gleaner", "password": "pass-from-file"}}));
    assert_eq!(secret("Hook"), json!({"scheme": "hub-sha256", "secret": "secret-from-variable"}));
    assert_eq!(secret("Phone"), json!({"auth_token": "token-from-pipe"}));
}

#[test]
fn every_mistake_is_reported_at_once() {
    let gleaner = Gleaner::migrated();
    ada(&gleaner);
    let args = ["channels", "add", " ", "--provider", "twilio", "--owner", "adda@example.com", "--set", "colour=green"];
    let ran = gleaner.run(&args);
    assert_eq!(ran.code, 1);
    for told in ["needs a name", "nearest are: ada@example.com", "colour is no setting", "auth_token is missing"] {
        assert!(ran.err.contains(told), "{told}: {ran:?}");
    }
    for (args, told) in [
        (vec!["channels", "add", "X", "--provider", "pigeon"], "twilio"),
        (vec!["channels", "add", "X", "--provider", "twilio", "--set", "my-secret"], "KEY=VALUE"),
        (vec!["channels", "add", "X", "--provider", "twilio", "--set", "auth_token=@/nowhere"], "/nowhere"),
        (vec!["channels", "add", "X", "--provider", "twilio", "--set-env", "auth_token=NO_SUCH_VARIABLE"], "NO_SUCH_VARIABLE"),
        (vec!["channels", "add", "X", "--provider", "twilio", "--set", "a=-", "--set", "b=-"], "standard input"),
        (vec!["channels", "show", "Nobody"], "no channel \"Nobody\""),
        (vec!["channels", "set", "Nobody"], "nothing to change"),
    ] {
        let ran = gleaner.run(&args);
        assert!(ran.code == 1 && ran.err.contains(told) && !ran.err.contains("my-secret"), "{args:?}: {ran:?}");
    }
    assert_eq!(gleaner.sql("select count(*) from ingestion_providers"), "0");
}

#[test]
fn channels_with_the_same_name_are_distinguished_by_id() {
    let gleaner = Gleaner::migrated();
    gleaner.sql("insert into ingestion_providers (name, provider_code) values ('Twin', 'generic'), ('Twin', 'generic')");
    let ran = gleaner.run(&["channels", "show", "Twin"]);
    let id = gleaner.sql("select id from ingestion_providers limit 1");
    assert!(ran.code == 1 && ran.err.contains(&id), "{ran:?}");
    gleaner.ok(&["channels", "show", &id]);
}

#[test]
fn the_master_key_is_changed_by_resealing() {
    let gleaner = Gleaner::migrated();
    let with = |keys: &str, args: &[&str]| run(&gleaner, args, &[("GLEANER_MASTER_KEY", keys)], "");
    let add = ["channels", "add", "Phone", "--provider", "twilio", "--set", "auth_token=abc"];
    assert_eq!(with(KEY_ONE, &add).code, 0);
    let locked = with(KEY_TWO, &["channels", "show", "Phone"]);
    assert!(locked.code == 1 && locked.err.contains("master key"), "{locked:?}");
    assert_eq!(with(KEY_TWO, &["channels", "reseal"]).code, 1, "it cannot be opened");
    let done = read(&with(&format!("{KEY_TWO},{KEY_ONE}"), &["channels", "reseal", "-o", "json"]));
    assert_eq!(done["resealed"], json!(1));
    assert_eq!(read(&with(KEY_TWO, &["channels", "show", "Phone", "--reveal", "--json"]))["settings"]["auth_token"], json!("abc"));
    assert!(!gleaner.home().join("master.key").exists(), "no file is made where the variable is set");
}

#[test]
fn refusals_are_listed_by_minute_and_reason() {
    let gleaner = Gleaner::migrated();
    assert!(gleaner.ok(&["channels", "refusals"]).contains("No request was rejected"));
    gleaner.sql("insert into ingestion_providers (name, provider_code) values ('Hook', 'generic')");
    gleaner.sql(
        "insert into gleaner.ingest_refusal (provider_id, at_minute, reason, status, count, last_at, last_client, detail)
         select id, timestamptz '2026-11-16 10:00Z', 'mismatch', 401, 3, now(), inet '192.0.2.7', 'the signature does not match' from ingestion_providers
         union all select null, '2026-11-16 10:01Z', 'unknown_key', 401, 2, now(), null, null",
    );
    let all = gleaner.ok(&["channels", "refusals"]);
    assert!(all.contains("mismatch") && all.contains("192.0.2.7") && all.contains("no such key"), "{all}");
    let own = gleaner.json(&["channels", "refusals", "Hook"]);
    assert_eq!((own.as_array().map(Vec::len), &own[0]["count"], &own[0]["reason"]), (Some(1), &json!(3), &json!("mismatch")));
}

/// A running server is found by itself, and what it takes to be its address is what senders are given.
#[test]
fn a_test_is_sent_to_the_webhook_endpoint_of_the_running_server() {
    let gleaner = Gleaner::migrated();
    let mut served = gleaner.start(&["serve", "--listen", "127.0.0.1:0"]);
    let said = served.out_until("health");
    let api = format!("http://{}", said.lines().find_map(|line| line.split_once("Listening on ")).expect("an address").1);
    let added = gleaner.json(&["channels", "add", "Phone", "--provider", "twilio", "--set", "auth_token=abc"]);
    assert!(added["webhook_url"].as_str().is_some_and(|url| url.starts_with(&api)), "{added}");
    let tested = gleaner.json(&["channels", "test", "Phone"]);
    assert_eq!(tested["passed"], json!(true), "{tested}");
    let id = tested["activity_id"].as_str().expect("an activity");
    assert_eq!(gleaner.sql(&format!("select processing_status from activities where id = '{id}'")), "cancelled");

    // Told another address, one that leads nowhere.
    drop(served);
    let mut served = gleaner.start(&["serve", "--listen", "127.0.0.1:0", "--public-base-url", "http://127.0.0.1:9"]);
    served.out_until("health");
    let ran = gleaner.run(&["channels", "test", "Phone"]);
    assert!(ran.code == 1 && ran.out.contains("http://127.0.0.1:9 cannot be reached") && ran.out.contains("DNS"), "{ran:?}");
}

#[test]
fn a_test_without_a_server_says_how_to_start_one() {
    let gleaner = Gleaner::migrated();
    gleaner.ok(&["channels", "add", "Phone", "--provider", "twilio", "--set", "auth_token=abc"]);
    // Ports of the discard service, where nobody listens.
    let ran = gleaner.run(&["channels", "test", "Phone", "--url", "http://127.0.0.1:9", "--server", "http://127.0.0.2:9"]);
    assert!(ran.code == 1 && ran.out.contains("cannot be reached") && ran.out.contains("gleaner serve"), "{ran:?}");
}

#[test]
fn providers_are_listed_with_what_each_needs() {
    let gleaner = Gleaner::at_home();
    let all = gleaner.ok(&["channels", "providers"]);
    assert!(all.contains("auth_token") && all.contains("public_url"), "{all}");
    let one = gleaner.json(&["channels", "providers", "twilio"]);
    assert_eq!((one.as_array().map(Vec::len), &one[0]["code"]), (Some(1), &json!("twilio")));
    assert!(gleaner.run(&["channels", "providers", "pigeon"]).err.contains("twilio"));
}

#[test]
fn warnings_about_a_channel_are_shown_wherever_it_is_shown() {
    let gleaner = Gleaner::migrated();
    let told = "nothing is signed";
    let added = gleaner.ok(&["channels", "add", "Forms", "--provider", "generic", "--set", "scheme=none"]);
    assert!(added.contains(told), "{added}");
    for act in [&["channels", "list"][..], &["channels", "show", "Forms"]] {
        let said = gleaner.ok(act);
        assert!(said.contains(told) && said.contains("ready") && !said.contains("broken"), "{said}");
    }
    let shown = gleaner.json(&["channels", "show", "Forms"]);
    assert!(shown["cautions"][0].as_str().is_some_and(|caution| caution.contains(told)), "{shown}");
    assert_eq!(shown["problems"], json!([]));
}

/// Another program holds the port. Nothing that is printed, and nothing that is sent, gives it the key.
#[test]
fn a_key_is_not_given_to_a_port_that_another_program_holds() {
    use std::io::{BufRead as _, BufReader};

    let gleaner = Gleaner::migrated();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let here = format!("http://{}", listener.local_addr().expect("bound"));
    let (heard, hears) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut reader = BufReader::new(stream);
            let mut request = String::new();
            while reader.read_line(&mut request).is_ok_and(|read| read > 2) {}
            let _ = reader.get_mut().write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok");
            let _ = heard.send(request);
        }
    });
    let at = [("API_URL", here.as_str())];
    let added = run(&gleaner, &["channels", "add", "Forms", "--provider", "generic", "--set", "scheme=none"], &at, "");
    assert_eq!(added.code, 0, "{added:?}");
    assert!(!added.out.contains(&format!("{here}/")), "{added:?}");
    assert!(added.err.contains("another program"), "{added:?}");
    let tested = run(&gleaner, &["channels", "test", "Forms"], &at, "");
    assert_eq!(tested.code, 1, "{tested:?}");
    let key = gleaner.json(&["channels", "show", "Forms", "--reveal"])["ingestion_key"].as_str().expect("a key").to_owned();
    let requests: Vec<String> = hears.try_iter().collect();
    assert!(requests.len() >= 2 && !requests.concat().contains(&key), "{requests:?}");
}
