//! Addresses that are refused, and credentials that are not sent along.

use anyhow::Result;
use serde_json::json;

use crate::media::provider::{LocalProvider, RECORDING};
use crate::media::world::{strict_world, world, world_with};

#[tokio::test]
async fn private_addresses_are_refused_in_every_spelling() -> Result<()> {
    let world = strict_world().await?;
    let port = world.provider.address.port();
    for host in ["127.0.0.1", "localhost", "0x7f.1", "2130706433", "017700000001", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0", "127.1"] {
        let answer = world.fetch(&format!("http://{host}:{port}/recording")).await?;
        assert_eq!(answer.status, 403, "{host}: {}", answer.text());
    }
    for host in ["10.0.0.1", "169.254.169.254", "192.168.1.1", "[fd00::1]", "[fe80::1]", "100.64.0.1", "[64:ff9b::7f00:1]", "224.0.0.1"] {
        let answer = world.fetch(&format!("http://{host}/latest/meta-data/")).await?;
        assert_eq!(answer.status, 403, "{host}: {}", answer.text());
    }
    assert_eq!(world.provider.asked(), [], "nobody was asked");
    Ok(())
}

/// `localhost` is a name that the resolver of this machine resolves: the check is on the resolved address, not on the name.
#[tokio::test]
async fn a_name_that_leads_inside_is_refused_where_it_leads() -> Result<()> {
    let world = strict_world().await?;
    let port = world.provider.address.port();
    let answer = world.fetch(&format!("http://localhost:{port}/recording")).await?;
    assert_eq!(answer.status, 403);
    assert!(answer.text().contains("not on the public Internet"), "{}", answer.text());
    let allowed = world_with(|options| options.allow_private = vec!["127.0.0.1/32".parse().unwrap(), "::1/128".parse().unwrap()]).await?;
    let port = allowed.provider.address.port();
    assert_eq!(allowed.fetch(&format!("http://localhost:{port}/recording")).await?.status, 200, "with leave it is gone to");
    Ok(())
}

#[tokio::test]
async fn a_redirect_inside_is_refused() -> Result<()> {
    // 127.0.0.1 is allowed, its neighbours are not.
    let world = world_with(|options| options.allow_private = vec!["127.0.0.1/32".parse().unwrap()]).await?;
    let port = world.provider.address.port();
    for inside in [
        "http://127.0.0.2/",
        "http://169.254.169.254/latest/",
        "http://[::1]/",
        "http://10.0.0.1/",
        "file:///etc/passwd",
        "gopher://127.0.0.1/",
    ] {
        world.provider.redirect_to(inside);
        let answer = world.fetch(&world.provider.url("/moved")).await?;
        assert_eq!(answer.status, 403, "{inside}: {}", answer.text());
    }
    world.provider.redirect_to(&format!("http://127.0.0.1:{port}/recording"));
    assert_eq!(world.fetch(&world.provider.url("/moved")).await?.text(), RECORDING, "a redirect that stays outside is followed");
    Ok(())
}

#[tokio::test]
async fn redirects_end() -> Result<()> {
    let world = world().await?;
    for path in ["/round", "/nowhere"] {
        assert_eq!(world.fetch(&world.provider.url(path)).await?.status, 502, "{path}");
    }
    assert!(world.provider.asked().len() <= 7, "{:?}", world.provider.asked());
    Ok(())
}

#[tokio::test]
async fn credentials_go_to_the_provider_and_no_further() -> Result<()> {
    let (provider, other) = (LocalProvider::start().await?, LocalProvider::start().await?);
    let base = provider.url("");
    let mut world = world_with(|options| options.twilio_base = Some(base)).await?;
    world.provider = provider;
    world.provider.redirect_to(&other.url("/recording"));
    let channel = world.channel("twilio", json!({"account_sid": "AC1", "auth_token": "tw-secret"})).await?;
    let moved = json!({"url": world.provider.url("/2010-04-01/Accounts/AC1/Recordings/REmoved")});
    let activity = world.announced(channel, std::slice::from_ref(&moved)).await?;
    assert_eq!(world.get(activity, "0").await?.text(), RECORDING);
    let first = world.provider.asked().pop().and_then(|(_, authorization)| authorization);
    assert_eq!(first.as_deref(), Some("Basic QUMxOnR3LXNlY3JldA=="));
    assert_eq!(other.asked(), [("/recording".to_owned(), None)], "nothing went along with the redirect");

    // Twilio's own address is replaced by the base URL, if the operator has configured one.
    let twilios = json!({"url": "https://api.twilio.com/2010-04-01/Accounts/AC1/Recordings/RE1"});
    let activity = world.announced(channel, &[twilios]).await?;
    assert_eq!(world.get(activity, "0").await?.text(), RECORDING);

    // A redirect within one host does not take the credentials along either.
    world.provider.redirect_to(&world.provider.url("/locked"));
    let activity = world.announced(channel, &[moved]).await?;
    assert_eq!(world.get(activity, "0").await?.status, 502);
    Ok(())
}

#[tokio::test]
async fn twilios_credentials_go_to_twilio_alone() -> Result<()> {
    let world = world().await?;
    let channel = world.channel("twilio", json!({"account_sid": "AC1", "auth_token": "tw-secret"})).await?;
    for url in
        [world.provider.url("/recording"), "https://api.twilio.com.evil.example/x".into(), "https://evil.example/api.twilio.com".into()]
    {
        let activity = world.announced(channel, &[json!({"url": url})]).await?;
        let answer = world.get(activity, "0").await?;
        assert_eq!(answer.status, 403, "{url}: {}", answer.text());
        assert!(!answer.text().contains("tw-secret"));
    }
    assert_eq!(world.provider.asked(), []);
    Ok(())
}

/// A row says it came through a channel and where its files are. People and agents can write both, so it is not believed.
#[tokio::test]
async fn credentials_go_only_to_files_that_the_webhook_endpoint_recorded() -> Result<()> {
    let provider = LocalProvider::start().await?;
    let base = provider.url("");
    let mut world = world_with(|options| {
        options.twilio_base = Some(base.clone());
        options.whatsapp_base = base.clone();
        options.telegram_base = base.clone();
    })
    .await?;
    world.provider = provider;
    let twilio = world.channel("twilio", json!({"account_sid": "AC1", "auth_token": "tw-secret"})).await?;
    let whatsapp = world.channel("whatsapp", json!({"access_token": "wa-token"})).await?;
    let telegram = world.channel("telegram", json!({"bot_token": "bot-token"})).await?;
    let recording = world.provider.url("/2010-04-01/Accounts/AC1/Recordings/RE1");
    for (channel, content) in [(twilio, recording.as_str()), (whatsapp, "whatsapp-media:777"), (telegram, "telegram-file:F1")] {
        let activity = world.activity(Some(channel), json!({"source_type": "url", "content": content}), json!({})).await?;
        world.get(activity, "0").await?;
    }
    assert_eq!(
        world.provider.asked(),
        [("/2010-04-01/Accounts/AC1/Recordings/RE1".to_owned(), None)],
        "the URL alone, without credentials"
    );

    // Of what was recorded, only media of the channel's own account.
    for path in ["/2010-04-01/Accounts/AC1.json", "/2010-04-01/Accounts/AC2/Recordings/RE1", "/recording"] {
        let activity = world.announced(twilio, &[json!({"url": world.provider.url(path)})]).await?;
        assert_eq!(world.get(activity, "0").await?.status, 403, "{path}");
    }
    let account = world.announced(whatsapp, &[json!({"reference": "me"})]).await?;
    assert_eq!(world.get(account, "0").await?.status, 403);
    assert_eq!(world.provider.asked().len(), 1, "{:?}", world.provider.asked());
    Ok(())
}

/// A relay in a private network is configured for one provider. Nothing else of that machine is reached.
#[tokio::test]
async fn a_configured_base_opens_its_host_port_and_path_alone() -> Result<()> {
    let provider = LocalProvider::start().await?;
    let other = LocalProvider::start().await?;
    let base = provider.url("/2010-04-01");
    let world = world_with(|options| {
        options.allow_private.clear();
        options.telegram_base = base;
    })
    .await?;
    assert_eq!(world.fetch(&provider.url("/2010-04-01/Accounts/AC1/Recordings/RE1")).await?.text(), RECORDING);
    for url in [provider.url("/recording"), provider.url("/2010-04-01/../recording"), other.url("/2010-04-01/Accounts/AC1/Recordings/RE1")]
    {
        assert_eq!(world.fetch(&url).await?.status, 403, "{url}");
    }
    assert_eq!((provider.asked().len(), other.asked().len()), (1, 0));
    Ok(())
}

#[tokio::test]
async fn a_password_in_an_address_is_not_used() -> Result<()> {
    let world = world().await?;
    let answer = world.fetch(&format!("http://user:pass@{}/locked", world.provider.address)).await?;
    assert_eq!(answer.status, 403);
    assert_eq!(world.provider.asked(), []);
    Ok(())
}

#[tokio::test]
async fn what_is_too_large_is_not_fetched() -> Result<()> {
    let world = world().await?;
    let told = world.fetch(&world.provider.url("/large")).await?;
    assert_eq!(told.status, 502);
    assert!(told.text().contains("more than 4000 bytes"), "{}", told.text());
    let activity = world.at(&world.provider.url("/endless")).await?;
    let cut = world.get(activity, "0").await?;
    assert_eq!((cut.status, cut.body.is_none()), (200, true), "cut off, and the reader can tell");
    // The file that was cut off was not stored as if it were complete.
    let again = world.get_with(activity, "0", &world.service, Some("bytes=0-9")).await?;
    assert_eq!(again.status, 502, "{}", again.text());
    Ok(())
}

#[tokio::test]
async fn silence_is_not_waited_out() -> Result<()> {
    let world = world().await?;
    let begun = std::time::Instant::now();
    let answer = world.fetch(&world.provider.url("/silent")).await?;
    assert_eq!(answer.status, 502, "{}", answer.text());
    assert!(begun.elapsed() < std::time::Duration::from_secs(15));
    Ok(())
}
