//! How a stage fetches what belongs to an item: its recording, and its record.

use std::fmt::Debug;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream::BoxStream;
use gleaner::Failure;
use serde_json::Value;

/// A file that belongs to an item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Medium {
    /// The item's key.
    pub key: String,
    /// The index of the file, counted from zero as on the server.
    pub n: usize,
    /// The URL in the row.
    pub address: String,
    pub content_type: Option<String>,
}

/// A file that is being downloaded.
pub struct Fetched {
    pub content_type: Option<String>,
    /// The announced length. The actual file may be longer.
    pub length: Option<u64>,
    pub stream: BoxStream<'static, Result<Bytes, String>>,
}

impl Debug for Fetched {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Fetched").field("content_type", &self.content_type).field("length", &self.length).finish_non_exhaustive()
    }
}

/// Fetches what belongs to an item. Failures are `DownloadError`s and say whether to retry.
#[async_trait]
pub trait Fetch: Debug + Send + Sync {
    async fn medium(&self, medium: &Medium) -> Result<Fetched, Failure>;
    /// The file of a dump.
    async fn document(&self, dump: &str) -> Result<Fetched, Failure> {
        let _ = dump;
        Err(Failure::new("this agent has no server to fetch documents from: set SUPABASE_URL and a key").category(crate::failure::DOWNLOAD))
    }
    /// The one row of `table` whose column `key` has this value. None if there is no such row, or if it may not be read.
    async fn row(&self, table: &str, key: &str, value: &str) -> Result<Option<Value>, Failure>;
    /// Calls a function of the schema `gleaner` that takes one JSON value, `p_request`, and returns one.
    async fn call(&self, function: &str, request: Value) -> Result<Value, Failure> {
        let _ = request;
        Err(Failure::new(format!("this agent has no way to call {function}")).category(crate::failure::DOWNLOAD))
    }
    /// Gives the server something to keep: posts JSON to one of its own paths.
    async fn store(&self, path: &str, body: Value) -> Result<Value, Failure> {
        let _ = (path, body);
        Err(Failure::new("this agent has no server to keep files: set SUPABASE_URL and a key").category(crate::failure::DOWNLOAD))
    }
}

/// Fetches nothing: for pipelines that need neither recordings nor records.
#[derive(Debug, Clone, Copy, Default)]
pub struct Nothing;

#[async_trait]
impl Fetch for Nothing {
    async fn medium(&self, _: &Medium) -> Result<Fetched, Failure> {
        Err(Failure::new("this agent has no way to recordings").category(crate::failure::DOWNLOAD).for_good())
    }

    async fn row(&self, _: &str, _: &str, _: &str) -> Result<Option<Value>, Failure> {
        Ok(None)
    }
}
