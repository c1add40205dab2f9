//! No input to the webhook endpoint causes a server error.

use anyhow::{Result, ensure};
use rand::rngs::StdRng;
use rand::{Rng as _, RngCore as _, SeedableRng as _};
use serde_json::json;

use crate::webhooks::sender::SECRET;
use crate::webhooks::support::{raw, raw_and_over, status, world_with};

fn bytes(random: &mut StdRng, most: usize) -> Vec<u8> {
    let mut bytes = vec![0; random.random_range(0..=most)];
    random.fill_bytes(&mut bytes);
    bytes
}

/// Text that is nearly valid, and that random bytes would never produce.
fn nearly(random: &mut StdRng) -> Vec<u8> {
    const PIECES: &[&str] = &[
        "{\"ids\":[\"a\"],",
        "\"metadata\":{\"x\":\"\\u0000\"}}",
        "\"text\":\"\\ud800\"}",
        "[[[[[[[[",
        "From=%2B1415",
        "&MessageSid=SM0",
        "&Body=%00%FF%",
        "{\"",
        "\\u0000",
        "9223372036854775808",
        "1e999",
        "--boundary\r\n",
        "\u{feff}",
        "%",
        "&&&===",
        "null",
        "\"",
    ];
    (0..random.random_range(1..12)).flat_map(|_| PIECES[random.random_range(0..PIECES.len())].bytes()).collect()
}

#[tokio::test]
async fn no_byte_string_is_answered_with_a_server_error() -> Result<()> {
    let seed = std::env::var("GLEANER_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or_else(|| rand::rng().random());
    let mut random = StdRng::seed_from_u64(seed);
    let w = world_with(|config| config.limits.rejected_per_minute = 100_000).await?;
    let mut targets = vec![w.channel().await?.target()];
    for provider in gleaner_ingest::providers::all() {
        // Secrets for all names that a provider may use, so that requests get past "not configured".
        let settings: serde_json::Map<_, _> = provider
            .settings()
            .iter()
            .filter(|setting| !setting.name.contains('.'))
            .map(|s| (s.name.to_owned(), json!("secret-secret")))
            .collect();
        targets.push(w.channel_of(provider.code(), settings.into()).await?.target());
        let preset = json!({"scheme": "none"});
        targets.push(w.channel_of(provider.code(), preset).await?.target());
    }
    for round in 0..600 {
        let target = &targets[random.random_range(0..targets.len())];
        let body = if random.random() { bytes(&mut random, 3000) } else { nearly(&mut random) };
        let kind =
            ["application/json", "application/x-www-form-urlencoded", "multipart/form-data; boundary=boundary", "text/plain", "\u{7f}"]
                [random.random_range(0..5)];
        let method = if random.random_ratio(1, 8) { "GET" } else { "POST" };
        let mut request = format!(
            "{method} {target} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-type: {kind}\r\nx-test-signature: {SECRET}\r\nauthorization: Bearer secret-secret\r\ncontent-length: {}\r\n",
            body.len()
        )
        .into_bytes();
        if random.random() {
            request.extend(b"x-twilio-signature: ");
            request.extend(bytes(&mut random, 40).into_iter().filter(|byte| !matches!(byte, b'\r' | b'\n')));
            request.extend(b"\r\n");
        }
        request.extend(b"\r\n");
        request.extend(&body);
        let answer = raw(w.address(), &request).await?;
        let status = status(&answer);
        ensure!(
            status.is_some_and(|status| (200..500).contains(&status)),
            "GLEANER_SEED={seed}, round {round}: {status:?} for {}",
            String::from_utf8_lossy(&request)
        );
    }
    // Input that is no HTTP at all.
    for _ in 0..100 {
        let answer = raw_and_over(w.address(), &bytes(&mut random, 500)).await?;
        ensure!(status(&answer).is_none_or(|status| status < 500), "GLEANER_SEED={seed}: {}", String::from_utf8_lossy(&answer));
    }
    Ok(())
}
