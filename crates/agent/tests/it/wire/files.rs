//! Recordings fetched through the server.

use anyhow::{Context as _, Result};
use gleaner::Error;
use gleaner_agent::wire::Wire;
use gleaner_intake::files::Files;

use crate::conformance::stage::{Over, stage};

#[tokio::test]
async fn a_recording_comes_through_the_server_with_our_rights() -> Result<()> {
    let stage = stage(Over::Native).await?;
    let served = stage.served.as_ref().context("served")?;
    let wire = Wire::connect(served.settings())?;
    let id = stage.world.activity(None, "call", 1.0).await?;
    let place = Files::of_activity(id.parse()?, 0);
    Files::open(&served.home.0, None)?.put(&place, b"RIFF and sound".to_vec()).await?;
    let metadata = serde_json::json!({"attachments": [{"file": place, "content_type": "audio/wav", "name": "call.wav"}]});
    stage.world.client.execute("update activities set metadata = $1 where id = $2::text::uuid", &[&metadata, &id]).await?;

    let path = format!("/v1/media/{id}/0");
    let fetched = wire.fetch(&path).await?;
    assert_eq!((fetched.content_type.as_deref(), fetched.length), (Some("audio/wav"), Some(14)));
    assert_eq!(fetched.bytes(1000).await?, b"RIFF and sound");
    assert_eq!(wire.fetch(&format!("{}{path}", served.url())).await?.bytes(14).await?.len(), 14, "by its whole address too");
    assert!(wire.fetch(&path).await?.bytes(13).await.unwrap_err().to_string().contains("13 bytes"));
    let missing = wire.fetch(&format!("/v1/media/{id}/7")).await.unwrap_err();
    assert!(matches!(missing, Error::Remote { status: Some(404), transient: false, .. }), "{missing}");
    Ok(())
}

#[tokio::test]
async fn our_key_goes_to_our_server_alone() -> Result<()> {
    let stage = stage(Over::Native).await?;
    let served = stage.served.as_ref().context("served")?;
    let wire = Wire::connect(served.settings())?;
    let elsewhere = format!("{}.evil.example/x", served.url());
    for url in ["https://evil.example/x", "//evil.example/x", elsewhere.as_str(), "file:///etc/passwd", "v1/media"] {
        let error = wire.fetch(url).await.unwrap_err();
        assert!(matches!(&error, Error::Other(told) if told.contains("only files of the server")), "{url}: {error}");
    }
    Ok(())
}
