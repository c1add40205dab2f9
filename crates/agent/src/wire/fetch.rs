//! Files fetched through the server: recordings and attachments.

use std::fmt;

use ::http::Method;
use ::http::header::CONTENT_TYPE;
use bytes::Bytes;
use futures_util::stream::BoxStream;
use futures_util::{StreamExt as _, TryStreamExt as _};
use gleaner::{Error, Result};

use super::classify::{refused, unanswered};
use super::http::Http;

/// A file that is being downloaded.
pub struct Fetched {
    pub content_type: Option<String>,
    pub length: Option<u64>,
    pub stream: BoxStream<'static, Result<Bytes>>,
}

impl fmt::Debug for Fetched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fetched").field("content_type", &self.content_type).field("length", &self.length).finish_non_exhaustive()
    }
}

impl Fetched {
    /// Reads the whole file, if it has at most `most` bytes.
    pub async fn bytes(mut self, most: usize) -> Result<Vec<u8>> {
        let mut all = Vec::new();
        while let Some(piece) = self.stream.try_next().await? {
            if all.len() + piece.len() > most {
                return Err(Error::Other(format!("the file has more than {most} bytes")));
            }
            all.extend_from_slice(&piece);
        }
        Ok(all)
    }
}

pub(super) async fn fetch(http: &Http, path_or_url: &str) -> Result<Fetched> {
    let path = path_or_url.strip_prefix(&http.base).unwrap_or(path_or_url);
    // Our key is for our server only: neither `https://elsewhere` nor `//elsewhere` nor `https://server.evil` gets it.
    if !path.starts_with('/') || path.starts_with("//") {
        return Err(Error::Other(format!("{path_or_url} is not at {}; only files of the server are fetched with our rights", http.base)));
    }
    let mut renewed = false;
    loop {
        http.wait_until_welcome().await;
        let token = http.credentials.token().await?;
        let sent = http.request(Method::GET, &format!("{}{path}", http.base), &token).send().await;
        let response = sent.map_err(|error| unanswered("fetch a file", &error))?;
        http.heed(&response);
        let status = response.status().as_u16();
        if status == 401 && http.credentials.is_renewable() && !renewed {
            http.credentials.renew(&token).await?;
            renewed = true;
            continue;
        }
        if !response.status().is_success() {
            let body = response.bytes().await.unwrap_or_default();
            return Err(refused("fetch a file", status, &serde_json::from_slice(&body).unwrap_or_default(), false));
        }
        let content_type = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).map(str::to_owned);
        let length = response.content_length();
        let stream = response.bytes_stream().map_err(|error| unanswered("fetch a file", &error)).boxed();
        return Ok(Fetched { content_type, length, stream });
    }
}
