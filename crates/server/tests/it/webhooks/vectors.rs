//! The published test vectors, positive and negative, sent to the running server over HTTP.

use std::net::SocketAddr;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use base64::Engine as _;
use gleaner::Pool;
use gleaner_intake::channels::WEBHOOK_PATH;
use gleaner_intake::files::Files;
use gleaner_intake::webhooks::{Clock, FurtherPath};
use gleaner_server::{Config, Server};
use serde::Deserialize;
use serde_json::{Map, Value};
use tokio_postgres::Client;

use crate::webhooks::support::Connection;
use crate::world::{Home, database};

#[derive(Debug, Deserialize)]
struct Vector {
    name: String,
    provider: String,
    #[serde(default)]
    settings: Map<String, Value>,
    #[serde(default = "public_base")]
    public_base: String,
    #[serde(default = "post")]
    method: String,
    target: String,
    #[serde(default)]
    headers: Map<String, Value>,
    body: Option<String>,
    body_base64: Option<String>,
    client: Option<String>,
    now: Option<u64>,
    verdict: String,
    why: Option<String>,
    status: Option<u16>,
    events: Option<Vec<Value>>,
    answer: Option<Value>,
}

fn public_base() -> String {
    "https://hooks.acme.example".to_owned()
}

fn post() -> String {
    "POST".to_owned()
}

#[tokio::test]
async fn every_vector_gets_its_verdict_over_http() -> Result<()> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../ingest/tests/vectors");
    let stand = Stand::new().await?;
    let mut count = 0;
    let mut wrong = Vec::new();
    for file in std::fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
        let path = file?.path();
        if path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let vectors: Vec<Vector> = serde_json::from_slice(&std::fs::read(&path)?).with_context(|| path.display().to_string())?;
        for vector in vectors {
            count += 1;
            if let Err(error) = check(&stand, &vector).await {
                wrong.push(format!("{} / {}: {error:#}", vector.provider, vector.name));
            }
        }
    }
    ensure!(count > 0, "there are no vectors");
    ensure!(wrong.is_empty(), "{} of {count} vectors:\n{}", wrong.len(), wrong.join("\n"));
    Ok(())
}

/// What the servers of all vectors share. Each vector has its own server, with its own clock and its own public address.
struct Stand {
    url: String,
    pool: Pool,
    client: Client,
    home: Home,
}

impl Stand {
    async fn new() -> Result<Self> {
        let url = database().await?.url;
        Ok(Self { pool: gleaner::pool(&url, 8)?, client: gleaner::connect(&url).await?, home: Home::new()?, url })
    }

    async fn server(&self, change: impl FnOnce(&mut Config)) -> Result<Server> {
        let mut config = Config::new(&self.home.0);
        config.listen = SocketAddr::from(([127, 0, 0, 1], 0));
        config.realtime = false;
        // Keys come with the vector; the real Google is not called.
        config.google.jwks_url = "http://127.0.0.1:9".to_owned();
        change(&mut config);
        Ok(Server::start(config, &self.url, self.pool.clone()).await?)
    }
}

async fn check(stand: &Stand, vector: &Vector) -> Result<()> {
    let (path, query) = vector.target.split_once('?').unwrap_or((&vector.target, ""));
    let key = query
        .split('&')
        .find_map(|pair| pair.strip_prefix("key="))
        .map_or_else(|| format!("vector-{}", uuid::Uuid::now_v7()), str::to_owned);
    let server = stand
        .server(|config| {
            config.public_base = Some(vector.public_base.clone());
            config.clock = vector.now.map_or(Clock::System, Clock::fixed_at);
            // A proxy sends the address of a vector's client. A vector without one arrived over a connection that is not
            // trusted.
            config.trusted_proxies = vec!["127.0.0.1/32".parse().expect("a network")];
            config.further_path = (path != WEBHOOK_PATH).then(|| FurtherPath { path: path.to_owned(), key: key.clone() });
        })
        .await?;
    // Vectors share keys, and a key belongs to one channel.
    stand.client.batch_execute("delete from activities; delete from ingestion_providers; delete from gleaner.ingest_memory").await?;
    stand
        .client
        .execute(
            "insert into ingestion_providers (provider_code, name, config, ingestion_key) values ($1, $2, $3, $4)",
            &[&vector.provider, &vector.name, &Value::Object(vector.settings.clone()), &key],
        )
        .await?;
    let mut headers: Vec<(String, String)> = Vec::new();
    for (name, value) in &vector.headers {
        for value in value.as_array().map_or_else(|| vec![value], |several| several.iter().collect()) {
            headers.push((name.clone(), value.as_str().context("headers are texts")?.to_owned()));
        }
    }
    headers.extend(vector.client.iter().map(|client| ("x-forwarded-for".to_owned(), client.clone())));
    let borrowed: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let body = match (&vector.body, &vector.body_base64) {
        (_, Some(encoded)) => base64::engine::general_purpose::STANDARD.decode(encoded)?,
        (Some(text), None) => text.clone().into_bytes(),
        (None, None) => Vec::new(),
    };
    let answer = Connection::open(server.local_addr()).await?.send(&vector.method, &vector.target, &borrowed, &body).await?;
    let accepted = (200..300).contains(&answer.status);
    // A request may be authentic and still be refused for its content; then its status is given.
    ensure!(accepted == (vector.verdict == "accepted") || vector.status.is_some(), "{} instead of {}", answer.status, vector.verdict);
    if let Some(status) = vector.status {
        ensure!(answer.status == status, "status {} instead of {status}: {answer:?}", answer.status);
    }
    if let Some(why) = &vector.why {
        server.state().webhooks.flush_refusals().await;
        let reasons = "select string_agg(distinct reason, ' ') from gleaner.ingest_refusal
                       where provider_id in (select id from ingestion_providers) and reason <> 'warning'";
        let recorded: Option<String> = stand.client.query_one(reasons, &[]).await?.get(0);
        ensure!(recorded.as_deref() == Some(why), "recorded as {recorded:?} instead of {why}");
    }
    if let Some(expected) = &vector.answer {
        for (name, given) in [("status", answer.status.to_string()), ("body", String::from_utf8_lossy(&answer.body).into_owned())] {
            let wanted = expected.get(name).map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned));
            ensure!(wanted.as_ref().is_none_or(|wanted| *wanted == given), "answer: {name} {given:?} instead of {wanted:?}");
        }
        let kind = expected["content_type"].as_str();
        ensure!(
            kind.is_none_or(|kind| answer.header("content-type").is_some_and(|given| given.starts_with(kind))),
            "content type: {answer:?}"
        );
    }
    events(stand, &server, vector).await?;
    server.stop().await;
    Ok(())
}

async fn events(stand: &Stand, server: &Server, vector: &Vector) -> Result<()> {
    let rows = stand
        .client
        .query(
            "select jsonb_build_object('id', id, 'sender_name', metadata -> 'sender_name', 'type', type, 'direction', direction, 'raw_data', raw_data, 'metadata', metadata, 'external_id', external_id,
                 'sender', case when sender_kind is not null then jsonb_build_object('kind', sender_kind, 'address', sender_address) end)
             from activities order by external_id",
            &[],
        )
        .await?;
    let stored: Vec<Value> = rows.iter().map(|row| row.get(0)).collect();
    if vector.verdict == "refused" {
        ensure!(stored.is_empty(), "stored although refused: {stored:?}");
    }
    let Some(expected) = &vector.events else { return Ok(()) };
    ensure!(stored.len() == expected.len(), "{} events instead of {}: {stored:?}", stored.len(), expected.len());
    for event in expected {
        let mut row = event.clone();
        // What a provider returns besides the row: files, and where to look for what it does not know.
        let files = row.as_object_mut().and_then(|row| row.remove("attachments"));
        row.as_object_mut().and_then(|row| row.remove("recall"));
        let found = stored.iter().find(|stored| holds(stored, &row)).with_context(|| format!("{row}\n  is not among {stored:?}"))?;
        for file in files.as_ref().and_then(Value::as_array).into_iter().flatten() {
            let listed = found["metadata"]["attachments"].as_array().context("attachments are listed")?;
            let place = listed.iter().position(|one| one["name"] == file["name"]).with_context(|| format!("{file} is not listed"))?;
            let path = Files::of_activity(serde_json::from_value(found["id"].clone())?, place);
            let bytes = server.state().files.get(&path).await?.with_context(|| format!("{file} is not kept"))?.bytes().await?;
            ensure!(file["text"].as_str().is_none_or(|text| text.as_bytes() == bytes), "{file} is kept as {bytes:?}");
        }
    }
    Ok(())
}

/// Whether everything that is expected is present; there may be more.
fn holds(stored: &Value, expected: &Value) -> bool {
    match expected {
        Value::Object(members) => members.iter().all(|(name, value)| holds(&stored[name], value)),
        Value::Array(items) => stored
            .as_array()
            .is_some_and(|stored| stored.len() == items.len() && stored.iter().zip(items).all(|(stored, item)| holds(stored, item))),
        other => stored == other,
    }
}
