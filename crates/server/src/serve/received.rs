//! Which requests of a connection have arrived whole and are not answered yet: a stop waits for those, and for no others.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use http_body::{Frame, SizeHint};
use tokio::sync::watch;

/// How long a request that is still being sent may take once the server stops. Its sender repeats it elsewhere.
const SEND_WITHIN: Duration = Duration::from_secs(2);

/// How many requests of one connection were received whole and are not answered to the last byte.
#[derive(Debug, Clone)]
pub(super) struct InWork(watch::Sender<usize>);

impl InWork {
    pub(super) fn none() -> Self {
        Self(watch::Sender::new(0))
    }

    /// Follows one request: the first body is the request's, the function gives the body of its answer. With `drain`, what a handler
    /// did not read of the body is read and thrown away.
    pub(super) fn follow<B>(&self, body: B, drain: bool) -> (Body, impl FnOnce(Body) -> Body + use<B>)
    where
        B: HttpBody<Data = Bytes> + Send + Unpin + 'static,
        B::Error: Into<axum::BoxError>,
    {
        let request = Arc::new(Request { in_work: self.0.clone(), received: AtomicBool::new(false) });
        if body.is_end_stream() {
            request.has_arrived();
        }
        let answering = Arc::clone(&request);
        let body = Draining { body: Some(body), drain };
        (Body::new(Followed { body, request }), move |answer| Body::new(Followed { body: answer, request: answering }))
    }

    /// Returns when the server stops and this connection has no request left to answer.
    pub(super) async fn none_after(&self, mut stop: watch::Receiver<bool>) {
        // A closed channel is a stop as well.
        let _ = stop.wait_for(|stopped| *stopped).await;
        tokio::time::sleep(SEND_WITHIN).await;
        let _ = self.0.subscribe().wait_for(|count| *count == 0).await;
    }
}

/// Counted from its last byte received to the last byte of its answer.
#[derive(Debug)]
struct Request {
    in_work: watch::Sender<usize>,
    received: AtomicBool,
}

impl Request {
    fn has_arrived(&self) {
        if !self.received.swap(true, Ordering::Relaxed) {
            self.in_work.send_modify(|count| *count += 1);
        }
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        if *self.received.get_mut() {
            self.in_work.send_modify(|count| *count -= 1);
        }
    }
}

/// A body that keeps its request counted.
#[derive(Debug)]
struct Followed<B> {
    body: B,
    request: Arc<Request>,
}

impl<B: HttpBody<Data = Bytes> + Unpin> HttpBody for Followed<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let frame = Pin::new(&mut self.body).poll_frame(context);
        // The answer's body gets here too, after the request's or instead of it. Either way the request is being answered.
        if matches!(frame, Poll::Ready(None)) || self.body.is_end_stream() {
            self.request.has_arrived();
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The most that is read of a body that no handler wants, and for how long.
const MOST_DRAINED: usize = 32 << 20;
const DRAIN_WITHIN: Duration = Duration::from_secs(10);

/// A request's body that is read to its end even if its handler answers without it. Otherwise the connection would be closed while the
/// client still sends, and the client would see a broken connection instead of the answer.
struct Draining<B: HttpBody<Data = Bytes> + Send + Unpin + 'static> {
    /// There until it is dropped.
    body: Option<B>,
    drain: bool,
}

impl<B: HttpBody<Data = Bytes> + Send + Unpin + 'static> HttpBody for Draining<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        match &mut self.body {
            Some(body) => Pin::new(body).poll_frame(context),
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(HttpBody::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map(HttpBody::size_hint).unwrap_or_default()
    }
}

impl<B: HttpBody<Data = Bytes> + Send + Unpin + 'static> Drop for Draining<B> {
    fn drop(&mut self) {
        let Some(mut body) = self.body.take().filter(|body| self.drain && !body.is_end_stream()) else { return };
        // Outside a runtime the connection is gone as well.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        runtime.spawn(tokio::time::timeout(DRAIN_WITHIN, async move {
            let mut read = 0;
            while let Some(Ok(frame)) = std::future::poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
                read += frame.data_ref().map_or(0, Bytes::len);
                if read > MOST_DRAINED {
                    break;
                }
            }
        }));
    }
}
