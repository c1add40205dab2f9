//! A server with nothing but `/rest/v1` and `/auth/v1` on a throw-away database, for the TypeScript tests in `tests/wire`.
//!
//! Prints what a client needs, as `gleaner status -o env` does, then an empty line; ends when its input ends.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::Context as _;
use axum::Router;
use gleaner_postgres::testing;
use gleaner_server::access::{Access, Role};
use gleaner_server::auth::{self, Auth, Keyring};
use gleaner_server::cors;
use gleaner_server::rest::{self, Rest, Settings};

const SECRET: &str = "a secret for tests, which is long enough";

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let database =
        testing::server().database_from("migrated", async |url: String| gleaner::migrate::migrate(&url, &|_| {}).await.map(drop)).await?;
    let access = Access::new(SECRET, "this example")?;
    let pool = gleaner::pool(&database.url, 10)?;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let base = format!("http://{}", listener.local_addr()?);
    let rest = Rest::new(pool.clone(), Arc::new(Keyring::new(access.clone(), pool.clone())), Settings::default());
    let auth = Auth::open(pool, access.clone(), auth::Settings::new(base.clone())).await?.context("users are ours")?;
    let router = Router::new()
        .nest("/rest/v1", rest::routes(rest))
        .nest("/auth/v1", auth::routes(auth))
        .layer(axum::middleware::from_fn(cors::allow_everyone))
        .into_make_service_with_connect_info::<SocketAddr>();
    println!("API_URL={base}");
    println!("ANON_KEY={}", access.project_key(Role::Anon));
    println!("SERVICE_ROLE_KEY={}", access.project_key(Role::Service));
    println!("JWT_SECRET={SECRET}\n");
    tokio::select! {
        served = axum::serve(listener, router) => served?,
        () = end_of_input() => {}
    }
    Ok(())
}

async fn end_of_input() {
    // Reading cannot be interrupted, so that it has a thread of its own, which the end of the program takes along.
    let (ended, end) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || {
        let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        let _ = ended.send(());
    });
    let _ = end.await;
}
