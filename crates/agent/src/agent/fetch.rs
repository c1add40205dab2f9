//! How an agent fetches what belongs to an item, from a database or a server.

use async_trait::async_trait;
use futures_util::{StreamExt as _, TryStreamExt as _};
use gleaner::{Error, Failure};
use gleaner_stages::failure::DOWNLOAD;
use http::Method;
use serde_json::{Value, json};

use crate::pipeline::Fetch;
use crate::pipeline::fetch::{Fetched, Medium};
use crate::wire::Wire;

/// Rows from the database, files through the server.
#[derive(Debug)]
pub(super) struct Both<R, F> {
    pub rows: R,
    pub files: F,
}

#[async_trait]
impl<R: Fetch, F: Fetch> Fetch for Both<R, F> {
    async fn medium(&self, medium: &Medium) -> Result<Fetched, Failure> {
        self.files.medium(medium).await
    }

    async fn document(&self, dump: &str) -> Result<Fetched, Failure> {
        self.files.document(dump).await
    }

    async fn row(&self, table: &str, key: &str, value: &str) -> Result<Option<Value>, Failure> {
        self.rows.row(table, key, value).await
    }

    async fn call(&self, function: &str, request: Value) -> Result<Value, Failure> {
        self.rows.call(function, request).await
    }

    async fn store(&self, path: &str, body: Value) -> Result<Value, Failure> {
        self.files.store(path, body).await
    }
}

/// Uses the session or key of the wire, which renews its token by itself.
#[derive(Debug)]
pub(super) struct Through(pub Wire);

#[async_trait]
impl Fetch for Through {
    async fn medium(&self, medium: &Medium) -> Result<Fetched, Failure> {
        self.file(&format!("/v1/media/{}/{}", written(&medium.key), medium.n)).await
    }

    async fn document(&self, dump: &str) -> Result<Fetched, Failure> {
        self.file(&format!("/v1/dumps/{}/file", written(dump))).await
    }

    async fn row(&self, table: &str, key: &str, value: &str) -> Result<Option<Value>, Failure> {
        let path = format!("/rest/v1/{}?{}=eq.{}&limit=1", written(table), written(key), written(value));
        let rows = self.0.rest(Method::GET, &path, None).await.map_err(as_failure)?;
        Ok(rows.get(0).cloned())
    }

    async fn call(&self, function: &str, request: Value) -> Result<Value, Failure> {
        self.0.rpc("gleaner", function, json!({"p_request": request})).await.map_err(as_failure)
    }

    async fn store(&self, path: &str, body: Value) -> Result<Value, Failure> {
        self.0.rest(Method::POST, path, Some(&body)).await.map_err(as_failure)
    }
}

impl Through {
    async fn file(&self, path: &str) -> Result<Fetched, Failure> {
        let fetched = self.0.fetch(path).await.map_err(as_failure)?;
        let stream = fetched.stream.map_err(|error| error.to_string()).boxed();
        Ok(Fetched { content_type: fetched.content_type, length: fetched.length, stream })
    }
}

fn as_failure(error: Error) -> Failure {
    let failure = Failure::new(error.to_string()).category(DOWNLOAD);
    if error.is_transient() { failure } else { failure.for_good() }
}

/// Encodes the value as part of a URL.
fn written(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
    text.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}
