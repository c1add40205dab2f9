//! The address of the client, where it can be known.

use std::net::{IpAddr, SocketAddr};

use axum::http::HeaderMap;
use ipnet::IpNet;

/// The sender's address: the peer's, or what trusted proxies say it is.
///
/// Every proxy appends the address it saw, so the list is read from the right, and only as far as the hops are trusted
/// proxies. Everything to the left of the first untrusted address was written by that client. Returns none where a trusted
/// proxy did not say: then the peer is known not to be the sender.
pub fn address(peer: SocketAddr, headers: &HeaderMap, trusted: &[IpNet]) -> Option<IpAddr> {
    let is_trusted = |address: IpAddr| trusted.iter().any(|network| network.contains(&address));
    let peer = plain(peer.ip());
    if !is_trusted(peer) {
        return Some(peer);
    }
    let mut furthest = None;
    // Several headers form one list, in their order.
    let lines: Vec<&str> = headers.get_all("x-forwarded-for").iter().map(|line| line.to_str().unwrap_or("unreadable")).collect();
    for hop in lines.iter().rev().flat_map(|line| line.rsplit(',')) {
        let hop = hop_address(hop.trim())?;
        if !is_trusted(hop) {
            return Some(hop);
        }
        furthest = Some(hop);
    }
    // All of them are trusted proxies, so the request began at the furthest.
    furthest
}

/// `192.0.2.1`, `192.0.2.1:4711`, `2001:db8::1`, `[2001:db8::1]:4711`: proxies write all of them.
fn hop_address(text: &str) -> Option<IpAddr> {
    let with_port = || text.parse::<SocketAddr>().map(|address| address.ip()).ok();
    let in_brackets = || text.strip_prefix('[')?.strip_suffix(']')?.parse().ok();
    text.parse().ok().or_else(with_port).or_else(in_brackets).map(plain)
}

/// An IPv4 address that came in through an IPv6 socket is still that IPv4 address.
fn plain(address: IpAddr) -> IpAddr {
    address.to_canonical()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(text: &str) -> IpNet {
        text.parse().unwrap_or_else(|_| text.parse::<IpAddr>().unwrap().into())
    }

    fn seen(peer: &str, forwarded: &[&str], trusted: &str) -> Option<String> {
        let mut headers = HeaderMap::new();
        for line in forwarded {
            headers.append("x-forwarded-for", line.parse().unwrap());
        }
        headers.insert("x-real-ip", "6.6.6.6".parse().unwrap());
        let trusted: Vec<_> = [trusted].into_iter().filter(|network| !network.is_empty()).map(network).collect();
        headers.insert("forwarded", "for=6.6.6.6".parse().unwrap());
        address(peer.parse().unwrap(), &headers, &trusted).map(|address| address.to_string())
    }

    #[test]
    fn a_stranger_cannot_say_who_it_is() {
        assert_eq!(seen("9.9.9.9:1", &["3.134.147.250"], "10.0.0.0/8").as_deref(), Some("9.9.9.9"));
        assert_eq!(seen("9.9.9.9:1", &["3.134.147.250"], "").as_deref(), Some("9.9.9.9"));
    }

    #[test]
    fn the_list_is_read_from_the_right_and_only_as_far_as_it_is_trusted() {
        let trusted = "10.0.0.0/8";
        assert_eq!(seen("10.0.0.1:1", &["1.1.1.1"], trusted).as_deref(), Some("1.1.1.1"));
        assert_eq!(seen("10.0.0.1:1", &["3.134.147.250, 9.9.9.9"], trusted).as_deref(), Some("9.9.9.9"));
        assert_eq!(seen("10.0.0.1:1", &["3.134.147.250, 9.9.9.9, 10.2.3.4"], trusted).as_deref(), Some("9.9.9.9"));
        assert_eq!(seen("10.0.0.1:1", &["3.134.147.250", "9.9.9.9 , 10.2.3.4:80"], trusted).as_deref(), Some("9.9.9.9"));
        assert_eq!(seen("10.0.0.1:1", &["10.0.0.9, 10.0.0.8"], trusted).as_deref(), Some("10.0.0.9"));
    }

    #[test]
    fn what_a_trusted_proxy_did_not_say_is_not_known() {
        for forwarded in [&[][..], &["unknown"], &["1.1.1.1, nonsense"], &["1.1.1.1,"], &["_hidden"]] {
            assert_eq!(seen("10.0.0.1:1", forwarded, "10.0.0.0/8"), None, "{forwarded:?}");
        }
    }

    #[test]
    fn mapped_addresses_are_ipv4() {
        assert_eq!(seen("[::ffff:9.9.9.9]:1", &[], "").as_deref(), Some("9.9.9.9"));
        assert_eq!(seen("[::ffff:10.0.0.1]:1", &["::ffff:1.1.1.1"], "10.0.0.0/8").as_deref(), Some("1.1.1.1"));
        assert_eq!(seen("[::1]:1", &["[2001:db8::7]:443"], "::1").as_deref(), Some("2001:db8::7"));
    }
}
