//! A secret or key never appears in a log line, a response, or a dump of the tables.

use anyhow::{Result, ensure};

use crate::log;
use crate::webhooks::sender::SECRET;
use crate::webhooks::support::{WEBHOOK_PATH, world};
use crate::world::eventually;

#[tokio::test]
async fn secrets_are_in_no_log_line_no_answer_and_no_table() -> Result<()> {
    let log = log::everywhere();
    let w = world().await?;
    let channel = w.channel().await?;
    let guessed = "guessed-key-4711";
    let wrong = "forged-signature-4711";
    let bearer = "bearer-token-4711";
    let mut answers = Vec::new();
    for (target, signature, body) in [
        (channel.target(), SECRET, r#"{"ids": ["a"]}"#),
        (channel.target(), SECRET, r#"{"ids": ["b"], "metadata": {"nul": "\u0000"}}"#),
        (channel.target(), SECRET, "not json"),
        (channel.target(), wrong, "{}"),
        (format!("{WEBHOOK_PATH}?key={guessed}&hub.verify_token={bearer}"), SECRET, "{}"),
        (format!("/elsewhere?key={guessed}"), SECRET, "{}"),
    ] {
        let authorization = format!("Bearer {bearer}");
        let headers = [("x-test-signature", signature), ("authorization", authorization.as_str()), ("x-odd", "yes")];
        answers.extend(w.send("POST", &target, &headers, body.as_bytes()).await?.body);
    }
    w.refusals(None).await?;
    eventually("the seal", async || Ok(w.count("select count(*) from ingestion_providers where not sealed").await? == 0)).await?;

    let mut dump = String::new();
    for table in
        ["ingestion_providers", "activities", "gleaner.raw_request", "gleaner.ingest_refusal", "gleaner.ingest_memory", "gleaner.audit"]
    {
        dump += &w.text(&format!("select string_agg(t::text, e'\\n') from {table} t")).await?.unwrap_or_default();
    }
    let debugged = format!("{:?}", w.server.state());
    let log = log.text();
    ensure!(log.contains("rejected: "), "the log is not being listened to");
    let places =
        [("the log", log.as_str()), ("an answer", &String::from_utf8_lossy(&answers)), ("a table", &dump), ("a debug form", &debugged)];
    for secret in [channel.key.as_str(), SECRET, guessed, wrong, bearer] {
        for (place, text) in places {
            let at = text.find(secret);
            ensure!(at.is_none(), "{secret} is in {place}: …{}…", &text[at.unwrap_or(0).saturating_sub(200)..][..300]);
        }
    }
    Ok(())
}
