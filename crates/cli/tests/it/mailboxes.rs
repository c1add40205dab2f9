//! `gleaner channels authorize` and `poll`, against a Google on this machine.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::Stdio;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::support::{Gleaner, Ran};

/// One mailbox with one message, and whoever asks for tokens.
struct Google {
    base: String,
    /// Forms the token endpoint was sent.
    forms: Arc<Mutex<Vec<String>>>,
}

impl Google {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let base = format!("http://{}", listener.local_addr().expect("an address"));
        let forms = Arc::new(Mutex::new(Vec::new()));
        let google = Self { base, forms: Arc::clone(&forms) };
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                answer(stream, &forms);
            }
        });
        google
    }

    fn variables(&self) -> [(&'static str, String); 4] {
        let at = |path: &str| format!("{}{path}", self.base);
        [
            ("GOOGLE_API_BASE", at("")),
            ("GOOGLE_TOKEN_URL", at("/token")),
            ("GOOGLE_AUTH_URL", at("/auth")),
            ("GOOGLE_JWKS_URL", at("/certs")),
        ]
    }

    fn asked(&self, part: &str) -> bool {
        self.forms.lock().expect("no panic").iter().any(|form| form.contains(part))
    }
}

fn answer(mut stream: TcpStream, forms: &Mutex<Vec<String>>) {
    let mut reader = BufReader::new(stream.try_clone().expect("a stream"));
    let (mut first, mut length) = (String::new(), 0);
    reader.read_line(&mut first).expect("a request");
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).expect("a header");
        match line.trim().to_ascii_lowercase().split_once(':') {
            Some(("content-length", value)) => length = value.trim().parse().expect("a length"),
            Some(_) => {}
            None => break,
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).expect("a body");
    let path = first.split(' ').nth(1).unwrap_or_default();
    let said = match path.split('?').next().unwrap_or_default().trim_start_matches("/gmail/v1/users/me") {
        "/token" => {
            forms.lock().expect("no panic").push(String::from_utf8_lossy(&body).into_owned());
            json!({"access_token": "short-lived", "expires_in": 3600, "refresh_token": "grant-of-the-owner", "token_type": "Bearer"})
        }
        "/profile" => json!({"emailAddress": "sales@acme.example", "historyId": "1000"}),
        "/messages" => json!({"messages": [{"id": "m1", "threadId": "t1"}]}),
        "/messages/m1" => json!({"id": "m1", "threadId": "t1", "labelIds": ["INBOX"], "payload": {
            "mimeType": "text/plain", "headers": [{"name": "From", "value": "ann@example.com"}, {"name": "Subject", "value": "Hello"}],
            "body": {"data": "aGk"}}}),
        "/history" => json!({"historyId": "1000"}),
        _ => json!({}),
    }
    .to_string();
    let _ = write!(
        stream,
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{said}",
        said.len()
    );
}

/// The value of a parameter of a URL, as a browser would send it on.
fn parameter<'a>(url: &'a str, name: &str) -> &'a str {
    let pairs = url.split_once('?').expect("a query").1.split('&');
    pairs.filter_map(|pair| pair.split_once('=')).find(|(given, _)| *given == name).unwrap_or_else(|| panic!("no {name} in {url}")).1
}

/// The browser comes back to the address it was given.
fn come_back(redirect_uri: &str, query: &str) -> String {
    let address = redirect_uri.trim_start_matches("http://").trim_end_matches('/');
    let mut stream = TcpStream::connect(address).expect("somebody waits");
    write!(stream, "GET /?{query} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n").expect("written");
    let mut said = String::new();
    stream.read_to_string(&mut said).expect("an answer");
    said
}

fn with_mailbox(gleaner: &Gleaner) {
    gleaner.ok(&["channels", "add", "Mail", "--provider", "gmail", "--set", "client_id=us", "--set", "client_secret=ours"]);
}

#[test]
fn the_owner_of_a_mailbox_gives_leave_and_it_is_read() {
    let (gleaner, google) = (Gleaner::migrated(), Google::start());
    with_mailbox(&gleaner);
    let mut command = gleaner.command(&["channels", "authorize", "Mail", "--loopback", "--wait", "60", "-o", "json"]);
    let mut child = command.envs(google.variables()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs");
    let mut out = BufReader::new(child.stdout.take().expect("piped"));
    let mut said = String::new();
    let asked: Value = loop {
        assert!(out.read_line(&mut said).expect("readable") > 0, "it ended: {said}");
        if let Ok(asked) = serde_json::from_str(&said) {
            break asked;
        }
    };
    let (url, redirect_uri) = (asked["url"].as_str().expect("a URL"), asked["redirect_uri"].as_str().expect("a URL"));
    assert!(url.starts_with(&google.base) && url.contains("access_type=offline") && url.contains("prompt=consent"), "{url}");
    assert!(!url.contains("ours"), "the client's secret is no part of it");
    assert!(!come_back(redirect_uri, "code=forged&state=forged").starts_with("HTTP/1.1 200"), "somebody else's browser");
    let said = come_back(redirect_uri, &format!("code=the-code&state={}", parameter(url, "state")));
    assert!(said.starts_with("HTTP/1.1 200"), "{said}");
    assert!(child.wait().expect("it ends").success());
    assert!(google.asked("code=the-code") && !google.asked("forged"));

    let mut command = gleaner.command(&["channels", "poll", "Mail", "-o", "json"]);
    let ran = Ran::from(command.envs(google.variables()).output().expect("it runs"));
    let report: Value = serde_json::from_str(&ran.out).unwrap_or_else(|_| panic!("{ran:?}"));
    assert_eq!((ran.code, &report["outcome"], &report["stored"]), (0, &json!("read"), &json!(1)), "{ran:?}");
    assert_eq!(gleaner.sql("select concat_ws('|', type, external_id, sender_address) from activities"), "email|m1|ann@example.com");
    assert!(!gleaner.sql("select (to_jsonb(p))::text from ingestion_providers as p").contains("grant-of-the-owner"));
}

#[test]
fn a_mailbox_without_leave_says_how_to_get_it() {
    let gleaner = Gleaner::migrated();
    with_mailbox(&gleaner);
    let ran = gleaner.run(&["channels", "poll", "Mail"]);
    assert!(ran.code == 1 && format!("{}{}", ran.out, ran.err).contains("authorize"), "{ran:?}");
    gleaner.ok(&["channels", "add", "Forms", "--provider", "generic", "--set", "scheme=none"]);
    for act in ["poll", "authorize"] {
        let ran = gleaner.run(&["channels", act, "Forms"]);
        assert!(ran.code == 1 && ran.err.contains("only Gmail"), "{ran:?}");
    }
}
