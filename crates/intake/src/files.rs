//! Files that belong to rows: recordings, attachments, raw bodies too large for a table.
//!
//! By default they are stored in a folder in the home directory, or in any S3-compatible store when several servers share
//! one database. Nothing outside this module knows which.

mod place;
mod read;
mod write;

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::TryStreamExt as _;
use object_store::aws::AmazonS3Builder;
use object_store::local::LocalFileSystem;
use object_store::prefix::PrefixStore;
use object_store::{ObjectStore, ObjectStoreExt as _};
use uuid::Uuid;

pub use self::read::{Found, Span};
pub use self::write::Copied;

/// Errors of the store, sorted by what the caller can do about them.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The path was not made by us.
    #[error("{0:?} is no path of a file of ours")]
    Path(String),
    /// The requested span lies outside the file, which has this many bytes.
    #[error("the file has {size} bytes, less than what was asked for")]
    Outside { size: u64 },
    /// The source sent more bytes than the caller allows; nothing was stored.
    #[error("more than {limit} bytes")]
    TooLarge { limit: u64 },
    /// The source of the bytes stopped sending; nothing was stored.
    #[error("the source ended early: {0}")]
    Source(String),
    #[error("open the file store: {0}")]
    Open(String),
    #[error("{act} a file")]
    Store { act: &'static str, source: object_store::Error },
}

pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The file store. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Files {
    store: Arc<dyn ObjectStore>,
}

impl Files {
    /// The store at `url` (`s3://bucket/prefix`, with the usual `AWS_*` variables), or the folder `files` in `home`.
    pub fn open(home: &Path, url: Option<&str>) -> Result<Self> {
        match url.filter(|url| !url.is_empty()) {
            Some(url) => Self::remote(url),
            None => Self::folder(&home.join("files")),
        }
    }

    /// As [`Self::open`], with the URL from `GLEANER_FILES_URL`.
    pub fn from_env(home: &Path) -> Result<Self> {
        Self::open(home, std::env::var("GLEANER_FILES_URL").ok().as_deref())
    }

    fn folder(folder: &Path) -> Result<Self> {
        place::make_private(folder).map_err(|e| Error::Open(format!("{}: {e}", folder.display())))?;
        // A file is written before the row that names it is acknowledged, so it must be as durable as the row.
        let store = LocalFileSystem::new_with_prefix(folder).map_err(|e| Error::Open(e.to_string()))?.with_fsync(true);
        Ok(Self { store: Arc::new(store.with_automatic_cleanup(true)) })
    }

    fn remote(url: &str) -> Result<Self> {
        let (bucket, prefix) = place::bucket(url)?;
        // The HTTP client leaves the choice of the cryptography provider to the program, and commands use this without a
        // server.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let store = AmazonS3Builder::from_env().with_bucket_name(bucket).build().map_err(|e| Error::Open(e.to_string()))?;
        Ok(match prefix {
            Some(prefix) => Self { store: Arc::new(PrefixStore::new(store, prefix)) },
            None => Self { store: Arc::new(store) },
        })
    }

    /// The path of the `n`-th file of an activity, counted from zero in the order of its attachments.
    pub fn of_activity(activity: Uuid, n: usize) -> String {
        format!("activities/{activity}/{n}")
    }

    /// Stores `bytes` at `path`, durable when this returns. An existing file is replaced as a whole.
    pub async fn put(&self, path: &str, bytes: impl Into<Bytes>) -> Result<()> {
        let path = place::path(path)?;
        self.store.put(&path, bytes.into().into()).await.map_err(|source| Error::Store { act: "write", source })?;
        Ok(())
    }

    /// Deletes every file of an activity: its attachments, and what was fetched for it.
    pub async fn delete_activity(&self, activity: Uuid) -> Result<()> {
        let folder = place::path(&format!("activities/{activity}"))?;
        let failed = |source| Error::Store { act: "delete", source };
        let listed: Vec<_> = self.store.list(Some(&folder)).try_collect().await.map_err(failed)?;
        for file in listed {
            self.delete(file.location.as_ref()).await?;
        }
        Ok(())
    }

    /// Deletes the file. It is no error if the file does not exist.
    pub async fn delete(&self, path: &str) -> Result<()> {
        let path = place::path(path)?;
        match self.store.delete(&path).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(source) => Err(Error::Store { act: "delete", source }),
        }
    }
}
