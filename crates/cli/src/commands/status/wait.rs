//! `gleaner status --wait`: until the database, the schema and the server are there.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use gleaner::migrate;
use serde_json::Value;

use crate::App;
use crate::serving::Serving;

/// How long one check may take, so that a server that does not answer cannot outlast the time given.
const CHECK_WITHIN: Duration = Duration::from_secs(5);

const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// Returns once all of it answers; the error says what was missing at the last check.
pub(super) async fn until_ready(app: &App, timeout: Duration) -> Result<()> {
    // The HTTP library asks for one even where nothing is encrypted.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let http = reqwest::Client::builder().no_proxy().build().context("make an HTTP client")?;
    let began = Instant::now();
    loop {
        let checked = tokio::time::timeout(CHECK_WITHIN, check(app, &http)).await.unwrap_or_else(|_| bail!("it does not answer in time"));
        match checked {
            Err(missing) if began.elapsed() >= timeout => return Err(missing.context(format!("not ready after {} s", timeout.as_secs()))),
            Err(_) => tokio::time::sleep(LOOK_AGAIN).await,
            Ok(()) => return Ok(()),
        }
    }
}

/// Fails with what is missing.
async fn check(app: &App, http: &reqwest::Client) -> Result<()> {
    let home = app.target.home()?;
    let url = match app.target.given() {
        Some(url) => url.to_owned(),
        None => {
            let now = gleaner_postgres::status(&home).await?;
            let server = now.server.filter(|server| server.phase == gleaner_postgres::Phase::Ready);
            server.map(|server| server.url).with_context(|| format!("PostgreSQL does not run in {}", home.path().display()))?
        }
    };
    let client = gleaner::connect(&url).await?;
    ensure!(migrate::status(&client).await?.iter().all(|step| step.state.is_done()), "the schema is not migrated to this version");
    let serving = Serving::find(home.path()).with_context(|| {
        format!("no server runs in {}\n  `gleaner up` starts one; with DATABASE_URL `gleaner serve` does", home.path().display())
    })?;
    let answer = http.get(format!("{}/ready", serving.url())).send().await.context("ask the server")?;
    if answer.status().is_success() {
        return Ok(());
    }
    let said: Value = answer.json().await.unwrap_or_default();
    bail!("the server at {} is not ready: {}", serving.url(), said["problem"].as_str().unwrap_or("it does not say why"))
}
