//! Refused requests, the responses to them, and what the operator reads.

use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Result;
use gleaner_ingest::scheme::Keys;
use gleaner_ingest::schemes::mailgun;
use serde_json::json;

use crate::webhooks::sender::SECRET;
use crate::webhooks::support::{WEBHOOK_PATH, world};

#[tokio::test]
async fn every_refusal_has_its_status_and_is_recorded_with_its_reason() -> Result<()> {
    let w = world().await?;
    let (channel, strange) = (w.channel().await?, w.channel_of("carrier-pigeon", json!({})).await?);
    let signed = [("x-test-signature", SECRET)];
    for (target, headers, body, status) in [
        (channel.target(), &[][..], "{}", 401),
        (channel.target(), &[("x-test-signature", "wrong")], "{}", 401),
        (channel.target(), &[("x-test-signature", SECRET), ("x-test-signature", SECRET)], "{}", 401),
        (channel.target(), &signed, "not json", 400),
        (channel.target(), &signed, r#"{"do": "unusable"}"#, 403),
        (strange.target(), &signed, "{}", 401),
    ] {
        let answer = w.send("POST", &target, headers, body.as_bytes()).await?;
        assert_eq!(answer.status, status, "{answer:?}");
        assert_eq!((answer.header("content-type"), &answer.json()["success"]), (Some("application/json"), &false.into()));
    }
    let recorded = w.refusals(Some(channel.id)).await?;
    let expected = [("malformed", 1), ("mismatch", 1), ("unsigned", 2), ("unusable", 1)];
    assert_eq!(recorded, expected.map(|(reason, count)| (reason.to_owned(), count)));
    assert_eq!(w.refusals(Some(strange.id)).await?, [("unknown_provider".to_owned(), 1)]);
    let sql = "select concat_ws(' ', status, count, host(last_client), detail) from gleaner.ingest_refusal where reason = 'mismatch'";
    let mismatch = w.text(sql).await?.expect("a row");
    assert!(mismatch.starts_with("401 1 127.0.0.1 ") && mismatch.contains("wrong secret, wrong public URL"), "{mismatch}");
    Ok(())
}

#[tokio::test]
async fn an_unknown_key_reveals_nothing_and_is_counted_under_no_channel() -> Result<()> {
    let w = world().await?;
    let paused = w.channel().await?;
    w.client.execute("update ingestion_providers set is_active = false where id = $1", &[&paused.id]).await?;
    let unknown = w.send("POST", &format!("{WEBHOOK_PATH}?key=nobody"), &[("x-test-signature", SECRET)], b"{}").await?;
    let resting = w.post(&paused, &json!({"ids": ["a"]})).await?;
    assert_eq!((unknown.status, &unknown.body), (401, &resting.body));
    assert_eq!(resting.status, 401);
    for target in [WEBHOOK_PATH.to_owned(), format!("{WEBHOOK_PATH}?key="), format!("{WEBHOOK_PATH}?key=a&key=b")] {
        assert_eq!(w.send("POST", &target, &[], b"{}").await?.status, 400, "{target}");
    }
    assert_eq!(w.refusals(None).await?, [("no_key".to_owned(), 3), ("unknown_key".to_owned(), 1)]);
    assert_eq!(w.refusals(Some(paused.id)).await?, [("paused".to_owned(), 1)]);
    assert_eq!(w.count("select count(*) from activities").await?, 0);
    Ok(())
}

#[tokio::test]
async fn a_one_time_token_is_good_for_one_request() -> Result<()> {
    let w = world().await?;
    let channel = w.channel().await?;
    let headers = [("x-test-signature", SECRET), ("x-once", "token-1")];
    assert_eq!(w.send("POST", &channel.target(), &headers, br#"{"ids": ["a"]}"#).await?.status, 202);
    assert_eq!(w.send("POST", &channel.target(), &headers, br#"{"ids": ["b"]}"#).await?.status, 401);
    assert_eq!(w.count("select count(*) from activities").await?, 1);
    assert_eq!(w.refusals(Some(channel.id)).await?, [("replayed".to_owned(), 1)]);
    Ok(())
}

/// Mailgun retries when it had no response in time, and wraps the same message in a new request. The retry is accepted, and
/// the mail is stored once.
#[tokio::test]
async fn a_mail_that_mailgun_delivers_again_is_accepted_and_another_one_with_its_token_is_not() -> Result<()> {
    let w = world().await?;
    let channel = w.channel_of("mailgun", json!({"signing_key": "key"})).await?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs().try_into()?;
    let signed = mailgun::signed_fields(&Keys::new(["key"]), now).map_err(anyhow::Error::msg)?;
    let body = |boundary: &str, text: &str| {
        let fields = [
            ("timestamp", signed.timestamp.as_str()),
            ("token", &signed.token),
            ("signature", &signed.signature),
            ("sender", "bob@example.com"),
            ("from", "Bob <bob@example.com>"),
            ("subject", "Hello"),
            ("body-plain", text),
        ];
        let part =
            |(name, value): (&str, &str)| format!("--{boundary}\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n");
        fields.map(part).concat() + &format!("--{boundary}--\r\n")
    };
    let send = async |boundary: &str, text: &str| {
        let kind = format!("multipart/form-data; boundary={boundary}");
        w.send("POST", &channel.target(), &[("content-type", &kind)], body(boundary, text).as_bytes()).await
    };
    let first = send("one", "Hi Alice").await?;
    assert_eq!(first.status, 200, "{first:?}");
    for boundary in ["one", "another"] {
        let again = send(boundary, "Hi Alice").await?;
        assert_eq!((again.status, again.body.as_slice()), (200, first.body.as_slice()), "{again:?}");
    }
    let changed = send("one", "Hi Alice, send money").await?;
    assert_eq!(changed.status, 401, "{changed:?}");
    assert_eq!(w.count("select count(*) from activities").await?, 1);
    assert_eq!(w.text("select raw_data ->> 'content' from activities").await?.as_deref(), Some("Hi Alice"));
    assert_eq!(w.refusals(Some(channel.id)).await?, [("replayed".to_owned(), 1)]);
    Ok(())
}

#[tokio::test]
async fn what_is_authentic_and_not_understood_is_kept_for_a_replay() -> Result<()> {
    let w = world().await?;
    let channel = w.channel().await?;
    let answer = w.send("POST", &channel.target(), &[("x-test-signature", SECRET)], b"not json yet").await?;
    assert_eq!(answer.status, 400);
    assert_eq!(w.text("select convert_from(body, 'utf8') from gleaner.raw_request").await?.as_deref(), Some("not json yet"));
    // A request that is not authentic leaves only a count.
    w.send("POST", &channel.target(), &[("x-test-signature", "wrong")], b"stranger").await?;
    assert_eq!(w.count("select count(*) from gleaner.raw_request").await?, 1);
    Ok(())
}

#[tokio::test]
async fn warnings_are_where_refusals_are_and_refuse_nothing() -> Result<()> {
    let w = world().await?;
    let channel = w.channel().await?;
    assert_eq!(w.post(&channel, &json!({"do": "nothing", "warning": "the wrong URL was pasted"})).await?.status, 202);
    assert_eq!(w.refusals(Some(channel.id)).await?, [("notice".to_owned(), 1)]);
    Ok(())
}

#[tokio::test]
async fn a_content_encoding_that_is_not_supported_is_refused_with_415() -> Result<()> {
    let w = world().await?;
    let channel = w.channel().await?;
    for (encoding, status) in [("gzip", 415), ("identity, br", 415), ("x-unheard-of", 415), ("identity", 202)] {
        let headers = [("x-test-signature", SECRET), ("content-encoding", encoding)];
        let answer = w.send("POST", &channel.target(), &headers, br#"{"ids": ["a"]}"#).await?;
        assert_eq!(answer.status, status, "{encoding}: {answer:?}");
    }
    assert_eq!(w.refusals(Some(channel.id)).await?, [("unsupported".to_owned(), 3)]);
    let unknown = w.send("POST", &format!("{WEBHOOK_PATH}?key=nobody"), &[("content-encoding", "gzip")], b"{}").await?;
    assert_eq!(unknown.status, 401, "first the key, then everything else");
    Ok(())
}

#[tokio::test]
async fn json_may_begin_with_a_byte_order_mark() -> Result<()> {
    let w = world().await?;
    let channel = w.channel_of("generic", json!({"scheme": "none"})).await?;
    let body = "\u{feff}{\"type\": \"note\", \"content\": \"Hello\"}";
    let answer = w.send("POST", &channel.target(), &[("content-type", "application/json")], body.as_bytes()).await?;
    assert_eq!(answer.status, 202, "{answer:?}");
    assert_eq!(w.text("select concat_ws(' ', type, raw_data ->> 'content') from activities").await?.as_deref(), Some("note Hello"));
    Ok(())
}

#[tokio::test]
async fn the_check_mail_of_postmark_is_seen_by_the_operator() -> Result<()> {
    let w = world().await?;
    let channel = w.channel_of("postmark", json!({"ip_mode": "off"})).await?;
    let check = json!({"From": "support@postmarkapp.com", "MessageID": "00000000-0000-0000-0000-000000000000", "TextBody": "Test"});
    let answer = w.send("POST", &channel.target(), &[("content-type", "application/json")], check.to_string().as_bytes()).await?;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(w.refusals(Some(channel.id)).await?, [("notice".to_owned(), 1)]);
    let told = w.text("select detail from gleaner.ingest_refusal").await?.unwrap_or_default();
    assert!(told.contains("Check button") && told.contains("arrived"), "{told}");
    Ok(())
}

#[tokio::test]
async fn other_methods_and_paths_are_distinguished() -> Result<()> {
    let w = world().await?;
    let channel = w.channel().await?;
    for method in ["PUT", "DELETE", "PATCH"] {
        let answer = w.send(method, &channel.target(), &[], b"{}").await?;
        assert_eq!((answer.status, answer.header("content-type")), (405, Some("application/json; charset=utf-8")));
    }
    let nothing = w.send("POST", "/functions/v1/no-such-function", &[], b"{}").await?;
    assert_eq!((nothing.status, nothing.header("content-type")), (404, Some("application/json; charset=utf-8")));
    Ok(())
}
