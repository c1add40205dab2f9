//! Without a server: rows from the database, files from the URL in the row, if the operator allows it.

use std::path::{Component, Path};

use async_trait::async_trait;
use bytes::BytesMut;
use futures_util::StreamExt as _;
use gleaner::{Failure, Pool};
use gleaner_stages::failure::{DOWNLOAD, of_request};
use gleaner_stages::fetch::{Fetch, Fetched, Medium};
use serde_json::Value;
use tokio_postgres::types::{Format, IsNull, ToSql, Type, to_sql_checked};

use super::server::received;

/// Fetches only URLs that begin with one of the allowed prefixes, because the sender of a message chooses what its row says.
#[derive(Debug, Clone)]
pub struct Direct {
    pool: Option<Pool>,
    allowed: Vec<String>,
    client: reqwest::Client,
}

impl Direct {
    /// `allowed` are URL prefixes up to the last slash: `https://api.example.com/recordings/`, `file:///srv/recordings/`.
    pub fn new(pool: Option<Pool>, allowed: impl IntoIterator<Item = String>) -> Result<Self, reqwest::Error> {
        let allowed: Vec<String> = allowed.into_iter().map(|place| if place.ends_with('/') { place } else { place + "/" }).collect();
        let places = allowed.clone();
        // No redirects: an allowed server must not redirect us to one that is not allowed.
        let policy = reqwest::redirect::Policy::custom(move |attempt| {
            if attempt.previous().len() > 5 || !places.iter().any(|place| attempt.url().as_str().starts_with(place)) {
                attempt.error("it leads to an address that is not allowed")
            } else {
                attempt.follow()
            }
        });
        Ok(Self { pool, allowed, client: gleaner_stages::client_builder().redirect(policy).build()? })
    }

    /// The URL to fetch, if it is allowed. It is checked as the client parses it: `%2e%2e` goes up a directory just as `..`
    /// does.
    fn allowed(&self, address: &str) -> Option<String> {
        let climbs = Path::new(address).components().any(|part| part == Component::ParentDir);
        let address = if address.starts_with("file://") { address.to_owned() } else { reqwest::Url::parse(address).ok()?.to_string() };
        (!climbs && self.allowed.iter().any(|place| address.starts_with(place))).then_some(address)
    }
}

#[async_trait]
impl Fetch for Direct {
    async fn medium(&self, medium: &Medium) -> Result<Fetched, Failure> {
        let Some(address) = self.allowed(&medium.address) else {
            let host = medium.address.split('/').take(3).collect::<Vec<_>>().join("/");
            return Err(Failure::new(format!("recordings are not fetched from {host}: it is none of the allowed addresses"))
                .category(DOWNLOAD)
                .for_good());
        };
        if let Some(path) = address.strip_prefix("file://") {
            return file(path).await;
        }
        let answer = self.client.get(&address).timeout(gleaner_stages::FOREVER).send().await;
        received(answer.map_err(|e| of_request(DOWNLOAD, "fetch the recording", e))?).await
    }

    async fn row(&self, table: &str, key: &str, value: &str) -> Result<Option<Value>, Failure> {
        let Some(pool) = &self.pool else { return Ok(None) };
        let trouble = |error: String| Failure::new(format!("look up {table}: {error}")).category(DOWNLOAD);
        let client = pool.get().await.map_err(|e| trouble(e.to_string()))?;
        let name = |name: &str| name.split('.').map(|part| format!("\"{}\"", part.replace('"', "\"\""))).collect::<Vec<_>>().join(".");
        let sql = format!("select to_jsonb(t) from {} as t where t.{} = $1 limit 1", name(table), name(key));
        let rows = client.query_typed(&sql, &[(&AsText(value), Type::UNKNOWN)]).await;
        let rows = rows.map_err(|e| trouble(e.as_db_error().map_or_else(|| e.to_string(), |db| db.message().to_owned())))?;
        Ok(rows.first().map(|row| row.get(0)))
    }

    async fn call(&self, function: &str, request: Value) -> Result<Value, Failure> {
        let trouble = |error: String| Failure::new(format!("call {function}: {error}")).category(DOWNLOAD);
        let pool = self.pool.as_ref().ok_or_else(|| trouble("there is no database".to_owned()))?;
        let client = pool.get().await.map_err(|e| trouble(e.to_string()))?;
        let sql = format!("select gleaner.{function}($1)");
        let rows = client.query_typed(&sql, &[(&request, Type::JSONB)]).await;
        let rows = rows.map_err(|e| trouble(e.as_db_error().map_or_else(|| e.to_string(), |db| db.message().to_owned())))?;
        Ok(rows.first().and_then(|row| row.get(0)).unwrap_or_default())
    }
}

/// A value as text, whatever the type of the column: PostgreSQL reads it as a literal, so the column's index can be used.
#[derive(Debug)]
struct AsText<'a>(&'a str);

impl ToSql for AsText<'_> {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        out.extend_from_slice(self.0.as_bytes());
        Ok(IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    fn encode_format(&self, _: &Type) -> Format {
        Format::Text
    }

    to_sql_checked!();
}

async fn file(path: &str) -> Result<Fetched, Failure> {
    let trouble = |error: std::io::Error| Failure::new(format!("read the recording: {error}")).category(DOWNLOAD);
    let file = tokio::fs::File::open(path).await.map_err(trouble)?;
    let length = file.metadata().await.map_err(trouble)?.len();
    let stream = futures_util::stream::unfold(Some(file), |file| async {
        use tokio::io::AsyncReadExt as _;
        let mut file = file?;
        let mut piece = BytesMut::with_capacity(64 * 1024);
        match file.read_buf(&mut piece).await {
            Ok(0) => None,
            Ok(_) => Some((Ok(piece.freeze()), Some(file))),
            Err(error) => Some((Err(error.to_string()), None)),
        }
    });
    Ok(Fetched { content_type: None, length: Some(length), stream: stream.boxed() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_allowed_places_are_gone_to() {
        let direct =
            Direct::new(None, ["https://a.example/recordings".to_owned(), "file:///srv/recordings/".to_owned()]).expect("a client");
        for address in ["https://a.example/recordings/1", "https://a.example/recordings/x/2?y=1", "file:///srv/recordings/1.wav"] {
            assert!(direct.allowed(address).is_some(), "{address}");
        }
        for address in [
            "https://a.example/recordings",
            "https://a.example/recordings-of-others/1",
            "https://a.example/recordings/../secret",
            "https://a.example/recordings/%2e%2e/secret",
            "https://a.example@evil.example/recordings/1",
            "http://169.254.169.254/latest",
            "file:///srv/recordings/../../etc/passwd",
            "file:///etc/passwd",
            "not an address",
        ] {
            assert_eq!(direct.allowed(address), None, "{address}");
        }
    }
}
