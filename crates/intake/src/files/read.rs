//! Reading: the whole file or a span of it, as a stream.

use std::fmt;
use std::ops::Range;

use bytes::Bytes;
use futures_util::TryStreamExt as _;
use futures_util::stream::{BoxStream, StreamExt as _};
use object_store::{GetOptions, GetRange, ObjectStore as _};

use super::{Error, Files, Result, place};

/// A part of a file, as an HTTP range names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Span {
    /// From the first to the last byte, inclusive. To the end of the file where no last byte is given.
    From { first: u64, last: Option<u64> },
    /// This many bytes at the end.
    Last(u64),
}

/// A file being read.
pub struct Found {
    /// The size of the whole file in bytes.
    pub size: u64,
    /// The bytes that the stream contains.
    pub range: Range<u64>,
    pub stream: BoxStream<'static, Result<Bytes>>,
}

impl fmt::Debug for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Found").field("size", &self.size).field("range", &self.range).finish_non_exhaustive()
    }
}

impl Found {
    /// Reads the whole file into memory, for files known to be small.
    pub async fn bytes(self) -> Result<Bytes> {
        let parts: Vec<Bytes> = self.stream.try_collect().await?;
        Ok(match <[Bytes; 1]>::try_from(parts) {
            Ok([one]) => one,
            Err(parts) => parts.concat().into(),
        })
    }
}

impl Files {
    /// The file at `path`. None when it does not exist.
    pub async fn get(&self, path: &str) -> Result<Option<Found>> {
        self.get_span(path, None).await
    }

    /// Like [`Self::get`], but only a part. A part that begins behind the end is [`Error::Outside`].
    pub async fn get_span(&self, path: &str, span: Option<Span>) -> Result<Option<Found>> {
        let path = place::path(path)?;
        let failed = |source| Error::Store { act: "read", source };
        let mut options = GetOptions::default();
        if let Some(span) = span {
            // Stores treat a range that does not fit differently, so get the size first and request only what exists.
            let size = match self.store.get_opts(&path, GetOptions { head: true, ..GetOptions::default() }).await {
                Ok(found) => found.meta.size,
                Err(object_store::Error::NotFound { .. }) => return Ok(None),
                Err(source) => return Err(failed(source)),
            };
            options.range = Some(GetRange::Bounded(span.within(size).ok_or(Error::Outside { size })?));
        }
        let found = match self.store.get_opts(&path, options).await {
            Ok(found) => found,
            Err(object_store::Error::NotFound { .. }) => return Ok(None),
            Err(source) => return Err(failed(source)),
        };
        let (size, range) = (found.meta.size, found.range.clone());
        Ok(Some(Found { size, range, stream: found.into_stream().map_err(failed).boxed() }))
    }
}

impl Span {
    /// The bytes of a file of `size` that this span covers. None when it covers none.
    pub fn within(self, size: u64) -> Option<Range<u64>> {
        let range = match self {
            Self::From { first, last } => first..last.map_or(size, |last| last.saturating_add(1).min(size)),
            Self::Last(count) => size.saturating_sub(count)..size,
        };
        (range.start < range.end).then_some(range)
    }
}
