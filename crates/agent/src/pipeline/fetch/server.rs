//! Through a server, Gleaner's own or a Supabase project, with the rights of the signed-in user or key.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::{StreamExt as _, TryStreamExt as _};
use gleaner::Failure;
use gleaner_stages::failure::{DOWNLOAD, of_request, of_status};
use gleaner_stages::fetch::{Fetch, Fetched, Medium};
use http::StatusCode;
use serde_json::Value;

/// The timeout of a row lookup.
const LOOK_UP: Duration = Duration::from_secs(30);
/// How long a download may stall before it fails.
const SILENCE: Duration = Duration::from_secs(60);

/// Returns the access token to use now.
type Token = Arc<dyn Fn() -> String + Send + Sync>;

/// Recordings from `/v1/media`, rows from `/rest/v1`.
#[derive(Clone)]
pub struct Server {
    base: String,
    anon_key: String,
    token: Token,
    client: reqwest::Client,
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("base", &self.base).finish_non_exhaustive()
    }
}

impl Server {
    /// `token` returns the access token to use now, because sessions are renewed while the agent runs.
    pub fn new(base: &str, anon_key: &str, token: impl Fn() -> String + Send + Sync + 'static) -> Result<Self, reqwest::Error> {
        Ok(Self {
            base: base.trim_end_matches('/').to_owned(),
            anon_key: anon_key.to_owned(),
            token: Arc::new(token),
            client: gleaner_stages::client()?,
        })
    }

    async fn file(&self, url: String) -> Result<Fetched, Failure> {
        let answer = self.get(url).timeout(gleaner_stages::FOREVER).send().await;
        received(answer.map_err(|error| of_request(DOWNLOAD, "fetch the file", error))?).await
    }

    fn get(&self, url: String) -> reqwest::RequestBuilder {
        self.client.get(url).bearer_auth((self.token)()).header("apikey", &self.anon_key)
    }
}

#[async_trait]
impl Fetch for Server {
    async fn medium(&self, medium: &Medium) -> Result<Fetched, Failure> {
        self.file(format!("{}/v1/media/{}/{}", self.base, medium.key, medium.n)).await
    }

    async fn document(&self, dump: &str) -> Result<Fetched, Failure> {
        self.file(format!("{}/v1/dumps/{dump}/file", self.base)).await
    }

    async fn row(&self, table: &str, key: &str, value: &str) -> Result<Option<Value>, Failure> {
        let what = format!("look up {table}");
        let request = self.get(format!("{}/rest/v1/{table}", self.base)).query(&[(key, format!("eq.{value}").as_str()), ("limit", "1")]);
        let answer = request.timeout(LOOK_UP).send().await.map_err(|e| of_request(DOWNLOAD, &what, e))?;
        let (status, headers) = (answer.status(), answer.headers().clone());
        let body = answer.text().await.map_err(|e| of_request(DOWNLOAD, &what, e))?;
        if !status.is_success() {
            return Err(of_status(DOWNLOAD, &format!("{what}: the server"), status, &headers, &body));
        }
        let rows: Vec<Value> = serde_json::from_str(&body).map_err(|e| Failure::new(format!("{what}: {e}")).category(DOWNLOAD))?;
        Ok(rows.into_iter().next())
    }
}

/// The file in a response, or why there is none.
pub(super) async fn received(answer: reqwest::Response) -> Result<Fetched, Failure> {
    let (status, headers) = (answer.status(), answer.headers().clone());
    if status != StatusCode::OK {
        let body = answer.text().await.unwrap_or_default();
        let failure = of_status(DOWNLOAD, "fetch the recording: the server", status, &headers, &body);
        // An expired session is renewed before the next attempt.
        return Err(if status == StatusCode::UNAUTHORIZED { Failure { retryable: true, ..failure } } else { failure });
    }
    let content_type = headers.get("content-type").and_then(|value| value.to_str().ok()).map(str::to_owned);
    let length = answer.content_length();
    let stream = answer.bytes_stream().map_err(|error| error.without_url().to_string());
    let stream = patient(stream.boxed());
    Ok(Fetched { content_type, length, stream })
}

/// A stream that ends with an error if it stalls for too long.
fn patient(
    stream: futures_util::stream::BoxStream<'static, Result<bytes::Bytes, String>>,
) -> futures_util::stream::BoxStream<'static, Result<bytes::Bytes, String>> {
    futures_util::stream::unfold(Some(stream), |stream| async {
        let mut stream = stream?;
        match tokio::time::timeout(SILENCE, stream.next()).await {
            Ok(Some(piece)) => Some((piece, Some(stream))),
            Ok(None) => None,
            Err(_) => Some((Err(format!("nothing came for {} seconds", SILENCE.as_secs())), None)),
        }
    })
    .boxed()
}
