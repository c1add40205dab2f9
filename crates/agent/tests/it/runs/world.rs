//! A database, a server that keeps the pictures, a page, and agents with browsers.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use gleaner_agent::agent::Agent;
use gleaner_agent::config::{Config, Sources};
use gleaner_postgres::testing;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_postgres::Client;

use super::page::{self, Seen};
pub(super) use crate::agent::world::{client, eventually};
use crate::conformance::stage::Served;

pub(super) struct World {
    pub client: Client,
    pub url: String,
    pub home: PathBuf,
    /// What browsers asked the page's server for.
    pub seen: Seen,
    site: String,
    server: Served,
}

impl World {
    pub(super) async fn new() -> Result<Self> {
        let prepare = async |url: String| gleaner::migrate::migrate(&url, &|_| {}).await.map(drop);
        let database = testing::server().database_from("migrated", prepare).await?;
        let home = std::env::temp_dir().join(format!("gleaner-runs-{}", uuid::Uuid::new_v4()));
        std::fs::create_dir(&home)?;
        // The browser of this test alone: others run beside it.
        let browser = home.join("chromium");
        std::fs::write(&browser, format!("#!/bin/sh\nexec chromium --of={} \"$@\"\n", home.display()))?;
        std::fs::set_permissions(&browser, std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
        let seen = Seen::default();
        let site = serve(seen.clone()).await?;
        let server = Served::start(&database.url).await?;
        Ok(Self { client: gleaner::connect(&database.url).await?, url: database.url, home, seen, site, server })
    }

    /// The address of the page.
    pub(super) fn site(&self) -> String {
        self.site.clone()
    }

    /// Another server on this machine, which no recording names.
    pub(super) async fn other_site(&self) -> Result<String> {
        Ok(serve(self.seen.clone()).await?.trim_start_matches("http://").to_owned())
    }

    pub(super) async fn agent(&self, flags: &[(&'static str, &str)]) -> Result<Agent> {
        self.agent_with(flags, &[("runs.allow", "127.0.0.1")], &[]).await
    }

    pub(super) async fn agent_with(
        &self,
        flags: &[(&'static str, &str)],
        more: &[(&'static str, &str)],
        variables: &[(&str, &str)],
    ) -> Result<Agent> {
        let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let mut sources = Sources { variables, ..Sources::of(&self.home) };
        let browser = self.home.join("chromium").display().to_string();
        let usual = [
            ("runs.chromium", browser.as_str()),
            ("database_url", self.url.as_str()),
            ("status", "127.0.0.1:0"),
            ("queues", "runs"),
            ("watch", "200ms"),
            ("grace", "1s"),
        ];
        sources.flags = usual.iter().chain(flags).chain(more).map(|(key, value)| (*key, (*value).to_owned())).collect();
        let mut config = Config::load(sources)?;
        config.server = Some(self.server.settings());
        Ok(Agent::start(config).await?)
    }

    pub(super) async fn submit(&self, recording: Value, csv: Option<&str>) -> Result<String> {
        self.submit_with(recording, csv, json!({})).await
    }

    pub(super) async fn submit_with(&self, recording: Value, csv: Option<&str>, config: Value) -> Result<String> {
        let name = recording["name"].as_str().or(recording["title"].as_str()).unwrap_or("test").to_owned();
        let saved: Value = self.client.query_one("select save_recording($1, $2)", &[&name, &recording]).await?.get(0);
        self.insert(saved["recording_id"].as_str().context("an id")?, csv, config).await
    }

    pub(super) async fn insert(&self, recording: &str, csv: Option<&str>, config: Value) -> Result<String> {
        let sql = "insert into execution_jobs (recording_id, csv_data, config) values ($1, $2, $3) returning id::text";
        Ok(self.client.query_one(sql, &[&recording, &csv, &config]).await?.get(0))
    }

    pub(super) async fn run(&self, id: &str) -> Result<Value> {
        Ok(self.client.query_one("select to_jsonb(r) from execution_jobs as r where id::text = $1", &[&id]).await?.get(0))
    }

    /// The run, once it is completed, cancelled or failed for good.
    pub(super) async fn until_ended(&self, id: &str) -> Result<Value> {
        let ended = |row: &Value| match row["status"].as_str() {
            Some("completed" | "cancelled") => true,
            Some("failed") => row["due_at"].is_null(),
            _ => false,
        };
        eventually(&format!("run {id} to end"), async || Ok(ended(&self.run(id).await?))).await?;
        self.run(id).await
    }

    pub(super) async fn rows(&self, id: &str) -> Result<Vec<Value>> {
        let sql = "select to_jsonb(n) from run_rows as n where run_id::text = $1 order by row_number";
        Ok(self.client.query(sql, &[&id]).await?.iter().map(|row| row.get(0)).collect())
    }

    /// Row, name and bytes of each picture, through the server.
    pub(super) async fn pictures(&self, id: &str) -> Result<Vec<(i32, String, Vec<u8>)>> {
        let sql = "select row_number, name, id::text from run_artefacts where run_id::text = $1 order by row_number, step, name";
        let mut all = Vec::new();
        for row in self.client.query(sql, &[&id]).await? {
            let artefact: String = row.get(2);
            all.push((row.get(0), row.get(1), self.picture(id, &artefact, &self.server.service).await?));
        }
        Ok(all)
    }

    /// One picture, as the holder of this key gets it.
    pub(super) async fn picture(&self, run: &str, artefact: &str, key: &str) -> Result<Vec<u8>> {
        let url = format!("{}/v1/runs/{run}/artefacts/{artefact}", self.server.url());
        let answer = client().get(url).header("apikey", key).bearer_auth(key).send().await?;
        Ok(answer.error_for_status()?.bytes().await?.to_vec())
    }

    /// Where the server keeps files.
    pub(super) fn files(&self) -> PathBuf {
        self.server.home.0.join("files")
    }

    /// What the server does every minute: deletes what is over.
    pub(super) async fn forget(&self) -> Result<()> {
        let files = gleaner_intake::files::Files::open(&self.server.home.0, None)?;
        gleaner_intake::runs::Artefacts::new(gleaner::pool(&self.url, 2)?, files).forget_files().await?;
        Ok(())
    }

    pub(super) fn anon_key(&self) -> &str {
        &self.server.anon
    }

    /// The main processes of this test's browsers.
    pub(super) fn browsers(&self) -> Vec<i32> {
        let own = format!("--of={}", self.home.display());
        let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        let number = |entry: &std::fs::DirEntry| entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok());
        let is_own = |entry: &std::fs::DirEntry| {
            let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
            let line = String::from_utf8_lossy(&line).replace('\0', " ");
            line.contains(&own) && !line.contains("--type=")
        };
        processes.filter(is_own).filter_map(|entry| number(&entry)).collect()
    }

    /// Lets the lease of a dead agent end.
    pub(super) async fn lapse(&self) -> Result<()> {
        let sql = "begin; set local role gleaner_engine; update execution_jobs set due_at = least(due_at, now()) where status in ('running', 'failed'); commit";
        self.client.batch_execute(sql).await?;
        // Time that passes is not announced; the agent would find the row at its next poll, half a minute later.
        self.client.execute("select pg_notify($1, 'runs')", &[&gleaner::notify::CHANNEL]).await?;
        Ok(())
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.home);
    }
}

async fn serve(seen: Seen) -> Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = format!("http://{}", listener.local_addr()?);
    let router = page::router(Arc::clone(&seen));
    tokio::spawn(async move { axum::serve(listener, router).await });
    Ok(address)
}

/// Our own steps, on the order form.
pub(super) fn order(site: &str) -> Value {
    json!({"name": "Order form", "steps": [
        {"do": "open", "url": site},
        {"do": "type", "selector": "#name", "text": "{{name}}"},
        {"do": "select", "selector": "#colour", "value": "Blue"},
        {"do": "click", "selector": "#send"},
        {"do": "assert", "selector": "#thanks", "text": "{{expected}}", "timeout": 1500},
        {"do": "screenshot", "name": "done"},
    ]})
}
