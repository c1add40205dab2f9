//! What the server answers where no route is: the web interface, and nothing else.

use anyhow::Result;
use axum::http::StatusCode;
use gleaner_server::{Config, Server};

use crate::world::{Home, database};

async fn started() -> Result<(Home, gleaner_postgres::testing::TestDatabase, Server)> {
    let (home, database) = (Home::new()?, database().await?);
    let mut config = Config::new(&home.0);
    config.listen.set_port(0);
    config.realtime = false;
    config.frames = vec!["https://crm.example.com".to_owned()];
    let server = Server::start(config, &database.url, gleaner::pool(&database.url, 4)?).await?;
    Ok((home, database, server))
}

#[tokio::test]
async fn a_page_is_served_under_a_strict_policy_and_for_configured_frames_only() -> Result<()> {
    let (_home, _database, server) = started().await?;
    for path in ["/", "/activity?state=waiting", "/activity/01a1e32a-89cf-74ed-b1f2-6eb8fe58a467", "/contacts/a.b"] {
        let answer = reqwest::get(format!("http://{}{path}", server.local_addr())).await?;
        assert_eq!(answer.status(), StatusCode::OK, "{path}");
        assert_eq!(answer.headers()["content-type"], "text/html; charset=utf-8", "{path}");
        assert_eq!(answer.headers()["cache-control"], "no-cache", "{path}");
        let policy = answer.headers()["content-security-policy"].to_str()?.to_owned();
        assert!(policy.contains("script-src 'self';") && !policy.contains("unsafe"), "{policy}");
        assert!(policy.contains("frame-ancestors https://crm.example.com"), "{policy}");
        assert!(answer.text().await?.contains("Gleaner"), "{path}");
    }
    server.stop().await;
    Ok(())
}

#[tokio::test]
async fn what_is_neither_a_route_nor_a_page_stays_a_json_404() -> Result<()> {
    let (_home, _database, server) = started().await?;
    let paths = [
        "/v1/nothing",
        "/rest",
        "/auth",
        "/realtime",
        "/functions/v1/nothing",
        "/health/nothing",
        "/ready/nothing",
        "/wp-login.php",
        "/index.html",
        "/.gitignore",
        "/assets/missing.js",
        "/assets/../index.html",
    ];
    for path in paths {
        let answer = reqwest::get(format!("http://{}{path}", server.local_addr())).await?;
        assert_eq!(answer.status(), StatusCode::NOT_FOUND, "{path}");
        assert_eq!(answer.headers()["content-type"], "application/json; charset=utf-8", "{path}");
    }
    let posted = reqwest::Client::new().post(format!("http://{}/activity", server.local_addr())).send().await?;
    assert_eq!(posted.status(), StatusCode::NOT_FOUND);
    server.stop().await;
    Ok(())
}
