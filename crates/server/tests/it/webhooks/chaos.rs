//! Ten thousand events from sixty-four connections while PostgreSQL is killed and restarted: every acknowledged event is
//! stored exactly once.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use uuid::Uuid;

use crate::webhooks::sender::SECRET;
use crate::webhooks::support::{Connection, world_on};
use crate::world::private_server;

const EVENTS: usize = 10_000;
const CONNECTIONS: usize = 64;
const CRASHES: usize = 3;

/// The acknowledgements that one connection received: event and id.
type Acknowledged = Vec<(usize, Uuid)>;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_acknowledged_event_survives_killed_postgres_and_is_there_once() -> Result<()> {
    let mut postgres = private_server(&[]).await?;
    let url = postgres.url().to_owned();
    let w = world_on(&url, |_| {}).await?;
    let channel = w.channel().await?;
    let (next, told) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let mut senders = Vec::new();
    for _ in 0..CONNECTIONS {
        let sender = send(w.address(), channel.target(), Arc::clone(&next), Arc::clone(&told));
        senders.push(tokio::spawn(sender));
    }
    let begun = Instant::now();
    for crash in 0..CRASHES {
        // In the middle: some are acknowledged, and many are in flight.
        while told.load(Ordering::SeqCst) < EVENTS * (crash + 1) / (CRASHES + 2) {
            ensure!(begun.elapsed() < Duration::from_secs(240), "nothing moves: {} were acknowledged", told.load(Ordering::SeqCst));
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        postgres.crash().await?;
        postgres.restart().await?;
    }
    let mut acknowledged: HashMap<usize, Uuid> = HashMap::new();
    for sender in senders {
        for (event, id) in tokio::time::timeout(Duration::from_secs(240), sender).await.context("a sender does not end")??? {
            // Some are sent twice on purpose; both responses must have the same id.
            ensure!(*acknowledged.entry(event).or_insert(id) == id, "event {event} has two ids");
        }
    }
    ensure!(acknowledged.len() == EVENTS, "{} of {EVENTS} were ever acknowledged", acknowledged.len());
    let client = gleaner::connect(&url).await?;
    let rows = client.query("select external_id, id from activities", &[]).await?;
    ensure!(rows.len() == EVENTS, "{} activities for {EVENTS} events", rows.len());
    for row in rows {
        let (event, id): (String, Uuid) = (row.get(0), row.get(1));
        ensure!(acknowledged.get(&event.parse()?) == Some(&id), "event {event} is stored under another id than was told");
    }
    Ok(())
}

/// Takes the next event and sends it until it is acknowledged, as providers do. Every tenth is sent again after that.
async fn send(address: std::net::SocketAddr, target: String, next: Arc<AtomicUsize>, told: Arc<AtomicUsize>) -> Result<Acknowledged> {
    let mut connection = Connection::open(address).await?;
    let mut acknowledged = Vec::new();
    loop {
        let event = next.fetch_add(1, Ordering::SeqCst);
        if event >= EVENTS {
            return Ok(acknowledged);
        }
        let body = format!("{{\"ids\": [\"{event}\"]}}");
        let mut deliveries = if event.is_multiple_of(10) { 2 } else { 1 };
        while deliveries > 0 {
            let answer = connection.send("POST", &target, &[("x-test-signature", SECRET)], body.as_bytes()).await?;
            match answer.status {
                202 => {
                    acknowledged.push((event, answer.id()?));
                    told.fetch_add(1, Ordering::SeqCst);
                    deliveries -= 1;
                }
                503 => {
                    ensure!(answer.header("retry-after").is_some(), "{answer:?}");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
                other => anyhow::bail!("event {event} was answered with {other}: {answer:?}"),
            }
        }
    }
}
