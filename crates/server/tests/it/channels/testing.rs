//! `test`: sends a sample to a webhook endpoint, and reports why it is refused.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use anyhow::Result;
use axum::Router;
use axum::body::Bytes;
use axum::extract::Request as Incoming;
use axum::http::{HeaderMap, StatusCode};
use gleaner_ingest::sealing::{MasterKeys, Place};
use gleaner_ingest::{Provider as _, Request};
use gleaner_intake::channels::{Addresses, CHALLENGE_HEADER, Channels, PROOF_HEADER, WEBHOOK_PATH};
use serde_json::json;
use uuid::Uuid;

use crate::channels::world::{Parrot, World, parrot, world};

/// A webhook endpoint whose public URL is `base`, or else the address it listens on.
async fn door(world: &World, base: Option<String>) -> Result<String> {
    let listener = tokio::net::TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).await?;
    let here = format!("http://{}", listener.local_addr()?);
    let (channels, pool, base) = (world.channels.clone(), world.pool.clone(), base.unwrap_or_else(|| here.clone()));
    let prover = channels.clone();
    let answer = async move |request: Incoming| match enter(&channels, &pool, &base, request).await {
        Ok(id) => (StatusCode::ACCEPTED, json!({"success": true, "id": id}).to_string()),
        Err(error) => (StatusCode::UNAUTHORIZED, json!({"success": false, "error": error.to_string()}).to_string()),
    };
    let prove = async move |headers: HeaderMap| {
        let challenge = headers.get(CHALLENGE_HEADER).and_then(|value| value.to_str().ok()).unwrap_or_default();
        [(PROOF_HEADER, prover.prove(challenge).unwrap_or_default())]
    };
    tokio::spawn(axum::serve(listener, Router::new().route(WEBHOOK_PATH, axum::routing::post(answer).get(prove))).into_future());
    Ok(here)
}

/// Another program, which answers every request with success and keeps what it was sent.
async fn stranger() -> Result<(String, Arc<Mutex<String>>)> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let here = format!("http://{}", listener.local_addr()?);
    let heard = Arc::new(Mutex::new(String::new()));
    let kept = Arc::clone(&heard);
    let answer = async move |request: Incoming| {
        let (parts, body) = request.into_parts();
        let body = axum::body::to_bytes(body, 1 << 20).await.unwrap_or_default();
        kept.lock().unwrap().push_str(&format!("{} {:?} {}\n", parts.uri, parts.headers, String::from_utf8_lossy(&body)));
        // A proof of another installation, and for another question.
        [(PROOF_HEADER, MasterKeys::generate().seal(b"", &Place { table: "webhook endpoint", row: "x", purpose: "proof" }))]
    };
    tokio::spawn(axum::serve(listener, Router::new().fallback(answer)).into_future());
    Ok((here, heard))
}

#[tokio::test]
async fn a_key_is_not_sent_to_a_port_that_another_program_holds() -> Result<()> {
    let world = world().await?;
    let key = world.channels.add(parrot("Support", &[("token", "polly")])).await?.key()?.to_owned();
    let (elsewhere, heard) = stranger().await?;
    for local in [elsewhere.clone(), door(&world, Some(elsewhere.clone())).await?] {
        let tested = world.channels.test("Support", &addresses(Some(&elsewhere), &local)).await?;
        assert!(!tested.passed && tested.verdict.contains("another program"), "{tested:?}");
    }
    let heard = heard.lock().unwrap().clone();
    assert!(heard.contains(CHALLENGE_HEADER), "it was asked: {heard}");
    assert!(!heard.contains(&key) && !heard.contains("polly"), "{heard}");
    Ok(())
}

async fn enter(channels: &Channels, pool: &gleaner::Pool, base: &str, request: Incoming) -> Result<Uuid> {
    let (parts, body) = request.into_parts();
    let target = parts.uri.path_and_query().map_or("/", |target| target.as_str());
    let key = target.split_once("key=").map(|(_, key)| key).unwrap_or_default();
    let channel = channels.by_key(key).await?.ok_or_else(|| anyhow::anyhow!("unknown key"))?;
    let body: Bytes = axum::body::to_bytes(body, 1 << 20).await?;
    let now = std::time::SystemTime::now();
    let request = Request { method: &parts.method, target, headers: &parts.headers, body: &body, client: None, now, public_base: base };
    Parrot.verify(&channel, &request)?;
    let row = pool
        .get()
        .await?
        .query_one(
            "insert into activities (type, provider_id, raw_data) values ('note', $1, '{\"content\": \"hello\"}') returning id",
            &[&channel.id],
        )
        .await?;
    Ok(row.get(0))
}

fn addresses(public: Option<&str>, local: &str) -> Addresses {
    Addresses { public: public.map(ToOwned::to_owned), local: Some(local.to_owned()) }
}

#[tokio::test]
async fn a_sample_passes_and_is_not_worked_on() -> Result<()> {
    let world = world().await?;
    world.channels.add(parrot("Support", &[("token", "polly")])).await?;
    let here = door(&world, None).await?;
    let tested = world.channels.test("Support", &addresses(None, &here)).await?;
    assert!(tested.passed && tested.activity_id.is_some(), "{tested:?}");
    let row = world.text("select concat(processing_status, ' ', metadata ->> 'test') from activities").await?;
    assert_eq!(row.as_deref(), Some("cancelled true"));
    Ok(())
}

#[tokio::test]
async fn a_server_that_believes_another_address_is_found_out() -> Result<()> {
    let world = world().await?;
    let key = world.channels.add(parrot("Support", &[("token", "polly")])).await?.key()?.to_owned();
    // Two addresses of one server, which does not know the public one.
    let local = door(&world, None).await?;
    let public = door(&world, Some(local.clone())).await?;
    let tested = world.channels.test("Support", &addresses(Some(&public), &local)).await?;
    let advice = tested.advice.join("\n");
    assert!(!tested.passed && advice.contains(&format!("PUBLIC_BASE_URL={public}")) && advice.contains("public_url"), "{tested:?}");
    assert!(!format!("{tested:?}").contains(&key), "the key is not told");
    assert_eq!(world.text("select count(*)::text from activities where processing_status <> 'cancelled'").await?.as_deref(), Some("0"));
    Ok(())
}

#[tokio::test]
async fn an_unreachable_or_wrong_address_is_distinguished_from_a_failing_endpoint() -> Result<()> {
    let world = world().await?;
    world.channels.add(parrot("Support", &[("token", "polly")])).await?;
    // A port that no server listens on any more.
    let closed = tokio::net::TcpListener::bind("127.0.0.1:0").await?.local_addr()?;
    let nowhere = format!("http://{closed}");
    let local = door(&world, Some(nowhere.clone())).await?;
    let tested = world.channels.test("Support", &addresses(Some(&nowhere), &local)).await?;
    assert!(!tested.passed && tested.verdict.contains("cannot be reached") && tested.advice[0].contains("DNS"), "{tested:?}");

    let (elsewhere, _) = stranger().await?;
    let local = door(&world, Some(elsewhere.clone())).await?;
    let tested = world.channels.test("Support", &addresses(Some(&elsewhere), &local)).await?;
    assert!(!tested.passed && tested.advice[0].contains("somewhere else"), "{tested:?}");

    let tested = world.channels.test("Support", &addresses(Some(&nowhere), &nowhere)).await?;
    assert!(!tested.passed && tested.advice[0].contains("gleaner serve"), "{tested:?}");
    Ok(())
}

#[tokio::test]
async fn a_paused_channel_is_not_tested() -> Result<()> {
    let world = world().await?;
    world.channels.add(parrot("Support", &[("token", "polly")])).await?;
    world.channels.pause("Support").await?;
    let told = world.channels.test("Support", &Addresses::default()).await.unwrap_err().to_string();
    assert!(told.contains("paused") && told.contains("resume"), "{told}");
    Ok(())
}
