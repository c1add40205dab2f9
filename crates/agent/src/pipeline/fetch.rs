//! How a pipeline gets at what belongs to an item: its recording, and its record.
//!
//! Through the server is the usual way: it has the provider's credentials, and lets nobody be sent to where they should not go.

mod direct;
mod server;

use std::fmt::Debug;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream::BoxStream;
use gleaner::Failure;
use serde_json::Value;

pub use self::direct::Direct;
pub use self::server::Server;

/// What hangs on an item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Medium {
    /// The item's key.
    pub key: String,
    /// Which of its files, counted from zero as the server counts them.
    pub n: usize,
    /// Where the row says it is.
    pub address: String,
    pub content_type: Option<String>,
}

/// A file on its way.
pub struct Fetched {
    pub content_type: Option<String>,
    /// As announced; what comes may still be longer.
    pub length: Option<u64>,
    pub stream: BoxStream<'static, Result<Bytes, String>>,
}

impl Debug for Fetched {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Fetched").field("content_type", &self.content_type).field("length", &self.length).finish_non_exhaustive()
    }
}

/// Gets what belongs to an item. Failures are `DownloadError`s and say whether to try again.
#[async_trait]
pub trait Fetch: Debug + Send + Sync {
    async fn medium(&self, medium: &Medium) -> Result<Fetched, Failure>;
    /// The one row of `table` whose column `key` has this value; none when there is none, or it may not be read.
    async fn row(&self, table: &str, key: &str, value: &str) -> Result<Option<Value>, Failure>;
}

/// Has nothing: for pipelines that need neither recordings nor records.
#[derive(Debug, Clone, Copy, Default)]
pub struct Nothing;

#[async_trait]
impl Fetch for Nothing {
    async fn medium(&self, _: &Medium) -> Result<Fetched, Failure> {
        Err(Failure::new("this agent has no way to recordings").category(crate::stages::failure::DOWNLOAD).for_good())
    }

    async fn row(&self, _: &str, _: &str, _: &str) -> Result<Option<Value>, Failure> {
        Ok(None)
    }
}
