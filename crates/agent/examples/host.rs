//! The host page and the shared models without an agent, for tests with a real browser (`scripts/host-test`).
//!
//!     host HOME [KIND=BASE_URL …]
//!
//! Prints `URL=…` and then a line of JSON for each app that it should serve or stop. Ends when its standard input ends.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use async_trait::async_trait;
use axum::Router;
use gleaner_agent::host::{self, App, Host, Model, Serve, Trouble};
use serde_json::json;

/// Prints what it would do.
struct Printed;

#[async_trait]
impl Serve for Printed {
    async fn serve(&self, app: App) -> Result<(), Trouble> {
        println!("{}", json!({"serve": app.name, "url": app.place.url, "tables": app.place.tables}));
        if app.place.url.contains("away") { Err(format!("{} does not answer", app.place.url).into()) } else { Ok(()) }
    }

    async fn stop(&self, name: &str) {
        println!("{}", json!({"stop": name}));
    }
}

fn model(word: &str) -> Result<Model> {
    let (kind, base_url) = word.split_once('=').context("KIND=BASE_URL")?;
    Ok(Model {
        name: format!("local-{kind}"),
        kind: serde_json::from_value(json!(kind))?,
        base_url: base_url.to_owned(),
        key: Some("the-agents-own-key".to_owned()),
        model: "real-name".to_owned(),
        timeout: Duration::from_secs(5),
    })
}

#[tokio::main]
async fn main() -> Result<()> {
    let mut words = std::env::args().skip(1);
    let home = PathBuf::from(words.next().context("host HOME [KIND=BASE_URL …]")?);
    let models = words.map(|word| model(&word)).collect::<Result<Vec<_>>>()?;
    let host = Host::open(&home, Arc::new(Printed), models)?;
    host.resume().await;
    let router = Router::new().nest("/host", host::router(host.clone())).nest("/v1", host::ai_router(host));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    println!("URL=http://{}", listener.local_addr()?);
    tokio::spawn(async move { axum::serve(listener, router).await });
    // A blocking read cannot be cancelled, so it has a thread of its own, which ends with the program.
    let (ended, end) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || {
        let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        let _ = ended.send(());
    });
    Ok(end.await?)
}
