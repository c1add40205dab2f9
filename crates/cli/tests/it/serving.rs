//! `gleaner serve`, the server of `gleaner up`, and `gleaner replay`.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use nix::sys::signal::Signal;

use crate::support::{Gleaner, Started, shell};

/// Status and body of an answer.
pub(crate) fn ask(api: &str, request: &str, body: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(api.strip_prefix("http://").expect("an address")).expect("somebody listens");
    let length = body.len();
    write!(
        stream,
        "{request} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    )
    .expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers");
    let (head, body) = answer.split_once("\r\n\r\n").expect("an answer");
    (head[9..12].parse().expect("a status"), body.to_owned())
}

/// A server on any port; gives its address.
pub(crate) fn serve(gleaner: &Gleaner) -> (Started, String) {
    let mut served = gleaner.start(&["serve", "--listen", "127.0.0.1:0"]);
    let said = served.out_until("health");
    let at = said.lines().find_map(|line| line.split_once("Listening on ")).expect("an address").1;
    (served, format!("http://{at}"))
}

#[test]
fn serve_listens_until_it_is_stopped_and_status_says_where() {
    let gleaner = Gleaner::migrated();
    let (served, api) = serve(&gleaner);
    assert_eq!(ask(&api, "GET /ready", "").0, 200);
    assert!(gleaner.ok(&["status", "-o", "env"]).contains(&format!("API_URL=\"{api}\"")));
    served.signal(Signal::SIGTERM);
    let ended = served.end();
    assert_eq!(ended.code, 0, "{ended:?}");
    assert!(!gleaner.ok(&["status", "-o", "env"]).contains("API_URL"));
}

#[test]
fn serve_says_what_is_missing() {
    let empty = Gleaner::empty().run(&["serve"]);
    assert!(empty.code == 1 && empty.err.contains("gleaner migrate"), "{empty:?}");
    let nowhere = Gleaner::at_home().run(&["serve"]);
    assert!(nowhere.code == 1 && nowhere.err.contains("`gleaner up`") && nowhere.err.contains("DATABASE_URL"), "{nowhere:?}");
    let gleaner = Gleaner::migrated();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address").to_string();
    let ran = gleaner.run(&["serve", "--listen", &address]);
    assert!(ran.code == 1 && ran.err.contains(&address) && ran.err.contains("--listen"), "{ran:?}");
    for wrong in [["--public-base-url", "hooks.example.com"], ["--trusted-proxies", "everybody"], ["--listen", "localhost"]] {
        let ran = gleaner.run(&[&["serve"][..], &wrong].concat());
        assert_eq!(ran.code, 2, "{ran:?}");
    }
}

#[test]
fn up_serves_each_home_on_a_port_of_its_own() {
    let (one, other) = (Gleaner::at_home_that_chooses_its_port(), Gleaner::at_home_that_chooses_its_port());
    let (first, second) = (one.json(&["up", "--detach"]), other.json(&["up", "--detach"]));
    let api = |up: &serde_json::Value| up["API_URL"].as_str().expect("an address").to_owned();
    assert_ne!(api(&first), api(&second));
    for (gleaner, up) in [(&one, &first), (&other, &second)] {
        assert_eq!(ask(&api(up), "GET /ready", "").0, 200);
        assert_eq!(gleaner.json(&["status"])["API_URL"], up["API_URL"]);
        // Senders are sent to the door of this home, whichever port it has, and a sample passes there.
        let channel = gleaner.json(&["channels", "add", "intern", "--provider", "generic", "--set", "scheme=none"]);
        assert!(channel["webhook_url"].as_str().is_some_and(|url| url.starts_with(&api(up))), "{channel}");
        gleaner.ok(&["channels", "test", "intern"]);
    }
    let line = format!("eval \"$({} status -o env)\" && echo $API_URL", crate::support::GLEANER);
    assert_eq!(shell(&line, &one.home()).out.trim(), api(&first));
    // What was asked for reaches the process in the background, and what was asked for is not replaced by another.
    one.ok(&["down"]);
    let taken = api(&second);
    let refused = one.run(&["up", "--detach", "--listen", taken.strip_prefix("http://").expect("an address")]);
    assert!(refused.code == 1 && refused.err.contains("--listen"), "{refused:?}");
}

#[test]
fn what_came_in_is_replayed_as_it_came() {
    let gleaner = Gleaner::migrated();
    let (_served, api) = serve(&gleaner);
    gleaner.sql(
        "insert into ingestion_providers (name, provider_code, config, ingestion_key)
         values ('intern', 'generic', '{\"scheme\": \"none\"}', 'a-key-of-this-test')",
    );
    let (status, answer) = ask(
        &api,
        "POST /functions/v1/ingest-activity?key=a-key-of-this-test",
        r#"{"type": "note", "content": "hello", "external_id": "n1"}"#,
    );
    assert_eq!(status, 202, "{answer}");
    assert_eq!(ask(&api, "POST /functions/v1/ingest-activity?key=a-key-of-this-test", "{").0, 400);

    let dry = gleaner.run(&["replay", "--channel", "intern", "--dry-run", "--json"]);
    assert_eq!(dry.code, 1, "one of them cannot be read: {dry:?}");
    let dry: serde_json::Value = serde_json::from_str(&dry.out).expect("JSON");
    assert_eq!((&dry[0]["events"][0]["outcome"], &dry[1]["failed"]), (&"would_repeat".into(), &true.into()), "{dry}");

    gleaner.sql("delete from activities");
    let id = dry[0]["request"].as_str().expect("an id");
    let said = gleaner.ok(&["replay", id]);
    assert!(said.contains("stored") && said.contains("note: hello") && said.contains("1 request read again: 1 stored."), "{said}");
    assert_eq!(gleaner.sql("select raw_data ->> 'content' from activities"), "hello");
    assert!(gleaner.ok(&["replay", id, "--update"]).contains("1 updated"));

    let unsaid = gleaner.run(&["replay"]);
    assert!(unsaid.code == 1 && unsaid.err.contains("--channel"), "{unsaid:?}");
    let unclear = gleaner.run(&["replay", "--since", "the day before"]);
    assert!(unclear.code == 1 && unclear.err.contains("not a time"), "{unclear:?}");
    let gone = gleaner.run(&["replay", "00000000-0000-0000-0000-000000000000"]);
    assert!(gone.code == 1 && gone.err.contains("not kept"), "{gone:?}");
}
