//! Rate limits for webhooks.
//!
//! Requests that are not authentic are counted by channel and client, so that an attacker uses up only its own limit.
//! Without a channel they are counted by client alone. Authentic requests are never refused because of that count, even if
//! they share an address with the attacker (behind a proxy that is not configured). A client that failed too often only has
//! to wait for one of a few slots. Authentic requests have a ceiling of their own, far above what a channel is meant for.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::num::NonZeroU32;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use governor::clock::{Clock as _, DefaultClock};
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use tokio::sync::{Semaphore, SemaphorePermit};
use uuid::Uuid;

use super::settings;

/// What is counted together: a client at a channel; a client without a channel; all clients beyond [`MANY`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Suspect {
    At(Option<Uuid>, IpAddr),
    Further,
}

/// The most suspects that are counted separately. Beyond that they share one count, so that memory is limited whatever
/// addresses are used.
const MANY: usize = 50_000;

/// The most requests of suspects that are processed at the same time.
const NARROW: usize = 8;

/// How long a suspect's request waits for a slot.
const PATIENCE: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(super) struct Limits {
    rejected: DefaultKeyedRateLimiter<Suspect>,
    ceiling: Option<DefaultKeyedRateLimiter<Uuid>>,
    clock: DefaultClock,
    /// Until when a suspect has to wait for a slot.
    suspects: Mutex<HashMap<Suspect, Instant>>,
    narrow: Semaphore,
}

/// Permission to go on, held while the request is processed.
#[derive(Debug)]
pub(super) struct Pass<'a>(#[allow(dead_code)] Option<SemaphorePermit<'a>>);

impl Limits {
    pub(super) fn new(limits: &settings::Limits) -> Self {
        let some = |count: u32| NonZeroU32::new(count).unwrap_or(NonZeroU32::MIN);
        let ceiling = NonZeroU32::new(limits.ceiling_per_minute).map(|rate| {
            let burst = some(limits.ceiling_per_minute.saturating_mul(limits.ceiling_burst_minutes.max(1)));
            RateLimiter::keyed(Quota::per_minute(rate).allow_burst(burst))
        });
        Self {
            rejected: RateLimiter::keyed(Quota::per_minute(some(limits.rejected_per_minute))),
            ceiling,
            clock: DefaultClock::default(),
            suspects: Mutex::default(),
            narrow: Semaphore::new(NARROW),
        }
    }

    /// Call before a request is processed. Returns at once, or after a wait for a slot if the client is a suspect. An error
    /// says when to retry.
    pub(super) async fn enter(&self, channel: Option<Uuid>, client: IpAddr) -> Result<Pass<'_>, Duration> {
        if !self.is_suspect(channel, client) {
            return Ok(Pass(None));
        }
        match tokio::time::timeout(PATIENCE, self.narrow.acquire()).await {
            Ok(Ok(permit)) => Ok(Pass(Some(permit))),
            _ => Err(PATIENCE),
        }
    }

    fn is_suspect(&self, channel: Option<Uuid>, client: IpAddr) -> bool {
        let suspects = self.suspects.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let waits = |suspect| suspects.get(&suspect).is_some_and(|until| *until > now);
        !suspects.is_empty() && (waits(Suspect::At(channel, block(client))) || waits(Suspect::Further))
    }

    /// Counts a request that is not authentic. An error says when this client may try again.
    pub(super) fn blame(&self, channel: Option<Uuid>, client: IpAddr) -> Result<(), Duration> {
        let suspect = if self.rejected.len() < MANY { Suspect::At(channel, block(client)) } else { Suspect::Further };
        let Err(not_yet) = self.rejected.check_key(&suspect) else { return Ok(()) };
        let wait = not_yet.wait_time_from(self.clock.now());
        let mut suspects = self.suspects.lock().unwrap_or_else(PoisonError::into_inner);
        if suspects.len() < MANY {
            // Longer than until the next single request is allowed, which is half a second.
            suspects.insert(suspect, Instant::now() + Duration::from_secs(60));
        }
        Err(wait)
    }

    /// Counts an authentic request. An error says when the channel is below its ceiling again.
    pub(super) fn admit(&self, channel: Uuid) -> Result<(), Duration> {
        let Some(ceiling) = &self.ceiling else { return Ok(()) };
        ceiling.check_key(&channel).map_err(|not_yet| not_yet.wait_time_from(self.clock.now()))
    }

    /// Removes clients that have been quiet. Called regularly.
    pub(super) fn tidy(&self) {
        self.rejected.retain_recent();
        self.rejected.shrink_to_fit();
        if let Some(ceiling) = &self.ceiling {
            ceiling.retain_recent();
        }
        let now = Instant::now();
        self.suspects.lock().unwrap_or_else(PoisonError::into_inner).retain(|_, until| *until > now);
    }
}

/// One customer of an IPv6 provider can send from a whole /64.
fn block(client: IpAddr) -> IpAddr {
    match client {
        IpAddr::V4(_) => client,
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX))),
    }
}

#[cfg(test)]
mod tests;
