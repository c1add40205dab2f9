//! End to end: channels, the API and the real webhook endpoint of a running server.

use anyhow::Result;
use gleaner_http::Role;
use gleaner_ingest::sealing::MasterKeys;
use gleaner_intake::channels::{Addresses, Channels};
use gleaner_server::{Config, Server};
use serde_json::{Value, json};

use crate::channels::world::world;
use crate::world::Home;

const TOKEN: &str = "00112233445566778899aabbccddeeff";

/// A Twilio channel is added and tested over HTTP, and a server with a wrong public URL is detected.
#[tokio::test]
async fn a_running_server_is_tested_through_its_webhook_endpoint() -> Result<()> {
    let world = world().await?;
    let home = Home::new()?;
    let mut config = Config::new(&home.0);
    config.listen = ([127, 0, 0, 1], 0).into();
    let server = Server::start(config.clone(), &world.database.url, world.pool.clone()).await?;
    let local = format!("http://{}", server.local_addr());
    let key = gleaner_server::load_access(&home.0)?.project_key(Role::Service);
    let post = async |path: &str, body: Value| {
        let request = reqwest::Client::new().post(format!("{local}{path}")).bearer_auth(&key).json(&body);
        anyhow::Ok(request.send().await?.json::<Value>().await?)
    };
    let channel = json!({"name": "Phone", "provider": "twilio", "auto_create_contacts": true, "settings": {"auth_token": TOKEN}});
    let added = post("/v1/channels", channel).await?;
    assert!(added["webhook_url"].as_str().is_some_and(|url| url.starts_with(&local)), "{added}");
    let tested = post("/v1/channels/Phone/test", json!({})).await?;
    assert_eq!(tested["passed"], json!(true), "{tested}");
    let row = world.text("select concat(processing_status, ' ', metadata ->> 'test') from activities").await?;
    assert_eq!(row.as_deref(), Some("cancelled true"));

    // The same installation, configured with another public URL.
    config.public_base = Some("https://hooks.acme.example".into());
    let other = Server::start(config, &world.database.url, world.pool.clone()).await?;
    let channels = Channels::new(world.pool.clone(), MasterKeys::load(&home.0)?);
    let public = format!("http://{}", other.local_addr());
    let tested = channels.test("Phone", &Addresses { public: Some(public.clone()), local: Some(local.clone()) }).await?;
    assert!(!tested.passed && tested.status == Some(401), "{tested:?}");
    assert!(tested.advice.iter().any(|advice| advice.contains(&format!("PUBLIC_BASE_URL={public}"))), "{tested:?}");

    server.stop().await;
    other.stop().await;
    assert_eq!(world.text("select count(*)::text from contacts").await?.as_deref(), Some("0"), "a sample makes no contact");
    Ok(())
}

/// A running server seals what another program wrote in clear, even if no request arrives.
#[tokio::test]
async fn a_server_seals_what_it_finds_at_its_start() -> Result<()> {
    let world = world().await?;
    world
        .run("insert into ingestion_providers (name, provider_code, config) values ('Old', 'twilio', '{\"auth_token\": \"token-in-clear\"}')")
        .await?;
    let home = Home::new()?;
    let mut config = Config::new(&home.0);
    config.listen = ([127, 0, 0, 1], 0).into();
    let server = Server::start(config, &world.database.url, world.pool.clone()).await?;
    let began = std::time::Instant::now();
    while world.dump().await?.contains("token-in-clear") {
        assert!(began.elapsed() < std::time::Duration::from_secs(20), "still in clear");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    server.stop().await;
    Ok(())
}
