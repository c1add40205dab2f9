//! The whole server on a temporary database, for external tests that are not written in Rust (`scripts/schemathesis`).
//!
//! Prints what a client needs, as `gleaner status -o env` does, then an empty line. It ends when its standard input ends.

use std::net::SocketAddr;

use gleaner_http::Role;
use gleaner_postgres::testing;
use gleaner_server::{Config, Server};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    tracing_subscriber::fmt().with_max_level(tracing::Level::WARN).with_writer(std::io::stderr).init();
    let database =
        testing::server().database_from("migrated", async |url: String| gleaner::migrate::migrate(&url, &|_| {}).await.map(drop)).await?;
    let home = std::env::temp_dir().join(format!("gleaner-product-{}", uuid::Uuid::now_v7()));
    std::fs::create_dir(&home)?;
    let mut config = Config::new(&home);
    config.listen = SocketAddr::from(([127, 0, 0, 1], 0));
    let server = Server::start(config, &database.url, gleaner::pool(&database.url, 16)?).await?;
    let access = gleaner_server::load_access(&home)?;
    println!("API_URL=http://{}", server.local_addr());
    println!("ANON_KEY={}", access.project_key(Role::Anon));
    println!("SERVICE_ROLE_KEY={}\n", access.project_key(Role::Service));
    end_of_input().await;
    server.stop().await;
    Ok(std::fs::remove_dir_all(&home)?)
}

async fn end_of_input() {
    // The read cannot be interrupted, so it has a thread of its own, which ends with the program.
    let (ended, end) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || {
        let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        let _ = ended.send(());
    });
    let _ = end.await;
}
