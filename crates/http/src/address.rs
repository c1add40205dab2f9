//! Which addresses belong to the public Internet.
//!
//! The lists are those of IANA's special-purpose registries. An address that is not known to be public counts as private.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Whether a request may go to this address on behalf of an external client.
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => is_public_v4(v4),
        IpAddr::V6(v6) => match embedded(v6) {
            Some(v4) => is_public_v4(v4),
            None => is_public_v6(v6),
        },
    }
}

/// The address in its usual form: `::ffff:127.0.0.1` is 127.0.0.1.
pub fn canonical(address: IpAddr) -> IpAddr {
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
mod tests;
