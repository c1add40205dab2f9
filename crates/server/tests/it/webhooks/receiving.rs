//! Accepted requests, and the responses to them.

use anyhow::Result;
use futures_util::future::try_join_all;
use gleaner_ingest::sealing::MasterKeys;
use gleaner_intake::files::Files;
use http_body_util::Full;
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::{Value, json};

use crate::webhooks::sender::SECRET;
use crate::webhooks::support::{world, world_with};
use crate::world::eventually;

#[tokio::test]
async fn an_authentic_event_becomes_one_raw_activity() -> Result<()> {
    let w = world().await?;
    let channel = w.channel().await?;
    let answer = w.post(&channel, &json!({"ids": ["a"], "text": "good morning", "from": "ada@example.com"})).await?;
    assert_eq!((answer.status, answer.json()["success"].as_bool()), (202, Some(true)), "{answer:?}");
    let sql = format!(
        "select concat_ws(' ', processing_status, type, direction, raw_data ->> 'content', metadata ->> 'external_id', sender_address, provider_id = '{}')
         from activities where id = '{}'",
        channel.id,
        answer.id()?
    );
    assert_eq!(w.text(&sql).await?.as_deref(), Some("raw note inbound good morning a ada@example.com t"));
    Ok(())
}

#[tokio::test]
async fn the_files_of_an_event_are_recorded_where_clients_cannot_write() -> Result<()> {
    let w = world().await?;
    let channel = w.channel().await?;
    let event = json!({"ids": ["a", "b"], "metadata": {"media_urls": ["https://a/1"]}, "attachments": ["file"]});
    let answer = w.post(&channel, &event).await?;
    assert_eq!(w.post(&channel, &event).await?.status, 202, "a redelivery records nothing more");
    w.post(&channel, &json!({"ids": ["without"]})).await?;
    assert_eq!(w.count("select count(*) from gleaner.media_reference").await?, 2);
    let id = answer.json()["ids"][1].as_str().unwrap_or_default().to_owned();
    let sql = format!("select media::text from gleaner.media_reference where activity_id = '{id}' and provider_id = '{}'", channel.id);
    let recorded: Value = serde_json::from_str(&w.text(&sql).await?.unwrap_or_default())?;
    assert_eq!(recorded, json!([{"place": {"url": "https://a/1"}}, {"name": "a.txt", "place": {"file": format!("activities/{id}/0")}}]));
    w.client.execute("delete from activities where id = $1::text::uuid", &[&id]).await?;
    assert_eq!(w.count("select count(*) from gleaner.media_reference").await?, 1);
    Ok(())
}

#[tokio::test]
async fn one_request_may_bring_several_events() -> Result<()> {
    let w = world().await?;
    let channel = w.channel().await?;
    let answer = w.post(&channel, &json!({"ids": ["a", "b", "c"]})).await?;
    assert_eq!(answer.json()["ids"].as_array().map(Vec::len), Some(3), "{answer:?}");
    assert_eq!(w.count("select count(*) from activities").await?, 3);
    // One of them again, together with a new one.
    let again = w.post(&channel, &json!({"ids": ["b", "d"]})).await?;
    assert_eq!(again.json()["ids"][0], answer.json()["ids"][1]);
    assert_eq!(w.count("select count(*) from activities").await?, 4);
    Ok(())
}

#[tokio::test]
async fn the_same_event_fifty_times_at_once_is_one_activity_and_one_id() -> Result<()> {
    let w = world().await?;
    let channel = w.channel().await?;
    let event = json!({"ids": ["same"], "attachments": ["file"]});
    let answers = try_join_all((0..50).map(|_| w.post(&channel, &event))).await?;
    let first = answers[0].id()?;
    for answer in &answers {
        assert_eq!((answer.status, answer.id()?), (202, first));
    }
    assert_eq!(w.count("select count(*) from activities").await?, 1);
    // The redeliveries leave no files behind.
    let folders: Vec<_> = std::fs::read_dir(w.home.0.join("files/activities"))?.collect::<Result<_, _>>()?;
    let full = folders.iter().filter(|folder| std::fs::read_dir(folder.path()).is_ok_and(|mut files| files.next().is_some()));
    assert_eq!(full.count(), 1);
    Ok(())
}

#[tokio::test]
async fn a_handshake_gets_the_answer_its_provider_expects_and_stores_nothing() -> Result<()> {
    let w = world().await?;
    let channel = w.channel().await?;
    let answer = w.send("GET", &channel.target(), &[("x-test-signature", SECRET)], br#"{"do": "reply"}"#).await?;
    assert_eq!((answer.status, answer.body.as_slice(), answer.header("content-type")), (200, &b"the answer"[..], Some("text/plain")));
    assert_eq!(w.count("select count(*) from activities").await?, 0);
    Ok(())
}

#[tokio::test]
async fn what_is_remembered_completes_a_later_event() -> Result<()> {
    let w = world().await?;
    let channel = w.channel().await?;
    let call = json!({"do": "nothing", "remember": {"call:1": {"from": "+14155550111", "direction": "outbound"}}});
    let answer = w.post(&channel, &call).await?;
    assert_eq!((answer.status, &answer.json()["id"]), (202, &Value::Null));
    w.post(&channel, &json!({"ids": ["recording"], "recall": "call:1"})).await?;
    let sql = "select direction || ' ' || (metadata ->> 'from') from activities";
    assert_eq!(w.text(sql).await?.as_deref(), Some("outbound +14155550111"));
    Ok(())
}

#[tokio::test]
async fn a_push_is_acknowledged_and_triggers_a_poll() -> Result<()> {
    let w = world().await?;
    let channel = w.channel().await?;
    let answer = w.post(&channel, &json!({"do": "fetch"})).await?;
    assert_eq!((answer.status, &answer.json()["success"]), (202, &true.into()));
    let asked = format!("select count(*) from gleaner.polls where provider_id = '{}'", channel.id);
    eventually("a look to be asked for", async || Ok(w.count(&asked).await? == 1)).await?;
    assert_eq!(w.count("select count(*) from activities").await?, 0);
    Ok(())
}

#[tokio::test]
async fn attachments_are_files_named_by_activity_and_place() -> Result<()> {
    let w = world().await?;
    let channel = w.channel().await?;
    let answer = w.post(&channel, &json!({"ids": ["a"], "attachments": ["one", "two"]})).await?;
    for (n, text) in ["one", "two"].into_iter().enumerate() {
        let path = w.text(&format!("select metadata #>> '{{attachments,{n},file}}' from activities")).await?.expect("a path");
        assert_eq!(path, Files::of_activity(answer.id()?, n));
        let file = w.server.state().files.get(&path).await?.expect("a file").bytes().await?;
        assert_eq!(file, text.as_bytes());
    }
    assert!(!w.text("select (raw_data || metadata)::text from activities").await?.expect("a row").contains("two"));
    Ok(())
}

#[tokio::test]
async fn the_request_is_kept_without_its_key_and_credentials() -> Result<()> {
    let w = world().await?;
    let channel = w.channel().await?;
    let body = json!({"ids": ["a"], "text": "x".repeat(300 * 1024)}).to_string();
    let headers =
        [("x-test-signature", SECRET), ("authorization", "Bearer b"), ("x-strange", SECRET), ("content-type", "application/json")];
    w.send("POST", &format!("{}&provider=tester", channel.target()), &headers, body.as_bytes()).await?;
    let kept = w.text("select concat_ws(' ', method, target, headers, body, body_file) from gleaner.raw_request").await?.expect("a row");
    assert!(kept.starts_with("POST /functions/v1/ingest-activity?key=…&provider=tester") && kept.contains("application/json"), "{kept}");
    assert!(!kept.contains(&channel.key) && !kept.contains(SECRET) && !kept.contains("Bearer"), "{kept}");
    // Too large for a table: stored in a file, byte for byte.
    let path = w.text("select body_file from gleaner.raw_request where body is null").await?.expect("a file");
    assert_eq!(w.server.state().files.get(&path).await?.expect("a file").bytes().await?, body.as_bytes());
    Ok(())
}

#[tokio::test]
async fn the_public_url_is_what_was_configured_and_nothing_a_header_says() -> Result<()> {
    let w = world_with(|config| config.public_base = Some("https://hooks.Example.com/prefix".to_owned())).await?;
    let (plain, own) =
        (w.channel().await?, w.channel_of("tester", json!({"secret": SECRET, "public_url": "https://other.example/"})).await?);
    for (channel, base) in [(&plain, "https://hooks.Example.com/prefix"), (&own, "https://other.example")] {
        let target = format!("{}&z='%27&a=%41&provider=x", channel.target());
        let headers = [("x-test-signature", SECRET), ("x-forwarded-host", "evil.example"), ("x-forwarded-proto", "http")];
        let answer = w.send("POST", &target, &headers, br#"{"do": "url"}"#).await?;
        assert_eq!(String::from_utf8(answer.body)?, format!("{base}{target}"));
    }
    Ok(())
}

#[tokio::test]
async fn an_unknown_sender_becomes_a_contact_where_the_channel_wants_it_and_a_sample_does_not() -> Result<()> {
    let w = world().await?;
    let (making, other) = (w.channel().await?, w.channel().await?);
    w.client.execute("update ingestion_providers set auto_create_contacts = true where id = $1", &[&making.id]).await?;
    let sample = [("x-test-signature", SECRET), (gleaner_intake::channels::TEST_MARK, "1")];
    w.send("POST", &making.target(), &sample, br#"{"ids": ["sample"], "from": "sample@example.com"}"#).await?;
    w.post(&other, &json!({"ids": ["a"], "from": "unknown@example.com"})).await?;
    w.post(&making, &json!({"ids": ["b"], "from": "ada@example.com"})).await?;
    let linked = "select count(*) from activities where contact_id is not null";
    eventually("a contact", async || Ok(w.count(linked).await? == 1)).await?;
    assert_eq!(w.text("select sender_address from activities where contact_id is not null").await?.as_deref(), Some("ada@example.com"));
    assert_eq!(w.count("select count(*) from contacts").await?, 1);
    Ok(())
}

#[tokio::test]
async fn callers_reach_the_rest_of_the_server_and_strangers_do_not() -> Result<()> {
    let w = world().await?;
    for (method, target) in [
        ("GET", "/v1/channels"),
        ("GET", "/v1/contacts/unmatched"),
        ("GET", "/v1/media/x/0"),
        ("POST", "/functions/v1/fetch-gmail-updates"),
    ] {
        let answer = w.send(method, target, &[], b"").await?;
        assert_eq!((answer.status, answer.header("access-control-allow-origin")), (401, Some("*")), "{target}: {answer:?}");
    }
    Ok(())
}

#[tokio::test]
async fn proxies_may_speak_http_2() -> Result<()> {
    let w = world().await?;
    let channel = w.channel().await?;
    let stream = tokio::net::TcpStream::connect(w.address()).await?;
    let (mut sender, connection) = hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    let target = format!("http://localhost{}", channel.target());
    let body = Full::new(bytes::Bytes::from_static(br#"{"ids": ["a"]}"#));
    let request = hyper::Request::post(target).header("x-test-signature", SECRET).body(body)?;
    assert_eq!(sender.send_request(request).await?.status(), 202);
    Ok(())
}

#[tokio::test]
async fn workers_are_notified() -> Result<()> {
    let w = world().await?;
    let channel = w.channel().await?;
    let mut listener = gleaner::notify::Listener::new(&w.url, "activities");
    eventually("the listener", async || Ok(listener.is_connected())).await?;
    listener.mark();
    w.post(&channel, &json!({"ids": ["a"]})).await?;
    tokio::time::timeout(std::time::Duration::from_secs(10), listener.notified()).await?;
    Ok(())
}

#[tokio::test]
async fn browsers_may_ask_first_from_anywhere() -> Result<()> {
    let w = world().await?;
    for target in ["/functions/v1/ingest-activity", "/health", "/no/such/thing"] {
        let asked = [
            ("origin", "https://app.example"),
            ("access-control-request-method", "POST"),
            ("access-control-request-headers", "apikey, x-new"),
        ];
        let answer = w.send("OPTIONS", target, &asked, b"").await?;
        assert!(matches!(answer.status, 200 | 204), "{answer:?}");
        assert_eq!(answer.header("access-control-allow-origin"), Some("*"));
        assert_eq!(answer.header("access-control-allow-headers"), Some("apikey, x-new"));
        assert!(answer.header("access-control-allow-methods").is_some_and(|methods| methods.contains("POST")));
        assert_eq!(answer.header("access-control-max-age"), Some("86400"));
    }
    let refused = w.send("POST", "/functions/v1/ingest-activity", &[("origin", "https://app.example")], b"").await?;
    assert_eq!((refused.status, refused.header("access-control-allow-origin")), (400, Some("*")));
    Ok(())
}

#[tokio::test]
async fn health_is_alive_and_ready_asks_the_database() -> Result<()> {
    let w = world().await?;
    let health = w.send("GET", "/health", &[], b"").await?;
    assert_eq!((health.status, &health.json()["database"]), (200, &"ok".into()));
    let ready = w.send("GET", "/ready", &[], b"").await?;
    assert_eq!((ready.status, &ready.json()["ready"]), (200, &true.into()));
    w.client.batch_execute("drop function gleaner.ingest_activities").await?;
    let not = w.send("GET", "/ready", &[], b"").await?;
    assert_eq!(not.status, 503);
    assert!(not.json()["problem"].as_str().is_some_and(|text| text.contains("gleaner migrate")), "{not:?}");
    assert_eq!(w.send("GET", "/health", &[], b"").await?.status, 200);
    Ok(())
}

/// Connections that are open go on answering when new ones fail, so health is judged on a new one.
#[tokio::test]
async fn health_and_ready_ask_on_a_new_connection() -> Result<()> {
    let w = world().await?;
    assert_eq!(w.send("GET", "/ready", &[], b"").await?.status, 200);
    let name: String = w.client.query_one("select current_database()::text", &[]).await?.get(0);
    // From another database: a session cannot lock out its own.
    let other = gleaner::connect(&w.url.replace(&format!("/{name}?"), "/postgres?")).await?;
    other.batch_execute(&format!("alter database {name} allow_connections false")).await?;
    let ready = w.send("GET", "/ready", &[], b"").await?;
    assert_eq!((ready.status, &ready.json()["problem"]), (503, &"the database does not answer".into()));
    let health = w.send("GET", "/health", &[], b"").await?;
    assert_eq!((health.status, &health.json()["database"]), (200, &"unavailable".into()));
    assert_eq!(w.count("select 1::int8").await?, 1, "open connections still work");
    other.batch_execute(&format!("alter database {name} allow_connections true")).await?;
    Ok(())
}

/// The id in the response finds the cause in the log. One that a proxy sent is kept.
#[tokio::test]
async fn every_response_has_a_request_id() -> Result<()> {
    let w = world().await?;
    let first = w.send("GET", "/health", &[], b"").await?;
    let second = w.send("GET", "/no/such/thing", &[], b"").await?;
    let id = |answer: &crate::webhooks::support::Answer| answer.header("x-request-id").map(str::to_owned);
    assert!(id(&first).is_some_and(|id| id.len() == 36) && id(&first) != id(&second), "{first:?} {second:?}");
    assert_eq!(id(&w.send("GET", "/health", &[("x-request-id", "from-the-proxy")], b"").await?).as_deref(), Some("from-the-proxy"));
    Ok(())
}

#[tokio::test]
async fn a_channel_sealed_by_one_server_opens_at_another_with_the_same_key() -> Result<()> {
    let w = world().await?;
    let channel = w.channel().await?;
    w.post(&channel, &json!({"ids": ["a"]})).await?;
    eventually("the seal", async || Ok(w.count("select count(*) from ingestion_providers where sealed").await? == 1)).await?;
    MasterKeys::load(&w.home.0)?;
    let (one, other) = (w.home.0.join("master.key"), crate::world::Home::new()?);
    std::fs::copy(one, other.0.join("master.key"))?;
    let second = crate::webhooks::support::world_on(&w.url, |config| config.home = other.0.clone()).await?;
    assert_eq!(second.post(&channel, &json!({"ids": ["b"]})).await?.status, 202);
    Ok(())
}
