//! From the user's consent to a processed activity, without any mocks.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result};
use gleaner_agent::config::{Config, Sources};
use gleaner_agent::host::{self, Agents, Host, Serve as _, State};
use gleaner_agent::wire::session::{self, Session};
use gleaner_agent::wire::sessions;
use serde_json::{Value, json};

use super::{answered, listen};
use crate::conformance::stage::{Home, Served};
use crate::world::world;

#[tokio::test(flavor = "multi_thread")]
async fn an_apps_activities_are_processed_after_consent_and_not_after_revoking() -> Result<()> {
    let world = world().await?;
    let served = Served::start(world.url()).await?;
    let user: String = world
        .client
        .query_one(
            "insert into sales (first_name, email, user_id) values ('ann', 'ann@example.com', gen_random_uuid()) returning user_id::text",
            &[],
        )
        .await?
        .get(0);
    let put = async |text: &str| {
        let sql = "insert into activities (type, sales_id, raw_data) select 'note', id, $1 from sales returning id::text";
        let raw = json!({"source_type": "text", "content": text});
        anyhow::Ok(world.client.query_one(sql, &[&raw]).await?.get::<_, String>(0))
    };
    let status = async |id: &str| {
        let row = world.client.query_one("select processing_status from activities where id = $1::text::uuid", &[&id]).await?;
        anyhow::Ok(row.get::<_, String>(0))
    };

    let home = Home::new()?;
    let mut sources = Sources::of(&home.0);
    sources.variables.clear();
    sources.flags =
        vec![("poll.base", "200ms".into()), ("poll.max", "200ms".into()), ("wake", "poll-only".into()), ("status", "off".into())];
    let config = Config::load(sources)?;
    let agents = Arc::new(Agents::like(&config));
    let host = Host::open(&config.home, agents.clone(), Vec::new())?;
    let base = listen(host::routes(&host)).await?;
    let http = reqwest::Client::new();
    let page = http.get(format!("{base}/host")).send().await?.text().await?;
    let token = page.split_once("gleaner-token\" content=\"").and_then(|(_, rest)| rest.split_once('"')).context("a token")?.0;
    let ask = async |act: &str, body: Value| {
        let request = http.post(format!("{base}/host/api/{act}")).header("origin", &base).header("x-gleaner-token", token);
        answered(request.json(&body)).await
    };
    host.add("crm", "http://localhost:5173", None)?;
    let payload = json!({"appName": "atomic-crm", "url": served.url(), "anonKey": served.anon, "tables": ["activities"],
        "filters": {"activities": "processing_status=eq.raw"}});
    let (_, asked) = ask("ask", json!({"name": "crm", "message": {"type": "SUPABASE_CONFIG", "payload": payload}})).await?;

    // No user has signed in there: the consent is stored, and the page says what to do.
    let (_, granted) = ask("agree", json!({"name": "crm", "proposal": asked["proposal"]})).await?;
    let problem = granted["problem"].as_str().unwrap_or_default();
    assert!(granted["state"] == "failed" && problem.contains("gleaner agent login --url http://127.0.0.1"), "{granted}");

    let waiting = put("Please call Bob tomorrow about the invoice.").await?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
    let claims = json!({"role": "authenticated", "sub": user, "session_id": user, "exp": now + 3600});
    let signed_in = Session {
        url: served.url(),
        anon_key: served.anon.clone(),
        access_token: gleaner_server::load_access(&served.home.0)?.sign(claims.as_object().context("an object")?),
        refresh_token: "none".into(),
        expires_at: i64::try_from(now + 3600)?,
        user_id: user,
        email: "ann@example.com".into(),
        signed_in_at: 0,
    };
    session::save(&sessions::path(&home.0, &signed_in.url), &signed_in)?;
    assert_eq!(status(&waiting).await?, "raw", "nothing is served yet");
    ask("start", json!({"name": "crm"})).await?;
    assert_eq!(host.state("crm"), State::Serving);
    until(async || Ok(status(&waiting).await? == "completed")).await?;
    let shown = async || {
        anyhow::Ok(answered(http.get(format!("{base}/host/api/apps")).header("x-gleaner-token", token)).await?.1["apps"][0].clone())
    };
    assert!(shown().await?["problem"].is_null(), "{}", shown().await?);

    // The server stops while the app is served: the page shows that, and since when, until the server is back.
    let before = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
    served.stop().await;
    until(async || Ok(shown().await?["state"] == "offline")).await?;
    let offline = shown().await?;
    assert!(offline["problem"].as_str().is_some_and(|why| why.contains("claim")), "{offline}");
    assert!(offline["since"].as_u64() >= Some(before), "{offline}");
    assert_eq!(offline["last_error"]["category"], "Transient", "{offline}");
    served.start_again().await?;
    until(async || Ok(shown().await?["state"] == "serving")).await?;
    let back = shown().await?;
    assert!(back["problem"].is_null() && back["last_error"]["message"].is_string(), "{back}");

    ask("revoke", json!({"name": "crm"})).await?;
    agents.end().await;
    let active = "select count(*) from pg_stat_activity where datname = current_database() and backend_type = 'client backend' and state = 'active' and pid <> pg_backend_pid()";
    until(async || Ok(world.client.query_one(active, &[]).await?.get::<_, i64>(0) == 0)).await?;
    let late = put("No agent may read this.").await?;
    // Ten polls of an agent that was left behind. A slow machine makes this weaker, never red.
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(status(&late).await?, "raw");
    Ok(())
}

async fn until(test: impl AsyncFn() -> Result<bool>) -> Result<()> {
    for _ in 0..300 {
        if test().await? {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    anyhow::bail!("waited in vain")
}
