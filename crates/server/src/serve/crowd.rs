//! How many connections there may be, in total and from one address.

use std::collections::HashMap;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use ipnet::IpNet;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::config::Connections;

/// Descriptors that are not for clients: PostgreSQL, files, fetched media.
const RESERVED: u64 = 200;

/// The connections that are open.
#[derive(Debug, Clone)]
pub(super) struct Crowd(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    most: usize,
    per_address: usize,
    /// Proxies bring the connections of many clients.
    proxies: Vec<IpNet>,
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    total: usize,
    by_address: HashMap<IpAddr, usize>,
}

/// A place among the open connections, until it is dropped.
#[derive(Debug)]
pub(super) struct Place {
    crowd: Crowd,
    address: IpAddr,
}

impl Crowd {
    /// The configured limits. In total never more than there are descriptors for.
    pub(super) fn new(connections: Connections, proxies: Vec<IpNet>) -> Self {
        let room = raise_descriptor_limit().saturating_sub(RESERVED).max(16);
        let most = connections.most.min(usize::try_from(room).unwrap_or(usize::MAX));
        Self(Arc::new(Inner { most, per_address: connections.per_address, proxies, open: Mutex::default() }))
    }

    /// A place for one more connection from there; none when there are too many.
    pub(super) fn enter(&self, peer: IpAddr) -> Option<Place> {
        let address = network(peer);
        let mut open = self.open();
        let of_address = open.by_address.get(&address).copied().unwrap_or(0);
        let is_proxy = self.0.proxies.iter().any(|proxy| proxy.contains(&peer.to_canonical()));
        if open.total >= self.0.most || (of_address >= self.0.per_address && !is_proxy) {
            return None;
        }
        open.total += 1;
        open.by_address.insert(address, of_address + 1);
        Some(Place { crowd: self.clone(), address })
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.0.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut open = self.crowd.open();
        open.total -= 1;
        if let Some(count) = open.by_address.get_mut(&self.address) {
            *count -= 1;
            if *count == 0 {
                open.by_address.remove(&self.address);
            }
        }
    }
}

/// What one client usually has: an IPv4 address, or a /64 of IPv6.
fn network(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        IpAddr::V6(v6) => IpAddr::V6((u128::from(v6) & !u128::from(u64::MAX)).into()),
        v4 @ IpAddr::V4(_) => v4,
    }
}

/// Raises the soft limit of open descriptors to the hard one, and returns it. Shells start programs with a soft limit of a thousand.
fn raise_descriptor_limit() -> u64 {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    match getrlimit(Resource::RLIMIT_NOFILE) {
        Ok((soft, hard)) if soft < hard && setrlimit(Resource::RLIMIT_NOFILE, hard, hard).is_ok() => hard,
        Ok((soft, _)) => soft,
        Err(_) => 1024,
    }
}

/// A stream that keeps its place as long as it lives: a WebSocket outlives the HTTP connection it began as.
#[derive(Debug)]
pub(super) struct Placed<S> {
    pub stream: S,
    pub _place: Place,
}

impl<S: AsyncRead + Unpin> AsyncRead for Placed<S> {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Placed<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[std::io::IoSlice<'_>],
    ) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_are_limited_in_total_and_by_address_and_proxies_only_in_total() {
        let crowd = Crowd::new(Connections { most: 4, per_address: 2 }, vec!["192.0.2.0/24".parse().unwrap()]);
        let enter = |address: &str| crowd.enter(address.parse().unwrap());
        let (one, two) = (enter("198.51.100.1"), enter("::ffff:198.51.100.1"));
        assert!(one.is_some() && two.is_some() && enter("198.51.100.1").is_none());
        let (three, four) = (enter("2001:db8::1"), enter("2001:db8::2"));
        assert!(three.is_some() && four.is_some() && enter("203.0.113.1").is_none());
        drop((one, two, three));
        assert!(enter("2001:db8::3").is_some(), "one of this network has left");
        let proxied: Vec<_> = (0..4).map(|_| enter("192.0.2.7")).collect();
        assert_eq!(proxied.iter().flatten().count(), 3, "the others' places are left");
    }
}
