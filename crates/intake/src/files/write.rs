//! Writing files from streams.

use bytes::Bytes;
use futures_util::{Stream, StreamExt as _};
use object_store::{ObjectStoreExt as _, WriteMultipart};
use tokio::sync::mpsc;

use super::{Error, Files, Result, place};

impl Files {
    /// Stores the content of the stream, at most `limit` bytes, without holding it in memory. The file is stored as a whole
    /// or not at all: a source that fails or sends too much leaves nothing behind. Returns the size.
    pub async fn put_stream<E: std::fmt::Display>(
        &self,
        path: &str,
        stream: impl Stream<Item = std::result::Result<Bytes, E>>,
        limit: u64,
    ) -> Result<u64> {
        let mut writing = self.begin(path).await?;
        let mut stream = std::pin::pin!(stream);
        loop {
            match stream.next().await {
                None => return writing.finish().await,
                Some(Ok(bytes)) if writing.size + bytes.len() as u64 > limit => {
                    drop(bytes);
                    writing.abandon().await;
                    return Err(Error::TooLarge { limit });
                }
                Some(Ok(bytes)) => {
                    if let Err(error) = writing.write(bytes).await {
                        writing.abandon().await;
                        return Err(error);
                    }
                }
                Some(Err(error)) => {
                    writing.abandon().await;
                    return Err(Error::Source(error.to_string()));
                }
            }
        }
    }

    /// Stores a copy of something that is being sent elsewhere. The pieces go into the returned sender. The file appears
    /// only when the last piece is [`Copied::Whole`], so that a reader who leaves early leaves no partial file.
    pub fn put_beside(&self, path: &str, limit: u64) -> Result<mpsc::Sender<Copied>> {
        place::path(path)?;
        let (sender, mut pieces) = mpsc::channel::<Copied>(16);
        let (files, path) = (self.clone(), path.to_owned());
        tokio::spawn(async move {
            let mut whole = false;
            let stream = futures_util::stream::poll_fn(|context| match std::task::ready!(pieces.poll_recv(context)) {
                Some(Copied::Piece(bytes)) => std::task::Poll::Ready(Some(Ok(bytes))),
                Some(Copied::Whole) => {
                    whole = true;
                    std::task::Poll::Ready(None)
                }
                None if whole => std::task::Poll::Ready(None),
                None => std::task::Poll::Ready(Some(Err("its reader left"))),
            });
            match files.put_stream(&path, stream, limit).await {
                Ok(size) => tracing::debug!(path, size, "kept a copy"),
                Err(error) => tracing::debug!(path, %error, "kept no copy"),
            }
        });
        Ok(sender)
    }

    async fn begin(&self, path: &str) -> Result<Writing> {
        let path = place::path(path)?;
        let upload = self.store.put_multipart(&path).await.map_err(|source| Error::Store { act: "begin", source })?;
        Ok(Writing { upload: WriteMultipart::new(upload), size: 0 })
    }
}

/// One piece of a copy, or the message that it is complete.
#[derive(Debug)]
pub enum Copied {
    Piece(Bytes),
    Whole,
}

struct Writing {
    upload: WriteMultipart,
    size: u64,
}

impl Writing {
    async fn write(&mut self, bytes: Bytes) -> Result<()> {
        self.size += bytes.len() as u64;
        // A slow store slows the source down instead of filling the memory.
        self.upload.wait_for_capacity(2).await.map_err(|source| Error::Store { act: "write", source })?;
        self.upload.put(bytes);
        Ok(())
    }

    async fn finish(self) -> Result<u64> {
        self.upload.finish().await.map_err(|source| Error::Store { act: "finish", source })?;
        Ok(self.size)
    }

    async fn abandon(self) {
        if let Err(error) = self.upload.abort().await {
            tracing::debug!(%error, "could not remove a file that was begun");
        }
    }
}
