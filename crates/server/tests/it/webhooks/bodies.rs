//! Request bodies: limits on their size while they stream, and on time.

use std::time::Duration;

use anyhow::{Context as _, Result};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::webhooks::sender::{LIMIT, SECRET};
use crate::webhooks::support::{raw, status, world, world_with};

fn head(target: &str, more: &str) -> String {
    format!("POST {target} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\nx-test-signature: {SECRET}\r\n{more}\r\n")
}

#[tokio::test]
async fn a_body_of_unknown_length_is_stopped_at_the_limit() -> Result<()> {
    let w = world().await?;
    let channel = w.channel().await?;
    let mut stream = TcpStream::connect(w.address()).await?;
    stream.write_all(head(&channel.target(), "transfer-encoding: chunked\r\n").as_bytes()).await?;
    let (mut from, mut to) = stream.into_split();
    // The body never ends, so only a limit that is enforced while streaming can answer.
    let sending = tokio::spawn(async move {
        let chunk = format!("10000\r\n{}\r\n", "x".repeat(0x10000));
        let mut sent = 0_usize;
        while sent < 100 * LIMIT && to.write_all(chunk.as_bytes()).await.is_ok() {
            sent += 0x10000;
        }
        sent
    });
    let mut answer = vec![0; 12];
    tokio::time::timeout(Duration::from_secs(20), from.read_exact(&mut answer)).await.context("no answer")??;
    assert_eq!(status(&answer), Some(413));
    drop(from);
    assert!(sending.await? < 100 * LIMIT, "it was all read");
    assert_eq!(w.refusals(Some(channel.id)).await?, [("too_large".to_owned(), 1)]);
    Ok(())
}

#[tokio::test]
async fn a_body_that_promises_too_much_is_refused_before_it_is_read() -> Result<()> {
    let w = world().await?;
    let channel = w.channel().await?;
    let mut stream = TcpStream::connect(w.address()).await?;
    stream.write_all(head(&channel.target(), &format!("content-length: {}\r\n", LIMIT + 1)).as_bytes()).await?;
    let mut answer = vec![0; 12];
    tokio::time::timeout(Duration::from_secs(5), stream.read_exact(&mut answer)).await.context("no answer")??;
    assert_eq!(status(&answer), Some(413));
    Ok(())
}

#[tokio::test]
async fn a_refused_sender_that_writes_first_and_reads_later_still_hears_the_answer() -> Result<()> {
    let w = world().await?;
    let channel = w.channel().await?;
    let body = "x".repeat(15 * 1024 * 1024); // More than the socket buffers hold.
    for (target, expected) in [(channel.target(), 413), (format!("{}?key=nobody", crate::webhooks::support::WEBHOOK_PATH), 401)] {
        let request = head(&target, &format!("content-length: {}\r\n", body.len())) + &body;
        let mut stream = TcpStream::connect(w.address()).await?;
        stream.write_all(request.as_bytes()).await.context("it hung up while we were speaking")?;
        let mut answer = vec![0; 12];
        stream.read_exact(&mut answer).await?;
        assert_eq!(status(&answer), Some(expected));
    }
    Ok(())
}

#[tokio::test]
async fn a_body_just_within_the_limit_is_taken_whole() -> Result<()> {
    let w = world().await?;
    let channel = w.channel().await?;
    let empty = json!({"ids": ["a"], "text": ""}).to_string().len();
    let text = "x".repeat(LIMIT - empty);
    assert_eq!(w.post(&channel, &json!({"ids": ["a"], "text": text})).await?.status, 202);
    assert_eq!(w.count("select length(raw_data ->> 'content')::bigint from activities").await?, i64::try_from(text.len())?);
    assert_eq!(w.post(&channel, &json!({"ids": ["b"], "text": text + "x"})).await?.status, 413);
    Ok(())
}

#[tokio::test]
async fn a_body_that_stops_in_the_middle_times_out() -> Result<()> {
    let w = world_with(|config| config.limits.body_idle = Duration::from_millis(200)).await?;
    let channel = w.channel().await?;
    let mut stream = TcpStream::connect(w.address()).await?;
    stream.write_all((head(&channel.target(), "content-length: 100\r\n") + "half").as_bytes()).await?;
    let mut answer = vec![0; 12];
    tokio::time::timeout(Duration::from_secs(20), stream.read_exact(&mut answer)).await.context("no answer")??;
    assert_eq!(status(&answer), Some(408));
    assert_eq!(w.refusals(Some(channel.id)).await?, [("slow".to_owned(), 1)]);
    Ok(())
}

#[tokio::test]
async fn a_drip_of_bytes_cannot_hold_a_connection_for_ever() -> Result<()> {
    let w = world_with(|config| config.limits.body_total = Duration::from_millis(400)).await?;
    let channel = w.channel().await?;
    let mut stream = TcpStream::connect(w.address()).await?;
    stream.write_all(head(&channel.target(), "content-length: 100000\r\n").as_bytes()).await?;
    let (mut from, mut to) = stream.into_split();
    tokio::spawn(async move {
        while to.write_all(b"x").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    let mut answer = vec![0; 12];
    tokio::time::timeout(Duration::from_secs(20), from.read_exact(&mut answer)).await.context("no answer")??;
    assert_eq!(status(&answer), Some(408));
    Ok(())
}

#[tokio::test]
async fn all_bodies_together_are_bounded() -> Result<()> {
    let w = world_with(|config| config.limits.body_memory = 256 * 1024).await?;
    let channel = w.channel().await?;
    let large = json!({"ids": ["a"], "text": "x".repeat(400 * 1024)});
    let answer = w.post(&channel, &large).await?;
    assert_eq!((answer.status, answer.header("retry-after")), (503, Some("5")));
    // Its share of the memory budget is returned.
    assert_eq!(w.post(&channel, &json!({"ids": ["b"], "text": "x".repeat(200 * 1024)})).await?.status, 202);
    assert_eq!(w.post(&channel, &json!({"ids": ["c"], "text": "x".repeat(200 * 1024)})).await?.status, 202);
    Ok(())
}

#[tokio::test]
async fn endless_headers_and_targets_are_refused() -> Result<()> {
    let w = world().await?;
    let channel = w.channel().await?;
    let long = head(&channel.target(), &format!("x-long: {}\r\n", "x".repeat(200_000)));
    assert!(matches!(status(&raw(w.address(), long.as_bytes()).await?), Some(431 | 400)), "headers");
    let long = head(&format!("{}&x={}", channel.target(), "x".repeat(200_000)), "");
    assert!(matches!(status(&raw(w.address(), long.as_bytes()).await?), Some(414 | 431 | 400)), "target");
    Ok(())
}
