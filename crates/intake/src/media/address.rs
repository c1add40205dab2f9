//! Which addresses belong to the public Internet.
//!
//! The lists are those of IANA's special-purpose registries. An address that is not known to be public counts as private.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Whether a request may go to this address on behalf of an external client.
pub(super) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => is_public_v4(v4),
        IpAddr::V6(v6) => match embedded(v6) {
            Some(v4) => is_public_v4(v4),
            None => is_public_v6(v6),
        },
    }
}

/// The address in its usual form: `::ffff:127.0.0.1` is 127.0.0.1.
pub(super) fn canonical(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V6(v6) => embedded(v6).map_or(address, IpAddr::V4),
        IpAddr::V4(_) => address,
    }
}

/// The IPv4 address that packets to this address reach: mapped (`::ffff:0:0/96`) or translated (`64:ff9b::/96`).
fn embedded(v6: Ipv6Addr) -> Option<Ipv4Addr> {
    if let Some(v4) = v6.to_ipv4_mapped() {
        return Some(v4);
    }
    let [a, b, 0, 0, 0, 0, high, low] = v6.segments() else { return None };
    if (a, b) != (0x64, 0xff9b) {
        return None;
    }
    Some(Ipv4Addr::from((u32::from(high) << 16) | u32::from(low)))
}

fn is_public_v4(v4: Ipv4Addr) -> bool {
    let [a, b, c, _] = v4.octets();
    let special = matches!(
        (a, b, c),
        (0 | 10 | 127, _, _)            // this network, private, loopback
            | (100, 64..=127, _)        // shared by carriers
            | (169, 254, _)             // link-local, and the metadata services of clouds
            | (172, 16..=31, _)         // private
            | (192, 0, 0 | 2)           // protocol assignments, documentation
            | (192, 88, 99)             // 6to4 relays
            | (192, 168, _)             // private
            | (198, 18 | 19, _)         // benchmarks
            | (198, 51, 100)            // documentation
            | (203, 0, 113)             // documentation
            | (224.., _, _) // multicast, reserved, broadcast
    );
    !special
}

fn is_public_v6(v6: Ipv6Addr) -> bool {
    let [a, b, ..] = v6.segments();
    // Only 2000::/3 is allocated; loopback, unique local, link-local, multicast and local translation lie outside.
    let global = (0x2000..=0x3fff).contains(&a);
    let special = matches!((a, b), (0x2001, 0..=0x1ff))     // protocol assignments, Teredo among them
        || (a, b) == (0x2001, 0xdb8)                        // documentation
        || a == 0x2002                                      // 6to4: contains an IPv4 address
        || (a == 0x3fff && b <= 0xfff); // documentation
    global && !special
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_public_is_refused_in_every_spelling() {
        for private in [
            "0.0.0.0",
            "10.1.2.3",
            "100.64.0.1",
            "100.127.255.255",
            "127.0.0.1",
            "127.9.9.9",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.1",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.0.1",
            "198.18.0.1",
            "198.19.255.255",
            "198.51.100.7",
            "203.0.113.9",
            "224.0.0.1",
            "239.255.255.255",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "::127.0.0.1",
            "64:ff9b::7f00:1",
            "64:ff9b::a9fe:a9fe",
            "64:ff9b:1::1",
            "100::1",
            "2001::1",
            "2001:1ff::1",
            "2001:db8::1",
            "2002:7f00:1::",
            "3fff::1",
            "5f00::1",
            "fc00::1",
            "fd12:3456::1",
            "fe80::1",
            "fec0::1",
            "ff02::1",
        ] {
            assert!(!is_public(private.parse().unwrap()), "{private} passed as public");
        }
    }

    #[test]
    fn public_addresses_pass() {
        for public in [
            "1.1.1.1",
            "8.8.8.8",
            "100.63.255.255",
            "100.128.0.1",
            "172.15.0.1",
            "172.32.0.1",
            "192.0.1.1",
            "198.17.0.1",
            "198.20.0.1",
            "223.255.255.255",
            "::ffff:8.8.8.8",
            "64:ff9b::808:808",
            "2001:200::1",
            "2606:4700::1111",
            "2a00:1450::1",
            "3ffe::1",
        ] {
            assert!(is_public(public.parse().unwrap()), "{public} was refused");
        }
    }
}
