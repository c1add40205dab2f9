//! The client's address, for limits and for the list of sessions.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use axum::extract::ConnectInfo;
use axum::http::HeaderMap;
use axum::http::request::Parts;

type Find = dyn Fn(SocketAddr, &HeaderMap) -> Option<IpAddr> + Send + Sync;

/// How the client's address is found from the peer's address and the headers. By default it is the peer's.
#[derive(Clone)]
pub struct ClientAddress(Arc<Find>);

impl ClientAddress {
    pub fn by(find: impl Fn(SocketAddr, &HeaderMap) -> Option<IpAddr> + Send + Sync + 'static) -> Self {
        Self(Arc::new(find))
    }

    pub(crate) fn of(&self, parts: &Parts) -> Option<IpAddr> {
        let ConnectInfo(peer) = parts.extensions.get::<ConnectInfo<SocketAddr>>()?;
        (self.0)(*peer, &parts.headers)
    }
}

impl Default for ClientAddress {
    fn default() -> Self {
        Self::by(|peer, _| Some(peer.ip().to_canonical()))
    }
}

impl fmt::Debug for ClientAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClientAddress")
    }
}

/// The network that limits count by: that of one household or machine. A client with one IPv6 address has 2^64 of them.
pub(super) fn network(address: Option<IpAddr>) -> Option<IpAddr> {
    address.map(|address| match address {
        IpAddr::V6(v6) => IpAddr::V6(Ipv6Addr::from(u128::from(v6) & (u128::MAX << 64))),
        v4 => v4,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_household_counts_as_one() {
        let of = |text: &str| network(text.parse().ok()).map(|a| a.to_string());
        assert_eq!(of("2001:db8:1:2:3:4:5:6"), of("2001:db8:1:2::9"));
        assert_ne!(of("2001:db8:1:2::9"), of("2001:db8:1:3::9"));
        assert_eq!(of("192.0.2.7").as_deref(), Some("192.0.2.7"));
    }
}
