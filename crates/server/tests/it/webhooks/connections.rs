//! Connections that send nothing, too little, or too much.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::webhooks::sender::LIMIT;
use crate::webhooks::support::{status, world, world_with};

/// Whether the server closes the connection. Waits long enough for a slow machine, and not as long as an idle connection is kept.
async fn is_closed(stream: &mut TcpStream) -> bool {
    let mut rest = Vec::new();
    tokio::time::timeout(Duration::from_secs(30), stream.read_to_end(&mut rest)).await.is_ok()
}

#[tokio::test]
async fn a_connection_without_a_complete_first_head_is_closed() -> Result<()> {
    let w = world_with(|config| config.head.first_within = Duration::from_millis(300)).await?;
    // Nothing; what could be the beginning of HTTP/1 or HTTP/2; half of a head.
    for sent in ["", "P", "PRI * HTTP/2.0\r\n", "POST /health HTTP/1.1\r\nhost: x\r\n"] {
        let mut stream = TcpStream::connect(w.address()).await?;
        stream.write_all(sent.as_bytes()).await?;
        assert!(is_closed(&mut stream).await, "{sent:?}");
    }
    // One that has sent its first request is kept for the next.
    let mut kept = TcpStream::connect(w.address()).await?;
    let mut answer = [0; 12];
    for _ in 0..2 {
        kept.write_all(b"GET /health HTTP/1.1\r\nhost: x\r\n\r\n").await?;
        kept.read_exact(&mut answer).await?;
        assert_eq!(&answer, b"HTTP/1.1 200");
        let mut rest = [0; 4096];
        let _ = kept.read(&mut rest).await?;
        tokio::time::sleep(Duration::from_millis(400)).await;
    }
    Ok(())
}

#[tokio::test]
async fn connections_are_limited_by_address_and_leave_room_when_they_end() -> Result<()> {
    let w = world_with(|config| config.connections.per_address = 3).await?;
    let mut held = Vec::new();
    for _ in 0..3 {
        held.push(TcpStream::connect(w.address()).await?);
    }
    let mut further = TcpStream::connect(w.address()).await?;
    assert!(is_closed(&mut further).await, "the fourth is closed at once");
    held.clear();
    crate::world::eventually("the places to be free", async || {
        Ok(w.send("GET", "/health", &[], b"").await.is_ok_and(|answer| answer.status == 200))
    })
    .await
}

#[tokio::test]
async fn a_stop_closes_connections_without_a_request_at_once() -> Result<()> {
    let w = world().await?;
    let mut silent = Vec::new();
    for sent in ["", "P", "GET / HTTP/1.1\r\n"] {
        let mut stream = TcpStream::connect(w.address()).await?;
        stream.write_all(sent.as_bytes()).await?;
        silent.push(stream);
    }
    // They are accepted in this order.
    w.send("GET", "/health", &[], b"").await?;
    let began = Instant::now();
    w.server.stop().await;
    for mut stream in silent {
        assert!(is_closed(&mut stream).await);
    }
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    Ok(())
}

/// The refusal is sent before the body has arrived. A client that only reads when it has sent everything must still get it.
#[tokio::test]
async fn an_early_refusal_reaches_a_client_that_sends_its_whole_body_first() -> Result<()> {
    let w = world().await?;
    let channel = w.channel().await?;
    let too_large = vec![b'x'; LIMIT + 8 * 1024 * 1024];
    for target in ["/no/such/route".to_owned(), format!("{}?key=unknown", crate::webhooks::support::WEBHOOK_PATH), channel.target()] {
        for _ in 0..5 {
            let mut stream = TcpStream::connect(w.address()).await?;
            let head = format!("POST {target} HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n", too_large.len());
            stream.write_all(head.as_bytes()).await?;
            stream.write_all(&too_large).await.with_context(|| format!("the server hung up on {target}"))?;
            let mut answer = [0; 64];
            let read = stream.read(&mut answer).await.with_context(|| format!("no answer from {target}"))?;
            assert!(status(&answer[..read]).is_some_and(|status| (400..500).contains(&status)), "{target}: {:?}", &answer[..read]);
        }
    }
    assert_eq!(w.post(&channel, &json!({"ids": ["a"]})).await?.status, 202);
    Ok(())
}
