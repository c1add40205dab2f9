//! Gmail in a running server.

use anyhow::{Context as _, Result};
use gleaner_intake::channels::Changes;
use gleaner_server::{Config, Server};
use serde_json::json;

use crate::gmail::pushing::{self, SIGNER};
use crate::gmail::world::idle_world;

#[tokio::test]
async fn a_push_to_the_webhook_endpoint_reads_the_mailbox() -> Result<()> {
    let world = idle_world().await?;
    world.google.mailbox().jwks = pushing::jwks(SIGNER, "k1")?;
    let pool = gleaner::pool(&world.url, 12)?;
    let mut config = Config::new(&world.home.0);
    config.listen = "127.0.0.1:0".parse()?;
    config.google = world.google.settings();
    let server = Server::start(config, &world.url, pool).await?;
    let base = format!("http://{}", server.local_addr());
    let channels = &server.state().channels;
    let settings = json!({"client_id": "c", "client_secret": "s", "oauth_token": "1//r", "poll_minutes": 60,
                          "audience": pushing::AUDIENCE, "service_account": pushing::ACCOUNT});
    let settings = gleaner_intake::channels::nest(settings.as_object().context("settings")?.clone());
    let new = gleaner_intake::channels::NewChannel { name: "mail".into(), provider_code: "gmail".into(), settings, ..Default::default() };
    let key = channels.add(new).await?.key()?.to_owned();
    world.wait_until("select count(*) = 1 from gleaner.polls where last_sync_at is not null").await?;

    world.google.deliver("m1", "one");
    let door = format!("{base}/functions/v1/ingest-activity?key={key}");
    let push = async |token: String| {
        anyhow::Ok(reqwest::Client::new().post(&door).bearer_auth(token).body(pushing::body()).send().await?.status())
    };
    assert_eq!(push(pushing::signed(&pushing::claims(), pushing::STRANGER, "k1")?).await?, 401);
    assert_eq!(world.activities().await?, 0);
    assert_eq!(push(pushing::signed(&pushing::claims(), SIGNER, "k1")?).await?, 202);
    world.wait_until("select count(*) = 1 from activities").await?;

    // A paused channel accepts no notification, and a stopped server reads nothing.
    channels.set("mail", Changes { is_active: Some(false), ..Changes::default() }).await?;
    assert_ne!(push(pushing::signed(&pushing::claims(), SIGNER, "k1")?).await?, 202);
    server.stop().await;
    Ok(())
}
