//! A push notification is accepted when Google signed it for us, and then only as a hint.

use std::time::{Duration, SystemTime};

use anyhow::{Context as _, Result};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use gleaner_ingest::provider::{Inbound, Provider as _};
use gleaner_ingest::providers::gmail::Gmail as Provider;
use gleaner_ingest::refusal::Why;
use gleaner_ingest::{Refusal, Request};
use gleaner_intake::webhooks::SigningKeys as _;
use http::{HeaderMap, Method};
use jsonwebtoken::jwk::Jwk;
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use serde_json::{Value, json};

use crate::gmail::world::{World, world};

pub(super) const SIGNER: &str = include_str!("keys/signer.pem");
pub(super) const STRANGER: &str = include_str!("keys/stranger.pem");
pub(super) const AUDIENCE: &str = "https://hooks.acme.example/functions/v1/ingest-activity";
pub(super) const ACCOUNT: &str = "push@project.iam.gserviceaccount.com";

fn now() -> i64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs() as i64)
}

pub(super) fn claims() -> Value {
    let now = now();
    json!({"iss": "https://accounts.google.com", "aud": AUDIENCE, "email": ACCOUNT, "email_verified": true, "sub": "1", "iat": now, "exp": now + 3600})
}

fn private(pem: &str) -> Result<EncodingKey> {
    let text: String = pem.lines().filter(|line| !line.starts_with("-----")).collect();
    Ok(EncodingKey::from_rsa_der(&STANDARD.decode(text)?))
}

pub(super) fn signed(claims: &Value, key: &str, id: &str) -> Result<String> {
    let header = Header { kid: Some(id.to_owned()), ..Header::new(Algorithm::RS256) };
    Ok(jsonwebtoken::encode(&header, claims, &private(key)?)?)
}

pub(super) fn jwks(key: &str, id: &str) -> Result<Value> {
    let mut key = Jwk::from_encoding_key(&private(key)?, Algorithm::RS256)?;
    key.common.key_id = Some(id.to_owned());
    Ok(json!({"keys": [{"kty": "unknown-kind", "kid": "later"}, key]}))
}

pub(super) fn body() -> Vec<u8> {
    let data = STANDARD.encode(json!({"emailAddress": "sales@acme.example", "historyId": 1234}).to_string());
    json!({"message": {"data": data, "messageId": "1", "publishTime": "x"}, "subscription": "projects/p/subscriptions/s"})
        .to_string()
        .into_bytes()
}

/// Sends a push notification as the webhook endpoint does: the channel with its keys, then the provider.
async fn push(world: &World, authorization: Option<&str>) -> Result<Result<(), Refusal>> {
    let mut headers = HeaderMap::new();
    if let Some(authorization) = authorization {
        headers.insert("authorization", authorization.parse()?);
    }
    let body = body();
    let request = Request {
        method: &Method::POST,
        target: "/functions/v1/ingest-activity?key=k",
        headers: &headers,
        body: &body,
        client: None,
        now: SystemTime::now(),
        public_base: "https://hooks.acme.example",
    };
    let channel = world.gmail.with_keys(world.channels.get("mail").await?.channel.into(), &request).await;
    Ok(Provider.verify(&channel, &request).map(drop))
}

async fn push_world() -> Result<World> {
    let world = world().await?;
    world.google.mailbox().jwks = jwks(SIGNER, "k1")?;
    world.channel(json!({"audience": AUDIENCE, "service_account": ACCOUNT})).await?;
    world.look().await?;
    Ok(world)
}

#[tokio::test]
async fn a_push_signed_by_google_for_us_is_accepted() -> Result<()> {
    let world = push_world().await?;
    let token = signed(&claims(), SIGNER, "k1")?;
    assert_eq!(push(&world, Some(&format!("Bearer {token}"))).await?, Ok(()));
    assert_eq!(push(&world, Some(&format!("bearer {token}"))).await?, Ok(()), "the scheme has no case");
    assert_eq!(world.google.count("certs"), 1, "the keys are fetched once");
    Ok(())
}

#[tokio::test]
async fn every_other_push_is_refused() -> Result<()> {
    let world = push_world().await?;
    let good = claims();
    let with = |name: &str, value: Value| {
        let mut claims = good.clone();
        claims[name] = value;
        claims
    };
    let without = |name: &str| {
        let mut claims = good.clone();
        claims.as_object_mut().map(|claims| claims.remove(name));
        claims
    };
    let now = now();
    let wrong = [
        ("issuer", with("iss", json!("https://accounts.example.com")), Why::Mismatch),
        ("no issuer", without("iss"), Why::Mismatch),
        ("audience", with("aud", json!("https://other.example")), Why::Mismatch),
        ("no audience", without("aud"), Why::Mismatch),
        ("account", with("email", json!("other@project.iam.gserviceaccount.com")), Why::Account),
        ("no account", without("email"), Why::Account),
        ("unverified", with("email_verified", json!(false)), Why::Account),
        ("verified as text", with("email_verified", json!("true")), Why::Account),
        ("not verified", without("email_verified"), Why::Account),
        ("expired", with("exp", json!(now - 60)), Why::Stale),
        ("endless", without("exp"), Why::Stale),
        ("exp as text", with("exp", json!("soon")), Why::Stale),
        ("from the future", with("iat", json!(now + 3600)), Why::Stale),
    ];
    for (what, claims, why) in wrong {
        let token = signed(&claims, SIGNER, "k1")?;
        assert_eq!(push(&world, Some(&format!("Bearer {token}"))).await?, Err(why.into()), "{what}");
    }
    assert_eq!(
        push(&world, Some(&format!("Bearer {}", signed(&good, STRANGER, "k1")?))).await?,
        Err(Why::Mismatch.into()),
        "another's key"
    );
    assert_eq!(push(&world, Some(&format!("Bearer {}", signed(&good, SIGNER, "k9")?))).await?, Err(Why::Mismatch.into()), "unknown key");
    let shared = Header { kid: Some("k1".into()), ..Header::new(Algorithm::HS256) };
    let shared = jsonwebtoken::encode(&shared, &good, &EncodingKey::from_secret(SIGNER.as_bytes()))?;
    assert_eq!(push(&world, Some(&format!("Bearer {shared}"))).await?, Err(Why::Mismatch.into()), "another algorithm");
    let token = signed(&good, SIGNER, "k1")?;
    let (head, rest) = token.split_once('.').context("a token")?;
    let unsigned = format!("{head}.{}.", rest.split_once('.').context("a token")?.0);
    assert_eq!(push(&world, Some(&format!("Bearer {unsigned}"))).await?, Err(Why::Mismatch.into()), "signature cut off");
    assert_eq!(push(&world, None).await?, Err(Why::Unsigned.into()));
    assert_eq!(push(&world, Some(&token)).await?, Err(Why::Unsigned.into()), "no scheme");
    assert_eq!(push(&world, Some("Basic eDp5")).await?, Err(Why::Unsigned.into()));
    Ok(())
}

#[tokio::test]
async fn a_channel_without_audience_and_account_accepts_no_push() -> Result<()> {
    let world = world().await?;
    world.google.mailbox().jwks = jwks(SIGNER, "k1")?;
    world.channel(json!({})).await?;
    let token = signed(&claims(), SIGNER, "k1")?;
    assert_eq!(push(&world, Some(&format!("Bearer {token}"))).await?, Err(Why::Unconfigured.into()));
    Ok(())
}

#[tokio::test]
async fn a_key_that_is_not_known_yet_is_fetched_and_made_up_ones_are_not_chased() -> Result<()> {
    let world = push_world().await?;
    let token = signed(&claims(), SIGNER, "k1")?;
    assert_eq!(push(&world, Some(&format!("Bearer {token}"))).await?, Ok(()));
    for n in 0..20 {
        let made_up = signed(&claims(), STRANGER, &format!("made-up-{n}"))?;
        assert!(push(&world, Some(&format!("Bearer {made_up}"))).await?.is_err());
    }
    assert_eq!(world.google.count("certs"), 1, "Google is not asked for each made-up name");
    assert_eq!(push(&world, Some(&format!("Bearer {token}"))).await?, Ok(()), "and the good key is still good");
    Ok(())
}

#[tokio::test]
async fn a_push_is_a_hint_and_nothing_more() -> Result<()> {
    let world = push_world().await?;
    let headers = HeaderMap::new();
    let read = |body: &[u8]| {
        let request = Request {
            method: &Method::POST,
            target: "/",
            headers: &headers,
            body,
            client: None,
            now: SystemTime::now(),
            public_base: "https://x",
        };
        let channel = gleaner_ingest::Channel {
            id: uuid::Uuid::nil(),
            name: String::new(),
            provider_code: "gmail".into(),
            is_active: true,
            sales_id: None,
            auto_create_contacts: false,
            settings: gleaner_ingest::Settings::default(),
        };
        Provider.normalise(&channel, &request)
    };
    assert!(matches!(read(&body()), Ok(Inbound::Fetch)));
    assert!(matches!(read(b"{\"emailAddress\": \"a@b.c\", \"historyId\": \"7\"}"), Ok(Inbound::Fetch)), "unwrapped");
    for bad in [
        &b""[..],
        b"{}",
        b"[]",
        b"null",
        b"\xff",
        b"{\"message\": {}}",
        b"{\"message\": {\"data\": \"!!\"}}",
        b"{\"message\": {\"data\": \"e30\"}}",
    ] {
        assert!(matches!(read(bad), Err(Refusal::Malformed(_))), "{:?}", String::from_utf8_lossy(bad));
    }

    let hints = world.read_mailboxes(&world.another()?);
    world.google.deliver("m1", "one");
    let channel = world.channels.get("mail").await?.channel.id;
    hints.send_timeout(channel, Duration::from_secs(5)).await?;
    world.wait_until("select count(*) = 1 from activities").await
}
