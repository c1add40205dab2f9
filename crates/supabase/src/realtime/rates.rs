//! How much a client may broadcast: every message is copied to all members of its topic.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use serde_json::Value;

/// The most bytes of one message.
const MOST_BYTES: usize = 256 * 1024;
/// Messages of one socket: so many at once, and so many a second.
const SOCKET: (f64, f64) = (200.0, 100.0);
/// Messages of one address: so many at once, and so many a second.
const ADDRESS: (f64, f64) = (1000.0, 500.0);
/// The most addresses that are remembered. When there are more, all begin anew.
const MOST_ADDRESSES: usize = 10_000;

/// The rates of all addresses.
#[derive(Debug, Default)]
pub(super) struct Rates(Mutex<HashMap<IpAddr, Arc<Mutex<Bucket>>>>);

/// The rate of one socket, and that of its address.
#[derive(Debug)]
pub(super) struct Pace {
    own: Bucket,
    address: Option<Arc<Mutex<Bucket>>>,
}

#[derive(Debug)]
struct Bucket {
    size: f64,
    per_second: f64,
    left: f64,
    at: Instant,
}

impl Bucket {
    fn new((size, per_second): (f64, f64)) -> Self {
        Self { size, per_second, left: size, at: Instant::now() }
    }

    fn take(&mut self) -> bool {
        let now = Instant::now();
        self.left = (self.left + now.duration_since(self.at).as_secs_f64() * self.per_second).min(self.size);
        self.at = now;
        let may = self.left >= 1.0;
        if may {
            self.left -= 1.0;
        }
        may
    }
}

impl Rates {
    /// The pace of a new socket from there.
    pub(super) fn of(&self, address: Option<IpAddr>) -> Pace {
        let shared = address.map(|address| {
            let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if known.len() >= MOST_ADDRESSES {
                known.clear();
            }
            known.entry(address).or_insert_with(|| Arc::new(Mutex::new(Bucket::new(ADDRESS)))).clone()
        });
        Pace { own: Bucket::new(SOCKET), address: shared }
    }
}

impl Pace {
    /// Whether the socket may broadcast this now. The error is meant for the client to read.
    pub(super) fn allows(&mut self, payload: &Value) -> Result<(), &'static str> {
        let address = |bucket: &Arc<Mutex<Bucket>>| bucket.lock().unwrap_or_else(PoisonError::into_inner).take();
        if !self.own.take() || !self.address.as_ref().is_none_or(address) {
            return Err("Too many messages per second");
        }
        if payload.to_string().len() > MOST_BYTES {
            return Err("Payload size exceeds the limit of 256 KiB");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn broadcasts_are_limited_by_socket_by_address_and_in_size() {
        let rates = Rates::default();
        let mut one = rates.of(Some(IpAddr::from([192, 0, 2, 1])));
        let said = json!({"event": "x"});
        let allowed = (0..300).filter(|_| one.allows(&said).is_ok()).count();
        assert!((200..230).contains(&allowed), "{allowed}");
        let of_address: usize = (0..10)
            .map(|_| rates.of(Some(IpAddr::from([192, 0, 2, 1]))))
            .map(|mut pace| (0..150).filter(|_| pace.allows(&said).is_ok()).count())
            .sum();
        assert!((700..1100).contains(&of_address), "{of_address}");
        assert!(rates.of(None).allows(&said).is_ok(), "another is not concerned");
        assert!(rates.of(None).allows(&json!("x".repeat(MOST_BYTES))).is_err());
    }
}
