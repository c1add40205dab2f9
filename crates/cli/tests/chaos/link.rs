//! The network between an agent and its place: a proxy on loopback that can be cut.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result};
use tokio::io::{AsyncRead, AsyncWrite, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::sync::watch;
use tokio::task::AbortHandle;

/// What the network does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Open,
    /// Nothing passes and nothing is refused: whoever sends waits for an answer. When it ends, what was open is reset.
    Silent,
    /// What was open is reset, and new connections are refused.
    Refused,
}

/// Where a link leads. The server has a new address each time it is started.
#[derive(Debug, Clone)]
pub(crate) struct Far(Arc<Mutex<Option<At>>>);

#[derive(Debug, Clone)]
enum At {
    Database(PathBuf),
    Server(SocketAddr),
}

impl Far {
    pub(crate) fn database(socket: PathBuf) -> Self {
        Self(Arc::new(Mutex::new(Some(At::Database(socket)))))
    }

    /// Nowhere yet.
    pub(crate) fn server() -> Self {
        Self(Arc::default())
    }

    pub(crate) fn moves_to(&self, address: SocketAddr) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(At::Server(address));
    }

    fn at(&self) -> Option<At> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[derive(Debug)]
pub(crate) struct Link {
    pub port: u16,
    way: watch::Sender<Way>,
    task: AbortHandle,
}

impl Link {
    pub(crate) async fn open(far: Far) -> Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let port = listener.local_addr()?.port();
        let (way, is) = watch::channel(Way::Open);
        let task = tokio::spawn(listen(listener, port, far, is)).abort_handle();
        Ok(Self { port, way, task })
    }

    pub(crate) async fn cut(&self, way: Way, time: Duration) {
        self.way.send_replace(way);
        tokio::time::sleep(time).await;
        self.way.send_replace(Way::Open);
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Waits until the network does so.
async fn until(way: &watch::Receiver<Way>, does: impl Fn(Way) -> bool) -> Result<Way> {
    Ok(*way.clone().wait_for(|way| does(*way)).await?)
}

async fn listen(mut listener: TcpListener, port: u16, far: Far, way: watch::Receiver<Way>) -> Result<()> {
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                if let Ok((near, _)) = accepted {
                    tokio::spawn(carry(near, far.clone(), way.clone()));
                }
            }
            refuses = until(&way, |way| way == Way::Refused) => {
                refuses?;
                drop(listener);
                until(&way, |way| way != Way::Refused).await?;
                listener = bind_again(port).await;
            }
        }
    }
}

/// Somebody may have been given the port for a connection of theirs; that passes.
async fn bind_again(port: u16) -> TcpListener {
    loop {
        match TcpListener::bind(("127.0.0.1", port)).await {
            Ok(listener) => return listener,
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
}

async fn carry(near: TcpStream, far: Far, way: watch::Receiver<Way>) -> Result<()> {
    // A reset, as a network makes it, and no farewell.
    near.set_zero_linger()?;
    near.set_nodelay(true)?;
    // Who comes while nothing passes is let in, and waits.
    if until(&way, |way| way != Way::Silent).await? == Way::Refused {
        return Ok(());
    }
    match far.at().context("nobody is there yet")? {
        At::Database(socket) => pump(near, UnixStream::connect(socket).await?, way).await,
        At::Server(address) => pump(near, TcpStream::connect(address).await?, way).await,
    }
}

async fn pump(mut near: TcpStream, mut far: impl AsyncRead + AsyncWrite + Unpin, way: watch::Receiver<Way>) -> Result<()> {
    tokio::select! {
        _ = copy_bidirectional(&mut near, &mut far) => {}
        _ = until(&way, |way| way != Way::Open) => {
            // Both ends stay open, and hear nothing of each other, until the silence ends.
            until(&way, |way| way != Way::Silent).await?;
        }
    }
    Ok(())
}
