//! The test databases that other crates' tests rely on.

use std::fs;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::Result;
use futures_util::future::try_join_all;
use gleaner_postgres::testing::{self, PrivateServer};

use crate::support::value;

#[tokio::test]
async fn each_test_gets_a_database_of_its_own_and_the_template_is_prepared_once() -> Result<()> {
    let prepared = AtomicU32::new(0);
    let asked = (0..6).map(|_| {
        testing::server().database_from("once", async |url: String| {
            prepared.fetch_add(1, Ordering::Relaxed);
            // Left open on purpose: a pool may close at any time.
            let client = testing::connect(&url).await?;
            client.batch_execute("create table task (id bigint); insert into task values (1)").await?;
            std::mem::forget(client);
            anyhow::Ok(())
        })
    });
    let databases = try_join_all(asked).await?;
    assert_eq!(prepared.load(Ordering::Relaxed), 1);
    for database in &databases {
        let client = database.connect().await?;
        client.batch_execute("insert into task values (2)").await?;
        assert_eq!(value(&database.url, "select count(*) from task").await?, "2", "{}", database.name);
    }
    Ok(())
}

#[tokio::test]
async fn a_preparation_that_failed_is_tried_again() -> Result<()> {
    let server = testing::server();
    let failure = server
        .database_from("twice", async |url: String| {
            testing::connect(&url).await?.batch_execute("create table task (id bigint)").await?;
            anyhow::bail!("half way")
        })
        .await
        .expect_err("it failed");
    assert!(failure.to_string().contains("half way"), "{failure}");
    let database = server
        .database_from("twice", async |url: String| testing::connect(&url).await?.batch_execute("create table task (id bigint)").await)
        .await?;
    assert_eq!(value(&database.url, "select count(*) from task").await?, "0");
    Ok(())
}

#[tokio::test]
async fn an_empty_database_is_empty() -> Result<()> {
    let database = testing::server().empty_database().await?;
    assert_eq!(value(&database.url, "select count(*) from pg_class where relnamespace = 'public'::regnamespace").await?, "0");
    assert_eq!(value(&database.url, "show fsync").await?, "off", "nobody keeps this");
    Ok(())
}

#[tokio::test]
async fn what_dead_test_processes_left_is_swept() -> Result<()> {
    let mut short = Command::new("true").stdout(Stdio::null()).spawn()?;
    let dead = short.id();
    short.wait()?;
    let left = std::env::temp_dir().join(format!("gleaner-test-{dead}-left"));
    fs::create_dir_all(left.join("postgres"))?;
    let server = PrivateServer::start(false).await?;
    assert!(!left.exists());
    assert!(server.cluster().home().path().exists());
    Ok(())
}
