//! Documents over HTTP: stored at once, once each, for those who may see them.

use anyhow::{Context as _, Result};
use gleaner_http::Role;
use gleaner_intake::dumps::{self, Dumps};
use gleaner_intake::files::Files;
use gleaner_postgres::testing::TestDatabase;
use gleaner_supabase::access::Access;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_postgres::Client;

use crate::world::{Home, database};

const LIMIT: u64 = 100_000;

struct Stage {
    client: Client,
    access: Access,
    http: reqwest::Client,
    base: String,
    dumps: Dumps,
    files: Files,
    _home: Home,
    // Last, so that it outlives everything connected to it.
    _database: TestDatabase,
}

async fn stage() -> Result<Stage> {
    let (database, home) = (database().await?, Home::new()?);
    let access = Access::new("a secret of the tests, long enough to be one", "test")?;
    let files = Files::open(&home.0, None)?;
    let dumps = Dumps::new(gleaner::pool(&database.url, 4)?, files.clone(), LIMIT);
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let base = format!("http://{}", listener.local_addr()?);
    let app = axum::Router::from(dumps::router(dumps.clone(), access.clone()));
    tokio::spawn(async move { axum::serve(listener, app).await });
    let client = gleaner::connect(&database.url).await?;
    Ok(Stage { client, access, http: reqwest::Client::new(), base, dumps, files, _home: home, _database: database })
}

impl Stage {
    /// A member of the team with a workspace: its token and basket.
    async fn member(&self, n: u8) -> Result<(String, String)> {
        let user = format!("00000000-0000-0000-0000-00000000000{n}");
        let sql = format!(
            "insert into sales (id, first_name, email, user_id) values ({n}, 'm', 'm{n}@example.com', '{user}');
             insert into workspaces (id, name) values ('{user}', 'of {n}');
             insert into workspace_members (workspace_id, user_id, role) values ('{user}', '{user}', 'owner');
             insert into baskets (id, workspace_id) values ('{user}', '{user}')"
        );
        self.client.batch_execute(&sql).await?;
        let claims = json!({"role": "authenticated", "sub": user});
        Ok((self.access.sign(claims.as_object().context("claims")?), user))
    }

    async fn add(&self, token: &str, query: &str, body: impl Into<reqwest::Body>) -> Result<(u16, Value)> {
        let response = self.http.post(format!("{}/v1/dumps?{query}", self.base)).bearer_auth(token).body(body).send().await?;
        Ok((response.status().as_u16(), response.json().await?))
    }

    async fn file(&self, token: &str, dump: &Value) -> Result<(u16, String)> {
        let url = format!("{}/v1/dumps/{}/file", self.base, dump["id"].as_str().context("an id")?);
        let response = self.http.get(url).bearer_auth(token).send().await?;
        Ok((response.status().as_u16(), response.text().await?))
    }

    async fn count(&self, sql: &str) -> Result<i64> {
        Ok(self.client.query_one(&format!("select count(*) from {sql}"), &[]).await?.get(0))
    }
}

#[tokio::test]
async fn a_document_is_stored_and_queued_at_once_and_the_same_file_twice_is_one() -> Result<()> {
    let stage = stage().await?;
    let (token, basket) = stage.member(1).await?;
    let (status, added) = stage.add(&token, "name=../notes.md", "# Pumps\n\nForty are ordered.").await?;
    assert_eq!(status, 201, "{added}");
    assert_eq!((&added["name"], &added["media_type"], &added["size"]), (&json!("notes.md"), &json!("text/markdown"), &json!(27)));
    assert_eq!(added["basket_id"], json!(basket), "the only one there is");
    assert_eq!(stage.count("agent_processing_queue where processing_state = 'pending'").await?, 1);
    assert_eq!(stage.count("raw_dumps where body_md like '# Pumps%' and file_size = 27 and length(file_sha256) = 64").await?, 1);
    assert_eq!(stage.file(&token, &added).await?, (200, "# Pumps\n\nForty are ordered.".to_owned()));
    let (status, again) = stage.add(&token, "name=copy.md", "# Pumps\n\nForty are ordered.").await?;
    assert_eq!((status, &again["known"], &again["id"]), (200, &json!(true), &added["id"]));
    assert_eq!(stage.count("agent_processing_queue").await?, 1, "it is not processed again");
    Ok(())
}

#[tokio::test]
async fn what_is_too_large_empty_or_no_document_is_refused_and_leaves_nothing() -> Result<()> {
    let stage = stage().await?;
    let (token, _) = stage.member(1).await?;
    assert_eq!(stage.add(&token, "name=a.txt", vec![b'a'; LIMIT as usize + 1]).await?.0, 413);
    assert_eq!(stage.add(&token, "name=a.txt", "").await?.0, 400);
    assert_eq!(stage.add(&token, "name=a.txt", &b"\x7fELF\0\xff"[..]).await?.0, 415);
    assert_eq!(stage.add(&token, "name=a.zip", &b"PK\x03\x04 zip"[..]).await?.0, 415);
    assert_eq!(stage.add(&token, "name=a.txt&basket=x", "text").await?.0, 400);
    assert_eq!(stage.count("raw_dumps").await?, 0);
    Ok(())
}

#[tokio::test]
async fn two_workspaces_reach_nothing_of_each_others_files() -> Result<()> {
    let stage = stage().await?;
    let ((ann, of_ann), (bob, _)) = (stage.member(1).await?, stage.member(2).await?);
    let (_, hers) = stage.add(&ann, "name=a.txt", "for Ann alone").await?;
    assert_eq!(stage.file(&ann, &hers).await?.0, 200);
    assert_eq!(stage.file(&bob, &hers).await?.0, 404);
    assert_eq!(stage.add(&bob, &format!("name=a.txt&basket={of_ann}"), "x").await?.0, 404, "as if there were no such basket");
    // The same bytes in his own basket are a dump of his own.
    let (status, his) = stage.add(&bob, "name=a.txt", "for Ann alone").await?;
    assert_eq!((status, his["id"] == hers["id"]), (201, false));
    let anon = stage.access.project_key(Role::Anon);
    assert_eq!(stage.add(&anon, "name=a.txt", "x").await?.0, 401);
    assert_eq!(stage.file(&anon, &hers).await?.0, 404);
    Ok(())
}

#[tokio::test]
async fn the_file_of_a_deleted_dump_is_deleted() -> Result<()> {
    let stage = stage().await?;
    let (token, _) = stage.member(1).await?;
    let (_, added) = stage.add(&token, "name=a.txt", "text").await?;
    let path = format!("dumps/{}/{}", added["id"].as_str().context("an id")?, added["sha256"].as_str().context("a hash")?);
    assert!(stage.files.get(&path).await?.is_some());
    stage.client.batch_execute("delete from raw_dumps").await?;
    assert_eq!(stage.file(&token, &added).await?.0, 404);
    assert_eq!(stage.dumps.forget_files().await?, 1);
    assert!(stage.files.get(&path).await?.is_none());
    assert_eq!(stage.dumps.forget_files().await?, 0);
    Ok(())
}
