//! Opaque keys of programs, on every route that needs a key.

use anyhow::Result;
use gleaner_supabase::auth::api_keys::{self, Kind, New};
use tokio_tungstenite::connect_async;

use crate::webhooks::support::{World, world_with};

async fn key(world: &World, kind: Kind) -> Result<String> {
    let new = New { name: kind.name(), kind, queues: None, kinds: None, valid: None };
    Ok(api_keys::add(&world.client, &new).await?.expect("the name is free").1)
}

#[tokio::test]
async fn an_opaque_key_opens_every_native_route_as_its_role_does() -> Result<()> {
    let world = world_with(|_| {}).await?;
    let (service, worker, anon) = (key(&world, Kind::Service).await?, key(&world, Kind::Worker).await?, key(&world, Kind::Anon).await?);
    let get = async |path: &str, header: (&str, &str)| anyhow::Ok(world.send("GET", path, &[header], b"").await?.status);
    for path in ["/v1/queues", "/v1/channels", "/v1/contacts/unmatched", "/v1/providers"] {
        assert_eq!(get(path, ("authorization", &format!("Bearer {service}"))).await?, 200, "{path}");
        assert_eq!(get(path, ("apikey", &service)).await?, 200, "{path}");
        assert_eq!(get(&format!("{path}?apikey={service}"), ("x", "")).await?, 200, "{path}");
        assert_eq!(get(path, ("apikey", "sb_secret_of_nobody")).await?, 401, "{path}");
    }
    assert_eq!(get("/v1/contacts/unmatched", ("apikey", &anon)).await?, 401, "the role decides");

    // A worker claims with its own key.
    world.client.batch_execute("insert into activities (type, raw_data) values ('call', '{}')").await?;
    let bearer = format!("Bearer {worker}");
    let claimed = world.send("POST", "/v1/queues/activities/claim", &[("authorization", &bearer)], br#"{"agent": "a"}"#).await?;
    assert_eq!((claimed.status, claimed.json()["items"].as_array().map(Vec::len)), (200, Some(1)), "{:?}", claimed.json());

    api_keys::revoke(&world.client, Kind::Service.name()).await?;
    crate::world::eventually("the revoked key to be refused", async || Ok(get("/v1/queues", ("apikey", &service)).await? == 401)).await
}

#[tokio::test]
async fn an_opaque_key_opens_the_socket() -> Result<()> {
    let world = world_with(|config| config.realtime = true).await?;
    let worker = key(&world, Kind::Worker).await?;
    let url = |key: &str| format!("ws://{}/realtime/v1/websocket?apikey={key}&vsn=2.0.0", world.address());
    connect_async(url(&worker)).await?;
    let refused = connect_async(url("sb_secret_of_nobody")).await.err().map(|error| error.to_string()).unwrap_or_default();
    assert!(refused.contains("401"), "{refused}");
    Ok(())
}
