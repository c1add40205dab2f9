//! The server over standard input and output: one process, one assistant.

use futures_util::future::BoxFuture;
use rmcp::ServiceExt as _;
use rmcp::service::ServerInitializeError;
use tokio::io::{AsyncRead, AsyncWrite};

use super::service::Service;
use super::session::Session;
use super::tools::Tools;

/// Serves one assistant until its end of the pipe closes or `stop` resolves, then releases what it holds. Returns how many items
/// that were.
pub async fn serve_stdio(
    service: &Service,
    pipe: (impl AsyncRead + Send + Unpin + 'static, impl AsyncWrite + Send + Unpin + 'static),
    stop: impl Future<Output = ()>,
) -> Result<usize, std::io::Error> {
    let session = Session::standing(service);
    let agent = session.agent().to_owned();
    // The session is dropped with the connection. Its items are released here, where the release can be awaited.
    let served = tokio::select! {
        served = converse(session, (Box::new(pipe.0), Box::new(pipe.1))) => served,
        () = stop => Ok(()),
    };
    let released = service.renewal().release(Some(&agent)).await;
    served.map(|()| released)
}

type Pipe = (Box<dyn AsyncRead + Send + Unpin>, Box<dyn AsyncWrite + Send + Unpin>);

/// Boxed, including the pipe, so that the protocol is compiled once here and not again for each caller's pipe type.
fn converse(session: Session, pipe: Pipe) -> BoxFuture<'static, Result<(), std::io::Error>> {
    Box::pin(async move {
        match Tools::within(session).serve(pipe).await {
            Ok(running) => running.waiting().await.map(drop).map_err(std::io::Error::other),
            // The client connected and disconnected without a handshake.
            Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
            Err(error) => Err(std::io::Error::other(error)),
        }
    })
}
